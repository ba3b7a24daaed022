"""HTTP/2: one connection for all requests, written together; fences; windows; who gets it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from h2.settings import SettingCodes
from tests.client.certificates import server_context
from tests.client.h2_server import H2Peer
from tests.client.http_server import (
    Handler,
    Peer,
    always,
    answer,
    client,
    get,
    post,
    run,
    serve,
    until,
)
from tests.client.wires import H2, SERVER, Trusting

from mooring.client._connection import Connection
from mooring.client.errors import Fenced, Unreachable
from mooring.client.transport import Request

INITIAL_WINDOW_SIZE = 4
MAX_CONCURRENT_STREAMS = 3
MAX_FRAME_SIZE = 5
HEADER_TABLE_SIZE = 1


def h2_handler(settings: dict[int, int] | None = None) -> Handler:
    """Answers each request with its path, as soon as it is there."""

    async def handler(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        peer.begin(settings)
        while True:
            request = await peer.request()
            await peer.reply(peer.stream, body=request.path.encode() + request.body)

    return handler


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what is handed to sockets."""
    sizes: list[int] = []
    write = Connection.write

    def counted(self: Connection, data: bytes) -> None:
        sizes.append(len(data))
        write(self, data)

    monkeypatch.setattr(Connection, "write", counted)
    return sizes


def test_sends_everything_over_one_connection() -> None:
    async def scenario() -> None:
        async with H2.serve(h2_handler()) as server, H2.client(server.port) as to:
            # Nobody knows the protocol yet: one asks, the others wait.
            found = await asyncio.gather(*(to.send(post(f"/{at}", b"x")) for at in range(300)))
            assert [one.body for one in found] == [b"/%dx" % at for at in range(300)]
            assert len(server.peers) == 1

    run(scenario())


def test_writes_all_requests_of_a_turn_at_once(writes: list[int]) -> None:
    async def scenario() -> None:
        async with H2.serve(h2_handler()) as server, H2.client(server.port) as to:
            await to.send(get())
            await asyncio.sleep(0.01)  # settings are acknowledged
            writes.clear()
            tasks = [asyncio.create_task(to.send(post(f"/{at}"))) for at in range(100)]
            await asyncio.sleep(0)
            assert not writes
            await asyncio.sleep(0)
            assert len(writes) == 1
            await asyncio.gather(*tasks)

    run(scenario())


def test_speaks_http_1_1_for_streams_and_to_who_does_not_choose_otherwise() -> None:
    async def scenario() -> None:
        protocols = ["h2", "http/1.1"]
        context = server_context(SERVER, protocols=protocols)
        async with (
            serve(always(answer(b"hello")), tls=context) as server,
            client(server.port, tls=Trusting()) as to,
        ):

            async def all_closed() -> None:
                for peer in server.peers:
                    peer.close()
                await until(lambda: all(peer.reader.at_eof() for peer in server.peers))

            await to.send(get())
            async with to.stream(get()) as stream:
                assert await stream.read() == b"hello"
            await to.send(get())
            context.set_alpn_protocols(["http/1.1"])
            await all_closed()
            await asyncio.gather(*(to.send(get()) for _ in range(3)))
            spoken = [isinstance(peer, H2Peer) for peer in server.peers]
            assert spoken[:2] == [True, False]
            assert len(server.peers[0].requests) == 2
            assert not any(spoken[2:])
            # Once all are closed, it may have become another server.
            context.set_alpn_protocols(protocols)
            await all_closed()
            await asyncio.gather(*(to.send(get()) for _ in range(3)))
            assert isinstance(server.peers[-1], H2Peer)
            assert len(server.peers[-1].requests) == 3

    run(scenario())


# --- fences ----------------------------------------------------------------------------------


def test_asks_each_fence_once_and_drops_what_it_holds_back(writes: list[int]) -> None:
    asked: list[str] = []

    def fence(name: str, *, is_closed: bool = False) -> Callable[[], None]:
        def ask() -> None:
            asked.append(name)
            if is_closed:
                raise Fenced(name)

        return ask

    async def scenario() -> None:
        async with H2.serve(h2_handler()) as server, H2.client(server.port) as to:
            await to.send(get())
            fences = [fence("a"), fence("b", is_closed=True), fence("c")]
            work = (
                # The content type is new each time, so that HPACK has something to remember.
                to.send(
                    Request(method="POST", path=f"/{at}", body=b"x", content_type=f"x/{at}"),
                    fences[at % 3],
                )
                for at in range(12)
            )
            found = await asyncio.gather(*work, return_exceptions=True)
            assert [isinstance(one, Fenced) for one in found] == [False, True, False] * 4
            errors = [one for one in found if isinstance(one, Fenced)]
            assert len({id(error) for error in errors}) == 4
            assert sorted(set(asked)) == ["a", "b", "c"]
            assert asked.count("a") == asked.count("c") == 1
            kinds = [one.headers.get("content-type") for one in server.requests[1:]]
            assert kinds == [f"x/{at}" for at in range(12) if at % 3 != 1]
            assert (await to.send(post("/after", b""))).body == b"/after"

    run(scenario())


def test_asks_the_fence_again_for_the_rest_of_a_long_body() -> None:
    asked: list[int] = []

    def fence() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise Fenced("the lease is lost")

    async def handler(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        peer.begin({INITIAL_WINDOW_SIZE: 1000})
        await peer.request()
        await peer.reply(peer.stream)
        await peer.gone()  # taking what comes, so that the client may send more

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            await to.send(get())
            with pytest.raises(Fenced):
                await to.send(post(body=b"x" * 5000), fence)
            peer = server.peers[0]
            assert isinstance(peer, H2Peer)
            await until(lambda: 3 in peer.resets)
            assert len(peer.requests) == 1

    run(scenario())


def test_a_fence_may_close_the_client() -> None:
    async def scenario() -> None:
        async with H2.serve(h2_handler()) as server, H2.client(server.port) as to:
            await to.send(get())
            closing = to.close()

            def fence() -> None:
                with contextlib.suppress(StopIteration):
                    closing.send(None)  # as far as it goes without waiting

            with pytest.raises(Unreachable, match="the client is closed") as found:
                await to.send(post(), fence)
            assert not found.value.sent
            closing.close()
            assert len(server.requests) == 1

    run(scenario())


# --- how many, and how much --------------------------------------------------------------------


def test_sends_no_more_at_a_time_than_the_server_wants_and_lets_nobody_overtake() -> None:
    async def handler(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        peer.begin({MAX_CONCURRENT_STREAMS: 3})
        while True:
            first = await peer.request()
            # The limit binds from the moment when the settings arrived.
            await asyncio.sleep(0.001)
            assert len(peer.h2.streams) < 100
            most.append(peer.h2.open_inbound_streams)
            await peer.reply(peer.stream, body=first.path.encode())

    most: list[int] = []

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            await to.send(get("/first"))
            tasks = [asyncio.create_task(to.send(get(f"/{at}"))) for at in range(20)]
            await asyncio.gather(*tasks)
            assert max(most) == 3
            paths = [request.path for request in server.requests[1:]]
            assert paths == [f"/{at}" for at in range(20)]

    run(scenario())


def test_gives_up_on_who_waits_in_line_too_long() -> None:
    free = asyncio.Event()

    async def handler(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        peer.begin({MAX_CONCURRENT_STREAMS: 1})
        while True:
            request = await peer.request()
            if request.path == "/slow":
                await free.wait()
            await peer.reply(peer.stream)

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            await to.send(get())
            slow = asyncio.create_task(to.send(post("/slow")))
            await until(lambda: len(server.requests) == 2)
            leaves = asyncio.create_task(to.send(post("/leaves")))
            with pytest.raises(Unreachable, match="in use for too long") as found:
                await to.send(post("/late", timeout=0.02))
            assert not found.value.sent
            leaves.cancel()
            free.set()
            assert (await slow).status == 200
            assert (await to.send(post("/after"))).status == 200
            assert [one.path for one in server.requests] == ["/x", "/slow", "/after"]
            assert len(server.peers) == 1

    run(scenario())


@pytest.mark.parametrize(
    "settings",
    [
        {INITIAL_WINDOW_SIZE: 1},
        {INITIAL_WINDOW_SIZE: 10_000, MAX_FRAME_SIZE: 100_000},
        {INITIAL_WINDOW_SIZE: 2**31 - 1, MAX_FRAME_SIZE: 2**24 - 1},
        {HEADER_TABLE_SIZE: 0},
        {HEADER_TABLE_SIZE: 100},
    ],
)
def test_keeps_to_the_windows_and_tables_of_the_server(settings: dict[int, int]) -> None:
    size = 300 if settings.get(INITIAL_WINDOW_SIZE) == 1 else 300_000
    bodies = [bytes([65 + at]) * (size + at) for at in range(5)]

    async def scenario() -> None:
        async with H2.serve(h2_handler(settings)) as server, H2.client(server.port) as to:
            for _ in range(2):
                found = await asyncio.gather(*(to.send(post("/", body)) for body in bodies))
                assert [one.body for one in found] == [b"/" + body for body in bodies]
            assert len(server.peers) == 1

    run(scenario())


def test_follows_a_window_that_changes_in_the_middle_of_a_body() -> None:
    async def handler(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        peer.begin({INITIAL_WINDOW_SIZE: 1000})
        for size in (10, 5000, 0, 100_000):
            await peer.pull()
            peer.h2.update_settings({SettingCodes(INITIAL_WINDOW_SIZE): size})
            peer.flush()
        request = await peer.request()
        await peer.reply(peer.stream, body=b"%d" % len(request.body))

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            assert (await to.send(post(body=b"x" * 200_000))).body == b"200000"

    run(scenario())


def test_reads_many_large_answers_at_a_time() -> None:
    large = bytes(range(256)) * 40_000  # bytes, 10 MB

    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(answer(large))

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            found = await asyncio.gather(*(to.send(get()) for _ in range(4)))
            assert all(one.body == large for one in found)

    run(scenario())


def test_stops_sending_when_the_answer_is_there() -> None:
    async def handler(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        peer.begin({INITIAL_WINDOW_SIZE: 1000})
        while not peer.arriving(1):
            await peer.pull()
        await peer.reply(1, 413, b"too large")
        assert peer.arriving(1) < 50_000_000
        while True:
            await peer.request()
            await peer.reply(peer.stream)

    async def scenario() -> None:
        async with H2.serve(handler) as server, H2.client(server.port) as to:
            assert (await to.send(post(body=b"x" * 50_000_000))).status == 413
            assert (await to.send(post())).status == 200
            peer = server.peers[0]
            assert isinstance(peer, H2Peer)
            assert peer.resets == {1: 0}
            assert len(server.peers) == 1

    run(scenario())
