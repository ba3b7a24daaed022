"""The pages of `/lens/v1/` about a snapshot, with its own workers: nothing else is kept waiting.

    GET  state, queue, nodes/{name}, pods/{namespace}/{name}/explain, records
    POST what-if, capacity
    POST read-again                            of a cluster: it is read anew

Explanations are made on one thread and imagined clusters on another, one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

import msgspec
from aiohttp import web

from mooring.errors import ConfigError
from mooring.lens.api import DEPTHS
from mooring.lens.offline import OfflineLens
from mooring.lens.waiting_list import MOST_ROWS
from mooring.ui.access import Denial
from mooring.ui.lens import PREFIX
from mooring.ui.pages import JSON

T = TypeVar("T")

MAX_BODY: Final = 4 * 1024 * 1024  # bytes of a question
_NOT_FOUND: Final = Denial(404, "NotFound", "there is no such page below /lens/ for a file")
_NOT_ALLOWED: Final = Denial(405, "MethodNotAllowed", "this method is not allowed here")
_BUSY: Final = Denial(
    429, "TooManyRequests", "another question is being worked on; try again when it is answered"
)


class Imagines(Protocol):
    """Answers the body of a question with a struct; raises ConfigError."""

    def what_if(self, body: bytes) -> msgspec.Struct: ...

    def capacity(self, body: bytes) -> msgspec.Struct: ...


ReadAgain = Callable[[], tuple[OfflineLens, Imagines]]


class FileLens:
    """Answers about one snapshot, or the newest of a cluster; to be closed."""

    def __init__(
        self, lens: OfflineLens, imagines: Imagines, read_again: ReadAgain | None = None
    ) -> None:
        self._lens = lens
        self._imagines = imagines
        self._read_again = read_again
        self._explaining = ThreadPoolExecutor(1, "explain")
        self._imagining = ThreadPoolExecutor(1, "imagine")
        self._is_imagining = False
        self._state: bytes | None = None  # it does not change

    async def warm_up(self) -> None:
        """Take the time that the first answer takes before one is asked for."""
        await self._explained(self._encoded_state)

    def close(self) -> None:
        """Without waiting for what is being worked on."""
        self._explaining.shutdown(wait=False, cancel_futures=True)
        self._imagining.shutdown(wait=False, cancel_futures=True)

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        asks = request.method == "POST"
        try:
            match request.path.removeprefix(PREFIX).split("/"):
                case ["v1", "what-if"]:
                    answer = await self._question(request, self._imagines.what_if)
                case ["v1", "capacity"]:
                    answer = await self._question(request, self._imagines.capacity)
                case ["v1", "read-again"] if asks and self._read_again is not None:
                    answer = await self._explained(self._replaced)
                case ["v1", *_] if asks:
                    return _NOT_ALLOWED
                case ["v1", "state"]:
                    answer = await self._explained(self._encoded_state)
                case ["v1", "queue"]:
                    answer = await self._queue(request)
                case ["v1", "records"]:
                    answer = msgspec.json.encode(self._lens.records())
                case ["v1", "nodes", name]:
                    answer = await self._node(name)
                case ["v1", "pods", namespace, name, "explain"]:
                    answer = await self._explain(request, f"{namespace}/{name}")
                case _:
                    return _NOT_FOUND
        except ConfigError as error:
            return Denial(422, "Invalid", "\n".join(map(str, error.problems)))
        if isinstance(answer, Denial):
            return answer
        response = web.Response(body=answer, headers={"Content-Type": JSON})
        if len(answer) > 1024:
            response.enable_compression()
        return response

    # --- answers ---------------------------------------------------------------------------------

    def _encoded_state(self) -> bytes:
        if self._state is None:
            self._state = msgspec.json.encode(self._lens.state())
        return self._state

    def _replaced(self) -> bytes:
        """Read the cluster anew; answers that are being worked on keep the old one."""
        assert self._read_again is not None
        lens, imagines = self._read_again()
        state = msgspec.json.encode(lens.state())
        self._lens, self._imagines, self._state = lens, imagines, state
        return b"{}"

    async def _queue(self, request: web.BaseRequest) -> bytes | Denial:
        try:
            limit = int(request.query.get("limit", MOST_ROWS))
        except ValueError:
            return Denial(400, "BadRequest", "limit: expected a number")
        place = request.query.get("place", "")
        return await self._explained(lambda: msgspec.json.encode(self._lens.queue(place, limit)))

    async def _node(self, name: str) -> bytes | Denial:
        found = await self._explained(lambda: self._lens.node(name))
        if found is None:
            return Denial(404, "NotFound", f'nodes "{name}" not found')
        return msgspec.json.encode(found)

    async def _explain(self, request: web.BaseRequest, key: str) -> bytes | Denial:
        depth = DEPTHS.get(request.query.get("depth", "groups"))
        if depth is None:
            return Denial(400, "BadRequest", f"depth: expected {' or '.join(DEPTHS)}")
        if "at" in request.query:
            return Denial(400, "BadRequest", "at: a snapshot is one moment, without attempts")
        ask = tuple(request.query.getall("node", []))
        found = await self._explained(lambda: self._lens.explain(key, depth, ask))
        if found is None:
            return Denial(404, "NotFound", f'pods "{key}" not found')
        return msgspec.json.encode(found)

    async def _question(
        self, request: web.BaseRequest, ask: Callable[[bytes], msgspec.Struct]
    ) -> bytes | Denial:
        if request.method != "POST":
            return _NOT_ALLOWED
        body = await read_body(request)
        if body is None:
            return Denial(413, "RequestEntityTooLarge", f"expected at most {MAX_BODY:,} bytes")
        if self._is_imagining:
            return _BUSY
        self._is_imagining = True
        work = asyncio.get_running_loop().run_in_executor(self._imagining, ask, body)
        work.add_done_callback(self._ended)
        return msgspec.json.encode(await asyncio.shield(work))

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self._is_imagining = False
        if not work.cancelled():
            work.exception()  # the client may have gone

    async def _explained(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._explaining, work)


async def read_body(request: web.BaseRequest) -> bytes | None:
    """The body of a question; None if it is too long."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > MAX_BODY:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
