"""A bad network in front of an API server, as a proxy that understands HTTP/1.1.

It ends TLS towards the client and begins it anew towards the server, so that it can tell a bind
from a watch. Tokens pass through; who came with a client certificate is announced to the server in
front-proxy headers, so both ways to log in work through it. It runs in a thread of its own; faults
are set from the test's.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import tempfile
import threading
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import parse_qs, urlsplit

from tests.certificates import Pair
from tests.controlplane import wire
from tests.controlplane.faults import Dice, Faults
from tests.controlplane.processes import Port
from tests.controlplane.wire import Head, Side

T = TypeVar("T")

_TICK = 0.05  # seconds; how exact `cut_watches_every` is


class _Cut(ConnectionError):
    """This connection ends here, on purpose."""


class FlakyProxy:
    """Listens on `url`; does what `faults` say and counts it in `counters`.

    `bind_replies_cut` names the pods ("namespace/name") whose bind was carried out unanswered.
    """

    def __init__(
        self, *, upstream: int, serving: Pair, front_proxy: Pair, clients: bytes, seed: int = 0
    ) -> None:
        self._upstream = upstream
        self._contexts = _contexts(serving, front_proxy, clients)
        self._port = Port()
        self._dice = Dice(seed)
        self.url: str = f"https://127.0.0.1:{self._port.number}"
        self.faults: Faults = Faults()
        self.counters: Counter[str] = Counter()
        self.bind_replies_cut: list[str] = []
        self._thread = threading.Thread(target=self._run, name="flaky proxy", daemon=True)
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._accidents: list[BaseException] = []
        # From here on only the proxy's thread touches anything.
        self._listener: socket.socket | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._clients: set[Side] = set()
        self._watches: set[Side] = set()
        self._ended: asyncio.Event
        self._open: asyncio.Event  # cleared in a black hole

    # --- for tests -----------------------------------------------------------------------------

    def start(self) -> Self:
        self._thread.start()
        self._started.result()
        return self

    def stop(self) -> None:
        """End it; raises what went wrong inside it, if anything did."""
        if self._thread.is_alive():
            self._do(self._end())
            self._thread.join()
        self._port.close()
        if self._accidents:
            raise RuntimeError("the proxy had an accident") from self._accidents[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def black_hole(self) -> None:
        """Connections open and stay open, and nothing arrives on them, in either direction."""
        self._do(self._set_open(False))

    def refuse(self) -> None:
        """All connections break, new ones are refused."""
        self._do(self._close_door())

    def heal(self) -> None:
        """End a black hole, which lets go on what was held up, or a refusal."""
        self._do(self._set_open(True))
        self._do(self._open_door())

    def cut_watches(self) -> int:
        """Break all watches that run now; how many."""
        return self._do(self._cut(self._watches))

    def cut_all(self) -> int:
        """Break all connections; how many."""
        return self._do(self._cut(self._clients))

    # --- its own thread ------------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._started.result()
        return asyncio.run_coroutine_threadsafe(work, loop).result(30.0)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._accidents.append(error)
            if not self._started.done():
                self._started.set_exception(error)

    async def _main(self) -> None:
        self._ended, self._open = asyncio.Event(), asyncio.Event()
        self._open.set()
        await self._open_door()
        metronome = asyncio.create_task(self._metronome())
        self._started.set_result(asyncio.get_running_loop())
        await self._ended.wait()
        metronome.cancel()
        await self._close_door()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(metronome, *self._serving, return_exceptions=True)

    async def _end(self) -> None:
        self._ended.set()

    async def _set_open(self, is_open: bool) -> None:
        (self._open.set if is_open else self._open.clear)()

    async def _open_door(self) -> None:
        if self._listener is None:
            listener = self._listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            listener.bind(("127.0.0.1", self._port.number))
            listener.listen(1024)
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    async def _close_door(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        await self._cut(self._clients)

    async def _cut(self, sides: set[Side]) -> int:
        cut = list(sides)
        self.counters["watches cut"] += len(self._watches.intersection(cut))
        for side in cut:
            side.abort()
        return len(cut)

    async def _metronome(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(_TICK)
            every = self.faults.cut_watches_every
            if not every:
                last = loop.time()
            elif loop.time() - last >= every:
                last = loop.time()
                await self._cut(self._watches)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # whoever knocked is gone again
            return
        connection.setblocking(False)
        self.counters["connections"] += 1
        task = asyncio.create_task(self._serve(connection))
        self._serving.add(task)
        task.add_done_callback(self._served)
        # Unless the task took it over; it may have been cancelled before its first step.
        task.add_done_callback(lambda _: connection.close())

    def _served(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._accidents.append(error)

    async def _serve(self, connection: socket.socket) -> None:
        """One client's connection, with one to the server behind it."""
        client, server = Side(), Side()
        client.on_gone, server.on_gone = server.abort, lambda: None
        try:
            try:
                await self._open.wait()  # not even a handshake comes out of a black hole
                await client.accept(connection.detach(), self._contexts[0])
                self._clients.add(client)
                await server.connect(self._upstream, self._contexts[1])
                while True:
                    await self._exchange(client, server)
            except OSError:  # one of the two left, or was cut off by us: the other follows
                await self._open.wait()
        finally:
            self._clients.discard(client)
            client.abort()
            server.abort()
            await client.lost()
            await server.lost()

    async def _exchange(self, client: Side, server: Side) -> None:
        """One request and its response."""
        head = await wire.read_head(client.reader)
        await self._open.wait()
        faults, request = self.faults, f"{head.method} {head.target}"
        pod = _pod_to_bind(head)
        is_watch = _is_watch(head)
        self.counters["requests"] += 1
        self.counters["binds"] += pod is not None
        self.counters["watches"] += is_watch
        if pause := faults.delay + (faults.bind_delay if pod is not None else 0.0):
            await asyncio.sleep(pause)
        refusal = self._refusal(pod, request)
        if refusal is not None:
            await wire.relay_body(head, client.reader, _nowhere)
            await self._through(client, refusal)
            return
        _announce(head, client)
        await self._through(server, head.encode())
        await wire.relay_body(head, client.reader, lambda piece: self._through(server, piece))
        reply = await wire.read_head(server.reader)
        bodiless = head.method == "HEAD" or reply.code in (204, 304)
        if pod is not None and self._dice.hits(faults.cut_bind_replies, "cut", request):
            await wire.relay_body(reply, server.reader, _nowhere, bodiless=bodiless)
            self.counters["bind replies cut"] += 1
            self.bind_replies_cut.append(pod)
            raise _Cut("a bind goes unanswered")
        if _writes_claim(head) and self._dice.hits(faults.cut_claim_replies, "claim", request):
            await wire.relay_body(reply, server.reader, _nowhere, bodiless=bodiless)
            self.counters["claim replies cut"] += 1
            raise _Cut("a write to a claim goes unanswered")
        await self._through(client, reply.encode())
        if is_watch:
            await self._relay_watch(reply, client, server)
        else:
            await wire.relay_body(
                reply,
                server.reader,
                lambda piece: self._through(client, piece),
                bodiless=bodiless,
            )
        if reply.get("connection").lower() == "close":
            await client.flush()
            raise _Cut("the server closes the connection after this response")

    def _refusal(self, pod: str | None, request: str) -> bytes | None:
        faults = self.faults
        if pod is not None:
            if not self._dice.hits(faults.fail_binds, "fail", request):
                return None
            self.counters["binds failed"] += 1
            return wire.answer(500, "Internal Server Error", _status(500, "InternalError"))
        if not self._dice.hits(faults.throttle, "throttle", request):
            return None
        self.counters["throttled"] += 1
        wait = ("Retry-After", str(faults.retry_after))
        return wire.answer(429, "Too Many Requests", _status(429, "TooManyRequests"), wait)

    async def _relay_watch(self, reply: Head, client: Side, server: Side) -> None:
        """As other bodies, but a piece may be late without holding up those behind it."""
        loop = asyncio.get_running_loop()
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, piece = await late.get()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                await self._through(client, piece)
                late.task_done()

        async def take(piece: bytes) -> None:
            late.put_nowait((loop.time() + self.faults.watch_lag, piece))

        self._watches.add(client)
        delivery = asyncio.create_task(deliver())
        try:
            await wire.relay_body(reply, server.reader, take)
            await late.join()
        finally:
            self._watches.discard(client)
            delivery.cancel()
            await asyncio.gather(delivery, return_exceptions=True)

    async def _through(self, side: Side, data: bytes) -> None:
        await self._open.wait()
        await side.send(data)


def _contexts(
    serving: Pair, front_proxy: Pair, clients: bytes
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS towards clients and towards the server."""
    inward = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inward.verify_mode = ssl.CERT_OPTIONAL
    inward.load_verify_locations(cadata=clients.decode())
    inward.set_alpn_protocols(["http/1.1"])
    outward = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # It goes to a port of loopback that we chose; the clients' trust is what is under test.
    outward.check_hostname = False
    outward.verify_mode = ssl.CERT_NONE
    outward.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory() as folder:
        for context, pair in ((inward, serving), (outward, front_proxy)):
            context.load_cert_chain(*pair.write(Path(folder), "pair"))
    return inward, outward


def _announce(head: Head, client: Side) -> None:
    """Tell the server who the client is, as its authenticating front proxy."""
    head.without("x-remote-user", "x-remote-group", "x-remote-uid")
    if head.get("authorization"):
        return
    subject = [pair for names in client.certificate.get("subject", ()) for pair in names]
    announced = {"commonName": "X-Remote-User", "organizationName": "X-Remote-Group"}
    head.headers += [(announced[key], value) for key, value in subject if key in announced]


def _pod_to_bind(head: Head) -> str | None:
    """The pod ("namespace/name") that a request binds, if it does."""
    parts = urlsplit(head.target).path.strip("/").split("/")
    match parts:
        case ["api", "v1", "namespaces", namespace, "pods", name, "binding"]:
            return f"{namespace}/{name}" if head.method == "POST" else None
        case _:
            return None


def _writes_claim(head: Head) -> bool:
    parts = urlsplit(head.target).path.strip("/").split("/")
    return parts[0] == "apis" and "resourceclaims" in parts and head.method != "GET"


def _is_watch(head: Head) -> bool:
    asked = parse_qs(urlsplit(head.target).query).get("watch", [""])[0]
    return head.method == "GET" and asked in ("1", "true")


def _status(code: int, reason: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return json.dumps({**status, "code": code, "reason": reason, "message": "by proxy"}).encode()


async def _nowhere(piece: bytes) -> None:
    """Where the bodies go that nobody is to see."""
