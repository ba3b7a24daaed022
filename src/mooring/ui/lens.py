"""The pages of `/lens/v1/`: what a running scheduler sees, decided and would decide.

    GET  state, queue, nodes/{name}, records
    GET  stream                              changes, as Server-Sent Events
    GET  pods/{namespace}/{name}/explain     ?depth=groups (default), matrix or remedies;
                                             ?preemption=true (default) or false;
                                             ?at= the number of an attempt, with a journal
    GET  snapshot                            a file for `mooring explain --from` and others
    POST what-if, capacity                   bodies and answers as of the commands
    GET  openapi.json

What is shown follows what a caller may list, see `lens.sight`; a reader of one namespace names it:
`?namespace=`. What paths it may get, or which are open to all, makes no difference.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from importlib.resources import files
from typing import Final, Protocol

from aiohttp import web

from mooring.api.auth import ResourceAttributes
from mooring.api.meta import parse_time
from mooring.errors import ConfigError
from mooring.lens.api import DEPTHS, Depth
from mooring.lens.live_explanations import ExplanationQuery
from mooring.lens.live_views import MOST_RECORDS, RecordQuery
from mooring.lens.sight import WHOLE, Sight
from mooring.lens.slices import Busy
from mooring.lens.state import time_text
from mooring.lens.stream import LONGEST
from mooring.lens.waiting_list import MOST_ROWS, PLACES
from mooring.observe.listener import prolong
from mooring.ui.access import Denial
from mooring.ui.pages import HEADERS, JSON

log = logging.getLogger(__name__)

PREFIX: Final = "/lens/"
LIST_NODES: Final = ResourceAttributes(verb="list", resource="nodes")
LIST_PODS: Final = ResourceAttributes(verb="list", resource="pods")
OUTCOMES: Final = ("scheduled", "unschedulable", "nominated", "error")
METHODS: Final = ("GET", "HEAD", "POST")
_LONGEST: Final = 300.0  # seconds for a snapshot
_WORKING: Final = 90.0  # seconds for a worker's answer
_KEEP_ALIVE: Final = 30.0  # seconds until the next request
_MANY_BYTES: Final = 4_096  # fewer are not worth compressing

NO_JOURNAL: Final = (
    "at: past attempts can't be explained without a journal (--record-journal);"
    " without `at` the pod is explained as it is now"
)
_HIDDEN: Final = Denial(
    403,
    "Forbidden",
    "forbidden: cannot list pods and nodes in all namespaces, which this path needs",
)


class Views(Protocol):
    """What is shown at once, or in slices."""

    async def state(self, sight: Sight) -> bytes: ...

    async def queue(self, sight: Sight, place: str = "", limit: int = MOST_ROWS) -> bytes: ...

    async def node(self, name: str, sight: Sight) -> bytes | None: ...

    async def records(self, sight: Sight, query: RecordQuery) -> bytes | None: ...

    def stream(self, sight: Sight) -> AsyncGenerator[bytes, None]: ...


class Lens(Protocol):
    """What is shown; all raise `Busy` if too many ask, generators before the first chunk."""

    @property
    def views(self) -> Views: ...

    async def explain(self, key: str, query: ExplanationQuery) -> bytes | None: ...

    async def explain_past(
        self, key: str, seq: int, *, depth: Depth = "groups", ask: Sequence[str] = ()
    ) -> bytes | None: ...

    async def ask(self, question: str, body: bytes) -> bytes: ...

    def snapshot(self) -> AsyncGenerator[bytes, None]: ...


class _BadRequest(Exception):
    """A parameter that can't be read."""


class LensPages:
    """The pages of one scheduler, for callers that were authorised."""

    def __init__(self, lens: Lens) -> None:
        self._lens = lens

    async def respond(
        self, request: web.BaseRequest, sight: Sight = WHOLE
    ) -> web.StreamResponse | Denial:
        """The answer to a request, with no more than `sight` allows."""
        prolong(request, _KEEP_ALIVE)
        try:
            return await self._respond(request, sight)
        except Busy as error:
            return Denial(429, "TooManyRequests", f"{error}; try again")
        except (_BadRequest, ConfigError) as error:
            return Denial(400, "BadRequest", str(error))
        except web.HTTPRequestEntityTooLarge as error:
            return Denial(413, "RequestEntityTooLarge", error.text or "the question is too long")

    async def _respond(self, request: web.BaseRequest, sight: Sight) -> web.StreamResponse | Denial:
        views, path = self._lens.views, request.path.removeprefix(PREFIX).split("/")
        is_post = request.method == "POST"
        match path:
            case ["v1", "what-if" | "capacity" as question]:
                if not is_post:
                    return Denial(405, "MethodNotAllowed", "this path needs a POST")
                return await self._ask(request, sight, question, await request.read())
            case _ if is_post:
                return Denial(405, "MethodNotAllowed", "only what-if and capacity allow a POST")
            case ["v1", "state"]:
                return await _json(request, await views.state(sight))
            case ["v1", "queue"]:
                place = _choice(request, "place", tuple(PLACES.values()))
                limit = _number(request, "limit", MOST_ROWS, MOST_ROWS)
                return await _json(request, await views.queue(sight, place, limit))
            case ["v1", "nodes", name]:
                if not sight.nodes:
                    return _HIDDEN
                found = await views.node(name, sight)
                return await _found(request, found, f'nodes "{name}" not found')
            case ["v1", "records"]:
                if not sight.pods and not sight.namespace:
                    return _HIDDEN
                found = await views.records(sight, _record_query(request))
                return await _found(request, found, "no records are kept (--record-size 0)")
            case ["v1", "pods", namespace, name, "explain"]:
                return await self._explain(request, sight, namespace, name)
            case ["v1", "snapshot"]:
                return await self._snapshot(request) if sight.is_whole else _HIDDEN
            case ["v1", "stream"]:
                return await self._stream(request, sight)
            case ["v1", "openapi.json"]:
                return await _json(request, openapi())
        return Denial(404, "NotFound", "there is no such page below /lens/")

    async def _explain(
        self, request: web.BaseRequest, sight: Sight, namespace: str, name: str
    ) -> web.StreamResponse | Denial:
        depth = DEPTHS.get(_choice(request, "depth", tuple(DEPTHS)), "groups")
        is_past = "at" in request.query
        if not sight.sees(namespace) or ((depth != "groups" or is_past) and not sight.is_whole):
            return _HIDDEN
        key = f"{namespace}/{name}"
        if is_past:
            return await self._explain_past(request, key, depth)
        if depth == "remedies":
            return await self._ask(request, sight, f"remedies {key}", b"")
        preemption = _choice(request, "preemption", ("true", "false")) != "false"
        query = ExplanationQuery(
            matrix=depth == "matrix",
            preemption=preemption and sight.is_whole,
            ask=request.query.getall("node", []) if sight.is_whole else [],
            sight=sight,
        )
        found = await self._lens.explain(key, query)
        return await _found(request, found, f'pods "{key}" not found, or it has ended')

    async def _explain_past(
        self, request: web.BaseRequest, key: str, depth: Depth
    ) -> web.StreamResponse | Denial:
        seq = _number(request, "at", 1, 2**62)
        prolong(request, _WORKING)
        ask = request.query.getall("node", [])
        found = await self._lens.explain_past(key, seq, depth=depth, ask=ask)
        return await _found(request, found, NO_JOURNAL)

    async def _ask(
        self, request: web.BaseRequest, sight: Sight, question: str, body: bytes
    ) -> web.StreamResponse | Denial:
        if not sight.is_whole:
            return _HIDDEN
        prolong(request, _WORKING)
        return await _json(request, await self._lens.ask(question, body))

    async def _snapshot(self, request: web.BaseRequest) -> web.StreamResponse:
        prolong(request, _LONGEST)
        name = {"Content-Disposition": 'attachment; filename="cluster.snap.gz"'}
        headers = {**HEADERS, **name, "Content-Type": "application/gzip"}
        return await _sent(request, headers, self._lens.snapshot())

    async def _stream(self, request: web.BaseRequest, sight: Sight) -> web.StreamResponse:
        prolong(request, LONGEST + _KEEP_ALIVE)
        headers = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        return await _sent(request, headers, self._lens.views.stream(sight))


def openapi() -> bytes:
    """The description of all of this: OpenAPI 3.1, as checked in."""
    return files("mooring.ui").joinpath("lens-v1.openapi.json").read_bytes()


async def _found(
    request: web.BaseRequest, body: bytes | None, otherwise: str
) -> web.StreamResponse | Denial:
    return Denial(404, "NotFound", otherwise) if body is None else await _json(request, body)


async def _json(request: web.BaseRequest, body: bytes) -> web.Response:
    headers = {"Content-Type": JSON, "Vary": "Accept-Encoding"}
    if len(body) >= _MANY_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)  # off the loop
    return web.Response(body=body, headers=headers)


async def _sent(
    request: web.BaseRequest, headers: dict[str, str], chunks: AsyncGenerator[bytes, None]
) -> web.StreamResponse:
    """An answer in chunks; if one can't be made after the first, the connection is cut."""
    response = web.StreamResponse(headers=headers)
    response.force_close()
    if request.method == "HEAD":
        await chunks.aclose()
        return response
    async with aclosing(chunks):
        first = await anext(chunks)
        await response.prepare(request)
        try:
            await response.write(first)
            async for chunk in chunks:
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            log.debug("the client of an answer in chunks disconnected")
        except Exception:
            log.exception("an answer in chunks broke off", extra={"path": request.path})
            if request.transport is not None:
                request.transport.abort()  # else it would look complete
    return response


# --- parameters -----------------------------------------------------------------------------------


def namespace_of(request: web.BaseRequest) -> str:
    """The namespace that a request is about; "" if it is about all."""
    match request.path.removeprefix(PREFIX).split("/"):
        case ["v1", "pods", namespace, _, _]:
            return namespace
    return request.query.get("namespace", "")


def needed(request: web.BaseRequest) -> tuple[ResourceAttributes, ...]:
    """What to review for a request: nodes, pods, and the pods of a namespace if it names one."""
    namespace = namespace_of(request)
    if not namespace:
        return (LIST_PODS, LIST_NODES)
    verb = "get" if "/pods/" in request.path else "list"
    own = ResourceAttributes(verb=verb, resource="pods", namespace=namespace)
    return (LIST_PODS, LIST_NODES, own)


def sight_of(request: web.BaseRequest, allowed: Sequence[bool]) -> Sight | None:
    """What a caller sees by the answers to `needed`; None if nothing."""
    pods, nodes, *own = allowed
    namespace = namespace_of(request) if own and own[0] else ""
    found = Sight(nodes=nodes, pods=pods, namespace=namespace)
    return found if nodes or pods or namespace else None


def _choice(request: web.BaseRequest, name: str, choices: Sequence[str]) -> str:
    found = request.query.get(name, "")
    if found and found not in choices:
        raise _BadRequest(f"{name}: expected {', '.join(choices)}, found {found!r}")
    return found


def _number(request: web.BaseRequest, name: str, default: int, most: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise _BadRequest(f"{name}: expected a number from 1 to {most}, found {text!r}")
    return int(text)


def _record_query(request: web.BaseRequest) -> RecordQuery:
    since = request.query.get("since", "")
    try:
        since = (time_text(parse_time(since)) or "") if since else ""
    except ValueError as error:
        raise _BadRequest(f"since: {error}") from None
    before = request.query.get("before")
    return RecordQuery(
        limit=_number(request, "limit", 100, MOST_RECORDS),
        before=None if before is None else _number(request, "before", 1, 2**62),
        pod=request.query.get("pod", ""),
        outcome=_choice(request, "outcome", OUTCOMES),
        since=since,
    )
