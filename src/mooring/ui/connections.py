"""Lets clients in, so many at a time and each for so long.

aiohttp speaks HTTP on the connections; here they are accepted, greeted with TLS, counted and ended.
Whoever dawdles, in the handshake, with the request or over the answer, only hurts himself: a
connection ends after its time is up, and when all places are taken the oldest one ends at once.
Requests take milliseconds, so that is never an honest client's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from mooring.errors import ConfigError, Problem
from mooring.ui.serving_tls import ServingTls

log = logging.getLogger(__name__)

MOST: Final = 64
LIFETIME: Final = 30.0  # seconds from the first byte to the last
_HANDSHAKE: Final = 10.0
_GOODBYE: Final = 2.0  # for the client to close its side
_LONGEST_LINE: Final = 8190  # bytes of the request line, and of a header

# What aiohttp complains about is what strangers send, once for every time they do.
_UNHEARD: Final = logging.getLogger("mooring.ui.connections.aiohttp")
_UNHEARD.setLevel(logging.CRITICAL + 1)


class _Server(web.Server):
    """aiohttp's server, which tells when a connection is over."""

    def __init__(self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(
            handle,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=LIFETIME,
            lingering_time=1.0,
            logger=_UNHEARD,
            max_field_size=_LONGEST_LINE,
            max_line_size=_LONGEST_LINE,
        )
        self._over: dict[web.RequestHandler, asyncio.Future[None]] = {}

    def expect(self) -> tuple[web.RequestHandler, asyncio.Future[None]]:
        """A handler for one connection, and the end of that connection."""
        handler = self()
        over = self._over[handler] = asyncio.get_running_loop().create_future()
        return handler, over

    def forget(self, handler: web.RequestHandler) -> None:
        del self._over[handler]

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        over = self._over.get(handler)
        if over is not None and not over.done():
            over.set_result(None)


class Connections:
    """A listening socket and the connections that came through it."""

    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        tls: ServingTls | None,
        *,
        most: int = MOST,
        lifetime: float = LIFETIME,
    ) -> None:
        self._handle = handle
        self._tls = tls
        self._most = most
        self._lifetime = lifetime
        self._server: _Server | None = None
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._open: dict[asyncio.Task[None], socket.socket | None] = {}  # None: it has begun

    def __len__(self) -> int:
        return len(self._open)

    async def start(self, address: str, port: int) -> int:
        """Listen; returns the port, which is a free one for port 0."""
        self._listener = _listener(address, port)
        self._server = _Server(self._handle)
        self._accepting = asyncio.create_task(self._accept(self._listener, self._server))
        actual: int = self._listener.getsockname()[1]
        return actual

    async def close(self, grace: float = 1.0) -> None:
        """Accept nobody any more; requests under way get some time to end."""
        if self._accepting is None or self._listener is None or self._server is None:
            return
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listener.close()
        await self._server.shutdown(grace)
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(list(self._open))
        self._accepting = self._listener = self._server = None

    async def _accept(self, listener: socket.socket, server: _Server) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:
                # No file descriptor left, most likely; they come back when others let go.
                log.warning("could not accept a connection", extra={"error": str(error)})
                await asyncio.sleep(1.0)
                continue
            if len(self._open) >= self._most:
                self._end_the_oldest()
            task = asyncio.create_task(self._serve(client, server))
            self._open[task] = client
            task.add_done_callback(self._ended)

    def _end_the_oldest(self) -> None:
        oldest = next((task for task in self._open if not task.cancelling()), None)
        if oldest is not None:
            oldest.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        unused = self._open.pop(task)
        if unused is not None:
            unused.close()
        if not task.cancelled() and task.exception() is not None:
            log.error("serving a connection broke", exc_info=task.exception())

    async def _serve(self, client: socket.socket, server: _Server) -> None:
        """One connection, from the handshake to the end of its time."""
        options: dict[str, Any] = {}
        if self._tls is not None:
            options = {
                "ssl": self._tls.context(),
                "ssl_handshake_timeout": _HANDSHAKE,
                "ssl_shutdown_timeout": _GOODBYE,
            }
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        transport: asyncio.Transport | None = None
        handler, over = server.expect()
        self._open[task] = None  # from here on the transport closes the socket
        try:
            async with asyncio.timeout(self._lifetime):
                transport, _ = await loop.connect_accepted_socket(
                    lambda: handler, client, **options
                )
                await over
        except OSError as error:  # no TLS, or not ours; gone; or its time was up
            log.debug("connection ended early", extra={"error": str(error)})
        finally:
            server.forget(handler)
            is_gone = over.done() and not over.cancelled()
            if transport is not None and not is_gone:  # a TLS transport that is gone can't abort
                transport.abort()


def _listener(address: str, port: int) -> socket.socket:
    try:
        version = ipaddress.ip_address(address).version
    except ValueError as error:
        raise ConfigError([Problem("--bind-address", str(error))]) from error
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    both = address == "::" and socket.has_dualstack_ipv6()
    try:
        made = socket.create_server(
            (address, port), family=family, backlog=MOST, dualstack_ipv6=both
        )
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        text = f"can't listen on {address}, port {port}: {why}"
        raise ConfigError([Problem("--secure-port", text)]) from error
    made.setblocking(False)
    return made
