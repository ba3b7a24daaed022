"""The workloads of `bench.versus` are what an API server takes and what they claim to be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.versus.pods import MEASURED, NAMESPACE, node_name, priority_classes
from bench.versus.rig import placed
from bench.versus.watcher import Watcher
from bench.versus.workloads import WORKLOADS
from tests.controlplane.embedded import EmbeddedPlane
from tests.controlplane.objects import namespace as named

NODES = 4


@pytest.fixture
def plane() -> Iterator[EmbeddedPlane]:
    with EmbeddedPlane() as running:
        for value in (*priority_classes(), named(NAMESPACE)):
            running.admin.create(value)
        yield running


@pytest.mark.parametrize("name", WORKLOADS)
def test_makes_pods_that_an_api_server_takes(plane: EmbeddedPlane, name: str) -> None:
    workload = WORKLOADS[name]
    measured = [workload.pod(i) for i in range(workload.count(10, NODES))]
    for value in (*map(workload.node, range(NODES)), *workload.before(10, NODES), *measured):
        plane.admin.create(placed(value))
    found = plane.admin.list("Pod", labelSelector=f"{MEASURED}=yes")
    assert len(found) == len(measured) > 0
    assert not any(pod["spec"].get("nodeName") for pod in found)


def test_asks_for_no_more_pods_than_can_be_bound() -> None:
    counts = {name: each.count(3000, 500) for name, each in WORKLOADS.items()}
    assert counts["basic"] == 3000
    assert counts["anti-affinity"] == counts["daemonset"] == counts["preemption"] == 500
    assert WORKLOADS["preemption"].count(1, 500) == 1
    assert WORKLOADS["statefulset-anti-affinity"].count(3000, 200) == 2000


def test_fills_every_node_with_victims() -> None:
    victims = WORKLOADS["preemption"].before(10, NODES)
    placed_on = [pod["spec"]["nodeName"] for pod in victims]
    assert sorted(placed_on) == sorted([node_name(i) for i in range(NODES)] * 2)


def test_sees_binds_and_when_the_first_victim_went(plane: EmbeddedPlane) -> None:
    workload = WORKLOADS["preemption"]
    victims = [placed(pod) for pod in workload.before(2, NODES)]
    nodes = map(workload.node, range(NODES))
    for value in (*nodes, *victims, placed(workload.pod(0)), placed(workload.pod(1))):
        plane.admin.create(value)
    firsts: list[str] = []
    watcher = Watcher(plane, 2, lambda: firsts.append("first"))
    watcher.start()
    plane.admin.delete("Pod", victims[0]["metadata"]["name"], NAMESPACE)
    for number in range(2):
        plane.admin.bind(NAMESPACE, workload.pod(number)["metadata"]["name"], node_name(number))
    assert watcher.done.wait(30)
    watcher.stop()
    assert len(watcher.bound) == 2
    assert firsts == ["first"]
    assert watcher.began is not None
    assert watcher.began < min(watcher.bound.values())


def test_stops_watching_when_told_to(plane: EmbeddedPlane) -> None:
    watcher = Watcher(plane, 1, lambda: None)
    watcher.start()
    watcher.stop()
    assert watcher.bound == {}
