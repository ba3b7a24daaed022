"""Preemptors whose victims go at once are reported only if they still wait afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs
from tests.scheduler.recording import Log, notes, probe, reason, world
from tests.scheduler.test_evict import FIT, Server

import mooring.framework as fw
from mooring.scheduler.failure import LONGEST_PUT_OFF
from mooring.simulator import Simulation
from mooring.testing.builders import pod

PREEMPTING = (*FIT, "DefaultPreemption")
VIP = pod("vip", uid="vip-uid", cpu=4, priority=5)


class Writes(Server):
    """Also writes down the status patches of the preemptor."""

    async def patch_pod_status(self, pod: fw.Pod, *written: Any) -> None:
        if pod.name == "vip":
            condition, nominated = written
            self.asked.append(f"report {condition.reason if condition else None} {nominated!r}")
        await super().patch_pod_status(pod, *written)

    @property
    def reports(self) -> Log:
        return [one.removeprefix("report ") for one in self.asked if one.startswith("report")]


def resident(name: str, grace: int | None = 0, finalizers: tuple[str, ...] = ()) -> fw.Pod:
    api = pod(name, uid=name, cpu=4, on="a").api
    spec = structs.replace(api.spec, termination_grace_period_seconds=grace)
    meta = structs.replace(api.metadata, finalizers=finalizers)
    return fw.Pod(structs.replace(api, spec=spec, metadata=meta))


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with world(nodes=["a"], with_plugins=PREEMPTING) as sim:
        yield sim


@pytest.fixture
def server(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> Writes:
    return Writes(sim, monkeypatch)


def test_a_pod_that_is_bound_once_its_victim_is_gone_is_not_reported(
    sim: Simulation, server: Writes
) -> None:
    sim.apply(resident("v1"))
    sim.schedule(VIP)
    assert sim.node_of("vip") == "a"
    assert server.reports == []
    assert [note.partition(":")[0] for note in notes(sim, "vip")] == [
        "FailedScheduling",
        "Scheduled",
    ]
    sim.advance(5)
    assert server.reports == []


@pytest.mark.parametrize(
    "victim", [resident("v1", grace=30), resident("v1", finalizers=("example.com/wait",))]
)
def test_the_nomination_is_written_at_once_if_the_victim_takes_time_to_go(
    sim: Simulation, server: Writes, victim: fw.Pod
) -> None:
    sim.apply(victim)
    server.hold("v1")
    sim.schedule(VIP)
    assert server.reports == ["Unschedulable 'a'"]


def test_nothing_is_written_while_the_deletion_is_under_way(
    sim: Simulation, server: Writes
) -> None:
    sim.apply(resident("v1"))
    server.hold("v1")
    sim.schedule(VIP)
    sim.advance(LONGEST_PUT_OFF - 1)
    assert server.reports == []
    assert sim.scheduler.queue.nominator.node_of("vip-uid") == "a"
    server.let_go("v1")
    assert sim.node_of("vip") == "a"
    assert server.reports == []


def test_a_deletion_without_an_answer_does_not_hide_why_the_pod_waits(
    sim: Simulation, server: Writes
) -> None:
    sim.apply(resident("v1"))
    server.hold("v1")
    sim.schedule(VIP)
    sim.advance(LONGEST_PUT_OFF + 2)
    assert server.reports == ["Unschedulable 'a'"]
    sim.advance(60)
    assert len(server.reports) == 1


def test_the_next_attempt_that_fails_is_reported_instead(sim: Simulation, server: Writes) -> None:
    sim.apply(resident("v1"))
    server.refused.add("v1")
    sim.schedule(VIP)
    sim.advance(30)
    assert len(sim.attempts) == 4
    assert server.reports == ["Unschedulable None"]  # preemption is put off, nothing is nominated


@pytest.fixture
def unseen(sim: Simulation, server: Writes, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """The victim is deleted, but the watch does not show it."""
    monkeypatch.setattr(sim.cluster, "delete_pod", _nothing)
    sim.apply(resident("v1"))
    sim.schedule(VIP)
    assert server.reports == []
    return sim


def test_a_pod_whose_victim_stays_is_reported_at_the_second_look(
    unseen: Simulation, server: Writes
) -> None:
    unseen.advance(1)
    assert server.reports == []
    unseen.advance(1)
    assert server.reports == ["Unschedulable 'a'"]
    assert reason(unseen, "vip") == "Unschedulable"
    unseen.advance(10)
    assert len(server.reports) == 1


def test_a_pod_that_is_deleted_meanwhile_is_not_reported(
    unseen: Simulation, server: Writes
) -> None:
    unseen.delete(VIP)
    unseen.advance(5)
    assert server.reports == []


def test_nothing_is_written_about_another_pod_of_the_same_name(
    unseen: Simulation, server: Writes
) -> None:
    unseen.delete(VIP)
    unseen.schedule(pod("vip", uid="another", cpu=9))
    unseen.advance(5)
    assert server.reports == ["Unschedulable None"]


def test_a_pod_that_waits_at_permit_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = probe("Waits", [], permit=fw.Wait(60))
    with world(waits, nodes=["a"], with_plugins=PREEMPTING) as sim:
        server = Writes(sim, monkeypatch)
        sim.apply(resident("v1"))
        sim.schedule(VIP)
        assert sim.scheduler.cache.is_assumed("vip-uid")
        sim.advance(5)
        assert server.reports == ["None 'a'"]  # announced, because Permit may take long


def test_looks_at_a_node_first_whose_nomination_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: Log = []

    def prefer_b(self: Any, state: Any, pod: Any, node: fw.Node) -> int:
        return 100 if node.name == "b" else 0

    def nominate_a(self: Any, state: Any, pod: Any, nodes: fw.Nodes, verdicts: Any) -> Any:
        victims = [other for other in nodes[0].pods if other.name == "v1"]
        return fw.Nominate("a", victims=tuple(victims))

    answers = {"score": prefer_b, "post_filter": nominate_a, "wakes_on": (fw.Event.POD_DELETED,)}
    plugin = probe("First", log, **answers)
    with world(plugin, nodes=["a", "b"], with_plugins=FIT) as sim:
        full = pod("full", uid="full", on="b", cpu=4)
        sim.apply(resident("v1"), full)
        monkeypatch.setattr(sim.cluster, "delete_pod", _nothing)
        sim.schedule(VIP)
        assert sim.pod("vip").status.nominated_node_name == ""
        sim.delete(full)
        sim.delete(resident("v1"))
        sim.settle()
        assert sim.node_of("vip") == "a"
        assert sim.attempts[-1].decision.is_nominated


async def _nothing(victim: fw.Pod) -> None:
    """Deletes nothing."""
