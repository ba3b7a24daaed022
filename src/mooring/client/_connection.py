"""One connection: bytes through zero or more layers of TLS, one receiver at a time, one timer.

    made ──► (tunnel, handshake) ──► idle ◄──► with a receiver ──► closed
                                      └── idle too long, or unexpected bytes ──► closed

A connection is `reusable` unless a request is half written or a response half read. The pool
closes connections that are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
import sys
from typing import TYPE_CHECKING, Final, Protocol, cast

from mooring.client._failures import Broken, describe_error, is_certificate_error
from mooring.client._tls_layer import TlsLayer

if TYPE_CHECKING:
    from mooring.client._pool import Pool

READ_SIZE: Final = 256 * 1024  # bytes taken from the socket at a time

_TIMER_SLACK: Final = 0.001  # seconds; a timer this early is on time
_LONG_IDLE: Final = 0.05  # seconds after which to ask the socket before trusting it
# A peer that vanished is noticed within 30 s, idle or not.
_SOCKET_OPTIONS: Final = (
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    ("IPPROTO_TCP", "TCP_NODELAY", 1),
    ("IPPROTO_TCP", "TCP_KEEPIDLE", 15),  # seconds
    ("IPPROTO_TCP", "TCP_KEEPALIVE", 15),  # the same, as macOS calls it
    ("IPPROTO_TCP", "TCP_KEEPINTVL", 5),  # seconds
    ("IPPROTO_TCP", "TCP_KEEPCNT", 3),
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", 30_000),  # milliseconds
)


class Receiver(Protocol):
    """Gets what arrives; nothing after `broken` or `detach`."""

    def received(self, data: bytes) -> None: ...

    def ended(self, clean: bool) -> None:
        """The server closed; not `clean` without a close_notify of TLS."""
        ...

    def broken(self, why: Broken) -> None: ...

    def expired(self) -> None:
        """The time given to `expire_at` has come."""
        ...


class Connection(asyncio.BufferedProtocol):
    """A socket as asyncio sees it. `buffer` may be shared: bytes are taken out at once."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: Pool,
        buffer: memoryview,
        idle_limit: float,
    ) -> None:
        self.context: ssl.SSLContext | None = None  # with which the server was verified
        self.reusable: bool = False
        self._loop = loop
        self._pool = pool
        self._buffer = buffer
        self._idle_limit = idle_limit
        self._idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._layers: tuple[TlsLayer, ...] = ()  # from the wire inwards
        self._receiver: Receiver | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._given_up = False
        pool.opening(self)

    @property
    def is_open(self) -> bool:
        transport = self._transport
        return not self._given_up and transport is not None and not transport.is_closing()

    def attach(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def detach(self, *, reusable: bool) -> None:
        """Remove the receiver, whose response is complete."""
        self._receiver = None
        self.reusable = reusable and self.is_open and not self._unwritten()

    def write(self, data: bytes) -> None:
        if self._transport is None:
            raise RuntimeError("written to before the connection was made")
        try:
            for layer in reversed(self._layers):
                data = layer.encrypt(data)
        except ssl.SSLError as error:
            self.fail(Broken(describe_error(error)))
            return
        self._transport.write(data)

    def add_layer(self, layer: TlsLayer) -> None:
        """Send and receive through this layer from now on."""
        self._layers = (*self._layers, layer)
        self._decrypt(b"", (layer,))  # it may hold bytes already

    def mark_idle(self) -> None:
        """Close after `idle_limit`, unless there is another request before."""
        self._idle_since = self._loop.time()
        self.expire_at(self._idle_since + self._idle_limit)

    def is_usable(self) -> bool:
        """Whether a request may be written: open, and not closed by the server meanwhile.

        The loop may not know yet: a process that was busy or stopped for a while writes before it
        reads. The outcome of a POST on a dead connection would be unknown.
        """
        if self._transport is None or not self.is_open:
            return False
        if self._loop.time() - self._idle_since < _LONG_IDLE:
            return True
        return not _has_input(self._transport.get_extra_info("socket"))

    def expire_at(self, due: float) -> None:
        """Set the timer of the receiver or, without one, of the idle connection.

        A running timer is left running and compares with `due` when it fires, so that a deadline
        that moves with every request costs nothing.
        """
        if self._given_up:
            return
        self._due = due
        timer = self._timer
        if timer is None or timer.when() > due:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(due, self._on_timer)

    def pause(self) -> None:
        """Read no more from the socket until `resume`."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def fail(self, why: Broken) -> None:
        """Close, and tell the receiver."""
        receiver, self._receiver = self._receiver, None
        self.close()
        if receiver is not None:
            receiver.broken(why)

    def close(self) -> None:
        """Close at once, without telling the receiver."""
        self._receiver = None
        if self._given_up:
            return
        self._given_up = True
        self.reusable = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pool.closing(self)
        if self._transport is None:
            self._pool.lost(self)
        elif not self._transport.is_closing():
            self._send_close_notify(self._transport)
            self._transport.abort()

    # --- for asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # of a stream socket
        if self._given_up:  # while the socket was on its way
            self._transport.abort()
            return
        self.reusable = True
        _set_options(transport.get_extra_info("socket"))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._buffer[:nbytes]
        if self._layers:
            self._decrypt(data, self._layers)
        else:
            self._deliver(bytes(data))

    def eof_received(self) -> None:
        clean = not self._layers or self._layers[-1].ended
        receiver, self._receiver = self._receiver, None
        self.close()
        if receiver is not None:
            receiver.ended(clean)

    def connection_lost(self, exc: Exception | None) -> None:
        why = "the connection was closed" if exc is None else describe_error(exc)
        self.fail(Broken(why))
        self._transport = None
        self._pool.lost(self)

    def _decrypt(self, data: bytes | memoryview, layers: tuple[TlsLayer, ...]) -> None:
        inner = b""
        try:
            for layer in layers:
                inner = layer.decrypt(data)
                data = inner
        except ssl.SSLError as error:
            self._flush_layers()
            self.fail(Broken(describe_error(error), untrusted=is_certificate_error(error)))
            return
        self._flush_layers()
        self._deliver(inner)

    def _deliver(self, data: bytes) -> None:
        if data:
            if self._receiver is None:
                self.close()  # without a request: a status such as 408, or not HTTP
                return
            self._receiver.received(data)
        if self._layers and self._layers[-1].ended:
            self.eof_received()

    def _flush_layers(self) -> None:
        """Send what TLS itself wants to send: alerts, key updates."""
        for depth, layer in enumerate(self._layers):
            pending_output = layer.pending_output()
            if pending_output and self._transport is not None:
                for outer in reversed(self._layers[:depth]):
                    pending_output = outer.encrypt(pending_output)
                self._transport.write(pending_output)

    def _send_close_notify(self, transport: asyncio.Transport) -> None:
        # Only if it can be sent at once; closing does not wait.
        if not self._layers or transport.get_write_buffer_size():
            return
        close_notify = self._layers[-1].close_notify()
        # A broken session cannot be closed in good form.
        with contextlib.suppress(ssl.SSLError):
            for outer in reversed(self._layers[:-1]):
                close_notify = outer.encrypt(close_notify)
            if close_notify:
                transport.write(close_notify)

    def _unwritten(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _on_timer(self) -> None:
        self._timer = None
        if self._due - self._loop.time() > _TIMER_SLACK:
            self._timer = self._loop.call_at(self._due, self._on_timer)
        elif self._receiver is not None:
            self._receiver.expired()
        else:
            self.close()


def _set_options(sock: socket.socket) -> None:
    for level, option, value in _SOCKET_OPTIONS:
        if hasattr(socket, option):
            # A connection without the option is better than none.
            with contextlib.suppress(OSError):
                sock.setsockopt(getattr(socket, level), getattr(socket, option), value)


def _has_input(sock: socket.socket) -> bool:
    if sys.platform == "win32":  # no poll there; the loop notices a little later
        return False
    poller = select.poll()
    poller.register(sock.fileno(), select.POLLIN)
    return bool(poller.poll(0))
