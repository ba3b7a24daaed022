"""Connections: how many there are, who waits for one, how long they rest, and the end of all."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from tests.client.http_server import (
    Peer,
    Timed,
    always,
    answer,
    client,
    get,
    post,
    serve,
    until,
)

from mooring.client.endpoint import Endpoint
from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport
from mooring.client.transport import Response


class Gate:
    """A server that answers when it is told to."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._free = asyncio.Semaphore(0)

    async def handler(self, peer: Peer) -> None:
        while True:
            request = await peer.request()
            self.paths.append(request.path)
            await self._free.acquire()
            await peer.send(answer(request.path.encode()))

    def let_go(self, count: int = 1) -> None:
        for _ in range(count):
            self._free.release()


async def test_opens_no_more_connections_than_it_may() -> None:
    gate = Gate()
    async with serve(gate.handler) as server, client(server.port, max_connections=3) as to:
        tasks = [asyncio.create_task(to.send(get(f"/{at}"))) for at in range(10)]
        await until(lambda: len(gate.paths) == 3)
        gate.let_go(10)
        found = await asyncio.gather(*tasks)
        assert [one.body for one in found] == [f"/{at}".encode() for at in range(10)]
        assert len(server.peers) == 3


async def test_lets_nobody_overtake() -> None:
    gate = Gate()
    async with serve(gate.handler) as server, client(server.port, max_connections=1) as to:
        tasks = []
        for at in range(5):
            tasks.append(asyncio.create_task(to.send(get(f"/{at}"))))
            await asyncio.sleep(0)
        gate.let_go(5)
        await tasks[0]
        late = asyncio.create_task(to.send(get("/late")))  # a connection is free just now
        gate.let_go()
        await asyncio.gather(*tasks, late)
        assert gate.paths == ["/0", "/1", "/2", "/3", "/4", "/late"]
        assert len(server.peers) == 1


async def test_gives_up_on_who_waits_in_line_too_long() -> None:
    gate = Gate()
    async with serve(gate.handler) as server, client(server.port, max_connections=1) as to:
        first = asyncio.create_task(to.send(post("/first")))
        await until(lambda: gate.paths == ["/first"])
        with pytest.raises(Unreachable) as found:
            await to.send(post("/second", timeout=0.02))
        assert "all connections were in use for too long" in str(found.value)
        assert not found.value.sent
        gate.let_go(2)
        await first
        await to.send(post("/third"))
        assert gate.paths == ["/first", "/third"]


async def test_passes_the_turn_of_a_cancelled_waiter_on() -> None:
    tasks: list[asyncio.Task[Response]] = []

    def cancel_second(*_: object) -> None:
        # Told when the first one has its answer and has passed its place on to the second.
        tasks[1].cancel()

    gate = Gate()
    async with (
        serve(gate.handler) as server,
        client(server.port, max_connections=1, on_answer=cancel_second) as to,
    ):
        paths = ("/first", "/second", "/third")
        tasks.extend(asyncio.create_task(to.send(get(path))) for path in paths)
        gate.let_go(2)
        await asyncio.wait(tasks)
        assert tasks[1].cancelled()
        assert tasks[2].result().body == b"/third"
        assert gate.paths == ["/first", "/third"]
        assert len(server.peers) == 1


async def test_gives_the_place_of_a_failed_request_to_the_next() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.request()
        await peer.send(b"garbage" if request.path == "/bad" else answer())

    async with serve(handler) as server, client(server.port, max_connections=1) as to:
        bad = asyncio.create_task(to.send(get("/bad")))
        good = asyncio.create_task(to.send(get("/good")))
        await asyncio.wait([bad, good])
        assert isinstance(bad.exception(), Unreachable)
        assert good.result().status == 200


async def test_uses_the_connection_that_was_used_last() -> None:
    gate = Gate()
    async with serve(gate.handler) as server, client(server.port) as to:
        slow = asyncio.create_task(to.send(get("/slow")))
        await until(lambda: gate.paths == ["/slow"])
        quick = asyncio.create_task(to.send(get("/quick")))
        await until(lambda: len(gate.paths) == 2)
        gate.let_go(1)
        await slow
        gate.let_go(3)
        await quick
        await to.send(get("/a"))
        await to.send(get("/b"))
        assert [peer.requests[-1].path for peer in server.peers] == ["/slow", "/b"]


def test_wants_at_least_one_connection() -> None:
    with pytest.raises(ValueError, match="max_connections: expected at least 1, got 0"):
        HttpTransport(Endpoint("h", 1), user_agent="x", max_connections=0)


# --- time --------------------------------------------------------------------------------------


def test_closes_a_connection_that_rests_too_long() -> None:
    with Timed() as timed:
        server = timed.enter(serve(always(answer())))
        transport = timed.enter(client(server.port, idle_limit=30.0))
        timed.do(transport.send(get()))
        timed.loop.advance(20)
        timed.do(transport.send(get()))  # the rest begins anew
        timed.loop.advance(29)
        assert not server.peers[0].reader.at_eof()
        timed.loop.advance(2)
        timed.do(until(lambda: server.peers[0].reader.at_eof(), pause=0))
        timed.do(transport.send(get()))
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


def test_gives_up_when_the_time_of_the_request_is_over_and_not_before() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"hello")[:-1])
        await peer.gone()

    with Timed() as timed:
        server = timed.enter(serve(handler))
        transport = timed.enter(client(server.port))
        task = timed.loop.create_task(transport.send(post(timeout=60.0)))
        timed.do(until(lambda: bool(server.requests), pause=0))
        timed.loop.advance(59)
        assert not task.done()
        timed.loop.advance(2)
        with pytest.raises(Unreachable, match="no answer within 60s"):
            task.result()


# --- the end -----------------------------------------------------------------------------------


async def test_closing_ends_requests_streams_and_waiting() -> None:
    gate = Gate()
    async with serve(gate.handler) as server, client(server.port, max_connections=1) as to:
        under_way = asyncio.create_task(to.send(post("/under-way")))
        await until(lambda: gate.paths == ["/under-way"])
        in_line = asyncio.create_task(to.send(post("/in-line")))
        await asyncio.sleep(0)
        await to.close()
        await asyncio.wait([under_way, in_line])
        errors = [under_way.exception(), in_line.exception()]
        assert [isinstance(error, Unreachable) and error.sent for error in errors] == [
            True,
            False,
        ]
        assert all("the client is closed" in str(error) for error in errors)


async def test_closing_ends_what_is_still_connecting() -> None:
    async def silent(peer: Peer) -> None:
        await peer.gone()

    class Patient:
        """TLS to a server that never answers the handshake."""

        def context(self) -> ssl.SSLContext:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async with serve(silent) as server, client(server.port, tls=Patient()) as to:
        task = asyncio.create_task(to.send(post()))
        await until(lambda: bool(server.peers))
        await to.close()
        await asyncio.wait([task])
        error = task.exception()
        assert isinstance(error, Unreachable)
        assert "the client is closed" in str(error)
        assert not error.sent
        await until(lambda: server.peers[0].reader.at_eof())


async def test_sends_nothing_after_closing() -> None:
    async with serve(always(answer())) as server, client(server.port) as to:
        await to.send(get())
        await asyncio.gather(to.close(), to.close())
        await to.close()
        with pytest.raises(Unreachable, match="the client is closed") as found:
            await to.send(get())
        assert not found.value.sent
        with pytest.raises(Unreachable, match="the client is closed"):
            async with to.stream(get()):
                raise AssertionError("it was opened")
        assert len(server.peers) == 1
