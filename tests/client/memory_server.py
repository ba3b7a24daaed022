"""An API server within the process: it lists and watches, deterministically, and fails as told.

A test writes with `put` and `delete`. `server.fail("watch", Refuse(429, retry_after=2))` decides
what the next watch meets; `cut`, `end`, `expire`, `say` and `silence` happen to open ones.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from mooring.api.codec import convert
from mooring.api.meta import Object
from mooring.client import paths
from mooring.client.errors import Unreachable
from mooring.client.transport import Fence, Request, Response

Json = dict[str, Any]


@dataclass(frozen=True)
class Refuse:
    """The server says no."""

    code: int
    reason: str = ""
    message: str = "no"
    retry_after: int | None = None

    @property
    def status(self) -> Json:
        """As a Status object."""
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code}
        details = {"retryAfterSeconds": self.retry_after} if self.retry_after else {}
        return status | {"reason": self.reason, "message": self.message, "details": details}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


@dataclass(frozen=True)
class Vanish:
    """No answer: the connection is refused, or lost after all was sent."""

    sent: bool = True


@dataclass(frozen=True)
class Hang:
    """No answer until the client gives up."""


@dataclass(frozen=True)
class EndAtOnce:
    """A watch begins, tells what there is to tell at the moment, and ends."""


@dataclass(frozen=True)
class Garbage:
    """The answer is a success, and consists of these bytes; a watch ends after them."""

    body: bytes


Fault = Refuse | Vanish | Hang | EndAtOnce | Garbage

EXPIRED = Refuse(410, "Expired", "too old resource version")


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    verb: str
    place: str  # such as /api/v1/pods
    query: Mapping[str, str]
    at: float  # on the loop's clock


@dataclass(frozen=True)
class _Change:
    version: int
    place: str
    namespace: str
    line: bytes


@dataclass(frozen=True)
class ParsedRequest:
    place: str
    namespace: str
    query: Mapping[str, str]

    @property
    def verb(self) -> str:
        return "watch" if "watch" in self.query else "list"

    def covers(self, namespace: str) -> bool:
        return self.namespace in ("", namespace)


class OpenWatch:
    """A `Stream`: of a watch, or of the refusal of one."""

    def __init__(self, question: ParsedRequest, refused: Refuse | None = None) -> None:
        self.question = question
        self.is_silent = False  # it will tell nothing any more, not even its end
        self._refused = refused
        self._waiting: deque[bytes | Unreachable | None] = deque()  # None: the end
        self._bell = asyncio.Event()

    @property
    def status(self) -> int:
        return self._refused.code if self._refused else 200

    @property
    def headers(self) -> Mapping[str, str]:
        return self._refused.headers if self._refused else {}

    async def read(self) -> bytes:
        assert self._refused is not None
        return msgspec.json.encode(self._refused.status)

    def push(self, *parts: bytes | Unreachable | None) -> None:
        if not self.is_silent:
            self._waiting.extend(parts)
            self._bell.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            while self._waiting:
                part = self._waiting.popleft()
                if part is None:
                    return
                if isinstance(part, Unreachable):
                    raise part
                yield part
            self._bell.clear()
            await self._bell.wait()


class MemoryServer:
    """Fulfils `Transport`; versions begin where the number of digits is about to grow."""

    def __init__(self) -> None:
        self.version = 95
        self.seen: list[Asked] = []
        self.watches: list[OpenWatch] = []
        self.forbidden: set[tuple[str, type[Object]]] = set()  # verb and kind
        self.latency: Callable[[], float] = lambda: 0.0  # seconds, before and after each look
        self.chop: Callable[[bytes], Iterable[bytes]] = lambda data: [data]
        self.weather: Callable[[str], Fault | None] = lambda verb: None  # when nothing is scripted
        self.expires_by_event = True  # or by the status of the answer
        self.expiries = 0  # how often a watch was told that its version is too old
        self._scripted: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._objects: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        self._history: list[_Change] = []
        self._forgotten = 0  # the version up to which history is not kept
        self._snapshots: dict[str, list[Json]] = {}  # what the pages of a list are cut from
        self._uids = 0

    # --- what tests do -------------------------------------------------------------------------

    def put(self, kind: type[Object], name: str, namespace: str = "default", **fields: Any) -> None:
        """Create an object, or change fields of it."""
        namespace = namespace if kind.NAMESPACED else ""
        place, key = paths.collection(kind), f"{namespace}/{name}"
        old = self._objects[place].get(key)
        self.version += 1
        if old is None:
            self._uids += 1
            meta: Json = {"name": name, "uid": f"uid-{self._uids}"}
            meta |= {"namespace": namespace} if namespace else {}
            old = {"kind": kind.KIND, "apiVersion": kind.API_VERSION, "metadata": meta}
        meta = old["metadata"] | {"resourceVersion": str(self.version)}
        new = old | {"metadata": meta} | fields
        what = "MODIFIED" if key in self._objects[place] else "ADDED"
        self._objects[place][key] = new
        self._happen(place, namespace, what, new)

    def delete(self, kind: type[Object], name: str, namespace: str = "default") -> None:
        namespace = namespace if kind.NAMESPACED else ""
        place = paths.collection(kind)
        old = self._objects[place].pop(f"{namespace}/{name}")
        self.version += 1
        meta = old["metadata"] | {"resourceVersion": str(self.version)}
        self._happen(place, namespace, "DELETED", old | {"metadata": meta})

    def content(self, kind: type[Object]) -> dict[str, Object]:
        """What there is, by key."""
        objects = [convert(value, kind) for value in self._objects[paths.collection(kind)].values()]
        return {value.key: value for value in objects}

    def uid(self, kind: type[Object], name: str, namespace: str = "default") -> str | None:
        """Which object there is under a name, even if it cannot be decoded."""
        found = self._objects[paths.collection(kind)].get(f"{namespace}/{name}")
        return None if found is None else str(found["metadata"]["uid"])

    def calm(self) -> None:
        """Behave from now on."""
        self.weather = lambda verb: None
        self.latency = lambda: 0.0
        self.forbidden.clear()
        self._scripted.clear()

    def fail(self, verb: str, *faults: Fault) -> None:
        """Let the next requests meet faults, one each."""
        self._scripted[verb].extend(faults)

    def count(self, verb: str) -> int:
        """How many requests came; a list of many pages is one."""
        return sum(1 for asked in self.seen if asked.verb == verb and "continue" not in asked.query)

    def compact(self) -> None:
        """Forget all history; who resumes from before has to list."""
        self._history.clear()
        self._snapshots.clear()
        self._forgotten = self.version

    def restore(self, version: int) -> None:
        """Go back in time, as after a backup: versions begin again further down."""
        self._history.clear()
        self._snapshots.clear()
        self.version = version

    def bookmark(self) -> None:
        meta = {"metadata": {"resourceVersion": str(self.version)}}
        self.say(_line("BOOKMARK", {"kind": "Any", "apiVersion": "v1"} | meta))

    def say(self, line: bytes) -> None:
        """Send bytes to all watches that are open."""
        for watch in self.watches:
            watch.push(*self.chop(line))

    def end(self) -> None:
        for watch in self.watches:
            watch.push(None)

    def cut(self) -> None:
        for watch in self.watches:
            watch.push(Unreachable("connection reset by peer", sent=True))

    def expire(self, status: Refuse = EXPIRED) -> None:
        """Let all open watches report an error, and end."""
        self.expiries += len(self.watches) if status is EXPIRED else 0
        self.say(_line("ERROR", status.status))
        self.end()

    def silence(self) -> None:
        """Let all open watches hang."""
        for watch in self.watches:
            watch.is_silent = True

    # --- Transport -----------------------------------------------------------------------------

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        question = _parse(request)
        fault = await self._meet(question, request)
        answer = fault if isinstance(fault, Refuse) else self._list(question)
        await asyncio.sleep(self.latency())
        if isinstance(fault, Garbage):
            return Response(200, {}, fault.body)
        if isinstance(answer, Refuse):
            return Response(answer.code, answer.headers, msgspec.json.encode(answer.status))
        return Response(200, {}, msgspec.json.encode(answer))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[OpenWatch]:
        question = _parse(request)
        fault = await self._meet(question, request)
        refused = fault if isinstance(fault, Refuse) else self._refuse_watch(question)
        if refused is not None:
            yield OpenWatch(question, refused)
            return
        watch = OpenWatch(question)
        if isinstance(fault, Garbage):
            watch.push(fault.body + b"\n", None)
            yield watch
            return
        self._catch_up(watch)
        seconds = float(question.query["timeoutSeconds"])
        timer = asyncio.get_running_loop().call_later(seconds, watch.push, None)
        self.watches.append(watch)
        if isinstance(fault, EndAtOnce):
            watch.push(None)
        try:
            yield watch
        finally:
            timer.cancel()
            self.watches.remove(watch)

    async def close(self) -> None:
        self.cut()

    # --- inside --------------------------------------------------------------------------------

    async def _meet(self, question: ParsedRequest, request: Request) -> Fault | None:
        loop = asyncio.get_running_loop()
        self.seen.append(Asked(question.verb, question.place, question.query, loop.time()))
        await asyncio.sleep(self.latency())
        scripted = self._scripted[question.verb]
        fault = scripted.popleft() if scripted else self.weather(question.verb)
        if isinstance(fault, Vanish):
            raise Unreachable("connection refused", sent=fault.sent)
        if isinstance(fault, Hang):
            await asyncio.sleep(request.timeout)
            raise Unreachable("timed out", sent=True)
        for verb, kind in self.forbidden:
            if (verb, paths.collection(kind)) == (question.verb, question.place):
                return _forbid(verb, kind)
        return fault

    def _list(self, question: ParsedRequest) -> Json | Refuse:
        limit = int(question.query.get("limit", 0))
        if token := question.query.get("continue"):
            version, start = map(int, token.split(":"))
        else:
            version, start = self.version, 0
        taken = f"{question.place} {question.namespace} {version}"
        if not token:
            found = self._objects[question.place].values()
            self._snapshots[taken] = [
                value for value in found if question.covers(value["metadata"].get("namespace", ""))
            ]
        if taken not in self._snapshots:
            return Refuse(410, "Expired", "The provided continue parameter is too old")
        snapshot = self._snapshots[taken]
        end = start + limit if limit else len(snapshot)
        meta = {"resourceVersion": str(version)}
        if end < len(snapshot):
            meta["continue"] = f"{version}:{end}"
        return {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": snapshot[start:end]}

    def _refuse_watch(self, question: ParsedRequest) -> Refuse | None:
        asked = int(question.query["resourceVersion"])
        if asked < self._forgotten and not self.expires_by_event:
            self.expiries += 1
            return EXPIRED
        return None

    def _catch_up(self, watch: OpenWatch) -> None:
        asked = int(watch.question.query["resourceVersion"])
        if asked < self._forgotten:
            self.expiries += 1
            watch.push(*self.chop(_line("ERROR", EXPIRED.status)), None)
            return
        for happening in self._history:
            self._tell(watch, happening)

    def _happen(self, place: str, namespace: str, what: str, value: Json) -> None:
        happening = _Change(self.version, place, namespace, _line(what, value))
        self._history.append(happening)
        for watch in self.watches:
            self._tell(watch, happening)

    def _tell(self, watch: OpenWatch, happening: _Change) -> None:
        question = watch.question
        # As the real server: from a version of the future, a watch stands and is silent.
        is_news = happening.version > int(question.query["resourceVersion"])
        is_asked_for = question.place == happening.place and question.covers(happening.namespace)
        if is_news and is_asked_for:
            watch.push(*self.chop(happening.line))


def _line(what: str, value: Json) -> bytes:
    return msgspec.json.encode({"type": what, "object": value}) + b"\n"


def _forbid(verb: str, kind: type[Object]) -> Refuse:
    resource, group = paths.resource_of(kind), paths.group_of(kind)
    why = f'{resource} is forbidden: User "mooring" cannot {verb} resource "{resource}"'
    return Refuse(403, "Forbidden", f'{why} in API group "{group}" at the cluster scope')


def _parse(request: Request) -> ParsedRequest:
    parts = urlsplit(request.path)
    found = re.fullmatch(r"(/.+?)(?:/namespaces/([^/]+))?(/[^/]+)", parts.path)
    assert found is not None, request.path
    assert request.method == "GET", f"only lists and watches here, not {request.method}"
    return ParsedRequest(found[1] + found[3], found[2] or "", dict(parse_qsl(parts.query)))
