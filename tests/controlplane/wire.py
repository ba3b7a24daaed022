"""HTTP/1.1 as it is on the wire: heads are read and written, bodies pass by in pieces.

Only as much as `proxy.py` needs between clients and servers that both do it right; and `Side`, one
of the two TLS connections that it joins.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

LIMIT = 1 << 20  # bytes of a head or of a line that says how long a chunk is
_PIECE = 1 << 16

Send = Callable[[bytes], Awaitable[None]]


class Hangup(ConnectionError):
    """The other side closed the connection where a message should have begun or gone on."""


@dataclass
class Head:
    """A start line and the headers, in order."""

    start: str
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        """The first value of a header; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def without(self, *names: str) -> None:
        self.headers = [(key, value) for key, value in self.headers if key.lower() not in names]

    @property
    def code(self) -> int:
        """The status code, if this is the head of a response."""
        return int(self.start.split(" ", 2)[1])

    @property
    def method(self) -> str:
        return self.start.split(" ", 1)[0]

    @property
    def target(self) -> str:
        return self.start.split(" ", 2)[1]

    def encode(self) -> bytes:
        lines = [self.start, *(f"{key}: {value}" for key, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head:
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as error:
        raise Hangup("closed before a head") from error
    start, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(start, [(key, value.strip()) for key, _, value in pairs])


async def relay_body(
    head: Head, reader: asyncio.StreamReader, send: Send, *, bodiless: bool = False
) -> None:
    """Hand on the body behind a head in pieces, with the marks of chunks left in.

    `bodiless` says that there is none whatever the head says: after HEAD, or with 204 and 304.
    """
    if bodiless:
        return
    if head.get("transfer-encoding").lower() == "chunked":
        await _relay_chunks(reader, send)
    elif length := head.get("content-length"):
        left = int(length)
        while left:
            piece = await reader.read(min(left, _PIECE))
            if not piece:
                raise Hangup("closed within a body")
            left -= len(piece)
            await send(piece)
    elif head.start.startswith("HTTP/"):  # a response that lasts until the connection ends
        while piece := await reader.read(_PIECE):
            await send(piece)


async def _relay_chunks(reader: asyncio.StreamReader, send: Send) -> None:
    try:
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            if size == 0:
                break
            await send(line + await reader.readexactly(size + 2))
        trailer = line
        while line != b"\r\n":
            line = await reader.readuntil(b"\r\n")
            trailer += line
        await send(trailer)
    except asyncio.IncompleteReadError as error:
        raise Hangup("closed within a chunk") from error


def answer(code: int, reason: str, body: bytes, *headers: tuple[str, str]) -> bytes:
    """A whole response."""
    own = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers]
    return Head(f"HTTP/1.1 {code} {reason}", own).encode() + body


class Side:
    """One of the two connections that the proxy joins."""

    def __init__(self) -> None:
        self.reader: asyncio.StreamReader = asyncio.StreamReader(limit=LIMIT)
        self.on_gone: Callable[[], None]
        self._protocol = _Protocol(self.reader, lambda: self.on_gone())
        self._writer: asyncio.StreamWriter | None = None

    async def accept(self, descriptor: int, context: ssl.SSLContext) -> None:
        """Take over a connection that was just accepted, and do the server's part of TLS."""
        loop = asyncio.get_running_loop()
        connection = socket.socket(fileno=descriptor)
        made = await loop.connect_accepted_socket(lambda: self._protocol, connection, ssl=context)
        self._writer = asyncio.StreamWriter(made[0], self._protocol, self.reader, loop)

    async def connect(self, port: int, context: ssl.SSLContext) -> None:
        """Connect to a port of loopback, and do the client's part of TLS."""
        loop = asyncio.get_running_loop()
        made = await loop.create_connection(
            lambda: self._protocol, "127.0.0.1", port, ssl=context, server_hostname="127.0.0.1"
        )
        self._writer = asyncio.StreamWriter(made[0], self._protocol, self.reader, loop)

    @property
    def certificate(self) -> dict[str, Any]:
        """What the other side logged in with; empty without a certificate."""
        return (self._writer and self._writer.get_extra_info("peercert")) or {}

    async def send(self, data: bytes) -> None:
        if self._writer is None or self._writer.is_closing():
            raise Hangup("closed before everything was sent")
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(0)  # drain alone may go on forever without noticing a lost connection

    async def flush(self) -> None:
        """Close politely: what was sent arrives."""
        if self._writer is not None:
            self._writer.close()
            await self.lost()

    def abort(self) -> None:
        # Also if the handshake was done and nobody waited for it any more.
        if self._protocol.transport is not None:
            self._protocol.transport.abort()

    async def lost(self) -> None:
        """Wait until the connection is gone."""
        if self._protocol.transport is not None:
            await self._protocol.lost.wait()


class _Protocol(asyncio.StreamReaderProtocol):
    """Tells at once when the other side is gone, also while nobody reads."""

    def __init__(self, reader: asyncio.StreamReader, on_gone: Callable[[], None]) -> None:
        super().__init__(reader)
        self.transport: asyncio.Transport | None = None
        self.lost: asyncio.Event = asyncio.Event()
        self._on_gone = on_gone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()
        self._on_gone()
