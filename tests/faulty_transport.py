"""The shipped API server behind a transport that fails as a test tells it to.

`FaultyTransport` wraps any transport. `fail("watch", Refuse(429))` decides what the next watches
meet, `fault` what every other request meets; `cut`, `end`, `report`, `say` and `silence` happen to
watches that are open. `FaultyServer` is such a transport with an `ApiServer` of its own, into whose
store a test writes as etcd would: also what no API server would accept. With `form.in_protobuf` it
answers in protobuf what is asked for in protobuf, as the real one does.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from tests.protobuf_transport import ProtobufTransport, frame_of, is_framed

from mooring.api.codec import convert
from mooring.api.meta import Object
from mooring.client import paths
from mooring.client.errors import Forbidden, Unreachable
from mooring.client.transport import Fence, Request, Response, Stream, Transport
from mooring.cluster.apiserver._auth import attributes, check
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse, Caller
from mooring.cluster.apiserver.resources import Resource, by_kind
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.transport import LocalStream, LocalTransport

Json = dict[str, Any]

_USER = Caller("mooring", groups=())


# --- faults --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What a request meets; if it is `done`, the server has carried it out all the same."""

    done: bool = False

    async def answer(self, request: Request) -> Response:
        raise AssertionError(f"{type(self).__name__} is a fault of watches only")


@dataclass(frozen=True)
class Refuse(Fault):
    """An answer that is a failure."""

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

    async def answer(self, request: Request) -> Response:
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return Response(self.code, headers, msgspec.json.encode(self.status))


@dataclass(frozen=True)
class Vanish(Fault):
    """No answer: the connection is refused, or lost after all was sent."""

    why: str = "connection refused"
    sent: bool = True

    async def answer(self, request: Request) -> Response:
        raise Unreachable(self.why, sent=self.sent)


@dataclass(frozen=True)
class Hang(Fault):
    """No answer until the client gives up."""

    async def answer(self, request: Request) -> Response:
        await asyncio.sleep(request.timeout)
        raise Unreachable("timed out", sent=True)


@dataclass(frozen=True)
class Garbage(Fault):
    """An answer that is a success and consists of these bytes; a watch ends after them."""

    body: bytes
    code: int = 200

    async def answer(self, request: Request) -> Response:
        return Response(self.code, {}, self.body)


@dataclass(frozen=True)
class EndAtOnce(Fault):
    """A watch begins, sends what there is at the moment, and ends."""

    done: bool = True


EXPIRED = Refuse(410, "Expired", "too old resource version")


# --- the transport -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A request that left the client."""

    request: Request
    verb: str  # as RBAC rules spell it
    path: str  # without the query
    query: Mapping[str, str]
    at: float  # on the loop's clock

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.request.body) if self.request.body else None

    @property
    def line(self) -> str:
        """Method and last part of the path, such as `POST binding`."""
        return f"{self.request.method} {self.path.rpartition('/')[2]}"


class OpenWatch:
    """A stream of the server, into which a test may interfere."""

    def __init__(self, inner: Stream, chop: Callable[[bytes], Iterable[bytes]]) -> None:
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.is_silent = False  # it sends nothing any more, not even its end
        self._inner = inner
        self._chop = chop
        self._parts: asyncio.Queue[bytes | Unreachable | None] = asyncio.Queue()  # None: the end

    async def read(self) -> bytes:
        return await self._inner.read()

    def push(self, *parts: bytes | Unreachable | None) -> None:
        if not self.is_silent:
            for part in parts:
                self._parts.put_nowait(part)

    async def pump(self) -> None:
        """Pass on what the server sends."""
        async for data in self._inner.chunks():
            self.push(*self._chop(data))
        self.push(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (part := await self._parts.get()) is not None:
            if isinstance(part, Unreachable):
                raise part
            yield part


class FaultyTransport:
    """Carries requests to another transport, unless they meet a fault."""

    def __init__(self, inner: Transport) -> None:
        self.asked: list[Asked] = []
        self.watches: list[OpenWatch] = []
        self.forbidden: set[tuple[str, type[Object]]] = set()  # verb and kind
        self.latency: float = 0.0  # seconds, each way
        self.chop: Callable[[bytes], Iterable[bytes]] = lambda data: [data]
        self.fault: Callable[[Asked], Fault | None] = lambda asked: None  # if none is scripted
        self._inner = inner
        self._scripted: defaultdict[str, deque[Fault | None]] = defaultdict(deque)

    # --- what tests do -------------------------------------------------------------------------

    def fail(self, verb: str, *faults: Fault | None) -> None:
        """Let the next requests with this verb meet faults, one each; `*` is any verb."""
        self._scripted[verb].extend(faults)

    def calm(self) -> None:
        """Carry everything from now on, at once."""
        self.fault = lambda asked: None
        self.latency = 0.0
        self.forbidden.clear()
        self._scripted.clear()

    @property
    def methods(self) -> str:
        return " ".join(asked.request.method for asked in self.asked)

    @property
    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    def count(self, verb: str) -> int:
        """How many requests there were; a list of many pages is one."""
        return sum(asked.verb == verb and "continue" not in asked.query for asked in self.asked)

    def say(self, data: bytes) -> None:
        """Send bytes to all open watches."""
        for watch in self.watches:
            watch.push(*self.chop(data))

    def end(self) -> None:
        for watch in self.watches:
            watch.push(None)

    def cut(self) -> None:
        for watch in self.watches:
            watch.push(Unreachable("connection reset by peer", sent=True))

    def report(self, error: Refuse = EXPIRED) -> None:
        """Let all open watches report an error, and end."""
        line = msgspec.json.encode({"type": "ERROR", "object": error.status})
        for watch in self.watches:
            watch.push(*self.chop(frame_of(line) if is_framed(watch) else line + b"\n"))
        self.end()

    def silence(self) -> None:
        """Let all open watches hang."""
        for watch in self.watches:
            watch.is_silent = True

    # --- Transport -----------------------------------------------------------------------------

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        if fence is not None:
            fence()
        fault = await self._meet(request)
        if fault is None or fault.done:
            response = await self._inner.send(request, fence)
        if fault is not None:
            response = await fault.answer(request)
        await asyncio.sleep(self.latency)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        fault = await self._meet(request)
        if fault is not None and not isinstance(fault, EndAtOnce):
            failure = await fault.answer(request)
            yield LocalStream(
                ApiResponse(
                    status=failure.status, headers=failure.headers, body=failure.body + b"\n"
                )
            )
            return
        async with self._inner.stream(request) as inner:
            watch = OpenWatch(inner, lambda data: self.chop(data))
            pump = asyncio.get_running_loop().create_task(watch.pump())
            self.watches.append(watch)
            if isinstance(fault, EndAtOnce):
                await asyncio.sleep(0)  # what there is has been pumped
                watch.push(None)
            try:
                yield watch
            finally:
                self.watches.remove(watch)
                pump.cancel()
                with suppress(asyncio.CancelledError, Unreachable):
                    await pump

    async def close(self) -> None:
        self.cut()
        await self._inner.close()

    async def _meet(self, request: Request) -> Fault | None:
        path, _, query = request.path.partition("?")
        call = ApiRequest(
            method=request.method,
            path=unquote(path),
            query=dict(parse_qsl(query)),
            caller=_USER,
        )
        about = attributes(call)
        now = asyncio.get_running_loop().time()
        asked = Asked(request, about.verb, call.path, call.query, now)
        self.asked.append(asked)
        await asyncio.sleep(self.latency)
        for script in (self._scripted[about.verb], self._scripted["*"]):
            if script:
                return script.popleft()
        for verb, kind in self.forbidden:
            of_kind = (verb, paths.group_of(kind), paths.resource_of(kind))
            if of_kind == (about.verb, about.group, about.resource):
                return _refuse_access(call)
        return self.fault(asked)


def _refuse_access(call: ApiRequest) -> Refuse:
    """With the message of a server that has no rule for this user."""
    try:
        check(lambda caller, about: "no rule", call)
    except Forbidden as error:
        return Refuse(error.code, error.reason, str(error))
    raise AssertionError("expected a refusal")


# --- the server ----------------------------------------------------------------------------------


class FaultyServer(FaultyTransport):
    """A shipped API server; its versions begin where the number of digits is about to grow."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.server = ApiServer(clock=clock)
        self.store = self.server.store
        self.reviews = self.server.reviews
        self.store.version = 995
        self._uids = 0
        self.form = ProtobufTransport(LocalTransport(self.server, _USER))
        super().__init__(self.form)

    def put(self, kind: type[Object], name: str, namespace: str = "default", **fields: Any) -> None:
        """Create an object, or change fields of it, without any validation."""
        resource = _resource(kind)
        namespace = namespace if resource.namespaced else ""
        item = self.store.get(resource, namespace, name)
        if item is not None:
            self.store.put(resource, item.decoded() | fields)
            return
        self._uids += 1
        meta = {"name": name, "uid": f"uid-{self._uids}"}
        meta |= {"namespace": namespace} if namespace else {}
        head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        self.store.put(resource, head | fields)

    def delete(self, kind: type[Object], name: str, namespace: str = "default") -> None:
        resource = _resource(kind)
        removed = self.store.remove(resource, namespace if resource.namespaced else "", name)
        assert removed is not None, f"there is no {kind.KIND} {name}"

    def content(self, kind: type[Object]) -> dict[str, Object]:
        """The objects of a kind, by key."""
        items = self.store.items(_resource(kind))
        return {value.key: value for value in (convert(i.decoded(), kind) for i in items)}

    def restore(self, version: int) -> None:
        """Go back in time, as after a backup: versions begin again further down."""
        self.store.version = version
        self.store.compact()

    def uid(self, kind: type[Object], name: str, namespace: str = "default") -> str | None:
        """The object under a name, even if it cannot be decoded."""
        item = self.store.get(_resource(kind), namespace, name)
        return None if item is None else item.uid


def _resource(kind: type[Object]) -> Resource:
    resource = by_kind(kind.API_VERSION, kind.KIND)
    assert resource is not None, f"{kind.KIND} is not served"
    return resource
