"""A transport that sends no write, for processes that must not change a cluster."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from mooring.client.transport import Fence, Request, Response, Stream, Transport
from mooring.errors import InternalError

_READS: Final = ("GET", "HEAD")


class ReadOnlyTransport:
    """Carries reads to `transport`; anything else raises `InternalError` and is not sent."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        _check(request)
        return await self._transport.send(request, fence)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        _check(request)
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()


def _check(request: Request) -> None:
    if request.method not in _READS:
        raise InternalError(f"this process writes nothing: {request.method} {request.path}")
