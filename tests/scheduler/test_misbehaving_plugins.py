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

import mooring.framework as fw
from mooring.framework import Code, Nominate, OnlyNodes, Status, Wait
from mooring.testing.builders import node, pod


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this works")


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("not even this works")


class Foreign(BaseException):
    pass


def raises(error: BaseException) -> Callable[..., Any]:
    def deed(*_: Any) -> Any:
        raise error

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
    "BaseException": (raises(Foreign("odd")), "Foreign: odd"),
    "no words": (raises(Unspeakable()), "Unspeakable: <Unspeakable that can't be shown>"),
    "recursion": (recurse, "RecursionError: maximum recursion depth exceeded"),
}


@pytest.mark.parametrize("accident", ACCIDENTS)
@pytest.mark.parametrize("point", SYNC + ASYNC)
def test_survives_what_a_plugin_raises(
    point: str, accident: str, caplog: pytest.LogCaptureFixture
) -> None:
    deed, text = ACCIDENTS[accident]
    log: Log = []
    caplog.handler.handleError = lambda record: None  # type: ignore[method-assign]  # no words
    with cornered(point, deed, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    logged = {getattr(record, "plugin", "") for record in caplog.records}
    assert "First" in logged
    match point:
        case "pre_enqueue":
            assert outcome == "gated: "
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
