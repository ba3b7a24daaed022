"""A server with little behind it, and clients of it."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ParamSpec

import aiohttp

from mooring.client import certificates
from mooring.client.certificates import Pair
from mooring.cluster.apiserver.http import HttpServer
from mooring.cluster.apiserver.requests import ApiRequest, ApiResponse, WatchResponse

Answering = Callable[[ApiRequest], Awaitable[ApiResponse | WatchResponse]]


P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An asynchronous test, on an event loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Recorder:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, answer: Answering | ApiResponse | None = None) -> None:
        self._answer = answer if answer is not None else ApiResponse(body=b"{}")
        self.calls: list[ApiRequest] = []

    async def handle(self, call: ApiRequest) -> ApiResponse | WatchResponse:
        self.calls.append(call)
        if isinstance(self._answer, ApiResponse):
            return self._answer
        return await self._answer(call)


class Client:
    """Sends requests to one server."""

    def __init__(self, session: aiohttp.ClientSession, server: HttpServer) -> None:
        self._session = session
        self._server = server

    async def ask(
        self, path: str, method: str = "GET", *, token: str | None = None, **options: Any
    ) -> tuple[int, aiohttp.ClientResponse, bytes]:
        """Status, answer and body; by default as administrator."""
        async with self.open(path, method, token=token, **options) as answer:
            return answer.status, answer, await answer.read()

    def open(
        self, path: str, method: str = "GET", *, token: str | None = None, **options: Any
    ) -> Any:
        """An answer whose body is yet to be read; a context manager."""
        shown = self._server.token if token is None else token
        headers = {"Authorization": f"Bearer {shown}"} if shown else {}
        headers |= options.pop("headers", {})
        return self._session.request(method, self._server.url + path, headers=headers, **options)


def trusting(server: HttpServer, identity: Pair | None = None) -> ssl.SSLContext:
    """The TLS of a client that trusts the server's authority, and may show a certificate."""
    context = ssl.create_default_context(cadata=server.authority.decode())
    if identity is not None:
        certificates.load(context, identity)
    return context


@asynccontextmanager
async def serving(
    handler: Any, *, identity: Callable[[HttpServer], Pair] | None = None, **options: Any
) -> AsyncIterator[tuple[HttpServer, Client]]:
    """A running server and a client of it; both are gone afterwards."""
    server = HttpServer(handler, **options)
    await server.start()
    try:
        tls: Any = True
        if server.authority:
            tls = trusting(server, identity(server) if identity is not None else None)
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            yield server, Client(session, server)
        # Transports of TLS end one turn of the loop after they were closed.
        await asyncio.sleep(0)
    finally:
        await server.close()
