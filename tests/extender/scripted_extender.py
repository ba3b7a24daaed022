"""An extender of bytes and sockets, which behaves as badly as a test wants."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Self

Payload = dict[str, Any]
Act = Callable[[Payload, asyncio.StreamWriter], Awaitable[None]]
"""What it does with a request: it may write whatever it likes."""

_PORTION = 1024 * 1024  # bytes


class ScriptedExtender:
    """Listens on loopback; `acts` are by verb, and `asked` is what it was asked, in order."""

    def __init__(self, **acts: Act) -> None:
        self.acts: dict[str, Act] = acts
        self.asked: list[tuple[str, Payload]] = []
        self.url: str = ""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/scheduler/"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def asked_for(self, verb: str) -> list[Payload]:
        return [payload for asked, payload in self.asked if asked == verb]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while not reader.at_eof():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *fields = head.split("\r\n")
                lengths = [f for f in fields if f.lower().startswith("content-length:")]
                body = await reader.readexactly(int(lengths[0].split(":")[1]))
                method, path, _ = line.split(" ")
                assert method == "POST"
                assert "content-type: application/json" in head.lower()
                verb = path.removeprefix("/scheduler/")
                self.asked.append((verb, json.loads(body)))
                await self.acts[verb](self.asked[-1][1], writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()


def answering(make: Callable[[Payload], Any]) -> Act:
    """Answers in JSON, as it should be."""

    async def act(payload: Payload, writer: asyncio.StreamWriter) -> None:
        _write(writer, 200, json.dumps(make(payload)).encode())
        await writer.drain()

    return act


def saying(status: int, body: bytes) -> Act:
    """Answers with these bytes."""

    async def act(payload: Payload, writer: asyncio.StreamWriter) -> None:
        _write(writer, status, body)
        await writer.drain()

    return act


async def hang(payload: Payload, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def reset(payload: Payload, writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def endless(*, announced: bool) -> Act:
    """Answers with a gigabyte, and says so beforehand or not."""

    async def act(payload: Payload, writer: asyncio.StreamWriter) -> None:
        size = 1024 * _PORTION
        framing = f"Content-Length: {size}" if announced else "Transfer-Encoding: chunked"
        writer.write(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode())
        portion = b" " * _PORTION
        if not announced:
            portion = f"{_PORTION:x}\r\n".encode() + portion + b"\r\n"
        for _ in range(1024):
            writer.write(portion)
            await writer.drain()

    return act


def _write(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
