"""Another scheduler, or an operator, changes what a pod on its way was promised."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.scheduler.recording import HEADER

import mooring.framework as fw
from mooring.cache.node import Node
from mooring.scheduler.cluster import CONGESTED
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod


class Doorman(fw.Permit):
    """Holds every pod until the test lets it go: time for others to act."""

    name = "Doorman"

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.Wait:
        return fw.Wait(600)


class Devices(fw.Filter, fw.Reserve, Doorman):
    """Keeps accounts of its own: one pod per node, from Reserve on."""

    name = "Devices"
    TAKEN = fw.Status.unschedulable("device taken")

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.taken: set[str] = set()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: Node) -> fw.Status:
        return self.TAKEN if node.name in self.taken else fw.OK

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        self.taken.add(node_name)
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.taken.discard(node_name)


@contextmanager
def held_on_its_way(plugin: type[fw.Permit] = Doorman, *nodes: object) -> Iterator[Simulation]:
    config = (
        f"{HEADER}profiles: [{{schedulerName: default-scheduler,"
        f" plugins: {{multiPoint: {{enabled: [{{name: {plugin.name}}}]}}}}}}]"
    )
    with Simulation(config=config, plugins=[plugin]) as sim:
        sim.apply(*(nodes or (node("a", cpu=4),)))
        sim.schedule(pod("ours", cpu=3))
        yield sim


def let_go(sim: Simulation) -> None:
    for waiting in sim.scheduler.waiting:
        for plugin in waiting.pending_plugins:
            waiting.allow(plugin)
    sim.settle()


def conflicts(sim: Simulation) -> dict[str, float]:
    return {kind: child.value for (kind,), child in sim.scheduler.metrics.conflicts if child.value}


def test_binds_without_another_look_when_nobody_came_between() -> None:
    with held_on_its_way() as sim:
        let_go(sim)
        assert sim.node_of("ours") == "a"
        assert conflicts(sim) == {}


def test_does_not_bind_to_a_node_that_another_scheduler_has_filled() -> None:
    with held_on_its_way() as sim:
        sim.apply(pod("theirs", cpu=2, on="a", scheduler="other"))
        let_go(sim)
        assert sim.node_of("ours") == ""
        assert sim.scheduler.cache.assumed_count == 0
        assert "node a changed while the pod was on its way there: Insufficient cpu" in sim.why(
            "ours"
        )
        # Theirs arrived on a node that our assumption had filled; then ours was held back.
        assert conflicts(sim) == {"overcommitted": 1, "recheck": 1}


@pytest.mark.parametrize(("why", "counted"), [(CONGESTED, {"overcommitted": 1.0}), ("", {})])
def test_counts_conflicts_while_binds_pile_up_and_not_while_another_leads(
    why: str, counted: dict[str, float]
) -> None:
    with Simulation() as sim:
        sim.apply(node("a", cpu=4), pod("ours", cpu=3, on="a"))
        sim.scheduler.hold(why or "another replica is the leader")
        sim.apply(pod("theirs", cpu=2, on="a", scheduler="other"))
        assert conflicts(sim) == counted


def test_goes_to_another_node_after_that() -> None:
    with held_on_its_way() as sim:
        sim.apply(pod("theirs", cpu=2, on="a", scheduler="other"))
        let_go(sim)
        sim.apply(node("b", cpu=4))
        sim.advance(2)
        let_go(sim)
        assert sim.node_of("ours") == "b"


def test_binds_beside_a_foreign_pod_that_leaves_room() -> None:
    with held_on_its_way() as sim:
        sim.apply(pod("theirs", cpu=1, on="a", scheduler="other"))
        let_go(sim)
        assert sim.node_of("ours") == "a"
        assert conflicts(sim) == {}


@pytest.mark.parametrize(
    "changed",
    [
        node("a", cpu=4, taints=["drained=yes:NoSchedule"]),
        node("a", cpu=2),
        node("a", cpu=4, unschedulable=True),
    ],
    ids=["tainted", "smaller", "cordoned"],
)
def test_does_not_bind_to_a_node_that_was_changed_against_it(changed: Node) -> None:
    with held_on_its_way() as sim:
        sim.apply(changed.api)
        let_go(sim)
        assert sim.node_of("ours") == ""
        assert conflicts(sim) == {"recheck": 1}


def test_does_not_bind_to_a_node_that_is_gone() -> None:
    with held_on_its_way() as sim:
        sim.delete(sim.cluster.node("a"))
        let_go(sim)
        assert "the node is gone" in sim.why("ours")


def test_takes_no_second_look_for_a_heartbeat() -> None:
    with held_on_its_way() as sim:
        touched = sim.scheduler.cache.last_touch("a")
        sim.apply(sim.cluster.node("a"))
        assert sim.scheduler.cache.last_touch("a") == touched


def test_does_not_mistake_its_own_reservation_for_somebody_elses() -> None:
    with held_on_its_way(Devices) as sim:
        sim.apply(pod("theirs", cpu=1, on="a", scheduler="other"))
        let_go(sim)
        assert sim.node_of("ours") == "a"


def test_does_not_mistake_itself_for_a_neighbour_it_must_avoid() -> None:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "shy"}},
    }
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    shy = pod("shy", cpu=1, labels={"app": "shy"}, affinity=away)
    with held_on_its_way() as sim:
        let_go(sim)
        sim.schedule(shy)
        sim.apply(pod("theirs", on="a", scheduler="other"))
        let_go(sim)
        assert sim.node_of("shy") == "a"


def test_decides_nothing_while_it_is_held() -> None:
    with Simulation() as sim:
        sim.scheduler.hold("not the leader")
        sim.scheduler.hold("too many binds")
        sim.apply(node("a", cpu=4))
        sim.schedule(pod("p"))
        assert sim.node_of("p") == ""
        sim.scheduler.release("not the leader")
        sim.settle()
        assert sim.node_of("p") == ""
        assert sim.scheduler.holds == {"too many binds"}
        sim.scheduler.release("too many binds")
        sim.settle()
        assert sim.node_of("p") == "a"
