"""Clients that are slow, many or rude, over real sockets on loopback."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiohttp import web
from tests.ui.in_process_server import Client, serve

from mooring.observe.listener import HttpListener, _network
from mooring.ui.serving_tls import ServingTls


@contextmanager
def slow_clients(port: int, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that say something and then nothing."""
    made: list[socket.socket] = []
    try:
        for _ in range(count):
            made.append(socket.create_connection(("127.0.0.1", port), timeout=20))
            if said:
                made[-1].sendall(said)
        yield made
    finally:
        for one in made:
            one.close()


def hear(one: socket.socket) -> bytes:
    """Everything until the other side ends the connection."""
    heard = b""
    try:
        while piece := one.recv(65536):
            heard += piece
    except ConnectionResetError:
        return heard
    return heard


@pytest.mark.parametrize(
    "said",
    [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"POST /x HTTP/1.1\r\n"],
    ids=["nothing", "half a header", "half a request"],
)
async def test_ends_connections_whose_time_is_up(said: bytes) -> None:
    async with serve(lifetime=0.2) as client:
        with slow_clients(client.port, 3, said) as connections:
            for one in connections:
                assert await asyncio.to_thread(hear, one) == b""


async def test_ends_handshakes_whose_time_is_up() -> None:
    async with serve(tls=ServingTls(), lifetime=0.2) as client:
        with slow_clients(client.port, 3, b"\x16\x03\x01") as connections:
            for one in connections:
                assert await asyncio.to_thread(hear, one) == b""


@pytest.mark.parametrize("tls", [None, ServingTls()])
async def test_answers_probes_while_others_hold_every_place(tls: ServingTls | None) -> None:
    async with serve(tls=tls, max_connections=8) as client:
        if tls is not None:
            client.context = _unverified()
        with slow_clients(client.port, 40) as connections:
            for _ in range(20):
                assert (await client.get("/healthz")).text == "ok"
            # The oldest have made room: as many as there were too many.
            assert await asyncio.to_thread(hear, connections[0]) == b""


async def test_a_flood_from_one_address_closes_only_its_own_connections() -> None:
    async with serve(max_connections=8) as client:
        honest = socket.create_connection(
            ("127.0.0.1", client.port), timeout=20, source_address=("127.0.0.2", 0)
        )
        with honest, slow_clients(client.port, 40) as connections:
            assert await asyncio.to_thread(hear, connections[0]) == b""
            honest.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200 OK" in await asyncio.to_thread(hear, honest)


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("fd00::1", "fd00::2", True),
        ("fd00::1", "fd00:0:0:1::1", False),
    ],
)
def test_tells_clients_apart_by_their_network(one: str, other: str, are_same: bool) -> None:
    assert (_network(one) == _network(other)) is are_same


async def test_holds_no_more_connections_than_it_may() -> None:
    async def never(_: web.BaseRequest) -> web.Response:
        raise AssertionError("no request is sent here")

    connections = HttpListener(
        never, None, max_connections=5, idle_seconds=30.0, lifetime=30.0, evict_busy=True
    )
    port = await connections.start("127.0.0.1", 0)
    seen = 0
    with slow_clients(port, 30) as clients:
        for client in clients[:25]:
            await asyncio.to_thread(hear, client)
            seen = max(seen, len(connections))
        assert 1 <= seen <= 6  # one that is leaving may still be there when the next comes
    await connections.close()
    assert len(connections) == 0


async def test_closes_after_one_answer() -> None:
    async with serve() as client:
        request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        with slow_clients(client.port, 1, request + request) as (one,):
            heard = await asyncio.to_thread(hear, one)
        assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Connection: close\r\n" in heard
        assert heard.count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize(
    "said",
    [
        b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000 + b"\r\n\r\n",
        b"\x16\x03\x01 this is not HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["long path", "long header", "no HTTP", "wrong length"],
)
async def test_refuses_what_is_too_long_or_no_request(
    said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve() as client:
        with slow_clients(client.port, 1, said) as (one,):
            assert (await asyncio.to_thread(hear, one)).startswith(b"HTTP/1.0 400 Bad Request")
    assert not caplog.records  # strangers do not write our log


async def test_reads_no_body() -> None:
    async with serve(lifetime=5.0) as client:
        head = b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
        with slow_clients(client.port, 1, head + b"x" * 100_000) as (one,):
            heard = await asyncio.to_thread(hear, one)
        assert heard.startswith(b"HTTP/1.1 401 Unauthorized")


async def test_talks_tls_to_those_who_do_and_hangs_up_on_others() -> None:
    async with serve(tls=ServingTls()) as client:
        with slow_clients(client.port, 1, b"GET /healthz HTTP/1.1\r\n\r\n") as (one,):
            assert not (await asyncio.to_thread(hear, one)).startswith(b"HTTP")
        client.context = _unverified()
        assert (await client.get("/healthz")).text == "ok"


async def test_lets_requests_under_way_end_when_it_closes() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: web.BaseRequest) -> web.Response:
        began.set()
        await go_on.wait()
        return web.Response(text="done")

    connections = HttpListener(slow, None, max_connections=64, idle_seconds=30.0)
    client = Client(await connections.start("127.0.0.1", 0), None)
    asking = asyncio.create_task(client.get("/"))
    await began.wait()
    closing = asyncio.create_task(connections.close(grace=10.0))
    await asyncio.sleep(0)
    go_on.set()
    assert (await asking).text == "done"
    await closing
    with pytest.raises(ConnectionRefusedError):
        await client.get("/")


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
