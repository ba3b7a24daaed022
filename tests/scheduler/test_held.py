"""Pods that a plugin keeps waiting, without a refusal: they say so, once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.recording import Log, notes, place, probe, world

from mooring.framework import OK, Event, Status, Wait
from mooring.simulator import Simulation
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox

QUOTA = "gated by the PreEnqueue plugin Quota: waiting for quota"
NO_QUOTA = Status.unresolvable("waiting for quota")


def quota(log: Log, **more: Any) -> type[Any]:
    """Gates pods until a node has been added."""
    return probe("Quota", log, pre_enqueue=NO_QUOTA, wakes_on=(Event.NODE_ADDED,), **more)


def test_a_gated_pod_says_once_who_gates_it_however_often_it_is_asked_again() -> None:
    log: Log = []
    with world(quota(log)) as sim:
        sim.schedule(pod("p"))
        for number in range(3):
            sim.apply(node(f"n{number}"))
            sim.advance(1)
        assert log.count("Quota.pre_enqueue") == 4
        assert sim.why("p") == QUOTA
        assert notes(sim, "p") == [f"SchedulingGated: {QUOTA}"]
        assert sim.pod("p").status.conditions == ()


def test_each_stay_and_each_further_plugin_is_told() -> None:
    log: Log = []
    answers = {"First": NO_QUOTA, "Second": OK, "Filter": Status.unschedulable("full")}
    first, second = (
        probe(
            name,
            log,
            pre_enqueue=lambda self, _: answers[self.name],
            filter=lambda *_: answers["Filter"],
            wakes_on=(Event.NODE_ADDED,),
        )
        for name in ("First", "Second")
    )
    with world(first, second) as sim:

        def told_after(name: str) -> list[str]:
            before = len(notes(sim, "p"))
            sim.apply(node(name))
            sim.advance(20)
            return [note.partition(":")[0] for note in notes(sim, "p")[before:]]

        sim.schedule(pod("p"))
        answers["First"], answers["Second"] = OK, NO_QUOTA
        assert told_after("b1") == ["SchedulingGated"]  # by another plugin now
        answers["First"], answers["Second"] = NO_QUOTA, OK
        assert told_after("b2") == []  # by the first again: that was told
        answers["First"] = OK
        assert told_after("b3") == ["FailedScheduling"]  # let in, and refused
        answers["First"] = NO_QUOTA
        assert told_after("b4") == ["SchedulingGated"]  # a new stay
        assert place(sim, "p") == "gated"
        assert sim.why("p") == QUOTA.replace("Quota", "First")


def test_a_plugin_can_keep_the_event_off() -> None:
    log: Log = []
    with world(quota(log, reports_waiting=False)) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == QUOTA
        assert notes(sim, "p") == []
    with world(probe("First", log, permit=Wait(60), reports_waiting=False)) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == "waiting on permit for node a, held by First (at most 1m0s)"
        assert notes(sim, "p") == []


def test_scheduling_gates_are_named_without_an_event() -> None:
    with Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("p", gates=["example.com/quota"]))
        assert sim.why("p") == (
            "gated by the PreEnqueue plugin SchedulingGates:"
            " waiting for scheduling gates: [example.com/quota]"
        )
        assert notes(sim, "p") == []


def test_plugins_that_have_let_the_pod_go_are_not_named_any_more() -> None:
    log: Log = []
    with world(
        probe("First", log, permit=Wait(60)), probe("Second", log, permit=Wait(90)), nodes=["a"]
    ) as sim:
        sim.schedule(pod("p"))
        both = "held by First (at most 1m0s), Second (at most 1m30s)"
        assert sim.why("p") == f"waiting on permit for node a, {both}"
        next(iter(sim.scheduler.waiting)).allow("First")
        sim.settle()
        assert sim.why("p") == "waiting on permit for node a, held by Second (at most 1m30s)"
        next(iter(sim.scheduler.waiting)).allow("Second")
        sim.settle()
        assert sim.why("p") == ""
        assert len(notes(sim, "p")) == 2


@pytest.mark.parametrize("way", ["allow", "reject"])
def test_a_pod_that_is_decided_before_it_waits_says_nothing_of_it(way: str) -> None:
    log: Log = []

    def decide(plugin: Any) -> Status:
        for waiting in plugin.handle.waiting:
            if way == "allow":
                waiting.allow("First")
            else:
                waiting.reject("First", "no")
        return OK

    hasty = probe("First", log, permit=Wait(60), pre_flight=lambda self, *_: decide(self))
    with world(hasty) as sim:
        sim.schedule(pod("p"))
        told = {"allow": "Scheduled", "reject": "FailedScheduling"}[way]
        assert [note.partition(":")[0] for note in notes(sim, "p")] == [told]


def test_a_replica_that_stands_by_reports_nothing_until_it_leads() -> None:
    log: Log = []
    with world(quota(log)) as sim:
        sim.scheduler.hold("another replica is the leader")
        sim.schedule(*[pod(f"p{number}") for number in range(250)])
        sim.delete(pod("p0"))
        sim.advance(10)
        assert sim.why("p1") == QUOTA
        assert sim.events == []
        sim.scheduler.release("another replica is the leader")
        sim.advance(1)
        assert len(sim.events) == 100  # some at a time: the others have Events to write, too
        sim.advance(2)
        assert sorted({event.pod for event in sim.events}) == sorted(
            f"default/p{number}" for number in range(1, 250)
        )
        sim.advance(10)
        assert len(sim.events) == 249


@pytest.mark.parametrize("kind", ["gated", "permit"])
def test_a_cluster_shows_the_event_and_leaves_the_condition_alone(kind: str) -> None:
    log: Log = []
    plugin = quota(log) if kind == "gated" else probe("First", log, permit=Wait(60))
    config = f"""
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {plugin.name}}}]}}}}}}]
    """
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.add_nodes(1)
        sandbox.start_scheduler(config, [plugin])
        sandbox.apply(pod("p"))
        sandbox.advance(5)
        on_permit = "waiting on permit for node node-0, held by First (at most 1m0s)"
        assert sandbox.why("p") == (QUOTA if kind == "gated" else on_permit)
        [event] = sandbox.events("p")
        assert (event.type, event.message) == ("Normal", sandbox.why("p"))
        conditions = sandbox.get("pod", "p")["status"].get("conditions", [])
        assert [one for one in conditions if one["type"] == "PodScheduled"] == []
