"""The in-process transport: a client calls the server directly.

It fulfils `mooring.client.transport.Transport`, for informers, leases and schedulers. As over a
socket, other tasks may run first: every request yields to the loop once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl, unquote

from mooring.client.errors import Unreachable
from mooring.client.transport import Fence, Request, Response, Stream
from mooring.cluster.apiserver.requests import ADMIN, ApiRequest, ApiResponse, Caller, WatchResponse
from mooring.cluster.apiserver.server import ApiServer

_AGENT: Final = "mooring"


class LocalTransport:
    """Carries the requests of one caller to a server in this process."""

    def __init__(self, server: ApiServer, caller: Caller = ADMIN) -> None:
        self._server = server
        self._caller = caller
        self._streams: set[LocalStream] = set()
        self._is_closed = False

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        await asyncio.sleep(0)
        self._check_open()
        if fence is not None:
            fence()
        reply = self._server.answer(self._call(request))
        if isinstance(reply, WatchResponse):
            raise ValueError(f"expected a request that ends, got a watch: {request.path}")
        return Response(reply.status, _lowered(reply.headers), reply.body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        await asyncio.sleep(0)
        self._check_open()
        stream = LocalStream(self._server.answer(self._call(request)))
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            await stream.aclose()

    async def close(self) -> None:
        """Refuse further requests; open streams break off."""
        self._is_closed = True
        for stream in tuple(self._streams):
            stream.cut()

    def _check_open(self) -> None:
        if self._is_closed:
            raise Unreachable("the connection to the server in this process is closed", sent=False)

    def _call(self, request: Request) -> ApiRequest:
        path, _, query = request.path.partition("?")
        return ApiRequest(
            method=request.method,
            path=unquote(path) if "%" in path else path,
            query=dict(parse_qsl(query, keep_blank_values=True)) if query else {},
            headers={
                "content-type": request.content_type,
                "accept": "application/json",
                "user-agent": _AGENT,
            },
            body=request.body,
            caller=self._caller,
        )


class LocalStream:
    """A streamed response, or an error response."""

    def __init__(self, answer: ApiResponse | WatchResponse) -> None:
        self.status: int = answer.status if isinstance(answer, ApiResponse) else 200
        headers = answer.headers if isinstance(answer, ApiResponse) else {}
        self.headers: Mapping[str, str] = _lowered(headers)
        self._answer = answer
        self._reader: asyncio.Task[object] | None = None
        self._is_cut = False

    async def read(self) -> bytes:
        if isinstance(self._answer, ApiResponse):
            return self._answer.body
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._answer, ApiResponse):
            yield self._answer.body
            return
        try:
            while not self._is_cut:
                self._reader = asyncio.current_task()
                try:
                    chunk = await anext(self._answer.chunks)
                except StopAsyncIteration:
                    return
                finally:
                    self._reader = None
                yield chunk
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_cut or task is None:
                raise
            task.uncancel()  # it was `cut`, not cancelled from outside
        raise Unreachable("the connection to the server in this process was closed", sent=True)

    def cut(self) -> None:
        """Make the reader see a broken connection."""
        self._is_cut = True
        if self._reader is not None:
            self._reader.cancel()

    async def aclose(self) -> None:
        """End the watch and its subscription."""
        if isinstance(self._answer, WatchResponse) and isinstance(
            self._answer.chunks, AsyncGenerator
        ):
            await self._answer.chunks.aclose()


def _lowered(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}
