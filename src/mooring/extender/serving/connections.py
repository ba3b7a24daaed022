"""Lets schedulers in, so many at a time, and keeps their connections for the next request.

aiohttp speaks HTTP on the connections; here they are accepted, greeted with TLS, counted and ended.
Schedulers hold connections open between pods, so an idle one may stay for minutes; but from its
first byte on a request has little time. When all places are taken, the connection that has been
idle for longest makes room.
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

from mooring.client.endpoint import Tls
from mooring.errors import ConfigError, Problem

log = logging.getLogger(__name__)

_IDLE: Final = 120.0  # seconds; Go's clients give up theirs after 90, and should be first
_BACKLOG: Final = 256  # connections that wait to be accepted
_HANDSHAKE: Final = 10.0
_GOODBYE: Final = 2.0  # for the client to close its side
_LINGER: Final = 1.0  # for a client that is being refused to stop talking and listen
_LONGEST_LINE: Final = 8190  # bytes of the request line, and of a header

# What aiohttp complains about is what strangers send, once for every time they do.
_UNHEARD: Final = logging.getLogger("mooring.extender.serving.connections.aiohttp")
_UNHEARD.setLevel(logging.CRITICAL + 1)

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Handler(web.RequestHandler):
    """One connection. A request that does not come to the point is cut off."""

    __slots__ = ("_cut", "_header_seconds", "is_busy", "over")

    def __init__(self, server: _Server, header_seconds: float, **options: Any) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **options)
        self.over: asyncio.Future[None] = loop.create_future()
        self.is_busy: bool = False
        self._header_seconds = header_seconds
        self._cut: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A whole head has been read."""
        self.is_busy = True
        self._stop_clock()

    def end(self) -> None:
        """It has been answered."""
        self.is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        if not self.is_busy and self._cut is None:
            self._start_clock()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)
        if not self.over.done():
            self.over.set_result(None)

    def _start_clock(self) -> None:
        self._cut = asyncio.get_running_loop().call_later(self._header_seconds, self.force_close)

    def _stop_clock(self) -> None:
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None


class _Server(web.Server):
    """aiohttp's server, with handlers of our own."""

    def __init__(self, handle: Handle, header_seconds: float) -> None:
        async def watched(request: web.BaseRequest) -> web.StreamResponse:
            handler = request.protocol
            assert isinstance(handler, _Handler)
            handler.begin()
            try:
                return await handle(request)
            finally:
                handler.end()

        super().__init__(watched)
        self._header_seconds = header_seconds

    def __call__(self) -> _Handler:
        return _Handler(
            self,
            self._header_seconds,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=_IDLE,
            lingering_time=_LINGER,
            logger=_UNHEARD,
            max_field_size=_LONGEST_LINE,
            max_line_size=_LONGEST_LINE,
        )


class Connections:
    """A listening socket and the connections that came through it."""

    def __init__(
        self, handle: Handle, tls: Tls | None, *, most: int, header_seconds: float
    ) -> None:
        self._handle = handle
        self._tls = tls
        self._most = most
        self._header_seconds = header_seconds
        self._server: _Server | None = None
        self._listener: socket.socket | None = None
        self._resting: asyncio.TimerHandle | None = None
        # By the task that serves it, oldest first.
        self._open: dict[asyncio.Task[None], tuple[_Handler, socket.socket]] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def start(self, address: str, port: int) -> int:
        """Listen; returns the port, which is a free one for port 0."""
        self._listener = _listener(address, port)
        self._server = _Server(self._handle, self._header_seconds)
        self._listen()
        actual: int = self._listener.getsockname()[1]
        return actual

    async def close(self, grace: float) -> None:
        """Accept nobody any more; requests under way get some time to end."""
        if self._listener is None or self._server is None:
            return
        asyncio.get_running_loop().remove_reader(self._listener)
        if self._resting is not None:
            self._resting.cancel()
        self._listener.close()
        self._server.pre_shutdown()  # those that are idle go at once
        await self._server.shutdown(grace)
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(list(self._open))
        self._listener = self._server = None

    def _listen(self) -> None:
        assert self._listener is not None
        self._resting = None
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        assert self._listener is not None
        assert self._server is not None
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # whoever it was has gone
        except OSError as error:
            # No file descriptor left, most likely; they come back when others let go.
            log.warning("could not accept a connection", extra={"error": str(error)})
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener)
            self._resting = loop.call_later(1.0, self._listen)
            return
        if len(self._open) >= self._most and not self._make_room():
            client.close()
            return
        client.setblocking(False)
        handler = self._server()
        task = asyncio.create_task(self._serve(client, handler))
        self._open[task] = (handler, client)
        task.add_done_callback(self._ended)

    def _make_room(self) -> bool:
        for task, (handler, _) in self._open.items():
            if not handler.is_busy and not task.cancelling():
                task.cancel()
                return True
        return False

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task)[1].close()
        if not task.cancelled() and task.exception() is not None:
            log.error("serving a connection broke", exc_info=task.exception())

    async def _serve(self, client: socket.socket, handler: _Handler) -> None:
        """One connection, from the handshake to its end."""
        options: dict[str, Any] = {}
        loop = asyncio.get_running_loop()
        transport: asyncio.Transport | None = None
        try:
            if self._tls is not None:
                options = {
                    "ssl": self._tls.context(),
                    "ssl_handshake_timeout": _HANDSHAKE,
                    "ssl_shutdown_timeout": _GOODBYE,
                }
            transport, _ = await loop.connect_accepted_socket(lambda: handler, client, **options)
            await handler.over
        except OSError as error:  # no TLS, or not ours; or gone
            log.debug("connection ended early", extra={"error": str(error)})
        finally:
            is_gone = handler.over.done() and not handler.over.cancelled()
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
            (address, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        text = f"can't listen on {address}, port {port}: {why}"
        raise ConfigError([Problem("--port", text)]) from error
    made.setblocking(False)
    return made
