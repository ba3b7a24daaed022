"""What the proxy is made of: heads and bodies as they are on the wire, and its dice."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controlplane.faults import Dice
from tests.controlplane.wire import Hangup, Head, answer, read_head, relay_body

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def passed_on(data: bytes, *, bodiless: bool = False) -> tuple[Head, bytes, bytes]:
    """The head, the body as it was handed on, and what is left for the next message."""

    async def relay() -> tuple[Head, bytes, bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        passed = bytearray()

        async def send(piece: bytes) -> None:
            passed.extend(piece)

        head = await read_head(reader)
        await relay_body(head, reader, send, bodiless=bodiless)
        return head, bytes(passed), await reader.read()

    return asyncio.run(relay())


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=5), st.booleans())
def test_chunks_pass_unchanged(chunks: list[bytes], trailer: bool) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    body += b"0\r\n" + (b"X-Late: yes\r\n" if trailer else b"") + b"\r\n"
    assert passed_on(CHUNKED + body + b"HTTP/1.1 next")[1:] == (body, b"HTTP/1.1 next")


@given(st.binary(max_size=200))
def test_bodies_of_known_length_pass_unchanged(body: bytes) -> None:
    head, passed, rest = passed_on(answer(429, "Slow Down", body, ("Retry-After", "7")) + b"more")
    assert (head.code, head.get("retry-after"), passed, rest) == (429, "7", body, b"more")


def test_requests_without_a_length_have_no_body() -> None:
    data = b"GET /api/v1/nodes?watch=1 HTTP/1.1\r\nHost: a:1\r\nX-Remote-User: root\r\n\r\n"
    head, passed, rest = passed_on(data + b"GET")
    assert (head.method, head.target, passed, rest) == ("GET", "/api/v1/nodes?watch=1", b"", b"GET")
    assert head.encode() == data
    head.without("x-remote-user")
    assert head.headers == [("Host", "a:1")]


def test_responses_without_a_length_last_until_the_end() -> None:
    assert passed_on(b"HTTP/1.1 200 OK\r\n\r\nall of it")[1:] == (b"all of it", b"")
    assert passed_on(b"HTTP/1.1 204 OK\r\n\r\nnext", bodiless=True)[1:] == (b"", b"next")


@pytest.mark.parametrize(
    "cut_short",
    [b"", b"HTTP/1.1 200", CHUNKED + b"5\r\nab", answer(200, "OK", b"whole")[:-1]],
)
def test_message_that_ends_early_is_noticed(cut_short: bytes) -> None:
    with pytest.raises(Hangup):
        passed_on(cut_short)


def test_dice_hit_the_same_requests_in_whatever_order_they_come() -> None:
    asked = [f"POST /pods/{number % 50}/binding" for number in range(100)]
    shuffled = random.Random(7).sample(asked, len(asked))

    def hit(seed: int, requests: list[str]) -> list[str]:
        dice = Dice(seed)
        return sorted(request for request in requests if dice.hits(0.3, "cut", request))

    assert hit(1, asked) == hit(1, shuffled) != hit(2, asked)
    assert 15 <= len(hit(1, asked)) <= 45
    assert not any(Dice(1).hits(0.0, "cut", request) for request in asked)
    assert all(Dice(1).hits(1.0, "cut", request) for request in asked)
