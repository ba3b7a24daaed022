"""Typed requests: kinds and names in, objects or `ApiError`s out.

Every request waits for the rate limiter. What the server asks to repeat later (429, or a failure
with Retry-After) is repeated here; a request whose outcome is unknown is not: only the caller
knows how to find out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec

from mooring.api import protobuf
from mooring.api.codec import DecodeError, decode, encode
from mooring.api.core import Binding, Pod
from mooring.api.meta import Object
from mooring.client import paths
from mooring.client.errors import Fenced, Forbidden, Garbled, StatusError, Unreachable, status_error
from mooring.client.flowcontrol import RateLimiter, RequestPriority
from mooring.client.transport import (
    JSON,
    MERGE_PATCH,
    METADATA,
    STRATEGIC_MERGE_PATCH,
    Fence,
    NewFence,
    Request,
    Stream,
    Transport,
)

O = TypeVar("O", bound=Object)  # noqa: E741 - an object; T is taken by plain values
T = TypeVar("T")

_PROTOBUF_OR_JSON: Final = f"{protobuf.MEDIA_TYPE}, {JSON}"
_TRIES: Final = 10  # of a request that the server asks to repeat
_LONGEST_PAUSE: Final = 30.0  # seconds between tries, whatever the server says


class ListPage(msgspec.Struct, frozen=True):
    """Some objects of a list, not decoded yet."""

    items: Sequence[msgspec.Raw | bytes]  # JSON, or bytes of protobuf
    resource_version: str
    continue_: str  # empty on the last page
    size: int  # bytes of the answer
    is_protobuf: bool = False


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: tuple[msgspec.Raw, ...] | None = None


class _AnyMeta(msgspec.Struct):
    """Metadata, whatever is in it."""


class _Outcome(msgspec.Struct):
    """A response of no further interest: any object."""

    metadata: _AnyMeta = msgspec.field(default_factory=_AnyMeta)


class ApiClient:
    """One API server, seen by one user.

    `on_forbidden` is called for every 403, so that the missing rule can be reported.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        limiter: RateLimiter | None = None,
        fence: NewFence | None = None,
        on_forbidden: Callable[[Forbidden], None] | None = None,
    ) -> None:
        self.transport: Transport = transport
        self._limiter = limiter
        self._new_fence = fence
        self._on_forbidden = on_forbidden

    # --- reading -------------------------------------------------------------------------------

    async def get(self, kind: type[O], name: str, namespace: str = "") -> O:
        path = paths.single(kind, name, namespace)
        return _read(await self._send(Request(method="GET", path=path)), kind)

    async def list_page(
        self,
        kind: type[Object],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        continue_: str = "",
        in_protobuf: bool = False,
    ) -> ListPage:
        """One page of a consistent list; a `limit` of 0 means all of it.

        `in_protobuf` asks for that form, which not every server has.
        """
        asked = {"labelSelector": labels, "fieldSelector": fields, "continue": continue_}
        asked["limit"] = str(limit) if limit else ""
        query = {key: value for key, value in asked.items() if value}
        path = paths.collection(kind, namespace, query)
        accept = _PROTOBUF_OR_JSON if in_protobuf else JSON
        body = await self._send(Request(method="GET", path=path, timeout=60.0, accept=accept))
        if in_protobuf and protobuf.is_protobuf(body):
            found_ = _readable(protobuf.read_list, body)
            return ListPage(*found_, size=len(body), is_protobuf=True)
        found = _read(body, _List)
        meta = found.metadata
        return ListPage(found.items or (), meta.resource_version, meta.continue_, len(body))

    @asynccontextmanager
    async def watch(
        self,
        kind: type[Object],
        namespace: str = "",
        *,
        version: str,
        seconds: int,
        labels: str = "",
        fields: str = "",
        rest: float = 0.0,
        in_protobuf: bool = False,
    ) -> AsyncIterator[Stream]:
        """A stream of the events after `version`, which the server ends after `seconds`.

        `rest` is the time by which events may be late that follow others. `in_protobuf` asks for
        that form, which not every server has; the headers say which one it is.
        """
        asked = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        asked |= {"timeoutSeconds": str(seconds), "labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in asked.items() if value}
        path = paths.collection(kind, namespace, query)
        accept = _PROTOBUF_OR_JSON if in_protobuf else JSON
        request = Request(method="GET", path=path, accept=accept, rest=rest)
        async with self.transport.stream(request) as stream:
            if stream.status != 200:
                error = status_error(stream.status, await stream.read(), stream.headers)
                raise self._noticed(error)
            yield stream

    async def ping(self) -> None:
        """Any response will do: the server is alive."""
        await self.transport.send(Request(method="GET", path="/version"))

    # --- writing -------------------------------------------------------------------------------

    def new_fence(self) -> Fence | None:
        """For a write that is decided now, however often it is tried."""
        return None if self._new_fence is None else self._new_fence()

    async def create(self, value: O) -> O:
        """Create an object; what the server made of it."""
        return _read(await self._create(value, RequestPriority.WRITE), type(value))

    async def tell(
        self, value: Object, *, priority: RequestPriority = RequestPriority.WRITE
    ) -> None:
        """Create an object that is of no further interest, such as an Event."""
        _read(await self._create(value, priority, METADATA), _Outcome)

    async def replace(self, value: O, *, fenced: bool = True) -> O:
        """Put an object whose struct holds all of its fields, such as a Lease."""
        meta = value.metadata
        path = paths.single(type(value), meta.name, meta.namespace)
        request = Request(method="PUT", path=path, body=encode(value))
        fence = self.new_fence() if fenced else None
        return _read(await self._send(request, fence=fence), type(value))

    async def patch(
        self,
        kind: type[O],
        name: str,
        namespace: str,
        change: Any,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> O:
        """Change some fields of an object; what it is then."""
        path = paths.single(kind, name, namespace, subresource)
        request = Request(method="PATCH", path=path, body=encode(change), content_type=content_type)
        return _read(await self._send(request, fence=self.new_fence()), kind)

    async def patch_without_answer(
        self,
        kind: type[Object],
        name: str,
        namespace: str,
        change: Any,
        *,
        subresource: str = "",
        priority: RequestPriority = RequestPriority.WRITE,
        fence: Fence | None = None,
    ) -> None:
        """Send a strategic merge patch; what the object is then is of no interest.

        `fence` replaces the usual one.
        """
        request = Request(
            method="PATCH",
            path=paths.single(kind, name, namespace, subresource),
            body=encode(change),
            content_type=STRATEGIC_MERGE_PATCH,
            accept=METADATA,
        )
        _read(await self._send(request, priority, fence or self.new_fence()), _Outcome)

    async def delete(
        self, kind: type[Object], name: str, namespace: str = "", *, uid: str = ""
    ) -> None:
        """Delete an object, and with `uid` only that one; `NotFound` if it is gone already."""
        options = {"preconditions": {"uid": uid}} if uid else {}
        body = encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})
        path = paths.single(kind, name, namespace)
        request = Request(method="DELETE", path=path, body=body, accept=METADATA)
        _read(await self._send(request, fence=self.new_fence()), _Outcome)

    async def bind(self, binding: Binding, fence: Fence | None = None) -> None:
        """Create the Binding of a pod; before everything else that waits.

        `fence` is that of an earlier try.
        """
        meta = binding.metadata
        path = paths.single(Pod, meta.name, meta.namespace, "binding")
        request = Request(method="POST", path=path, body=encode(binding))
        _read(await self._send(request, RequestPriority.BIND, fence or self.new_fence()), _Outcome)

    async def ask(self, path: str, question: Any, answer: type[T]) -> T:
        """Ask a question by POST that changes nothing, such as a review; not fenced."""
        request = Request(method="POST", path=path, body=encode(question))
        return _read(await self._send(request), answer)

    async def _create(self, value: Object, priority: RequestPriority, accept: str = JSON) -> bytes:
        path = paths.collection(type(value), value.metadata.namespace)
        request = Request(method="POST", path=path, body=encode(value), accept=accept)
        return await self._send(request, priority, self.new_fence())

    async def _send(
        self,
        request: Request,
        priority: RequestPriority = RequestPriority.WRITE,
        fence: Fence | None = None,
    ) -> bytes:
        for tried in range(1, _TRIES + 1):
            if self._limiter is not None:
                await self._limiter.acquire(priority)
            try:
                answer = await self.transport.send(request, fence)
            except Fenced:
                if self._limiter is not None:
                    self._limiter.give_back()
                raise
            except Unreachable as error:
                # What was never sent may be sent again; connections die while they are idle.
                if error.sent or tried >= 3:
                    raise
                continue
            if answer.status < 300:
                return answer.body
            error_ = status_error(answer.status, answer.body, answer.headers)
            pause = _pause(error_)
            if pause is None or tried == _TRIES:
                raise self._noticed(error_)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def _noticed(self, error: StatusError) -> StatusError:
        if isinstance(error, Forbidden) and self._on_forbidden is not None:
            self._on_forbidden(error)
        return error


def _read(body: bytes, kind: type[T]) -> T:
    return _readable(lambda body: decode(body, kind), body)


def _readable(read: Callable[[bytes], T], body: bytes) -> T:
    try:
        return read(body)
    except DecodeError as error:
        raise Garbled(f"the answer of the API server can't be read: {error}") from error


def _pause(error: StatusError) -> float | None:
    """How long to wait before the same request may be sent again; None: never."""
    if error.code == 429:
        return min(error.retry_after or 1.0, _LONGEST_PAUSE)
    if error.code >= 500 and error.retry_after is not None:
        return min(error.retry_after, _LONGEST_PAUSE)
    return None
