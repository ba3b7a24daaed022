"""Accepts the connections of an HTTP server, with limits on their number and their time.

aiohttp speaks HTTP on the connections; here they are accepted, wrapped in TLS, counted and closed.
A client that is slow in the handshake, with its request or in reading the answer delays no other:

    lifetime         a connection is closed after so many seconds, whatever it does
    header_seconds   a request whose head is not complete in time is cut off; idle ones may stay
    max_connections  beyond it a connection is closed: the oldest of the client address with the
                     most connections, so that a flood from one address closes only its own. Unless
                     `evict_busy`, only idle ones are closed; without one, the new one is refused
    max_line         longer request lines and headers are refused, in bytes

With `cancels_handlers`, a handler is cancelled when its client disconnects.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

from aiohttp import web

from mooring.errors import ConfigError, Problem

log = logging.getLogger(__name__)

_BACKLOG: Final = 1024  # connections that wait to be accepted
_HANDSHAKE: Final = 10.0  # seconds
_TLS_SHUTDOWN: Final = 2.0  # for the client to close its side
_LINGER: Final = 1.0  # for a refused client to stop sending
_MAX_LINE: Final = 8190  # bytes

# aiohttp logs every malformed request; malformed requests must not fill our log.
_SILENT: Final = logging.getLogger(f"{__name__}.aiohttp")
_SILENT.setLevel(logging.CRITICAL + 1)

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class ServerTls(Protocol):
    """Gives the TLS context of the next connection."""

    def context(self) -> ssl.SSLContext: ...


class _Connection(web.RequestHandler):
    """One connection; closed if the head of a request takes longer than `header_seconds`."""

    __slots__ = ("_cut", "_header_seconds", "address", "closed", "is_busy", "lifetime", "unused")

    def __init__(
        self,
        server: _Server,
        client: socket.socket,
        address: bytes,
        header_seconds: float | None,
        **options: Any,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **options)
        self.address: bytes = address
        self.unused: socket.socket | None = client  # until a transport owns it
        self.closed: asyncio.Future[None] = loop.create_future()
        self.is_busy: bool = False
        self.lifetime: asyncio.Timeout | None = None
        self._header_seconds = header_seconds
        self._cut: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A request begins: its head has been read."""
        self.is_busy = True
        self._stop_clock()

    def end(self) -> None:
        """The request ends: it has been answered."""
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
        if not self.closed.done():
            self.closed.set_result(None)

    def _start_clock(self) -> None:
        if self._header_seconds is not None:
            loop = asyncio.get_running_loop()
            self._cut = loop.call_later(self._header_seconds, self.force_close)

    def _stop_clock(self) -> None:
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None


class _Server(web.Server):
    """aiohttp's server, which tells connections when they are busy."""

    def __init__(
        self,
        handle: Handle,
        header_seconds: float | None,
        idle_seconds: float,
        max_line: int,
        cancels_handlers: bool,
    ) -> None:
        async def watched(request: web.BaseRequest) -> web.StreamResponse:
            connection = request.protocol
            assert isinstance(connection, _Connection)
            connection.begin()
            try:
                return await handle(request)
            finally:
                connection.end()

        super().__init__(watched, handler_cancellation=cancels_handlers)
        self._header_seconds = header_seconds
        self._idle_seconds = idle_seconds
        self._max_line = max_line

    def connection(self, client: socket.socket, address: bytes) -> _Connection:
        return _Connection(
            self,
            client,
            address,
            self._header_seconds,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=self._idle_seconds,
            lingering_time=_LINGER,
            logger=_SILENT,
            max_field_size=self._max_line,
            max_line_size=self._max_line,
        )


def prolong(request: web.BaseRequest, seconds: float) -> None:
    """Give the connection of a request so many seconds from now on: for a long answer."""
    connection = request.protocol
    if isinstance(connection, _Connection) and connection.lifetime is not None:
        connection.lifetime.reschedule(asyncio.get_running_loop().time() + seconds)


class HttpListener:
    """A listening socket and the connections accepted on it; `port_flag` is named in errors."""

    def __init__(
        self,
        handle: Handle,
        tls: ServerTls | None,
        *,
        max_connections: int,
        idle_seconds: float,
        lifetime: float | None = None,
        header_seconds: float | None = None,
        evict_busy: bool = False,
        max_line: int = _MAX_LINE,
        cancels_handlers: bool = False,
        port_flag: str = "--port",
    ) -> None:
        self._new_server = partial(
            _Server, handle, header_seconds, idle_seconds, max_line, cancels_handlers
        )
        self._tls = tls
        self._max_connections = max_connections
        self._lifetime = lifetime
        self._evict_busy = evict_busy
        self._port_flag = port_flag
        self._server: _Server | None = None
        self._socket: socket.socket | None = None
        self._paused: asyncio.TimerHandle | None = None
        self._open: dict[asyncio.Task[None], _Connection] = {}  # by the serving task, oldest first

    def __len__(self) -> int:
        return len(self._open)

    async def start(self, address: str, port: int) -> int:
        """Listen; returns the port, which is a free one for port 0."""
        self._socket = self._bind(address, port)
        self._server = self._new_server()
        self._listen()
        actual: int = self._socket.getsockname()[1]
        return actual

    @property
    def listening(self) -> socket.socket:
        """The listening socket, once started."""
        assert self._socket is not None
        return self._socket

    def adopt(self, listening: socket.socket) -> None:
        """Instead of `start`: accept from a socket of another process, after `resume`."""
        self._socket = listening
        self._server = self._new_server()

    def pause(self) -> None:
        """Leave new connections to other processes that listen on the same socket."""
        asyncio.get_running_loop().remove_reader(self.listening)

    def resume(self) -> None:
        """Accept again."""
        self._listen()

    async def close(self, grace: float = 1.0) -> None:
        """Stop accepting; requests in progress get `grace` seconds to end."""
        if self._socket is None or self._server is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        if self._paused is not None:
            self._paused.cancel()
        self._socket.close()
        self._server.pre_shutdown()  # idle connections are closed at once
        await self._server.shutdown(grace)
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(list(self._open))
        self._socket = self._server = None

    def _bind(self, address: str, port: int) -> socket.socket:
        try:
            version = ipaddress.ip_address(address).version
        except ValueError as error:
            raise ConfigError([Problem("--bind-address", str(error))]) from error
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        both = address == "::" and socket.has_dualstack_ipv6()
        try:
            bound = socket.create_server(
                (address, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both
            )
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            text = f"can't listen on {address}, port {port}: {why}"
            raise ConfigError([Problem(self._port_flag, text)]) from error
        bound.setblocking(False)
        return bound

    def _listen(self) -> None:
        assert self._socket is not None
        self._paused = None
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        assert self._socket is not None
        assert self._server is not None
        try:
            client, address = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # the client has gone
        except OSError as error:
            # Probably out of file descriptors; wait until others are closed.
            log.warning("could not accept a connection", extra={"error": str(error)})
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            self._paused = loop.call_later(1.0, self._listen)
            return
        if len(self._open) >= self._max_connections:
            made_room = self._close_one()
            if not made_room and not self._evict_busy:
                client.close()
                return
        client.setblocking(False)
        connection = self._server.connection(client, _network(address[0]))
        task = asyncio.create_task(self._serve(client, connection))
        self._open[task] = connection
        task.add_done_callback(self._ended)

    def _close_one(self) -> bool:
        closable = {
            task: connection.address
            for task, connection in self._open.items()
            if (self._evict_busy or not connection.is_busy) and not task.cancelling()
        }
        if not closable:
            return False
        counts = Counter(closable.values())
        most = max(counts.values())
        next(task for task, address in closable.items() if counts[address] == most).cancel()
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        connection = self._open.pop(task, None)
        if connection is not None and connection.unused is not None:  # cancelled before it began
            connection.unused.close()
        if not task.cancelled() and task.exception() is not None:
            log.error("a connection failed", exc_info=task.exception())

    async def _serve(self, client: socket.socket, connection: _Connection) -> None:
        """One connection, from the handshake to its end."""
        options: dict[str, Any] = {}
        if self._tls is not None:
            options = {
                "ssl": self._tls.context(),
                "ssl_handshake_timeout": _HANDSHAKE,
                "ssl_shutdown_timeout": _TLS_SHUTDOWN,
            }
        task = asyncio.current_task()
        assert task is not None
        transport: asyncio.Transport | None = None
        connection.unused = None
        try:
            async with asyncio.timeout(self._lifetime) as connection.lifetime:
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: connection, client, **options
                )
                await connection.closed
        except OSError as error:  # not TLS, a wrong certificate, disconnected, or timed out
            log.debug("connection ended early", extra={"error": str(error)})
        finally:
            is_gone = connection.closed.done() and not connection.closed.cancelled()
            if transport is not None and not is_gone:  # a TLS transport that is gone can't abort
                transport.abort()
            self._open.pop(task)  # at once, so that it no longer counts against the limit


def _network(address: str) -> bytes:
    """The identity of a client: its IPv4 address, or the /64 network of its IPv6 address."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.packed
    return parsed.ipv4_mapped.packed if parsed.ipv4_mapped is not None else parsed.packed[:8]
