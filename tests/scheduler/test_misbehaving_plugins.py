"""Whatever a plugin raises or returns, its pod is told who it was and everybody else goes on."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.scheduler.misbehaving import (
    ASYNC,
    SILENT,
    SYNC,
    cornered,
    try_the_victim_and_then_an_innocent,
)
from tests.scheduler.recording import Log, place, probe, rejectors, world
from tests.unshowable import Parting

import mooring.framework as fw
from mooring.framework import Code, Nominate, OnlyNodes, Status, Wait
from mooring.testing.builders import node, pod


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this works")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__module__"):
            raise SystemExit(9)
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=Meta):
    pass


class Elusive(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(9)


class Slippery(str):
    """Has no method that works."""

    def __str__(self) -> str:
        raise SystemExit(9)

    __eq__ = __hash__ = __len__ = __str__  # type: ignore[assignment]
    encode = isascii = join = __getitem__ = __format__ = __str__  # type: ignore[assignment]


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("not even this works")


class Foreign(BaseException):
    pass


def raises(error: BaseException) -> Callable[..., Any]:
    def deed(*_: Any) -> Any:
        raise error

    return deed


def because(cause: BaseException) -> Callable[..., Any]:
    def deed(*_: Any) -> Any:
        raise ValueError("boom") from cause

    return deed


def recurse(*args: Any) -> Any:
    return recurse(*args)


ACCIDENTS: dict[str, tuple[Callable[..., Any], str]] = {
    "ValueError": (raises(ValueError("boom")), "ValueError: boom"),
    "KeyError": (raises(KeyError("zone")), "KeyError: 'zone'"),
    "StopIteration": (raises(StopIteration()), "StopIteration"),
    "AssertionError": (raises(AssertionError()), "AssertionError: "),
    "SystemExit": (raises(SystemExit(3)), "SystemExit: 3"),
    "CancelledError": (raises(asyncio.CancelledError()), "CancelledError: "),
    "GeneratorExit": (raises(GeneratorExit("odd")), "GeneratorExit: odd"),
    "BaseException": (raises(Foreign("odd")), "Foreign: odd"),
    "no words": (raises(Unspeakable()), "Unspeakable: <Unspeakable that can't be shown>"),
    "words that exit": (raises(Parting()), "Parting: <Parting that can't be shown>"),
    "a cause that exits": (because(Parting()), "ValueError: boom"),
    "no name": (raises(Nameless("boom")), "Nameless: boom"),
    "no attributes": (raises(Elusive("boom")), "Elusive: boom"),
    "slippery words": (raises(Foreign(Slippery("boom"))), "Foreign: "),
    "20 MB": (raises(ValueError("x" * 20_000_000)), "ValueError: xxx"),
    "recursion": (recurse, "RecursionError: maximum recursion depth exceeded"),
}


@pytest.mark.parametrize("accident", ACCIDENTS)
@pytest.mark.parametrize("point", SYNC + ASYNC)
def test_survives_what_a_plugin_raises(
    point: str, accident: str, caplog: pytest.LogCaptureFixture
) -> None:
    deed, text = ACCIDENTS[accident]
    log: Log = []
    with cornered(point, deed, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    logged = {getattr(record, "plugin", "") for record in caplog.records}
    assert "First" in logged
    match point:
        case "pre_enqueue":
            assert outcome.startswith("gated: gated by the PreEnqueue plugin First: ")
        case "post_filter":
            assert outcome.startswith("unschedulable: 0/2 nodes are available: 2 full. ")
        case "unreserve":
            assert outcome == "unschedulable: 0/1 nodes are available: 1 no."
        case "post_bind":
            assert outcome == "a: "
        case _:
            assert outcome.startswith("error backoff: running ")
    if point not in (*SILENT, "pre_enqueue"):
        assert '"First"' in outcome
        assert text in outcome
    assert len(outcome) < 4096
    assert len(caplog.text) < 400_000


WRONG: dict[str, object] = {
    "None": None,
    "text": "yes",
    "True": True,
    "NaN": float("nan"),
    "huge": 10**30,
    "just too big": 2**63,
    "a list": [fw.OK],
    "the class": Status,
    "unshowable": Unshowable(),
    "one that exits": Parting(),
    "array": np.array([1.5, np.nan]),
    "too long": "x" * 5000,
}


ANSWERING = [point for point in SYNC + ASYNC if point not in (*SILENT, "pre_enqueue")]
PAIRS = [(point, wrong) for point in ANSWERING for wrong in WRONG]
PAIRS.remove(("score", "True"))  # which is an int


@pytest.mark.parametrize(("point", "wrong"), PAIRS)
def test_survives_an_answer_of_the_wrong_kind(point: str, wrong: str) -> None:
    log: Log = []
    with cornered(point, lambda *_: WRONG[wrong], log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    assert '"First"' in outcome
    assert "returned " in outcome
    assert "expected a" in outcome
    assert len(outcome) < 400


class Faceless:
    """Can't even be asked what it is."""

    @property
    def __class__(self) -> Any:
        raise Parting

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise Parting


@pytest.mark.parametrize("point", ["pre_filter", "reserve", "permit", "bind"])
def test_survives_an_answer_that_can_not_be_looked_at(point: str) -> None:
    log: Log = []
    with cornered(point, lambda *_: Faceless(), log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    assert outcome == "error backoff: Parting: <Parting that can't be shown>"


@pytest.mark.parametrize("wrong", WRONG)
def test_gates_a_pod_over_an_answer_of_the_wrong_kind(wrong: str) -> None:
    log: Log = []
    with cornered("pre_enqueue", lambda *_: WRONG[wrong], log) as sim:
        sim.schedule(pod("victim"), pod("innocent"))
        assert place(sim, "victim") == "gated"
        assert rejectors(sim, "victim") == "First"
        assert sim.node_of("innocent") != ""


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("point", SILENT)
def test_does_not_care_what_the_points_without_an_answer_return(point: str, wrong: str) -> None:
    log: Log = []
    with cornered(point, lambda *_: WRONG[wrong], log) as sim:
        try_the_victim_and_then_an_innocent(sim, log, point)


def anything(value: object) -> Any:
    return value


MALFORMED: dict[str, tuple[str, Callable[..., Any], str]] = {
    "code": ("filter", lambda *_: Status(anything(2)), "must be a Code, not 2"),
    "reasons": ("reserve", lambda *_: Status(Code.ERROR, anything((1,))), "a tuple of str"),
    "reason": ("permit", lambda *_: Status(Code.ERROR, anything("no")), "a tuple of str"),
    "nodes": ("pre_filter", lambda *_: OnlyNodes(anything(["a"])), "a frozenset of node names"),
    "names": ("pre_filter", lambda *_: OnlyNodes.of(anything([1])), "a frozenset of node names"),
    "no time": ("permit", lambda *_: Wait(anything(None)), "a number of seconds"),
    "NaN": ("permit", lambda *_: Wait(float("nan")), "a number of seconds"),
    "node": ("post_filter", lambda *_: Nominate(anything(None)), "the name of a node"),
    "status": ("post_filter", lambda *_: Nominate("a", anything(None)), "and a Status"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_an_answer_that_makes_no_sense_fails_where_it_is_made(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    point, deed, text = MALFORMED[kind]
    log: Log = []
    with cornered(point, deed, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    assert '"First": TypeError: ' in outcome or '"First" filter plugin: TypeError: ' in outcome
    assert text in outcome
    assert __name__.rpartition(".")[2] in caplog.text


@pytest.mark.parametrize("point", ["pre_filter", "filter", "permit", "bind"])
@pytest.mark.parametrize(
    "member", ["skip_filter", "skip_score", "skip_pre_bind", "pods_to_activate"]
)
def test_survives_a_plugin_that_spoils_the_memory_of_the_attempt(point: str, member: str) -> None:
    def spoil(state: Any, *_: Any) -> None:
        setattr(state, member, None)

    log: Log = []
    with cornered(point, spoil, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    assert '"First"' in outcome
    assert "AttributeError" in outcome


LONG: dict[str, Callable[[], Status]] = {
    "20 MB": lambda: Status.unschedulable("x" * 20_000_000),
    "an error of 20 MB": lambda: Status.error("x" * 20_000_000),
    "many": lambda: Status.unschedulable(*(f"{i}{'x' * 1000}" for i in range(20_000))),
    "a subclass of str": lambda: Status.unschedulable(Slippery("x" * 20_000_000)),
    "signed by the plugin": lambda: Status(Code.UNSCHEDULABLE, ("x" * 3500,), Slippery("First")),
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize(
    "point", ["pre_filter", "filter", "post_filter", "reserve", "permit", "pre_bind", "bind"]
)
def test_shows_4_kib_of_the_reasons_of_a_plugin(point: str, kind: str) -> None:
    log: Log = []
    with cornered(point, lambda *_: LONG[kind](), log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
        told = [event.note for event in sim.events if event.pod == "default/victim"]
    assert outcome.count("x") > 3000
    assert len(outcome.partition(": ")[2]) <= 4096
    assert told
    assert all(len(note) <= 1024 for note in told)


def test_shows_4_kib_of_why_a_held_pod_is_rejected() -> None:
    class Holder(fw.Permit):
        name = "Holder"

        def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Wait:
            return Wait(60)

    with world(Holder) as sim:
        sim.schedule(pod("p"))
        for held in sim.scheduler.waiting:
            held.reject("Holder", "x" * 20_000_000)
        sim.settle()
        assert 3000 < len(sim.why("p")) < 4096


def test_a_message_from_very_many_nodes_fits_into_a_condition() -> None:
    class Verbose(fw.Filter):
        name = "Verbose"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
            return Status.unschedulable(node.name * 1000)

    with world(Verbose, nodes=[f"node-{i}" for i in range(100)]) as sim:
        sim.schedule(pod("p"))
        assert 30_000 < len(sim.why("p")) <= 32_768


def test_a_hint_that_raises_wakes_the_pod() -> None:
    class Touchy(fw.Filter):
        name = "Touchy"
        wakes_on = (fw.Event.NODE_ADDED,)

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
            return Status.unschedulable("no") if node.name == "a" else fw.OK

        def hint(self, event: object, pod: object, old: object, new: object) -> bool:
            raise SystemExit("no idea")

    with world(Touchy, nodes=["a"]) as sim:
        sim.schedule(pod("p"))
        assert place(sim, "p") == "unschedulable"
        sim.apply(node("b"))
        sim.settle()
        assert sim.node_of("p") == "b"


def test_one_that_fails_for_every_pod_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log: Log = []
    with world(probe("First", log, reserve=raises(ValueError("boom")))) as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(5)))
        sim.advance(30)
    assert len([r for r in caplog.records if r.getMessage() == "plugin failed"]) == 1
