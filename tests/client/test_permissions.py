"""Which rule is missing: asked, said, asked again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Self

import pytest
from tests.client.event_server import refused
from tests.garbage import NO_OBJECT, NO_TEXT

from mooring.client.client import ApiClient
from mooring.client.errors import Unreachable
from mooring.client.permissions import Permission, PermissionCheck
from mooring.client.transport import Answer, Fence, Request, Stream
from mooring.simulator.clock import VirtualLoop

LIST_NODES = Permission("list", "nodes")
BIND = Permission("create", "pods", subresource="binding")
PATCH_EVENTS = Permission("patch", "events", group="events.k8s.io")
GET_LEASE = Permission(
    "get", "leases", group="coordination.k8s.io", namespace="kube-system", name="mooring"
)
NEEDED = (LIST_NODES, BIND, PATCH_EVENTS, GET_LEASE)


class Reviewer:
    """Allows all but what is revoked; each answer takes a tenth of a second."""

    def __init__(self) -> None:
        self.revoked: set[tuple[str, str]] = set()  # verb, resource
        self.trouble: Answer | Exception | None = None
        self.asked: list[dict[str, str]] = []
        self.at_once: int = 0
        self.most_at_once: int = 0

    async def send(self, request: Request, fence: Fence | None = None) -> Answer:
        assert fence is None, "a question is no write"
        assert request.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        review = json.loads(request.body)
        assert review["apiVersion"] == "authorization.k8s.io/v1"
        assert review["kind"] == "SelfSubjectAccessReview"
        wanted: dict[str, str] = review["spec"]["resourceAttributes"]
        self.asked.append(wanted)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.1)
        self.at_once -= 1
        if isinstance(self.trouble, Exception):
            raise self.trouble
        if self.trouble is not None:
            return self.trouble
        allowed = (wanted["verb"], wanted["resource"]) not in self.revoked
        return Answer(201, {}, json.dumps(review | {"status": {"allowed": allowed}}).encode())

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError(f"nobody watches reviews: {request.path}")

    async def close(self) -> None:
        """Nothing is held."""


class Room:
    def __init__(self, needed: tuple[Permission, ...] = NEEDED) -> None:
        self.loop = VirtualLoop()
        self.server = Reviewer()
        client = ApiClient(self.server, on_forbidden=lambda _: self.check.poke())
        self.check = PermissionCheck(client, needed)
        self.task = self.loop.create_task(self.check.run())
        self.loop.settle()

    def rounds(self, seconds: float) -> float:
        """How often all was asked for in that time."""
        before = len(self.server.asked)
        self.loop.advance(seconds)
        return (len(self.server.asked) - before) / len(NEEDED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.task.cancel()
        self.loop.settle()
        self.loop.close()


@pytest.fixture
def room() -> Iterator[Room]:
    with Room() as room:
        yield room


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    records = [r for r in caplog.records if r.getMessage().startswith("permission")]
    return [(r.getMessage(), r.__dict__["permission"]) for r in records]


@pytest.mark.parametrize(
    ("permission", "text"),
    [
        (LIST_NODES, "list nodes"),
        (BIND, "create pods/binding"),
        (PATCH_EVENTS, "patch events.events.k8s.io"),
        (
            GET_LEASE,
            'get leases.coordination.k8s.io "mooring" in namespace "kube-system"',
        ),
        (Permission("update", "deployments", "apps", "scale"), "update deployments.apps/scale"),
    ],
)
def test_is_spelled_as_people_write_rules(permission: Permission, text: str) -> None:
    assert str(permission) == text


def test_asks_for_all_that_is_needed(room: Room) -> None:
    room.loop.advance(1)
    assert room.server.asked == [
        {"verb": "list", "resource": "nodes"},
        {"verb": "create", "resource": "pods", "subresource": "binding"},
        {"verb": "patch", "group": "events.k8s.io", "resource": "events"},
        {
            "verb": "get",
            "group": "coordination.k8s.io",
            "resource": "leases",
            "namespace": "kube-system",
            "name": "mooring",
        },
    ]
    assert room.check.missing == ()
    assert room.check.problem == ""


def test_asks_again_every_minute(room: Room) -> None:
    assert room.rounds(200) == 3


def test_asks_for_eight_at_once_at_most() -> None:
    with Room(tuple(Permission("get", f"things{number}") for number in range(30))) as room:
        room.loop.advance(1)
        assert room.server.most_at_once == 8
        assert len(room.server.asked) == 30


def test_names_what_is_missing_once_and_again_when_it_is_restored(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    room.server.revoked = {("create", "pods"), ("list", "nodes")}
    room.loop.advance(60)
    room.loop.advance(60)
    assert room.check.missing == (LIST_NODES, BIND)
    assert room.check.problem == "missing permissions: list nodes; create pods/binding"
    assert told(caplog) == [
        ("permission missing", "list nodes"),
        ("permission missing", "create pods/binding"),
    ]
    assert caplog.records[1].levelno == logging.WARNING
    assert caplog.records[1].__dict__["verb"] == "create"
    assert caplog.records[1].__dict__["resource"] == "pods"
    caplog.clear()
    room.server.revoked = {("create", "pods")}
    room.loop.advance(6)
    assert told(caplog) == [("permission restored", "list nodes")]
    assert room.check.problem == "missing permissions: create pods/binding"


def test_asks_every_five_seconds_while_something_is_missing(room: Room) -> None:
    room.server.revoked = {("list", "nodes")}
    room.loop.advance(61)
    assert room.rounds(51) == 10


def test_asks_soon_after_something_was_refused(room: Room) -> None:
    room.loop.advance(30)
    room.server.revoked = {("list", "nodes")}
    room.check.poke()
    room.loop.advance(1.2)
    assert room.check.missing == (LIST_NODES,)


def test_a_swarm_of_refusals_does_not_become_a_swarm_of_questions(room: Room) -> None:
    room.loop.advance(30)
    before = len(room.server.asked)
    for _ in range(1000):
        room.check.poke()
        room.loop.advance(0.1)
    assert (len(room.server.asked) - before) / len(NEEDED) <= 21


@pytest.mark.parametrize(
    "trouble",
    [
        refused(403, "Forbidden"),
        refused(404, "NotFound"),
        refused(500, "InternalError"),
        Unreachable("connection refused", sent=True),
        Answer(201, {}, b"<html>"),
    ],
)
def test_claims_nothing_when_it_gets_no_answer(
    room: Room, trouble: Answer | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    room.server.revoked = {("list", "nodes")}
    room.loop.advance(61)
    caplog.clear()
    room.server.trouble = trouble
    room.server.revoked = {("create", "pods")}
    room.loop.advance(300)
    assert room.check.missing == (LIST_NODES,)
    assert caplog.messages == ["could not ask which permissions there are"]
    room.server.trouble = None
    room.loop.advance(6)
    assert room.check.missing == (BIND,)


def test_a_review_that_is_refused_does_not_ask_for_itself(room: Room) -> None:
    room.server.trouble = refused(403, "Forbidden")
    room.loop.advance(59)
    assert room.rounds(600) == 10


def test_asks_again_soon_when_the_server_was_away_at_the_start() -> None:
    with Room() as room:
        room.server.trouble = Unreachable("connection refused", sent=True)
        room.loop.advance(20)
        room.server.trouble = None
        room.server.revoked = {("list", "nodes")}
        room.loop.advance(5.2)
        assert room.check.missing == (LIST_NODES,)


def test_asks_once_for_what_is_named_twice() -> None:
    with Room((LIST_NODES, LIST_NODES)) as room:
        room.loop.advance(1)
        assert len(room.server.asked) == 1


@pytest.mark.parametrize("garbage", [*NO_OBJECT, *NO_TEXT])
def test_asks_again_after_a_few_seconds_when_an_answer_cannot_be_read(
    room: Room, garbage: bytes
) -> None:
    room.loop.advance(1)
    room.server.trouble = Answer(201, {}, garbage)
    room.server.revoked.add(("list", "nodes"))
    room.loop.advance(61)
    assert not room.task.done()
    assert room.check.problem == ""
    assert room.rounds(50) >= 8
    room.server.trouble = None
    room.loop.advance(6)
    assert room.check.missing == (LIST_NODES,)
