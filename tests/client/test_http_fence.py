"""The moment of sending: the fence, cancelling, and who is told of it."""

from __future__ import annotations

import asyncio
import select

import pytest
from tests.client.http_server import (
    Peer,
    always,
    answer,
    answers_then_closes,
    client,
    get,
    post,
    serve,
    until,
)
from tests.event_loop import run

from mooring.client.errors import Fenced, Unreachable


async def test_asks_the_fence_with_the_connection_in_hand_and_writes_at_once() -> None:
    written: list[bool] = []

    async with serve(always(answer())) as server, client(server.port) as transport:
        await transport.send(get())
        arrival = server.peers[0].writer.get_extra_info("socket").fileno()

        def has_arrived() -> None:
            written.append(bool(select.select([arrival], [], [], 0)[0]))

        def fence() -> None:
            has_arrived()
            # The first thing the loop does after whatever the transport does without waiting.
            asyncio.get_running_loop().call_soon(has_arrived)

        await transport.send(post(), fence)
    assert written == [False, True]


async def test_asks_no_fence_before_there_is_a_connection() -> None:
    asked: list[str] = []

    async with serve(always(answer())) as server:
        port = server.port
    async with client(port) as transport:
        with pytest.raises(Unreachable):
            await transport.send(post(), lambda: asked.append("fence"))
    assert not asked


async def test_writes_nothing_when_the_fence_is_closed() -> None:
    def closed() -> None:
        raise Fenced("the lease is lost")

    async with serve(always(answer())) as server, client(server.port) as transport:
        with pytest.raises(Fenced):
            await transport.send(post(), closed)
        assert (await transport.send(post())).status == 200
        assert [len(peer.requests) for peer in server.peers] == [1]  # the connection was good


async def test_asks_the_fence_again_before_it_repeats() -> None:
    asked: list[int] = []

    handler = answers_then_closes({0: 1})
    async with serve(handler) as server, client(server.port) as transport:
        await transport.send(get())
        await transport.send(get(), lambda: asked.append(len(server.peers)))
    assert asked == [1, 2]


async def test_closes_the_connection_of_a_request_that_is_cancelled() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            await peer.gone()
            peer.close()
        else:
            await peer.send(answer(b"second"))

    async with serve(handler) as server, client(server.port) as transport:
        first = asyncio.create_task(transport.send(post()))
        await until(lambda: bool(server.requests))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await transport.send(post())).body == b"second"
        await until(lambda: server.peers[0].reader.at_eof())


def test_tells_of_every_try() -> None:
    told: list[tuple[str, str, int, bool]] = []

    def on_answer(method: str, host: str, status: int, seconds: float) -> None:
        told.append((method, host, status, 0 <= seconds < 30))

    async def scenario() -> int:
        async with serve(always(answer(b"", 404))) as server:
            async with client(server.port, on_answer=on_answer) as transport:
                await transport.send(get())
            port = server.port
        async with client(port, on_answer=on_answer) as transport:
            with pytest.raises(Unreachable):
                await transport.send(post())
        return port

    host = f"127.0.0.1:{run(scenario())}"
    assert told == [("GET", host, 404, True), ("POST", host, 0, True)]
