"""Pods held at Permit: let go, rejected, timed out, deleted."""

import pytest
from tests.scheduler.recording import Log, Probe, notes, place, probe, reason, rejectors, world

from mooring.framework import OK, Wait
from mooring.framework.handle import WaitingPod
from mooring.simulator import Simulation
from mooring.testing.builders import pod

HELD = "WaitingOnPermit: waiting on permit for node a, held by First (at most 1m0s)"


def held(sim: Simulation) -> WaitingPod:
    [only] = sim.scheduler.waiting
    return only


def test_holds_the_pod_until_it_is_allowed() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60)), probe("Second", log)) as sim:
        sim.schedule(pod("p", cpu=1))
        assert "Second.permit" in log
        assert "First.pre_bind" not in log
        assert place(sim, "p") is None
        assert sim.pod("p").status.nominated_node_name == "a"
        assert sim.scheduler.cache.assumed_count == 1
        waiting = held(sim)
        assert (waiting.pod.name, waiting.node_name) == ("p", "a")
        assert [*waiting.pending_plugins] == ["First"]
        waiting.allow("First")
        sim.settle()
        assert sim.node_of("p") == "a"
        assert list(sim.scheduler.waiting) == []
        sim.advance(100)
        assert notes(sim, "p") == [HELD, "Scheduled: Successfully assigned default/p to a"]


@pytest.mark.parametrize(
    ("timeout", "waited"),
    [(0, "0s"), (0.25, "250ms"), (1.5, "1.5s"), (300, "5m0s"), (7200, "15m0s"), (-5, "0s")],
)
def test_rejects_when_the_time_is_over(timeout: float, waited: str) -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(timeout)), probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        sim.advance(min(max(timeout, 0), 900))
        assert sim.why("p") == (
            "0/1 nodes are available: "
            f"1 rejected due to timeout after waiting {waited} at plugin First."
        )
        assert reason(sim, "p") == "Unschedulable"
        assert place(sim, "p") == "unschedulable"
        assert rejectors(sim, "p") == "First"
        assert log[-2:] == ["Second.unreserve", "First.unreserve"]
        assert sim.scheduler.cache.pod_count == 0
        assert sim.pod("p").status.nominated_node_name == ""


def test_waits_no_longer_than_fifteen_minutes() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(float("inf")))) as sim:
        sim.schedule(pod("p"))
        sim.advance(899)
        assert place(sim, "p") is None
        sim.advance(1)
        assert place(sim, "p") == "unschedulable"


def test_goes_on_only_when_every_holder_agrees() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60)), probe("Second", log, permit=Wait(30))) as sim:
        sim.schedule(pod("p"))
        waiting = held(sim)
        assert [*waiting.pending_plugins] == ["First", "Second"]
        waiting.allow("Second")
        waiting.allow("Stranger")
        sim.advance(45)
        assert [*waiting.pending_plugins] == ["First"]
        assert place(sim, "p") is None
        waiting.allow("First")
        sim.settle()
        assert sim.node_of("p") == "a"


def test_the_shortest_hold_ends_it() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60)), probe("Second", log, permit=Wait(30))) as sim:
        sim.schedule(pod("p"))
        sim.advance(30)
        assert sim.why("p").endswith("after waiting 30s at plugin Second.")
        assert rejectors(sim, "p") == "Second"


def test_the_first_signal_wins() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60)), probe("Second", log, permit=Wait(60))) as sim:
        sim.schedule(pod("p"))
        waiting = held(sim)
        assert waiting.reject("Second", "not today")
        assert not waiting.reject("First", "never")
        waiting.allow("First")
        waiting.allow("Second")
        sim.settle()
        assert sim.why("p") == "0/1 nodes are available: 1 not today."
        assert rejectors(sim, "p") == "Second"


def test_a_rejection_after_the_last_allow_comes_too_late() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60))) as sim:
        sim.schedule(pod("p"))
        waiting = held(sim)
        waiting.allow("First")
        assert not waiting.reject("First", "never")
        sim.settle()
        assert sim.node_of("p") == "a"


def test_another_pod_lets_go_those_that_wait_for_it() -> None:
    log: Log = []

    def gather(self: Probe, state: object, pod: object, node_name: str) -> object:
        others = list(self.handle.waiting)
        if len(others) < 2:
            return Wait(60)
        for other in others:
            other.allow(self.name)
        return OK

    with world(probe("Gang", log, permit=gather)) as sim:
        sim.schedule(pod("one"), pod("two"))
        assert len(sim.scheduler.waiting) == 2
        assert sim.placements() == {"one": "", "two": ""}
        sim.schedule(pod("three"))
        assert all(sim.placements().values())


def test_another_plugin_can_reject_a_pod_that_waits() -> None:
    log: Log = []

    def veto(self: Probe, state: object, pod: object, node_name: str) -> object:
        for other in self.handle.waiting:
            other.reject(self.name, "make room")
        return OK

    with world(probe("First", log, permit=Wait(60))) as sim:
        sim.schedule(pod("p"))
        uid = held(sim).pod.uid
        assert sim.scheduler.waiting.get(uid) is held(sim)
        assert sim.scheduler.waiting.get("stranger") is None
    patient = probe(
        "First", log, permit=lambda self, s, pod, n: Wait(60) if pod.name == "p" else OK
    )
    second = probe("Second", log, reserve=veto)
    with world(patient, second) as sim:
        sim.schedule(pod("p"))
        sim.schedule(pod("q"))
        assert sim.why("p") == "0/1 nodes are available: 1 make room."
        assert rejectors(sim, "p") == "Second"
        assert sim.node_of("q") != ""


def test_a_pod_pushed_aside_for_a_better_one_blames_nobody() -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60))) as sim:
        sim.schedule(pod("p"))
        [waiting] = sim.scheduler.waiting
        assert waiting.preempt("Preemption", "preempted")
        sim.settle()
        assert sim.why("p") == "waiting on permit for pod: preempted"
        assert reason(sim, "p") == "SchedulerError"
        assert place(sim, "p") == "error backoff"


@pytest.mark.parametrize("way", ["deleted", "terminating", "finished"])
def test_a_pod_that_goes_away_while_it_waits_frees_its_place(way: str) -> None:
    log: Log = []
    with world(probe("First", log, permit=Wait(60)), nodes=["a"]) as sim:
        waiter = pod("p", cpu=3)
        sim.schedule(waiter)
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [3000]
        if way == "deleted":
            sim.delete(waiter)
        elif way == "terminating":
            sim.apply(pod("p", cpu=3, uid=waiter.uid, deleting=True))
        else:
            sim.apply(pod("p", cpu=3, uid=waiter.uid, phase="Failed"))
        sim.settle()
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [0]
        assert list(sim.scheduler.waiting) == []
        assert log[-1].endswith("unreserve") or way == "terminating"
        told = ["FailedScheduling: 0/1 nodes are available: 1 removed."]
        told = told if way == "terminating" else []  # the pod is gone, so no Event is written
        assert notes(sim, "p") == [HELD, *told]
        sim.advance(5)
        assert sim.scheduler.queue.where("default/p") is None
        assert log.count("First.permit") == 1


def test_a_waiting_pod_that_leaves_wakes_those_it_kept_out() -> None:
    log: Log = []
    patient = probe(
        "First", log, permit=lambda self, s, pod, n: Wait(60) if pod.name == "p" else OK
    )
    with world(
        patient, nodes=["a"], with_plugins=["PrioritySort", "NodeResourcesFit", "DefaultBinder"]
    ) as sim:
        waiter = pod("p", cpu=3)
        sim.schedule(waiter)
        sim.schedule(pod("q", cpu=3))
        assert place(sim, "q") == "unschedulable"
        sim.delete(waiter)
        sim.settle()
        sim.advance(2)
        assert sim.node_of("q") == "a"


def test_stopping_sends_held_pods_back() -> None:
    log: Log = []
    sim = world(probe("First", log, permit=Wait(60)))
    sim.schedule(pod("p"))
    sim.close()
    assert "First.unreserve" in log
    stopped = "FailedScheduling: 0/1 nodes are available: 1 the scheduler is stopping."
    assert notes(sim, "p") == [HELD, stopped]
