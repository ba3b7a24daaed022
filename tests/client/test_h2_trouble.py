"""HTTP/2 in trouble: refusals, farewells, silence, broken rules; and what may be repeated."""

from __future__ import annotations

import asyncio
import struct

import pytest
from tests.client.h2_server import H2Peer
from tests.client.http_server import Handler, Peer, Timed, get, post, run, until
from tests.client.wires import H2

from mooring.client.errors import Unreachable
from mooring.client.transport import Answer, Request

INTERNAL_ERROR, REFUSED_STREAM, CANCEL = 2, 7, 8


def spoken(peer: Peer) -> H2Peer:
    assert isinstance(peer, H2Peer)
    return peer


def raw(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame, right or wrong."""
    return struct.pack(">LBL", len(payload) << 8 | kind, flags, stream) + payload


def refuses(*codes: int) -> Handler:
    """Resets as many streams as there are codes, and answers all others."""
    left = list(codes)

    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        while True:
            await here.request()
            if left:
                here.h2.reset_stream(here.stream, left.pop(0))
                here.flush()
            else:
                await here.reply(here.stream)

    return handler


def ends(handler: Handler, *requests: Request) -> tuple[list[Answer | Unreachable], list[int]]:
    """How requests end that are sent one after the other, and how many came on each connection."""

    async def scenario() -> tuple[list[Answer | Unreachable], list[int]]:
        found: list[Answer | Unreachable] = []
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            for request in requests:
                try:
                    found.append(await to.send(request))
                except Unreachable as error:
                    found.append(error)
            return found, [len(peer.requests) for peer in server.peers]

    return run(scenario())


def failure(found: Answer | Unreachable) -> Unreachable:
    assert isinstance(found, Unreachable)
    return found


# --- streams that are reset ----------------------------------------------------------------------


def test_repeats_what_the_server_did_not_touch() -> None:
    found, counts = ends(refuses(REFUSED_STREAM, REFUSED_STREAM), post())
    assert isinstance(found[0], Answer)
    assert counts == [3]


def test_does_not_repeat_it_forever() -> None:
    found, counts = ends(refuses(*[REFUSED_STREAM] * 3), post(), post())
    assert "the server gave the request up: refused stream" in str(found[0])
    assert not failure(found[0]).sent
    assert isinstance(found[1], Answer)
    assert counts == [4]


@pytest.mark.parametrize("request_", [get(), post()])
def test_does_not_know_the_outcome_of_what_the_server_gave_up(request_: Request) -> None:
    found, counts = ends(refuses(INTERNAL_ERROR), request_, request_)
    assert "the server gave the request up: internal error" in str(found[0])
    assert failure(found[0]).sent
    assert isinstance(found[1], Answer)
    assert counts == [2]  # nothing is wrong with the connection


# --- farewells -----------------------------------------------------------------------------------


def test_finishes_what_is_open_and_goes_elsewhere_with_the_rest_when_the_server_leaves() -> None:
    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        if here.number:
            while True:
                request = await here.request()
                await here.reply(here.stream, body=request.path.encode())
        streams = {}
        for _ in range(4):
            path = (await here.request()).path
            streams[path] = here.stream
        here.h2.close_connection(last_stream_id=streams["/1"])
        here.flush()
        left.set()
        await free.wait()
        # The package sends nothing after its farewell, so these are made by hand.
        for path in ("/0", "/1"):
            head = raw(1, 4, streams[path], b"\x88")
            here.writer.write(head + raw(0, 1, streams[path], path.encode()))
        await Peer.gone(here)
        closed.set()

    free, left, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            tasks = [asyncio.create_task(to.send(post(f"/{at}"))) for at in range(4)]
            await left.wait()
            assert (await to.send(post("/new"))).body == b"/new"
            found = await asyncio.gather(*tasks[2:])
            free.set()
            found = [*await asyncio.gather(*tasks[:2]), *found]
            assert [one.body for one in found] == [b"/%d" % at for at in range(4)]
            await closed.wait()
            assert sorted(one.path for one in server.peers[1].requests) == ["/2", "/3", "/new"]

    run(scenario())


def test_gives_up_on_a_server_that_always_leaves_at_once() -> None:
    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        here.begin()
        here.h2.close_connection(last_stream_id=0)
        here.flush()
        await here.gone()

    found, counts = ends(handler, post())
    assert not failure(found[0]).sent
    assert len(counts) <= 4
    assert not any(counts)


def test_opens_another_connection_when_the_server_left_while_nobody_asked() -> None:
    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        await here.request()
        await here.reply(here.stream)
        here.h2.close_connection()
        here.flush()
        await here.gone()

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            for _ in range(2):
                assert (await to.send(post())).status == 200
                await until(lambda: server.peers[-1].reader.at_eof())
            assert [len(peer.requests) for peer in server.peers] == [1, 1]

    run(scenario())


# --- time ----------------------------------------------------------------------------------------


async def silent_on_slow(peer: Peer) -> None:
    """Answers everything but /slow."""
    here = spoken(peer)
    while True:
        if (await here.request()).path != "/slow":
            await here.reply(here.stream)


async def deaf_on_slow(peer: Peer) -> None:
    """Answers until /slow comes, and is deaf and dumb from then on."""
    here = spoken(peer)
    while (await here.request()).path != "/slow":
        await here.reply(here.stream)
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_tells_the_server_of_a_request_that_is_given_up_and_keeps_the_connection(
    is_cancelled: bool,
) -> None:
    async def scenario() -> None:
        async with H2.serve(silent_on_slow) as server, H2.client(server.port) as to:
            await to.send(get())
            peer = spoken(server.peers[0])
            slow = asyncio.create_task(to.send(post("/slow", timeout=30 if is_cancelled else 0.02)))
            await until(lambda: len(peer.requests) == 2)
            if is_cancelled:
                slow.cancel()
            await asyncio.wait([slow])
            if not is_cancelled:
                error = slow.exception()
                assert "no answer within 0.02s" in str(error)
                assert isinstance(error, Unreachable)
                assert error.sent
            await until(lambda: peer.resets == {3: CANCEL})
            await to.send(get())
            assert len(server.peers) == 1

    run(scenario())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_does_not_trust_a_connection_on_which_a_request_came_to_nothing_in_silence(
    is_cancelled: bool,
) -> None:
    with Timed() as timed:
        server = timed.enter(H2.serve(deaf_on_slow))
        to = timed.enter(H2.client(server.port))
        timed.do(to.send(get()))
        slow = timed.loop.create_task(to.send(post("/slow", timeout=5)))
        timed.do(until(lambda: len(server.requests) == 2, pause=0))
        if is_cancelled:
            timed.loop.advance(3)
            slow.cancel()
        timed.do(asyncio.wait([slow], timeout=10), step=1)
        assert slow.done()
        timed.do(to.send(post()))
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


def test_asks_whether_a_silent_server_is_alive() -> None:
    with Timed() as timed:
        server = timed.enter(H2.serve(silent_on_slow))
        to = timed.enter(H2.client(server.port))
        task = timed.loop.create_task(to.send(post("/slow", timeout=300)))
        timed.do(until(lambda: len(server.requests) == 1, pause=0))
        for _ in range(290):
            timed.loop.advance(1)
            timed.do(asyncio.sleep(0))
            assert not task.done()
        timed.do(to.send(get()))
        assert len(server.peers) == 1
        task.cancel()
        timed.do(asyncio.wait([task]))


def test_gives_up_on_a_server_that_is_not() -> None:
    with Timed() as timed:
        server = timed.enter(H2.serve(deaf_on_slow))
        to = timed.enter(H2.client(server.port))
        tasks = [
            timed.loop.create_task(to.send(make("/slow", timeout=300))) for make in (get, post)
        ]
        timed.do(until(lambda: len(server.requests) == 1, pause=0))
        timed.loop.advance(24)
        assert not any(task.done() for task in tasks)
        timed.do(asyncio.wait(tasks), step=1)
        for task in tasks:
            error = task.exception()
            assert isinstance(error, Unreachable)
            assert "nothing was heard for 25s" in str(error)
            assert error.sent


# --- the end -------------------------------------------------------------------------------------


def test_closing_ends_requests_and_waiting() -> None:
    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        here.begin({3: 1})
        await here.request()
        await here.reply(here.stream)
        await here.gone()

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            await to.send(get())
            tasks = [asyncio.create_task(to.send(post())) for _ in range(2)]
            await until(lambda: spoken(server.peers[0]).h2.open_inbound_streams == 1)
            await to.close()
            await asyncio.wait(tasks)
            errors = [task.exception() for task in tasks]
            assert [isinstance(error, Unreachable) and error.sent for error in errors] == [
                True,
                False,
            ]
            assert all("the client is closed" in str(error) for error in errors)

    run(scenario())


def test_one_failure_to_connect_is_enough_for_all_and_a_cancelled_one_for_none() -> None:
    async def scenario() -> None:
        async with H2.serve(silent_on_slow) as server:
            port = server.port
            async with H2.client(port) as to:
                first = asyncio.create_task(to.send(post()))
                others = [asyncio.create_task(to.send(post())) for _ in range(5)]
                await asyncio.sleep(0)
                first.cancel()
                found = await asyncio.gather(*others)
                assert {one.status for one in found} == {200}
        async with H2.client(port) as to:
            work = (to.send(post()) for _ in range(20))
            for error in await asyncio.gather(*work, return_exceptions=True):
                assert isinstance(error, Unreachable)
                assert "connection refused" in str(error)
                assert not error.sent

    run(scenario())


# --- rules ---------------------------------------------------------------------------------------

HELLO = raw(4, 0, 0)
OK = b"\x88"  # ":status: 200"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame is 4740180 bytes long"),
        (raw(6, 0, 0, bytes(8)), "does not begin with SETTINGS"),
        (raw(4, 0, 0, bytes(5)), "SETTINGS are cut off"),
        (raw(4, 0, 1), "is on a stream"),
        (raw(4, 0, 0, b"\0\2\0\0\0\1"), "cannot take pushes"),
        (raw(4, 0, 0, b"\0\4\xff\xff\xff\xff"), "window is 4294967295 bytes wide"),
        (raw(4, 0, 0, b"\0\5\0\0\0\1"), "wants frames of 1 bytes"),
        (HELLO + raw(5, 4, 1, b"\0\0\0\2" + OK), "pushes what nobody asked for"),
        (HELLO + raw(6, 0, 0, bytes(7)), "PING is not of 8 bytes"),
        (HELLO + raw(7, 0, 0, bytes(7)), "GOAWAY is cut off"),
        (HELLO + raw(3, 0, 1, bytes(3)), "not the size of its kind"),
        (HELLO + raw(8, 0, 0, bytes(4)), "widens a window by nothing"),
        (HELLO + raw(8, 0, 0, b"\x7f\xff\xff\xff"), "bytes wide"),
        (HELLO + raw(1, 5, 3, OK), "stream that nobody opened"),
        (HELLO + raw(1, 5, 2, OK), "stream that nobody opened"),
        (HELLO + raw(0, 1, 0, b"x"), "stream that nobody opened"),
        (HELLO + raw(9, 4, 1, OK), "headers are continued that did not begin"),
        (HELLO + raw(1, 0, 1, OK) + raw(0, 0, 1), "header block is interrupted"),
        (HELLO + raw(1, 0, 1, OK) + raw(9, 4, 3), "headers are continued that did not begin"),
        (HELLO + raw(1, 0, 1, OK) + raw(9, 0, 1, bytes(16_000)) * 5, "longer than 65536 bytes"),
        (HELLO + raw(1, 0, 1, OK) + raw(9, 0, 1) * 70_000, "longer than 65536 bytes"),
        (HELLO + raw(1, 5, 1, b"\xff\xff\xff\xff\xff\xff"), "too long"),
        (HELLO + raw(1, 13, 1, b"\x05" + OK), "more padding than there is"),
        (HELLO + raw(1, 4, 1, OK) + raw(0, 8, 1), "ends before its padding"),
    ],
)
def test_names_the_rule_that_a_server_breaks(data: bytes, said: str) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1000)
        peer.writer.write(data)
        await peer.reader.read(100_000)

    found, counts = ends(handler, post())
    error = failure(found[0])
    assert "breaks the rules of HTTP/2" in str(error)
    assert said in str(error)
    assert error.sent
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (raw(1, 5, 1, b"\x00\x01a\x01b"), "does not begin with a status"),
        (raw(1, 5, 1, b"\x08\x0299"), "does not begin with a status"),
        (raw(1, 5, 1, b"\x08\x03100"), "ends with status 100"),
        (raw(1, 5, 1, OK + OK), "holds ':status'"),
        (raw(0, 1, 1, b"x"), "body of the answer comes before its head"),
        (raw(1, 4, 1, OK) + raw(1, 4, 1, OK), "second head"),
        (raw(1, 5, 1, OK + b"\x0f\x0d\x015"), "the answer has 0 bytes, not '5'"),
        (raw(1, 4, 1, OK + b"\x0f\x0d\x011") + raw(0, 1, 1, b"xy"), "has 2 bytes, not '1'"),
        (raw(1, 4, 1, OK) + raw(0, 1, 1, b"x" * 101), "longer than 100 bytes"),
    ],
)
def test_an_answer_that_is_none_costs_only_its_request(data: bytes, said: str) -> None:
    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        await here.request()
        here.writer.write(data)
        await here.request()
        here.writer.write(raw(1, 5, 3, b"\x89"))  # 204
        await here.gone()

    request = Request(method="POST", path="/", max_answer=100)
    found, counts = ends(handler, request, post())
    assert said in str(found[0])
    assert failure(found[0]).sent
    assert isinstance(found[1], Answer)
    assert counts == [2]


def test_reads_padding_priorities_continuations_trailers_and_the_unknown() -> None:
    pings: list[bytes] = []

    async def handler(peer: Peer) -> None:
        here = spoken(peer)
        await here.request()
        here.writer.write(
            raw(0x42, 0, 0, b"unknown")
            + raw(2, 0, 1, bytes(5))
            + raw(6, 0, 0, b"abcdefgh")
            + raw(1, 4, 1, b"\x08\x03103")
            + raw(1, 0x08 | 0x20, 1, b"\x02" + bytes(5) + OK + bytes(2))
            + raw(9, 0, 1)
            + raw(9, 4, 1, b"\x00\x01a\x01b\x00\x01a\x01c")
            + raw(0, 8, 1, b"\x03hel" + bytes(3))
            + raw(0, 0, 1)
            + raw(0, 0x20, 1, b"lo")
            + raw(1, 5, 1, b"\x00\x01t\x01u")
        )
        pings.append(await here.reader.read(1000))

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            found = await to.send(post())
            assert (found.status, found.headers, found.body) == (200, {"a": "b, c"}, b"hello")
            await until(lambda: bool(pings))

    run(scenario())
    assert raw(6, 1, 0, b"abcdefgh") in pings[0]
