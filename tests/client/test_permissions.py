"""Which rule is missing: asked, said, asked again."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgspec
import pytest
from tests.faulty_transport import Asked, Fault, FaultyServer, Garbage, Json, Refuse, Vanish
from tests.garbage import NO_OBJECT, NO_TEXT
from tests.loop_rig import LoopRig

from mooring.client.client import ApiClient
from mooring.client.permissions import Permission, PermissionCheck
from mooring.cluster.apiserver._auth import Attributes
from mooring.cluster.apiserver.requests import Caller

LIST_NODES = Permission("list", "nodes")
BIND = Permission("create", "pods", subresource="binding")
PATCH_EVENTS = Permission("patch", "events", group="events.k8s.io")
GET_LEASE = Permission(
    "get", "leases", group="coordination.k8s.io", namespace="kube-system", name="mooring"
)
NEEDED = (LIST_NODES, BIND, PATCH_EVENTS, GET_LEASE)


class PermissionCheckRig(LoopRig):
    def __init__(
        self,
        needed: tuple[Permission, ...] = NEEDED,
        prepared: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        super().__init__()
        self.revoked: set[tuple[str, str]] = set()  # verb, resource
        self.server = FaultyServer()
        self.server.reviews.authorize = self._why_not
        self.server.latency = 0.05
        client = ApiClient(self.server, on_forbidden=lambda _: self.check.poke())
        self.check = PermissionCheck(client, needed)
        self.task = self.loop.create_task(self.check.run(prepared))
        self.loop.settle()

    def _why_not(self, caller: Caller, about: Attributes) -> str:
        return "no rule" if (about.verb, about.resource) in self.revoked else ""

    def trouble(self, fault: Fault | None) -> None:
        self.server.fault = lambda asked: fault

    @property
    def asked(self) -> list[Asked]:
        """The reviews of one access each."""
        return [asked for asked in self.server.asked if asked.path.endswith("accessreviews")]

    def rounds(self, seconds: float) -> float:
        """How often all was asked for in that time."""
        before = len(self.asked)
        self.loop.advance(seconds)
        return (len(self.asked) - before) / len(NEEDED)

    def grant(self, *rules: Json, incomplete: bool = False) -> None:
        """Let the server list these rules."""
        status = {"resourceRules": rules, "nonResourceRules": [], "incomplete": incomplete}
        answer = Garbage(msgspec.json.encode({"status": status}), 201)
        self.server.fault = lambda asked: answer if asked.path.endswith("rulesreviews") else None


@pytest.fixture
def rig() -> Iterator[PermissionCheckRig]:
    with PermissionCheckRig() as rig:
        yield rig


@pytest.mark.parametrize(
    ("prepared_after", "forbidden_after", "asked_after"),
    [(0, None, 0.5), (2, None, 2.5), (2, 1, 1), (3_600, None, 5), (3_600, 3, 3)],
)
def test_the_first_check_waits_until_the_process_is_prepared_or_a_request_is_forbidden(
    prepared_after: float, forbidden_after: float | None, asked_after: float
) -> None:
    async def prepared() -> None:
        await asyncio.sleep(prepared_after)

    with PermissionCheckRig(prepared=prepared) as rig:
        if forbidden_after is not None:
            rig.loop.call_later(forbidden_after, rig.check.poke)
        rig.loop.advance(asked_after - 0.1)
        assert not rig.server.asked
        rig.loop.advance(0.3)
        assert len(rig.asked) == len(NEEDED)
        assert rig.rounds(30) == 0  # from then on as ever


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


def test_asks_for_all_that_is_needed(rig: PermissionCheckRig) -> None:
    rig.loop.advance(1)
    reviews = [asked.body["spec"]["resourceAttributes"] for asked in rig.asked]
    assert reviews == [
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
    assert rig.check.missing == ()
    assert rig.check.problem == ""


def test_asks_again_every_minute(rig: PermissionCheckRig) -> None:
    rig.loop.advance(1)
    assert rig.rounds(200) == 3


def test_asks_for_eight_at_once_at_most() -> None:
    with PermissionCheckRig(
        tuple(Permission("get", f"things{number}") for number in range(30))
    ) as rig:
        rig.loop.advance(1)
        assert max(Counter(asked.at for asked in rig.asked).values()) == 8
        assert len(rig.asked) == 30


def test_names_what_is_missing_once_and_again_when_it_is_restored(
    rig: PermissionCheckRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rig.revoked = {("create", "pods"), ("list", "nodes")}
    rig.loop.advance(60)
    rig.loop.advance(60)
    assert rig.check.missing == (LIST_NODES, BIND)
    assert rig.check.problem == "missing permissions: list nodes; create pods/binding"
    assert told(caplog) == [
        ("permission missing", "list nodes"),
        ("permission missing", "create pods/binding"),
    ]
    assert caplog.records[1].levelno == logging.WARNING
    assert caplog.records[1].__dict__["verb"] == "create"
    assert caplog.records[1].__dict__["resource"] == "pods"
    caplog.clear()
    rig.revoked = {("create", "pods")}
    rig.loop.advance(6)
    assert told(caplog) == [("permission restored", "list nodes")]
    assert rig.check.problem == "missing permissions: create pods/binding"


def test_asks_every_five_seconds_while_something_is_missing(rig: PermissionCheckRig) -> None:
    rig.revoked = {("list", "nodes")}
    rig.loop.advance(61)
    assert rig.rounds(51) == 10


def test_asks_soon_after_something_was_refused(rig: PermissionCheckRig) -> None:
    rig.loop.advance(30)
    rig.revoked = {("list", "nodes")}
    rig.check.poke()
    rig.loop.advance(1.2)
    assert rig.check.missing == (LIST_NODES,)


def test_a_swarm_of_refusals_does_not_become_a_swarm_of_questions(rig: PermissionCheckRig) -> None:
    rig.loop.advance(30)
    before = len(rig.asked)
    for _ in range(1000):
        rig.check.poke()
        rig.loop.advance(0.1)
    assert (len(rig.asked) - before) / len(NEEDED) <= 21


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(403, "Forbidden"),
        Refuse(404, "NotFound"),
        Refuse(500, "InternalError"),
        Vanish(),
        Garbage(b"<html>", 201),
    ],
)
def test_claims_nothing_when_it_gets_no_answer(
    rig: PermissionCheckRig, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    rig.revoked = {("list", "nodes")}
    rig.loop.advance(61)
    caplog.clear()
    rig.trouble(fault)
    rig.revoked = {("create", "pods")}
    rig.loop.advance(300)
    assert rig.check.missing == (LIST_NODES,)
    assert caplog.messages == ["could not ask which permissions there are"]
    rig.trouble(None)
    rig.loop.advance(6)
    assert rig.check.missing == (BIND,)


def test_a_review_that_is_refused_does_not_ask_for_itself(rig: PermissionCheckRig) -> None:
    rig.trouble(Refuse(403, "Forbidden"))
    rig.loop.advance(59)
    assert rig.rounds(600) == 10


def test_asks_again_soon_when_the_server_was_away_at_the_start() -> None:
    with PermissionCheckRig() as rig:
        rig.trouble(Vanish())
        rig.loop.advance(20)
        rig.trouble(None)
        rig.revoked = {("list", "nodes")}
        rig.loop.advance(5.2)
        assert rig.check.missing == (LIST_NODES,)


def test_asks_once_for_what_is_named_twice() -> None:
    with PermissionCheckRig((LIST_NODES, LIST_NODES)) as rig:
        rig.loop.advance(1)
        assert len(rig.asked) == 1


@pytest.mark.parametrize("garbage", [*NO_OBJECT, *NO_TEXT])
def test_asks_again_after_a_few_seconds_when_an_answer_cannot_be_read(
    rig: PermissionCheckRig, garbage: bytes
) -> None:
    rig.loop.advance(1)
    rig.trouble(Garbage(garbage, 201))
    rig.revoked.add(("list", "nodes"))
    rig.loop.advance(61)
    assert not rig.task.done()
    assert rig.check.problem == ""
    assert rig.rounds(50) >= 8
    rig.trouble(None)
    rig.loop.advance(6)
    assert rig.check.missing == (LIST_NODES,)


# --- rules --------------------------------------------------------------------------------------


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Json:
    named = {"resourceNames": names.split()} if names else {}
    groups = groups.replace("core", "")
    listed = {"apiGroups": groups.split(",")}
    return {"verbs": verbs.split(), **listed, "resources": resources.split(), **named}


EVERYTHING = rule("*", "*", "*")


def test_asks_for_nothing_that_the_rules_of_the_cluster_grant(rig: PermissionCheckRig) -> None:
    rig.loop.advance(1)
    rig.grant(EVERYTHING)
    assert rig.rounds(200) == 0
    lists = [asked.body["spec"] for asked in rig.server.asked if asked not in rig.asked]
    # What a RoleBinding grants holds in its namespace only: there can be none in this one.
    assert lists == [{"namespace": "every.namespace"}] * 4
    assert rig.check.problem == ""


@pytest.mark.parametrize(
    ("granted", "still_asked"),
    [
        (EVERYTHING, ()),
        (rule("list", "core", "nodes"), (BIND, PATCH_EVENTS, GET_LEASE)),
        (rule("get list watch", "apps,core", "pods nodes"), (BIND, PATCH_EVENTS, GET_LEASE)),
        (rule("*", "core", "nodes"), (BIND, PATCH_EVENTS, GET_LEASE)),
        (rule("watch", "*", "*"), NEEDED),
        (rule("*", "apps", "*"), NEEDED),
        (rule("list", "core", "nodes", "one"), NEEDED),
        (rule("*", "*", "pods"), NEEDED),
        (rule("*", "*", "pods/*"), NEEDED),
        (rule("create", "core", "*"), (LIST_NODES, PATCH_EVENTS, GET_LEASE)),
        (rule("create", "core", "pods/binding"), (LIST_NODES, PATCH_EVENTS, GET_LEASE)),
        (rule("create", "core", "*/binding"), (LIST_NODES, PATCH_EVENTS, GET_LEASE)),
        (rule("*", "*", "*/status"), NEEDED),
        (rule("patch", "events.k8s.io", "events"), (LIST_NODES, BIND, GET_LEASE)),
        (rule("patch", "core", "events"), NEEDED),
        (rule("get", "coordination.k8s.io", "leases"), (LIST_NODES, BIND, PATCH_EVENTS)),
        (rule("get", "*", "leases", "a mooring"), (LIST_NODES, BIND, PATCH_EVENTS)),
        (rule("get", "*", "leases", "another"), NEEDED),
        ({}, NEEDED),
    ],
)
def test_asks_for_what_no_rule_grants(
    rig: PermissionCheckRig, granted: Json, still_asked: tuple[Permission, ...]
) -> None:
    rig.loop.advance(1)
    rig.server.asked.clear()
    rig.grant(granted)
    rig.loop.advance(61)
    wanted = [asked.body["spec"]["resourceAttributes"] for asked in rig.asked]
    assert [Permission(**attributes) for attributes in wanted] == list(still_asked)


def test_asks_nothing_if_nothing_is_needed() -> None:
    with PermissionCheckRig(()) as rig:
        rig.loop.advance(200)
        assert rig.server.asked == []


def test_an_incomplete_list_of_rules_proves_nothing(rig: PermissionCheckRig) -> None:
    rig.loop.advance(1)
    rig.grant(EVERYTHING, incomplete=True)
    assert rig.rounds(200) == 3


def test_asks_one_by_one_after_a_request_was_forbidden(rig: PermissionCheckRig) -> None:
    rig.loop.advance(30)
    rig.grant(EVERYTHING)
    rig.revoked = {("list", "nodes")}  # against what the rules say
    rig.check.poke()
    assert rig.rounds(1.2) == 1
    assert rig.check.missing == (LIST_NODES,)
    # It stays missing until the answer to this question changes.
    assert rig.rounds(52) == 10 / len(NEEDED)
    assert rig.check.missing == (LIST_NODES,)
    rig.revoked = set()
    rig.loop.advance(6)
    assert rig.check.problem == ""
    assert rig.rounds(200) == 0


@pytest.mark.parametrize("fault", [Refuse(403, "Forbidden"), Refuse(404, "NotFound")])
def test_asks_one_by_one_where_rules_are_not_listed(
    rig: PermissionCheckRig, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    rig.loop.advance(1)
    rig.server.fault = lambda asked: fault if asked.path.endswith("rulesreviews") else None
    assert rig.rounds(200) == 3
    rig.revoked = {("list", "nodes")}
    rig.loop.advance(61)
    assert rig.check.missing == (LIST_NODES,)
    assert caplog.messages == ["permission missing"]
