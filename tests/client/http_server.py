"""A small server on loopback that does what a test tells it to, however wrong that is.

A handler is called for every connection and has it in its hands: it reads requests and writes
bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.event_loop import PATIENCE

from mooring.client.endpoint import Credentials, Endpoint, Tls
from mooring.client.http import HttpTransport
from mooring.client.transport import Request
from mooring.simulator.clock import VirtualLoop

T = TypeVar("T")


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Peer:
    """One connection, seen from the server."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number: int = number  # from 0, in the order of arrival
        self.reader: asyncio.StreamReader = reader
        self.writer: asyncio.StreamWriter = writer
        self.requests: list[Received] = []

    async def request(self) -> Received:
        """The next one; raises IncompleteReadError when there is none."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, path, _ = first.split(" ")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            known = headers.get(name.lower())
            headers[name.lower()] = value if known is None else f"{known}, {value}"
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Received(method, path, headers, body))
        return self.requests[-1]

    async def send(self, *parts: bytes) -> None:
        """Each part on its own, so that they arrive one by one."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Until the client has closed; what it still says is ignored."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                continue


Handler = Callable[[Peer], Awaitable[None]]


@dataclass
class Server:
    """What has happened so far."""

    port: int
    peers: list[Peer] = field(default_factory=list)

    @property
    def requests(self) -> list[Received]:
        return [request for peer in self.peers for request in peer.requests]


@contextlib.asynccontextmanager
async def serve(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server for as long as the context is open; an error of the handler is raised at the end."""
    tasks: list[asyncio.Task[None]] = []

    async def attend(peer: Peer) -> None:
        # A client that leaves is the normal end of a connection.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await handler(peer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(len(found.peers), reader, writer)
        found.peers.append(peer)
        tasks.append(asyncio.get_running_loop().create_task(attend(peer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    found = Server(listener.sockets[0].getsockname()[1])
    try:
        yield found
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for peer in found.peers:
            peer.reset()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
            raise error


# --- answers -----------------------------------------------------------------------------------


def answer(body: bytes = b"{}", status: int = 200, **headers: str) -> bytes:
    """A whole answer; `content_type="text/plain"` becomes a header."""
    fields = {"content_length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode() + body


CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def always(*answers: bytes) -> Handler:
    """Gives these answers on every connection, the last one again and again."""

    async def handler(peer: Peer) -> None:
        number = 0
        while True:
            await peer.request()
            await peer.send(answers[min(number, len(answers) - 1)])
            number += 1

    return handler


def says_once(data: bytes) -> Handler:
    """Says this to the first request of a connection, and closes."""

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(data)
        peer.close()

    return handler


def answers_then_closes(counts: dict[int, int]) -> Handler:
    """Each connection answers so many requests, reads one more, and closes without a word."""

    async def handler(peer: Peer) -> None:
        for _ in range(counts.get(peer.number, 100)):
            await peer.request()
            await peer.send(answer())
        await peer.request()
        peer.close()

    return handler


def picky(context: ssl.SSLContext, data: bytes) -> Handler:
    """TLS that tells a client why it is refused, which asyncio's own does not; else says this."""

    async def handler(peer: Peer) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(incoming, outgoing, server_side=True)
        shaking, heard = True, b""
        while b"\r\n\r\n" not in heard:
            incoming.write(await peer.reader.read(65536))
            try:
                if shaking:
                    session.do_handshake()
                    shaking = False
                heard += session.read()
            except ssl.SSLWantReadError:
                await peer.send(outgoing.read())
            except ssl.SSLError:
                await peer.send(outgoing.read())
                return await peer.gone()
        session.write(data)
        await peer.send(outgoing.read())

    return handler


# --- clients -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def client(
    port: int,
    *,
    host: str = "127.0.0.1",
    tls: Tls | None = None,
    server_name: str = "",
    proxy: str = "",
    credentials: Credentials | None = None,
    prefix: str = "",
    **options: Any,
) -> AsyncIterator[HttpTransport]:
    """A transport to that port, closed at the end."""
    endpoint = Endpoint(
        host,
        port,
        prefix=prefix,
        tls=tls,
        server_name=server_name,
        proxy=proxy,
        credentials=credentials,
    )
    transport = HttpTransport(endpoint, user_agent="mooring-test", **options)
    try:
        yield transport
    finally:
        await transport.close()


def get(path: str = "/x", timeout: float = 30.0) -> Request:
    return Request(method="GET", path=path, timeout=timeout)


def post(path: str = "/x", body: bytes = b'{"a":1}', timeout: float = 30.0) -> Request:
    return Request(method="POST", path=path, body=body, timeout=timeout)


async def until(claim: Callable[[], bool], pause: float = 0.001) -> None:
    """Let others run until it is true."""
    while not claim():  # noqa: ASYNC110 - what is claimed of a socket sets no event
        await asyncio.sleep(pause)


class Timed:
    """A virtual loop with real sockets: bytes take no time, hours are made to pass.

    As watchful as `event_loop.run`.
    """

    def __init__(self) -> None:
        self.loop: VirtualLoop = VirtualLoop()
        self._entered: list[contextlib.AbstractAsyncContextManager[Any]] = []
        self._complaints: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self._complaints.append(context))

    def __enter__(self) -> Timed:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        while self._entered:
            self.do(self._entered.pop().__aexit__(None, None, None))
        left = asyncio.all_tasks(self.loop)
        self.loop.close()
        if kind is None:
            assert not left, f"tasks were left behind: {left}"
            assert not self._complaints, f"the event loop complains: {self._complaints}"

    def enter(self, context: contextlib.AbstractAsyncContextManager[T]) -> T:
        found = self.do(context.__aenter__())
        self._entered.append(context)
        return found

    def do(self, work: Coroutine[Any, Any, T], *, step: float = 0.0) -> T:
        """Until it is done, letting time pass by `step` whenever nothing else happens.

        With 0 no time passes: the kernel may need a moment, which is no time of the loop.
        """
        task = self.loop.create_task(work)
        late = time.monotonic() + PATIENCE
        self.loop.settle()
        while not task.done():
            self.loop.advance(step)
            assert time.monotonic() < late, "it hangs"
        return task.result()
