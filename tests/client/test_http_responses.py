"""Answers over real sockets: whole ones in any framing, and what becomes of the connection."""

from __future__ import annotations

import gzip

import pytest
from tests.client.http_server import (
    CHUNKED_HEAD,
    LAST_CHUNK,
    Handler,
    Peer,
    always,
    answer,
    chunk,
    client,
    get,
    post,
    says_once,
    serve,
)
from tests.event_loop import run

from mooring.client.errors import Unreachable
from mooring.client.transport import Request, Response


def ask(handler: Handler, *requests: Request) -> list[Response]:
    """The answers to requests that are sent one after the other."""

    async def scenario() -> list[Response]:
        async with serve(handler) as server, client(server.port) as transport:
            return [await transport.send(request) for request in requests]

    return run(scenario())


def test_an_answer_of_any_status_is_an_answer() -> None:
    found = ask(always(answer(b"no", 503, retry_after="7")), get())[0]
    assert (found.status, found.body, found.headers["retry-after"]) == (503, b"no", "7")


async def test_uses_a_connection_again() -> None:
    async with serve(always(answer())) as server, client(server.port) as transport:
        for request in (get(), post(), get()):
            assert (await transport.send(request)).status == 200
        assert [len(peer.requests) for peer in server.peers] == [3]


@pytest.mark.parametrize(
    "data",
    [
        answer(b"hello", connection="close"),
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        answer(b"hello") + b"HTTP/1.1 200 OK\r\n",
    ],
)
async def test_uses_no_connection_again_that_ends_with_its_answer(data: bytes) -> None:
    async with serve(says_once(data)) as server, client(server.port) as transport:
        for _ in range(2):
            assert (await transport.send(post())).body == b"hello"
        assert len(server.peers) == 2


def test_reads_chunks_and_compressed_answers() -> None:
    packed = gzip.compress(b"abc" * 1000)
    whole = CHUNKED_HEAD + chunk(b"ab") + chunk(b"cd") + LAST_CHUNK
    found = ask(always(whole, answer(packed, content_encoding="gzip")), get(), get())
    assert [one.body for one in found] == [b"abcd", b"abc" * 1000]


def test_reads_an_answer_that_arrives_in_bits() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b"0123456789")

    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(*(data[at : at + 3] for at in range(0, len(data), 3)))

    found = ask(handler, get(), post())
    assert [one.body for one in found] == [b"0123456789"] * 2


def test_carries_large_bodies_both_ways() -> None:
    large = bytes(range(256)) * 40_000  # bytes, 10 MB: more than sockets and buffers hold

    async def handler(peer: Peer) -> None:
        request = await peer.request()
        await peer.send(answer(request.body))

    assert ask(handler, post(body=large))[0].body == large


async def test_gives_up_a_connection_whose_server_answers_before_it_has_read_all() -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(answer(b"too large", 413))
        await peer.gone()

    async with serve(handler) as server, client(server.port) as transport:
        for _ in range(2):
            assert (await transport.send(post(body=b"x" * 50_000_000))).status == 413
        assert len(server.peers) == 2


@pytest.mark.parametrize(
    "data",
    [
        answer(b"x" * 101),
        CHUNKED_HEAD + chunk(b"x" * 60) + chunk(b"x" * 41) + LAST_CHUNK,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101,
        answer(gzip.compress(b"x" * 10_000), content_encoding="gzip"),
    ],
    ids=["counted", "in chunks", "until the end", "packed"],
)
def test_an_answer_that_is_longer_than_it_may_be_is_no_answer(data: bytes) -> None:
    request = Request(method="POST", path="/", max_answer=100)
    with pytest.raises(Unreachable, match="the answer is longer than 100 bytes"):
        ask(says_once(data), request)


def test_an_answer_may_be_as_long_as_it_may_be() -> None:
    request = Request(method="POST", path="/", max_answer=100)
    packed = answer(gzip.compress(b"x" * 100), content_encoding="gzip")
    found = [ask(says_once(data), request)[0] for data in (answer(b"x" * 100), packed)]
    assert [one.body for one in found] == [b"x" * 100] * 2
