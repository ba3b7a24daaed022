"""What goes wrong on the way: said in plain words, and whether the request may have been done."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.client.http_server import (
    CHUNKED_HEAD,
    Handler,
    Peer,
    Timed,
    always,
    answer,
    answers_then_closes,
    client,
    get,
    post,
    says_once,
    serve,
    until,
)
from tests.event_loop import run

from mooring.client import _connection
from mooring.client.endpoint import Headers
from mooring.client.errors import Unreachable
from mooring.client.transport import Request


def failure(handler: Handler, *requests: Request) -> Unreachable:
    """How the last of the requests fails."""

    async def scenario() -> Unreachable:
        async with serve(handler) as server, client(server.port) as transport:
            for request in requests[:-1]:
                await transport.send(request)
            with pytest.raises(Unreachable) as found:
                await transport.send(requests[-1])
            assert str(found.value).startswith(f"127.0.0.1:{server.port}: ")
            return found.value

    return run(scenario())


async def test_names_a_refused_connection_and_knows_that_nothing_was_sent() -> None:
    async with serve(always(answer())) as server:
        port = server.port
    async with client(port) as transport:
        with pytest.raises(Unreachable) as found:
            await transport.send(post())
        assert str(found.value) == f"127.0.0.1:{port}: connection refused"
        assert not found.value.sent


async def test_names_a_host_that_does_not_exist() -> None:
    async with client(1, host="nowhere.invalid") as transport:
        with pytest.raises(Unreachable) as found:
            await transport.send(post())
        assert "nowhere.invalid:1: the name cannot be resolved" in str(found.value)
        assert not found.value.sent


@pytest.mark.parametrize("request_", [get(), post()])
def test_does_not_repeat_what_a_new_connection_loses(request_: Request) -> None:
    error = failure(says_once(b""), request_)
    assert "closed the connection without an answer" in str(error)
    assert error.sent


def test_does_not_know_the_outcome_of_a_cut_answer() -> None:
    error = failure(says_once(answer(b"hello")[:-1]), get())
    assert "closed the connection in the middle of its answer" in str(error)
    assert error.sent


def test_names_a_reset_connection() -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1)  # with the rest unread, closing resets
        peer.reset()

    error = failure(handler, post(body=b"x" * 1_000_000))
    assert "connection reset by the server" in str(error)
    assert error.sent


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "'SSH-2.0-OpenSSH\\r\\n', which is not HTTP/1.1"),
        (answer(b"plain", content_encoding="gzip"), "cannot be unpacked"),
        (CHUNKED_HEAD + b"zz\r\n", "not its size"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, "longer than 65536 bytes"),
    ],
)
def test_says_what_is_wrong_with_garbage(data: bytes, said: str) -> None:
    error = failure(says_once(data), get())
    assert said in str(error)
    assert error.sent


def test_gives_up_on_a_slow_answer() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"hello")[:-1])
        await peer.gone()

    error = failure(handler, get(timeout=0.05))
    assert "no answer within 0.05s" in str(error)
    assert error.sent


async def test_repeats_a_read_on_a_new_connection_when_an_old_one_was_closed() -> None:
    handler = answers_then_closes({0: 1})
    async with serve(handler) as server, client(server.port) as transport:
        for _ in range(3):
            assert (await transport.send(get())).status == 200
        assert [len(peer.requests) for peer in server.peers] == [2, 2]


def test_repeats_a_read_only_once() -> None:
    error = failure(answers_then_closes({0: 1, 1: 0}), get(), get())
    assert "without an answer" in str(error)
    assert error.sent


def test_does_not_repeat_a_write() -> None:
    error = failure(answers_then_closes({0: 1}), get(), post())
    assert "without an answer" in str(error)
    assert error.sent


async def test_does_not_write_on_a_connection_that_was_closed_while_the_loop_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_connection, "_LONG_IDLE", 0.0)  # as if it had stood still for long
    async with serve(always(answer())) as server, client(server.port) as transport:
        await transport.send(get())
        server.peers[0].writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        assert (await transport.send(post())).status == 200
        assert [len(peer.requests) for peer in server.peers] == [1, 1]


async def test_closes_a_connection_on_which_the_server_speaks_unasked() -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer())
        await peer.send(answer(b"timeout", 408))
        await peer.gone()

    async with serve(handler) as server, client(server.port) as transport:
        for _ in range(2):
            assert (await transport.send(post())).status == 200
            await until(lambda: server.peers[-1].reader.at_eof())
        assert len(server.peers) == 2


async def test_names_a_host_that_cannot_be_one() -> None:
    async with client(1, host="bad..name") as transport:
        with pytest.raises(Unreachable, match=r"bad\.\.name:1: ") as found:
            await transport.send(post())
        assert not found.value.sent


def test_writes_nothing_when_its_time_is_over_already() -> None:
    class Slow:
        async def headers(self) -> Headers:
            await asyncio.sleep(40)
            return ()

        async def renew(self) -> bool:
            return False

    with Timed() as timed:
        server = timed.enter(serve(always(answer())))
        transport = timed.enter(client(server.port, credentials=Slow()))
        task = timed.loop.create_task(transport.send(post(timeout=30)))
        timed.loop.advance(50)
        with pytest.raises(Unreachable) as found:
            task.result()
        assert not found.value.sent
        assert not server.requests


def test_notices_a_peer_that_vanished_without_a_word() -> None:
    with socket.socket() as sock:
        _connection._set_options(sock)
        seconds = {
            name: sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            if hasattr(socket, name)  # not every system has them all
        }
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    wanted = {
        "TCP_KEEPIDLE": 15,
        "TCP_KEEPINTVL": 5,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 30_000,
    }
    assert seconds.items() <= wanted.items()
