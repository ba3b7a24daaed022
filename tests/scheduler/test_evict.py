"""Evictions in the background: their order, the gate meanwhile, and what can go wrong."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from tests.scheduler.recording import FRAME, Log, notes, place, probe, rejectors, world

import mooring.framework as fw
from mooring.api.meta import Condition
from mooring.errors import ApiError
from mooring.framework import Nominate
from mooring.scheduler import evict
from mooring.scheduler.evict import WAITING
from mooring.simulator import Simulation
from mooring.testing.builders import pod

FIT = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")
GONE = (fw.Event.POD_DELETED,)


def choose(self: Any, state: Any, pod: fw.Pod, nodes: fw.Nodes, verdicts: Any) -> Any:
    """Every pod whose name begins with v is a victim of the pod named vip."""
    victims = [other for other in nodes[0].pods if other.name.startswith("v")]
    if pod.name != "vip" or not victims:
        return fw.Status.unschedulable("nobody to evict")
    return Nominate("a", victims=tuple(sorted(victims, key=lambda victim: victim.name)))


class Server:
    """The API server in front of a simulation's cluster: writes down what it is asked.

    Deletions of pods in `held` wait until they are let go; those in `refused` fail.
    """

    def __init__(self, sim: Simulation, patch: pytest.MonkeyPatch) -> None:
        self.asked: Log = []
        self.refused: set[str] = set()
        self.held: dict[str, asyncio.Future[None]] = {}
        self._sim = sim
        self._delete = sim.cluster.delete_pod
        self._patch = sim.cluster.patch_pod_status
        patch.setattr(sim.cluster, "delete_pod", self.delete_pod)
        patch.setattr(sim.cluster, "patch_pod_status", self.patch_pod_status)

    def hold(self, *names: str) -> None:
        self.held |= {name: self._sim.loop.create_future() for name in names}

    def let_go(self, name: str) -> None:
        self.held.pop(name).set_result(None)
        self._sim.settle()

    async def delete_pod(self, pod: fw.Pod) -> None:
        self.asked.append(f"delete {pod.name}")
        if pod.name in self.held:
            await self.held[pod.name]
        if pod.name in self.refused:
            raise ApiError("no")
        await self._delete(pod)

    async def patch_pod_status(
        self, pod: fw.Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        if condition is not None and condition.type == "DisruptionTarget":
            self.asked.append(f"mark {pod.name}")
        elif pod.name != "vip":
            self.asked.append(f"patch {pod.name} {nominated_node!r}")
        if f"status of {pod.name}" in self.refused:
            raise ApiError("no")
        await self._patch(pod, condition, nominated_node)


FullNode = Callable[..., tuple[Simulation, Server]]


@pytest.fixture
def full_node(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Builds a node "a" full of these pods, with a plugin that chooses victims."""
    sims: list[Simulation] = []

    def build(*residents: fw.Pod, **about: Any) -> tuple[Simulation, Server]:
        log: Log = []
        chooser = probe("Chooser", log, post_filter=choose, **{"wakes_on": GONE, **about})
        sim = world(chooser, nodes=["a"], with_plugins=FIT)
        sims.append(sim)
        sim.apply(*residents)
        return sim, Server(sim, monkeypatch)

    yield build
    for sim in sims:
        sim.close()


def small(name: str, **about: Any) -> fw.Pod:
    return pod(name, on="a", **{"cpu": 1, **about})


VIP = pod("vip", uid="vip-uid", cpu=4, priority=5)


def test_marks_then_deletes_all_at_once_but_the_last(full_node: FullNode) -> None:
    sim, server = full_node(*map(small, ("v1", "v2", "v3")))
    server.hold("v1", "v2", "v3")
    sim.schedule(VIP)
    assert server.asked == ["mark v1", "delete v1", "mark v2", "delete v2"]
    server.let_go("v2")
    assert len(server.asked) == 4
    server.let_go("v1")
    assert server.asked[4:] == ["mark v3", "delete v3"]
    server.let_go("v3")
    assert sim.node_of("vip") == "a"
    assert notes(sim, "v3") == ["Preempted: Preempted by pod vip-uid on node a"]


def test_gates_the_pod_until_the_last_victim_goes(full_node: FullNode) -> None:
    sim, server = full_node(*map(small, ("v1", "v2", "v3")))
    server.hold("v2", "v3")
    sim.schedule(VIP)
    assert sim.where("vip") == "gated"  # woken by the end of v1
    assert rejectors(sim, "vip") == "Chooser NodeResourcesFit"
    gate = sim.scheduler._gate(VIP, "")
    assert gate == WAITING.by("Chooser")
    assert gate.message == "waiting for the preemption for this pod to be finished"
    assert gate.code is fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    sim.advance(600)
    assert len(sim.attempts) == 1
    server.let_go("v2")
    assert sim.where("vip") == "gated"
    assert sim.scheduler._evictor.shut() == {VIP.uid}
    server.let_go("v3")
    assert sim.node_of("vip") == "a"
    assert len(sim.attempts) == 2
    assert not sim.scheduler._evictor.shut()


@pytest.mark.parametrize("how", ["gone", "terminating"])
def test_opens_the_gate_as_soon_as_the_watch_shows_the_end(full_node: FullNode, how: str) -> None:
    sim, server = full_node(small("v1", cpu=4))
    server.hold("v1")
    sim.schedule(VIP)
    vip = fw.Pod(sim.pod("vip"))
    assert not sim.scheduler._gate(vip, "").ok
    uid = sim.pod("v1").metadata.uid
    for labels in ({}, {"app": "web"}):  # changes that are not the end
        sim.apply(small("v1", uid=uid, cpu=4, labels=labels))
        assert sim.scheduler._evictor.shut() == {vip.uid}
    victim = small("v1", uid=uid, cpu=4, deleting=True)
    (sim.delete if how == "gone" else sim.apply)(victim)
    assert sim.scheduler._gate(vip, "").ok
    assert not sim.scheduler._evictor.shut()
    sim.settle()
    assert sim.node_of("vip") == ("a" if how == "gone" else "")
    server.let_go("v1")
    assert sim.node_of("vip") == "a"


def test_a_victim_without_a_grace_period_shuts_the_gate_until_it_is_gone(
    full_node: FullNode,
) -> None:
    """Its room is there in a moment: an attempt before that, for which any event is good, fails."""
    sim, server = full_node(small("v1", cpu=4))
    server.hold("v1")
    sim.schedule(VIP)
    vip = fw.Pod(sim.pod("vip"))
    victim = small("v1", uid=sim.pod("v1").metadata.uid, cpu=4, deleting=True).api
    going = structs.replace(victim.metadata, deletion_grace_period_seconds=0)
    sim.apply(fw.Pod(structs.replace(victim, metadata=going)))
    assert not sim.scheduler._gate(vip, "").ok
    sim.delete(victim)
    sim.settle()
    assert sim.node_of("vip") == "a"
    assert len(sim.attempts) == 2


def test_a_preemptor_is_gated_without_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its condition and the Events of its victims say what it waits for."""
    with world(nodes=["a"], with_plugins=(*FIT, "DefaultPreemption")) as sim:
        sim.apply(*map(small, ("v1", "v2", "v3", "v4")))
        server = Server(sim, monkeypatch)
        server.hold("v4")
        sim.schedule(VIP)
        assert sim.where("vip") == "gated"
        assert [note.partition(":")[0] for note in notes(sim, "vip")] == ["FailedScheduling"]
        server.let_go("v4")
        assert sim.node_of("vip") == "a"


@pytest.fixture
def two_full_nodes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One eviction at a time, for "first" and "second", which each need the room of one of two."""
    monkeypatch.setattr(evict, "AT_A_TIME", 1)
    with world(nodes=["a", "b"], with_plugins=(*FIT, "DefaultPreemption")) as sim:
        sim.apply(pod("v1", on="a", cpu=4), pod("v2", on="b", cpu=4, priority=1))
        server = Server(sim, monkeypatch)
        server.hold("v1", "v2")
        sim.apply(pod("first", cpu=4, priority=6), pod("second", cpu=4, priority=5))
        sim.settle()
        yield sim, server


def test_preemptors_have_their_room_in_the_order_of_their_attempts(
    two_full_nodes: tuple[Simulation, Server],
) -> None:
    sim, server = two_full_nodes
    assert [pod for pod in server.asked if pod.startswith("delete")] == ["delete v1"]
    server.let_go("v1")
    assert sim.node_of("first") == "a"
    assert server.asked[-1] == "delete v2"
    server.let_go("v2")
    assert sim.node_of("second") == "b"


def test_evicts_nothing_for_a_preemptor_that_is_deleted_before_its_turn(
    two_full_nodes: tuple[Simulation, Server],
) -> None:
    sim, server = two_full_nodes
    sim.delete(pod("second"))
    server.let_go("v1")
    assert sim.node_of("first") == "a"
    assert sim.node_of("v2") == "b"
    assert not sim.scheduler._evictor.shut()
    assert sim.scheduler.metrics.preemption_tasks.labels("error").value == 0


def test_a_pod_is_not_forgotten_at_the_gate(full_node: FullNode) -> None:
    sim, server = full_node(*map(small, ("v1", "v2", "v3")), wakes_on=())
    server.hold("v2")
    sim.schedule(VIP)
    assert sim.where("vip") == "gated"
    sim.delete(small("v3"))  # somebody else is faster, and the gate is still shut
    sim.advance(5)
    assert sim.where("vip") == "gated"
    server.let_go("v2")
    assert sim.node_of("vip") == "a"
    assert notes(sim, "v3") == []


def test_skips_victims_that_are_leaving_already(full_node: FullNode) -> None:
    sim, server = full_node(small("v1", deleting=True), small("v2"))
    sim.schedule(VIP)
    assert server.asked == ["mark v2", "delete v2"]
    assert sim.scheduler.metrics.preemption_victims.labels().total == 2


def test_waits_for_nobody_if_all_are_leaving(full_node: FullNode) -> None:
    sim, server = full_node(small("v1", deleting=True))
    sim.schedule(VIP)
    assert server.asked == []
    assert sim.scheduler._gate(VIP, "").ok
    assert sim.scheduler.metrics.preemption_victims.labels().count == 0


def test_does_not_mark_a_pod_twice(full_node: FullNode) -> None:
    sim, server = full_node(small("v1", cpu=4))
    server.refused = {"v1"}
    server.hold("v1")
    sim.schedule(VIP)
    server.held.pop("v1").set_result(None)
    server.hold("v1")  # the next try
    sim.settle()
    assert server.asked == ["mark v1", "delete v1", "delete v1"]


def test_tries_again_when_a_deletion_fails(full_node: FullNode) -> None:
    sim, server = full_node(*map(small, ("v1", "v2", "v3")))
    server.refused = {"v1"}
    server.hold("v1")
    sim.schedule(VIP)
    assert len(sim.attempts) == 1
    server.held.pop("v1").set_result(None)
    server.hold("v1")  # the next try
    sim.settle()
    assert len(sim.attempts) == 2
    assert "delete v3" not in server.asked[:4]
    server.refused.clear()
    server.let_go("v1")
    sim.advance(5)
    assert sim.node_of("vip") == "a"


def test_tries_again_when_a_mark_fails(
    full_node: FullNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim, server = full_node(small("v1", cpu=4))
    server.refused = {"status of v1"}
    attempts: list[object] = []

    def watch(attempt: object) -> None:
        attempts.append(attempt)
        if len(attempts) == 3:
            server.refused.clear()

    monkeypatch.setattr(sim.scheduler._attempts, "_on_attempt", watch)
    sim.schedule(VIP)
    assert server.asked == ["mark v1", "mark v1", "mark v1", "delete v1"]
    assert sim.node_of("vip") == "a"


def test_survives_what_nobody_expected(
    full_node: FullNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sim, server = full_node(small("v1", cpu=4))
    real = server.delete_pod
    calls: Log = []

    async def broken(victim: fw.Pod) -> None:
        calls.append(victim.name)
        if len(calls) == 1:
            raise RuntimeError("surprise")
        await real(victim)

    monkeypatch.setattr(sim.cluster, "delete_pod", broken)
    sim.schedule(VIP)
    assert "evicting broke" in caplog.text
    assert sim.node_of("vip") == "a"


def test_withdraws_the_nominations_of_lesser_pods(full_node: FullNode) -> None:
    sim, server = full_node(small("v1", cpu=4))
    server.hold("v1")
    for waiting in (
        pod("lesser", nominated="a", priority=1, scheduler="other"),
        pod("greater", nominated="a", priority=9, scheduler="other"),
        pod("elsewhere", nominated="b", priority=1, scheduler="other"),
        pod("unaware", priority=1, scheduler="other"),
    ):
        sim.apply(waiting)
        sim.scheduler.queue.nominator.nominate(waiting, waiting.nominated_node_name or "a")
    sim.schedule(VIP)
    assert server.asked == ["patch lesser ''", "mark v1", "delete v1"]
    assert sim.pod("lesser").status.nominated_node_name == ""
    assert sim.pod("greater").status.nominated_node_name == "a"


def test_goes_on_if_a_nomination_cannot_be_withdrawn(full_node: FullNode) -> None:
    sim, server = full_node(small("v1", cpu=4))
    server.refused = {"status of lesser"}
    sim.scheduler.queue.nominator.nominate(pod("lesser", nominated="a", priority=1), None)
    sim.schedule(VIP)
    assert server.asked == ["patch lesser ''", "mark v1", "delete v1"]
    assert sim.node_of("vip") == "a"


def test_counts_victims_and_attempts(full_node: FullNode) -> None:
    sim, _ = full_node(*map(small, ("v1", "v2", "v3")))
    sim.schedule(VIP)
    sim.schedule(pod("hopeless", cpu=99))
    metrics = sim.scheduler.metrics
    assert metrics.preemption_attempts.name == "scheduler_preemption_attempts_total"
    assert metrics.preemption_attempts.labels().value == 2
    victims = metrics.preemption_victims.labels()
    assert (victims.count, victims.total) == (1, 3)
    assert victims.bounds == (1, 2, 4, 8, 16, 32, 64)


def test_evicts_nobody_without_a_nomination() -> None:
    log: Log = []
    with world(
        probe("First", log, filter=fw.Status.unschedulable("no")), with_plugins=FRAME
    ) as sim:
        sim.schedule(pod("p"))
        assert place(sim, "p") == "unschedulable"
        assert sim.scheduler.metrics.preemption_victims.labels().count == 0
