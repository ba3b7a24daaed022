"""Preemption in a simulation: placements, events and messages."""

from typing import Any

import pytest
from msgspec import structs
from tests.preemption.builders import budget, runs
from tests.scheduler.recording import Log, notes, place, probe

import mooring.framework as fw
from mooring.api import core
from mooring.framework.plugin import Base
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod

WEB = {"app": "web"}
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def world(*nodes: str, **about: Any) -> Simulation:
    """The default plugins on nodes of 4 CPUs."""
    sim = Simulation(**about)
    sim.apply(*(node(name, cpu=4) for name in nodes))
    return sim


def test_the_more_important_pod_gets_the_place() -> None:
    with world("a") as sim:
        sim.apply(runs("victim", cpu=3, on="a"), runs("bystander", cpu=1, on="a", priority=9))
        sim.schedule(pod("vip", uid="vip-uid", cpu=2, priority=5))
        assert sim.placements() == {"bystander": "a", "vip": "a"}
        assert notes(sim, "victim") == ["Preempted: Preempted by pod vip-uid on node a"]
        assert notes(sim, "vip") == [
            f"FailedScheduling: {FULL}",
            "Scheduled: Successfully assigned default/vip to a",
        ]
        [event] = [e for e in sim.events if e.reason == "Preempted"]
        assert (event.type, event.action) == ("Normal", "Preempting")
        first, second = sim.attempts
        assert first.decision.nominate == "a"
        assert second.decision.node_name == "a"


def test_says_why_nobody_could_be_evicted() -> None:
    with world("a") as sim:
        sim.apply(runs("equal", cpu=4, on="a", priority=5))
        sim.schedule(pod("p", cpu=2, priority=5))
        assert sim.why("p") == (
            f"{FULL} no new claims to deallocate, preemption: 0/1 nodes are available:"
            " 1 No preemption victims found for incoming pod."
        )
        assert sim.where("p") == "unschedulable"


def graceful(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted pods terminate for a while, as with a kubelet; `sim.delete` ends them."""

    def terminating(victim: fw.Pod) -> core.Pod:
        current = sim.cluster.pod(victim.key)
        meta = structs.replace(current.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        return structs.replace(current, metadata=meta)

    async def delete(victim: fw.Pod) -> None:
        sim.cluster._publish(terminating(victim))

    monkeypatch.setattr(sim.cluster, "delete_pod", delete)


def test_keeps_its_nomination_while_the_victims_terminate(monkeypatch: pytest.MonkeyPatch) -> None:
    with world("a") as sim:
        graceful(sim, monkeypatch)
        victim = runs("victim", cpu=4, on="a")
        sim.apply(victim)
        sim.schedule(pod("vip", cpu=2, priority=5))
        assert sim.pod("vip").status.nominated_node_name == "a"
        [target] = sim.pod("victim").status.conditions
        assert (target.type, target.status) == ("DisruptionTarget", "True")
        assert target.reason == "PreemptionByScheduler"
        assert target.message == (
            "default-scheduler: preempting to accommodate a higher priority pod"
        )
        # Neither equals nor lesser pods get what is being cleared; time brings no more victims.
        sim.schedule(pod("equal", cpu=3, priority=5), pod("lesser", cpu=1, priority=4))
        sim.advance(400)
        assert len([e for e in sim.events if e.reason == "Preempted"]) == 1
        assert sim.why("vip") == (
            f"{FULL} no new claims to deallocate,"
            " preemption: not eligible due to a terminating pod on the nominated node."
        )
        assert sim.pod("vip").status.nominated_node_name == "a"
        sim.delete(victim)
        sim.advance(15)
        assert sim.node_of("vip") == "a"
        assert sim.pod("vip").status.nominated_node_name == ""
        assert sim.node_of("equal") == ""


def test_lesser_pods_cannot_steal_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with world("a") as sim:
        graceful(sim, monkeypatch)
        victim = runs("victim", cpu=4, on="a")
        sim.apply(victim)
        sim.schedule(pod("vip", cpu=4, priority=5))
        sim.schedule(pod("thief", cpu=1, priority=1))
        sim.delete(victim)
        sim.schedule(pod("late thief", cpu=1, priority=1))
        sim.advance(30)
        assert sim.node_of("vip") == "a"
        assert (sim.node_of("thief"), sim.node_of("late thief")) == ("", "")


def test_takes_no_further_victims_before_the_first_are_seen_to_leave() -> None:
    with world("a", "b") as sim:
        sim.apply(*(runs(f"{on}{i}", on=on) for on in "ab" for i in range(4)))
        sim.schedule(pod("restless", cpu=4), pod("sleepless", cpu=4))  # woken by every eviction
        sim.schedule(pod("vip", cpu=3, priority=5))
        assert sim.node_of("vip")
        assert len([e for e in sim.events if e.reason == "Preempted"]) == 3
        assert len([a for a in sim.attempts if a.pod.name == "vip"]) == 2


def test_prefers_victims_whose_budget_allows_it() -> None:
    with world("a", "b") as sim:
        sim.apply(budget("web", 0, WEB), budget("other", 1, {"app": "other"}))
        sim.apply(runs("web", cpu=4, on="a", labels=WEB, priority=-1))
        sim.apply(runs("other", cpu=4, on="b", labels={"app": "other"}, priority=1))
        sim.schedule(pod("vip", cpu=2, priority=5))
        assert sim.placements() == {"web": "a", "vip": "b"}


def test_breaks_a_budget_if_there_is_no_other_way() -> None:
    with world("a") as sim:
        sim.apply(budget("web", 0, WEB), runs("web", cpu=4, on="a", labels=WEB))
        sim.schedule(pod("vip", cpu=2, priority=5))
        assert sim.placements() == {"vip": "a"}


def test_never_means_never() -> None:
    with world("a") as sim:
        sim.apply(runs("resident", cpu=4, on="a"))
        sim.schedule(pod("modest", cpu=2, priority=5, spec={"preemptionPolicy": "Never"}))
        assert sim.why("modest") == (
            f"{FULL} no new claims to deallocate,"
            " preemption: not eligible due to preemptionPolicy=Never."
        )
        assert sim.node_of("resident") == "a"


TELL_IT_OTHERWISE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {preemptForeignPods: true}
"""


def test_leaves_the_pods_of_other_schedulers_alone() -> None:
    theirs, vip = runs("theirs", cpu=4, on="a", scheduler="theirs"), pod("vip", cpu=2, priority=5)
    with world("a") as sim:
        sim.apply(theirs)
        sim.schedule(vip)
        assert sim.placements() == {"theirs": "a", "vip": ""}
    with world("a", config=TELL_IT_OTHERWISE) as sim:
        sim.apply(theirs)
        sim.schedule(vip)
        assert sim.placements() == {"vip": "a"}


# --- victims that are not bound yet ----------------------------------------------------------


ONE_PLUGIN_MORE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Slow}]}}
"""


def slow(method: str, answer: Any) -> type[Base]:
    """A plugin that has something special to say about the pod "victim"."""
    log: Log = []

    def usual(self: Any, state: Any, pod: fw.Pod, node_name: str) -> Any:
        return answer() if pod.name == "victim" else fw.OK

    return probe("Slow", log, **{method: usual})


def test_takes_the_place_of_a_pod_that_waits_for_permission() -> None:
    held = slow("permit", lambda: fw.Wait(600))
    with world("a", config=ONE_PLUGIN_MORE, plugins=[held]) as sim:
        sim.schedule(pod("victim", cpu=3))
        assert len(list(sim.scheduler.waiting)) == 1
        sim.schedule(pod("vip", uid="vip-uid", cpu=2, priority=5))
        assert sim.placements() == {"victim": "", "vip": "a"}
        assert sim.why("victim") != ""
        suffix = "Preempted by pod vip-uid on node a (in kube-scheduler memory)."
        assert notes(sim, "victim")[:3] == [
            "WaitingOnPermit: waiting on permit for node a, held by Slow (at most 10m0s)",
            f"Preempted: {suffix}",
            "FailedScheduling: waiting on permit for pod: preempted",
        ]
        assert not list(sim.scheduler.waiting)


def test_does_not_wait_for_a_victim_that_returns_to_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be assumed on another node before the preemptor is tried again, and never be gone."""
    held = slow("permit", lambda: fw.Wait(600))
    with world("a", config=ONE_PLUGIN_MORE, plugins=[held]) as sim:
        scheduler, seen = sim.scheduler, []
        evictor = scheduler._evictor
        record = evictor._recorder.event

        def event(about: fw.Pod, kind: str, reason: str, *rest: Any) -> None:
            if reason == "Preempted":
                seen.append((scheduler.cache.get_pod(about.uid) is not None, set(evictor.shut())))
            record(about, kind, reason, *rest)

        monkeypatch.setattr(evictor._recorder, "event", event)
        sim.schedule(pod("victim", cpu=3))
        sim.schedule(pod("vip", cpu=2, priority=5))
        assert seen == [(True, set())]  # still assumed, and nothing is waited for


def test_takes_the_place_of_a_pod_in_pre_bind() -> None:
    async def long() -> fw.Status:
        await sim.clock.sleep(600)
        return fw.OK

    with world("a", config=ONE_PLUGIN_MORE, plugins=[slow("pre_bind", long)]) as sim:
        sim.schedule(pod("victim", cpu=3))
        assert sim.pod("victim").status.nominated_node_name == "a"
        sim.schedule(pod("vip", uid="vip-uid", cpu=2, priority=5))
        assert sim.placements() == {"victim": "", "vip": "a"}
        suffix = "Preempted by pod vip-uid on node a (in kube-scheduler memory)."
        assert notes(sim, "victim")[:2] == [
            f"Preempted: {suffix}",
            "FailedScheduling: preempted by DefaultPreemption",
        ]
        assert sim.pod("victim").status.nominated_node_name == ""
        sim.delete(pod("vip"))
        sim.advance(700)
        assert place(sim, "victim") == "a"


def test_a_plugin_that_does_not_listen_changes_nothing() -> None:
    async def deaf() -> fw.Status:
        try:
            await sim.clock.sleep(600)
        except BaseException:
            return fw.OK
        return fw.OK

    with world("a", config=ONE_PLUGIN_MORE, plugins=[slow("pre_bind", deaf)]) as sim:
        sim.schedule(pod("victim", cpu=3))
        sim.schedule(pod("vip", cpu=2, priority=5))
        assert sim.placements() == {"victim": "", "vip": "a"}


def test_deletes_a_pod_whose_binding_has_begun() -> None:
    async def long() -> fw.Status:
        await sim.clock.sleep(600)
        return fw.SKIP

    bound = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Slow}]}
    bind: {enabled: [{name: Slow}]}
"""

    def answer(self: Any, state: Any, pod: fw.Pod, node_name: str) -> Any:
        return long() if pod.name == "victim" else fw.SKIP

    with world("a", config=bound, plugins=[probe("Slow", [], bind=answer)]) as sim:
        sim.schedule(pod("victim", cpu=3))
        sim.schedule(pod("vip", uid="vip-uid", cpu=2, priority=5))
        assert sim.placements() == {"vip": "a"}
        assert notes(sim, "victim") == ["Preempted: Preempted by pod vip-uid on node a"]
