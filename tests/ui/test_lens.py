"""The pages of /lens/v1/: who may see them, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.ui.in_process_server import Client, FakeReviewer, Reply, serve

from mooring.client.errors import Unreachable
from mooring.errors import ConfigError, Problem
from mooring.lens.api import Depth
from mooring.lens.live_explanations import ExplanationQuery
from mooring.lens.live_views import RecordQuery
from mooring.lens.sight import Sight
from mooring.lens.slices import Busy
from mooring.ui.access import Access
from mooring.ui.lens import NO_JOURNAL, LensPages

EXPLAIN = "/lens/v1/pods/shop/web/explain"
SNAPSHOT = "/lens/v1/snapshot"


class FakeViews:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def state(self, sight: Sight) -> bytes:
        self.asked.append(("state", sight))
        return b'{"nodes": "' + b"x" * 10_000 + b'"}'

    async def queue(self, sight: Sight, place: str = "", limit: int = 1000) -> bytes:
        self.asked.append(("queue", place, limit))
        return b"{}"

    async def node(self, name: str, sight: Sight) -> bytes | None:
        return b"{}" if name == "a" else None

    async def records(self, sight: Sight, query: RecordQuery) -> bytes | None:
        self.asked.append(query)
        return b"{}" if query.pod != "none/kept" else None

    async def stream(self, sight: Sight) -> AsyncGenerator[bytes, None]:
        yield b"event: reset\ndata: {}\n\n"


class FakeLens:
    """One pod, and a snapshot of three chunks."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.views = FakeViews()
        self.busy = ""
        self.breaks_after: int | None = None
        self.open = 0
        self.ended = asyncio.Event()
        self.chunks = [b"one ", b"two ", b"three"]

    async def ask(self, question: str, body: bytes) -> bytes:
        if not body:
            raise ConfigError([Problem("the question", "expected a body")])
        return b'{"asked": true}'

    async def explain(self, key: str, query: ExplanationQuery) -> bytes | None:
        asked = (key, query.matrix)
        self.asked.append(asked if query.preemption else (*asked, "no preemption"))
        if self.busy:
            raise Busy(self.busy)
        return b'{"pod": "shop/web"}' if key == "shop/web" else None

    async def explain_past(
        self, key: str, seq: int, *, depth: Depth = "groups", ask: Sequence[str] = ()
    ) -> bytes | None:
        self.asked.append((key, seq, depth, tuple(ask)))
        return None if seq == 404 else b'{"exactness": "exact"}'

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
    reply = world.get(SNAPSHOT)
    assert reply.status == 403
    assert "cannot list pods and nodes in all namespaces" in reply.json["message"]
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


def test_without_a_reviewer_of_resources_only_masters_get_in() -> None:
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
    assert world.get(f"{EXPLAIN}?preemption=false").status == 200
    brief = ("shop/web", False, "no preemption")
    assert world.lens.asked == [("shop/web", False), ("shop/web", True), brief]


def test_a_past_attempt_is_asked_for_by_its_number() -> None:
    world = World()
    assert world.get(f"{EXPLAIN}?at=7").json == {"exactness": "exact"}
    assert world.get(f"{EXPLAIN}?at=8&depth=matrix&node=a&preemption=false").status == 200
    past = [("shop/web", 7, "groups", ()), ("shop/web", 8, "matrix", ("a",))]
    assert world.lens.asked == past


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("/lens/v1/pods/shop/absent/explain", 404, 'pods "shop/absent" not found, or it has ended'),
        (f"{EXPLAIN}?depth=all", 400, "depth: expected groups, matrix, remedies, found 'all'"),
        (f"{EXPLAIN}?at=404", 404, NO_JOURNAL),
        (f"{EXPLAIN}?at=", 400, f"at: expected a number from 1 to {2**62}, found ''"),
        (f"{EXPLAIN}?preemption=no", 400, "preemption: expected true, false, found 'no'"),
        ("/lens/v1/pods/web/explain", 404, "there is no such page below /lens/"),
        ("/lens/v2/snapshot", 404, "there is no such page below /lens/"),
        ("/lens/", 404, "there is no such page below /lens/"),
        ("/lens/v1/nodes/b", 404, 'nodes "b" not found'),
        ("/lens/v1/records?pod=none/kept", 404, "no records are kept (--record-size 0)"),
        (
            "/lens/v1/queue?place=up",
            400,
            "place: expected active, backoff, unschedulable, gated,"
            " waiting, in flight, binding, found 'up'",
        ),
        ("/lens/v1/queue?limit=0", 400, "limit: expected a number from 1 to 1000, found '0'"),
        (
            "/lens/v1/records?limit=9999",
            400,
            "limit: expected a number from 1 to 1000, found '9999'",
        ),
        (
            "/lens/v1/records?outcome=no",
            400,
            "outcome: expected scheduled, unschedulable, nominated, error, found 'no'",
        ),
        (
            "/lens/v1/records?since=now",
            400,
            "since: expected an RFC 3339 time such as 2024-05-01T12:00:00Z, got 'now'",
        ),
        ("/lens/v1/what-if", 405, "this path needs a POST"),
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


# --- state, records, stream, questions ------------------------------------------------------------


def test_parameters_reach_the_views() -> None:
    world = World()
    for path in (
        "queue?place=gated&limit=7",
        "records?limit=5&before=9&pod=shop/web&outcome=error&since=2024-05-01T12:00:00Z",
        "records",
    ):
        assert world.get(f"/lens/v1/{path}").status == 200
    assert world.lens.views.asked == [
        ("queue", "gated", 7),
        RecordQuery(5, 9, "shop/web", "error", "2024-05-01T12:00:00.000000Z"),
        RecordQuery(),
    ]
    assert world.get("/lens/v1/nodes/a").status == 200


def test_a_large_answer_is_compressed_for_those_who_can_read_it() -> None:
    world = World()

    async def ask(headers: dict[str, str]) -> tuple[str | None, int]:
        async with world.served() as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            lines = [f"{key}: {value}" for key, value in headers.items()]
            head = ["GET /lens/v1/state HTTP/1.1", "Host: x", "Authorization: Bearer scraper"]
            writer.write("\r\n".join([*head, *lines, "Connection: close", "", ""]).encode())
            text = await reader.read()
            writer.close()
            top, _, body = text.partition(b"\r\n\r\n")
            return ("gzip" if b"Content-Encoding: gzip" in top else None), len(body)

    assert asyncio.run(ask({})) == (None, 10_013)
    packed, size = asyncio.run(ask({"Accept-Encoding": "gzip"}))
    assert packed == "gzip"
    assert size < 200


def test_two_requests_on_one_connection() -> None:
    world = World()

    async def ask() -> int:
        async with world.served() as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            head = "GET /lens/v1/queue HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer scraper\r\n\r\n"
            found = 0
            for _ in range(2):
                writer.write(head.encode())
                async with asyncio.timeout(20):
                    found += (await reader.readuntil(b"{}")).count(b"200 OK")
            writer.close()
            return found

    assert asyncio.run(ask()) == 2


def test_a_stream_is_server_sent_events() -> None:
    reply = World().get("/lens/v1/stream")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/event-stream")
    assert reply.text == "event: reset\ndata: {}\n\n"


def test_questions_are_posted() -> None:
    world = World()

    async def ask(path: str, body: bytes) -> Reply:
        async with world.served() as client:
            headers = {"Authorization": "Bearer scraper"}
            return await client.request("POST", path, headers=headers, body=body)

    assert asyncio.run(ask("/lens/v1/what-if", b"{}")).json == {"asked": True}
    assert asyncio.run(ask("/lens/v1/capacity", b"")).status == 400
    assert asyncio.run(ask("/lens/v1/state", b"{}")).status == 405
    assert world.get(f"{EXPLAIN}?depth=remedies").json["message"] == "the question: expected a body"


def test_a_reader_of_nodes_only() -> None:
    world = World()
    world.reviewer.lists["scraper"] = {"nodes"}
    assert world.get("/lens/v1/state").status == 200
    assert world.lens.views.asked == [("state", Sight(nodes=True, pods=False))]
    for path in (EXPLAIN, SNAPSHOT, "/lens/v1/records"):
        assert world.get(path).status == 403
