"""A way to an API server on which answers get lost, as a test wishes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from mooring.client.errors import Unreachable
from mooring.client.transport import Fence, Request, Response, Stream, Transport

OK = ""
LOST_REQUEST = "the request is lost"
LOST_ANSWER = "the answer is lost"
BROKEN = "the server answers 500 and has done nothing"
BROKEN_AFTER = "the server answers 500 and has done it"


class BadNetwork:
    """Fulfils `Transport`; `fate` says what happens to each request that is not a watch."""

    def __init__(self, inner: Transport, fate: Callable[[Request], str]) -> None:
        self._inner = inner
        self._fate = fate

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        fate = self._fate(request)
        if fate == LOST_REQUEST:
            raise Unreachable("connection refused", sent=True)
        broken = Response(500, {}, b'{"message": "etcdserver: request timed out"}')
        if fate == BROKEN:
            return broken
        answer = await self._inner.send(request, fence)
        if fate == LOST_ANSWER:
            raise Unreachable("connection reset by peer", sent=True)
        return broken if fate == BROKEN_AFTER else answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def is_bind(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/binding")
