from __future__ import annotations

import asyncio

import pytest

import mooring.framework as fw
from mooring.api import core
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.errors import ApiError
from mooring.simulator import LocalCluster, Simulation, VirtualLoop
from mooring.testing import node, pod


def test_lets_hours_pass_without_waiting() -> None:
    loop = VirtualLoop()
    rang: list[float] = []

    async def alarm() -> None:
        for _ in range(3):
            await asyncio.sleep(3600)
            rang.append(loop.time())

    task = loop.create_task(alarm())
    loop.advance(7200)
    assert rang == [3600, 7200]
    loop.advance(3600)
    assert task.done()
    loop.close()


def test_does_not_move_the_clock_while_settling() -> None:
    loop = VirtualLoop()
    loop.call_later(1, lambda: None)
    loop.settle()
    assert loop.time() == 0
    loop.close()


def test_gives_the_same_run_for_the_same_seed() -> None:
    def run() -> list[tuple[str, str]]:
        with Simulation(seed=5) as sim:
            sim.apply(*(node(f"n{i}", zone=f"z{i % 3}") for i in range(20)))
            sim.schedule(*(pod(f"p{i}", cpu="500m", uid=f"u{i}") for i in range(60)))
            return sim.cluster.bindings

    assert run() == run()


def test_leaves_pods_of_other_schedulers_alone() -> None:
    with Simulation() as sim:
        sim.apply(node("n"))
        sim.schedule(pod("mine"), pod("theirs", scheduler="someone-else"))
        assert sim.placements() == {"mine": "n", "theirs": ""}
        assert sim.where("theirs") is None


def test_counts_pods_that_came_with_their_node() -> None:
    with Simulation() as sim:
        sim.apply(node("n", cpu="2", pods=[pod("resident", cpu="2")]))
        sim.schedule(pod("late", cpu="1"))
        assert sim.placements() == {"resident": "n", "late": ""}


def binding(target: fw.Pod, node_name: str, uid: str | None = None) -> core.Binding:
    metadata = ObjectMeta(
        name=target.name, namespace=target.namespace, uid=target.uid if uid is None else uid
    )
    return core.Binding(metadata=metadata, target=ObjectReference(kind="Node", name=node_name))


@pytest.mark.parametrize(
    ("target", "uid", "message"),
    [
        (pod("p", on="m"), None, 'pod p is already assigned to node "m"'),
        (pod("p", deleting=True), None, "pod p is being deleted, cannot be assigned to a host"),
        (pod("p", gates=["g"]), None, "pod p has non-empty .spec.schedulingGates"),
        (pod("p"), "other", "Precondition failed: UID"),
    ],
)
def test_refuses_the_bindings_an_api_server_refuses(
    target: fw.Pod, uid: str | None, message: str
) -> None:
    cluster = LocalCluster()
    cluster.apply(target)
    with pytest.raises(ApiError, match=message):
        asyncio.run(cluster.bind(binding(target, "n", uid)))


def test_does_not_bind_a_pod_that_is_gone() -> None:
    with pytest.raises(ApiError, match='pods "p" not found'):
        asyncio.run(LocalCluster().bind(binding(pod("p"), "n")))


def test_results_are_cached_as_in_production() -> None:
    asked: list[str] = []

    class Counted(fw.Plugin[fw.Args], fw.Score):
        name = "Counted"
        depends_on = fw.NODE

        def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
            asked.append(node.name)
            return 1

    config = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles: [{plugins: {multiPoint: {enabled: [{name: Counted}]}}}]
        """
    with Simulation(plugins=[Counted], config=config) as sim:
        sim.apply(*(node(f"n{number}", cpu="8") for number in range(5)))
        sim.schedule(*(pod(f"p{number}", cpu="1") for number in range(10)))
    assert len(asked) == 10  # for the first two pods: results are kept from the second on
