"""Streams: bytes as they arrive, no more than somebody takes, and no silence without an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.certificates import Authority, server_context
from tests.client.http_server import (
    CHUNKED_HEAD,
    LAST_CHUNK,
    Handler,
    Peer,
    Timed,
    answer,
    chunk,
    client,
    get,
    serve,
    until,
)
from tests.client.test_http_tls import Contexts, trusting

from mooring.client import _stream
from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport


def streams(*parts: bytes, then: str = "wait") -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(*parts)
        if then == "close":
            peer.close()
        elif then == "reset":
            peer.reset()
        await peer.gone()

    return handler


async def test_yields_what_arrives_and_ends_with_the_last_chunk() -> None:
    parts = [CHUNKED_HEAD, chunk(b"one\n"), chunk(b"two\n"), LAST_CHUNK]
    async with serve(streams(*parts)) as server, client(server.port) as to:
        async with to.stream(get("/pods?watch=1")) as stream:
            assert stream.status == 200
            assert stream.headers["transfer-encoding"] == "chunked"
            assert b"".join([part async for part in stream.chunks()]) == b"one\ntwo\n"
        assert "accept-encoding" not in server.requests[0].headers
        await until(lambda: server.peers[0].reader.at_eof())


async def test_yields_an_event_before_the_next_one_is_there() -> None:
    ready = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED_HEAD, chunk(b"one"))
        await ready.wait()
        await peer.send(chunk(b"two"), LAST_CHUNK)

    async with (
        serve(handler) as server,
        client(server.port) as to,
        to.stream(get()) as stream,
    ):
        chunks = stream.chunks()
        assert await anext(chunks) == b"one"
        ready.set()
        assert await anext(chunks) == b"two"
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)


def test_merges_what_has_arrived_since() -> None:
    with Timed() as timed:
        server = timed.enter(serve(streams(CHUNKED_HEAD)))
        to = timed.enter(client(server.port))
        stream = timed.enter(to.stream(get()))
        timed.do(server.peers[0].send(*(chunk(b"%03d" % at) for at in range(100))))
        timed.loop.advance(1)
        found = timed.do(take(stream.chunks()))
        assert found == b"".join(b"%03d" % at for at in range(100))


async def test_what_comes_while_it_rests_is_read_in_one_go() -> None:
    turns = [asyncio.Event() for _ in range(2)]

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED_HEAD, chunk(b"one"))
        await turns[0].wait()
        await peer.send(chunk(b"two"))
        await turns[1].wait()
        await peer.send(chunk(b"three"), chunk(b"four"), LAST_CHUNK)
        await peer.gone()

    asked = msgspec.structs.replace(get("/pods?watch=1"), rest=0.2)
    async with serve(handler) as server, client(server.port) as to, to.stream(asked) as stream:
        chunks = stream.chunks()
        heard = [await anext(chunks)]
        turns[0].set()
        while heard[-1] != b"two":
            heard.append(await anext(chunks))
        turns[1].set()
        assert [part async for part in chunks] == [b"threefour"]


async def test_a_stream_that_is_left_while_it_rests_is_closed() -> None:
    parts = [CHUNKED_HEAD, *(chunk(b"%d" % number) for number in range(5))]
    asked = msgspec.structs.replace(get("/pods?watch=1"), rest=60.0)
    async with serve(streams(*parts)) as server, client(server.port) as to:
        async with to.stream(asked) as stream:
            assert await anext(stream.chunks())
        await until(server.peers[0].writer.transport.is_closing)


async def test_reads_all_of_a_refusal() -> None:
    async with (
        serve(streams(answer(b"gone" * 100, 410))) as server,
        client(server.port) as to,
        to.stream(get()) as stream,
    ):
        assert stream.status == 410
        assert await stream.read() == b"gone" * 100


async def test_is_not_counted_among_connections() -> None:
    async def handler(peer: Peer) -> None:
        if (await peer.request()).path == "/watch":
            await peer.send(CHUNKED_HEAD)
            await peer.gone()
        await peer.send(answer())

    async with (
        serve(handler) as server,
        client(server.port, max_connections=1) as to,
        to.stream(get("/watch")),
        to.stream(get("/watch")),
    ):
        assert (await to.send(get("/x"))).status == 200
        assert len(server.peers) == 3


async def test_takes_the_connection_of_a_request_before_it() -> None:
    async def handler(peer: Peer) -> None:
        while (await peer.request()).path != "/watch":
            await peer.send(answer())
        await peer.send(CHUNKED_HEAD, chunk(b"one"))
        await peer.gone()

    async with serve(handler) as server, client(server.port) as to:
        await to.send(get("/list"))
        async with to.stream(get("/watch")) as stream:
            assert await anext(aiter(stream.chunks())) == b"one"
            assert (await to.send(get("/list"))).status == 200  # not on that of the stream
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


async def test_begins_anew_if_the_server_closes_the_connection_of_a_request_before_it() -> None:
    async def handler(peer: Peer) -> None:
        if (await peer.request()).path == "/list":
            await peer.send(answer())
            await peer.request()  # and no answer
            peer.close()
        else:
            await peer.send(CHUNKED_HEAD, chunk(b"one"))
        await peer.gone()

    async with serve(handler) as server, client(server.port) as to:
        await to.send(get("/list"))
        async with to.stream(get("/watch")) as stream:
            assert await anext(aiter(stream.chunks())) == b"one"
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (streams(CHUNKED_HEAD, chunk(b"one"), then="close"), "in the middle of its answer"),
        (streams(CHUNKED_HEAD, chunk(b"one"), then="reset"), "the server"),
        (streams(CHUNKED_HEAD, chunk(b"one"), b"zz\r\n"), "not its size"),
        (streams(CHUNKED_HEAD + chunk(b"one") + b"zz\r\n"), "not its size"),
    ],
)
async def test_gives_what_has_come_before_it_says_that_the_stream_broke(
    handler: Handler, said: str
) -> None:
    async with (
        serve(handler) as server,
        client(server.port) as to,
        to.stream(get()) as stream,
    ):
        chunks = stream.chunks()
        assert await anext(chunks) == b"one"
        with pytest.raises(Unreachable, match=said) as found:
            await anext(chunks)
        assert f"127.0.0.1:{server.port}: " in str(found.value)


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (streams(b"garbage"), "not HTTP/1.1"),
        (streams(b"", then="close"), "without an answer"),
        (streams(answer(b"x", content_encoding="gzip")), "coding 'gzip'"),
    ],
)
async def test_says_why_a_stream_does_not_begin(handler: Handler, said: str) -> None:
    async with serve(handler) as server, client(server.port) as to:
        with pytest.raises(Unreachable, match=said):
            async with to.stream(get()):
                raise AssertionError("it began")
        await until(lambda: server.peers[0].reader.at_eof())


# --- time --------------------------------------------------------------------------------------


def test_waits_for_the_head_no_longer_than_asked_and_for_silence_no_longer_than_its_limit() -> None:
    with Timed() as timed:
        server = timed.enter(serve(streams(CHUNKED_HEAD, chunk(b"one"))))
        to = timed.enter(client(server.port, silence_limit=130.0))
        stream = timed.enter(to.stream(get(timeout=5.0)))
        chunks = stream.chunks()
        assert timed.do(take(chunks)) == b"one"
        waiting = timed.loop.create_task(take(chunks))
        timed.loop.advance(120)
        assert not waiting.done()
        timed.do(server.peers[0].send(chunk(b"two")))
        timed.do(until(waiting.done, pause=0))
        assert waiting.result() == b"two"
        waiting = timed.loop.create_task(take(chunks))
        timed.loop.advance(125)
        assert not waiting.done()
        timed.loop.advance(10)
        with pytest.raises(Unreachable, match="nothing was heard for 130s"):
            waiting.result()


def test_gives_up_when_no_head_comes() -> None:
    with Timed() as timed:
        server = timed.enter(serve(streams()))
        to = timed.enter(client(server.port))
        task = timed.loop.create_task(to.open_stream(get(timeout=5.0)))
        timed.do(until(lambda: bool(server.requests), pause=0))
        timed.loop.advance(4)
        assert not task.done()
        timed.loop.advance(2)
        with pytest.raises(Unreachable, match="no answer within 5s"):
            task.result()


async def take(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(chunks)


# --- who is slow -------------------------------------------------------------------------------


@pytest.mark.parametrize("secure", [False, True])
async def test_lets_the_server_wait_for_a_slow_reader(
    secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "PAUSE_ABOVE", 100_000)
    event = b"x" * 1000 + b"\n"
    sent = 0

    async def handler(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(CHUNKED_HEAD)
        while sent < 30_000:  # events; more than all buffers on the way can hold
            await peer.send(chunk(event))
            sent += 1
        await peer.send(LAST_CHUNK)
        await peer.gone()

    ca = Authority()
    tls = Contexts(trusting(ca)) if secure else None
    context = server_context(ca.server("127.0.0.1")) if secure else None
    async with (
        serve(handler, tls=context) as server,
        client(server.port, tls=tls) as to,
        to.stream(get()) as stream,
    ):
        seen = -1
        while seen != sent:  # until the server is stuck
            seen = sent
            await asyncio.sleep(0.05)
        assert 0 < sent < 30_000
        total, most = 0, 0
        async for part in stream.chunks():
            total += len(part)
            most = max(most, len(part))
        assert total == 30_000 * len(event)
        assert most < 1_000_000  # what was kept, and one read of the socket


def test_does_not_take_its_own_slowness_for_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "PAUSE_ABOVE", 1000)
    with Timed() as timed:
        server = timed.enter(serve(streams(CHUNKED_HEAD, chunk(b"x" * 2000))))
        to = timed.enter(client(server.port, silence_limit=130.0))
        stream = timed.enter(to.stream(get()))
        timed.do(until(lambda: bool(server.peers[0].requests), pause=0))
        timed.loop.advance(1)
        timed.loop.advance(1000)
        timed.do(server.peers[0].send(chunk(b"y"), LAST_CHUNK))
        assert timed.do(stream.read()) == b"x" * 2000 + b"y"


async def test_leaving_early_closes_the_connection() -> None:
    handler = streams(CHUNKED_HEAD, chunk(b"one"))
    async with serve(handler) as server, client(server.port) as to:
        async with to.stream(get()) as stream:
            async for part in stream.chunks():
                assert part == b"one"
                break
        await until(lambda: server.peers[0].reader.at_eof())


async def test_cancelling_a_reader_closes_the_connection() -> None:
    async def watch(to: HttpTransport, begun: asyncio.Event) -> None:
        async with to.stream(get()) as stream:
            begun.set()
            async for _ in stream.chunks():
                continue

    async with serve(streams(CHUNKED_HEAD)) as server, client(server.port) as to:
        begun = asyncio.Event()
        task = asyncio.create_task(watch(to, begun))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        await until(lambda: server.peers[0].reader.at_eof())


async def test_closing_the_transport_ends_streams() -> None:
    async with (
        serve(streams(CHUNKED_HEAD)) as server,
        client(server.port) as to,
        to.stream(get()) as stream,
    ):
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        await to.close()
        with pytest.raises(Unreachable, match="the client is closed"):
            await reading
