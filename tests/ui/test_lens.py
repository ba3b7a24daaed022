"""The pages of /lens/v1/: who may see them, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.ui.in_process_server import Client, FakeReviewer, Reply, serve

from mooring.client.errors import Unreachable
from mooring.lens.slices import Busy
from mooring.ui.access import Access
from mooring.ui.lens import LensPages

EXPLAIN = "/lens/v1/pods/shop/web/explain"
SNAPSHOT = "/lens/v1/snapshot"


class FakeLens:
    """One pod, and a snapshot of three chunks."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.busy = ""
        self.breaks_after: int | None = None
        self.open = 0
        self.ended = asyncio.Event()
        self.chunks = [b"one ", b"two ", b"three"]

    async def explain(self, key: str, *, matrix: bool = False) -> bytes | None:
        self.asked.append((key, matrix))
        if self.busy:
            raise Busy(self.busy)
        return b'{"pod": "shop/web"}' if key == "shop/web" else None

    async def snapshot(self) -> AsyncGenerator[bytes, None]:
        self.asked.append("snapshot")
        if self.busy:
            raise Busy(self.busy)
        self.open += 1
        try:
            for number, chunk in enumerate(self.chunks):
                if number == self.breaks_after:
                    raise RuntimeError("a plugin's object can't be encoded")
                yield chunk
                await asyncio.sleep(0)
        finally:
            self.open -= 1
            self.ended.set()


class World:
    def __init__(self) -> None:
        self.lens = FakeLens()
        self.reviewer = FakeReviewer()

    @asynccontextmanager
    async def served(self, **options: Any) -> AsyncIterator[Client]:
        access = Access(self.reviewer, resources=self.reviewer, open_paths=["/lens/*"])
        async with serve(access=access, lens=LensPages(self.lens), **options) as client:
            yield client

    def get(self, path: str, token: str = "scraper", method: str = "GET") -> Reply:
        async def ask() -> Reply:
            async with self.served() as client:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                return await client.request(method, path, headers=headers)

        return asyncio.run(ask())


# --- who may see ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [EXPLAIN, SNAPSHOT, "/lens/v1/anything"])
@pytest.mark.parametrize(
    ("token", "code", "message"),
    [
        ("", 401, "Unauthorized"),
        ("wrong", 401, "Unauthorized"),
        (
            "guest",
            403,
            'forbidden: User "guest" cannot list pods in all namespaces, which this path needs',
        ),
    ],
)
def test_callers_that_may_not_list_pods_and_nodes_see_nothing(
    path: str, token: str, code: int, message: str
) -> None:
    world = World()
    reply = world.get(path, token)
    assert (reply.status, reply.json["message"]) == (code, message)
    assert world.lens.asked == []


@pytest.mark.parametrize("listed", ["pods", "nodes"])
def test_one_of_the_two_is_not_enough(listed: str) -> None:
    world = World()
    world.reviewer.lists["scraper"] = {listed}
    other = "nodes" if listed == "pods" else "pods"
    reply = world.get(SNAPSHOT)
    assert reply.status == 403
    assert f"cannot list {other} in all namespaces" in reply.json["message"]
    assert world.lens.asked == []


def test_a_path_that_is_open_to_all_or_allowed_makes_no_difference() -> None:
    world = World()  # where /lens/* is open
    world.reviewer.may.add(("guest", "get", EXPLAIN))
    assert world.get(EXPLAIN, "guest").status == 403
    assert ("access", "guest", "get", EXPLAIN) not in world.reviewer.asked


def test_nothing_is_shown_because_a_review_failed() -> None:
    world = World()
    world.reviewer.outage = Unreachable("no route", sent=False)
    for path in (EXPLAIN, SNAPSHOT):
        reply = world.get(path)
        assert reply.status == 500
        assert "could not review this request" in reply.json["message"]
    assert world.lens.asked == []


def test_without_a_reviewer_of_resources_nobody_but_masters_gets_in() -> None:
    async def codes() -> list[int]:
        lens = LensPages(FakeLens())
        async with serve(access=Access(FakeReviewer()), lens=lens) as client:
            return [(await client.get(EXPLAIN, token)).status for token in ("scraper", "admin")]

    assert asyncio.run(codes()) == [403, 200]


# --- what they answer ----------------------------------------------------------------------------


def test_an_explanation_is_json() -> None:
    world = World()
    reply = world.get(EXPLAIN)
    assert (reply.status, reply.json) == (200, {"pod": "shop/web"})
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Cache-Control"] == "no-cache, private"
    assert world.get(f"{EXPLAIN}?depth=matrix").status == 200
    assert world.lens.asked == [("shop/web", False), ("shop/web", True)]


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("/lens/v1/pods/shop/nobody/explain", 404, 'pods "shop/nobody" not found, or it has ended'),
        (f"{EXPLAIN}?depth=all", 400, "depth: expected groups or matrix, found 'all'"),
        ("/lens/v1/pods/web/explain", 404, "there is no such page below /lens/"),
        ("/lens/v2/snapshot", 404, "there is no such page below /lens/"),
        ("/lens/", 404, "there is no such page below /lens/"),
    ],
)
def test_what_there_is_not_gets_one_sentence(path: str, code: int, message: str) -> None:
    reply = World().get(path)
    assert (reply.status, reply.json["message"]) == (code, message)
    assert reply.json["kind"] == "Status"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(method: str) -> None:
    world = World()
    reply = world.get(SNAPSHOT, method=method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    assert world.lens.asked == []


@pytest.mark.parametrize("path", [EXPLAIN, SNAPSHOT])
def test_too_many_are_asked_to_come_again(path: str) -> None:
    world = World()
    world.lens.busy = "2 snapshots are being made"
    reply = world.get(path)
    assert (reply.status, reply.json["message"]) == (429, "2 snapshots are being made; try again")
    assert reply.headers["Retry-After"] == "1"


def test_a_snapshot_comes_in_chunks() -> None:
    world = World()
    reply = world.get(SNAPSHOT)
    assert (reply.status, reply.text) == (200, "one two three")
    assert reply.headers["Content-Type"] == "application/gzip"
    assert reply.headers["Transfer-Encoding"] == "chunked"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert world.get(SNAPSHOT, method="HEAD").text == ""
    assert world.lens.asked == ["snapshot"]
    assert world.lens.open == 0


def test_a_snapshot_that_breaks_off_does_not_look_complete() -> None:
    world = World()
    world.lens.breaks_after = 2
    with pytest.raises(Exception, match=r"IncompleteRead|RemoteDisconnected|reset"):
        world.get(SNAPSHOT)
    assert world.lens.open == 0


def test_a_snapshot_may_take_longer_than_other_answers() -> None:
    world = World()
    slow: list[bytes] = [b"x"] * 30

    class SlowLens(FakeLens):
        async def snapshot(self) -> AsyncGenerator[bytes, None]:
            for chunk in slow:
                yield chunk
                await asyncio.sleep(0.01)

    world.lens = SlowLens()

    async def ask() -> Reply:
        async with world.served(lifetime=0.1) as client:
            return await client.get(SNAPSHOT, "scraper")

    assert asyncio.run(ask()).text == "x" * 30


def test_a_client_that_goes_away_ends_its_snapshot() -> None:
    world = World()
    world.lens.chunks = [b"x" * 65_536] * 10_000

    async def leave() -> None:
        async with world.served() as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            lines = (f"GET {SNAPSHOT} HTTP/1.1", "Host: x", "Authorization: Bearer scraper", "", "")
            writer.write("\r\n".join(lines).encode())
            await reader.read(1000)
            assert world.lens.open == 1
            writer.transport.abort()
            async with asyncio.timeout(20):
                await world.lens.ended.wait()
            assert world.lens.open == 0

    asyncio.run(leave())
