"""The workloads in process are what they claim to be, and their goals are shown."""

from __future__ import annotations

import pytest
from bench.goals import GOALS, multiples
from bench.manifests import CONTROLLERS, INDEX, POD_INDEX, realistic_mix
from bench.workloads import (
    WORKLOADS,
    Shaped,
    cluster,
    index_label_and_spread,
    thousand_classes,
)

from mooring.simulator import Simulation

PLAIN = [name for name, make in WORKLOADS.items() if not isinstance(make, Shaped)]


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "unschedulable"])
def test_finds_a_node_for_every_pod(name: str) -> None:
    with Simulation(keep_attempts=False) as sim:
        sim.apply(*cluster(40))
        sim.schedule(*(WORKLOADS[name](i) for i in range(330)))
        assert all(sim.placements().values())
        assert len(sim.placements()) == 330


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in PLAIN])
def test_finds_a_node_for_every_pod_beside_what_is_there_before(name: str) -> None:
    make = WORKLOADS[name]
    assert isinstance(make, Shaped)
    with Simulation(keep_attempts=False) as sim:
        sim.apply(*cluster(20))
        make.prepare(sim, 20, 20)
        sim.apply(*(make(i) for i in range(20)))
        make.settle(sim)
        placed = {name: on for name, on in sim.placements().items() if "victim" not in name}
        assert len(placed) == 20
        assert all(placed.values())
        if name.startswith("preemptors"):
            assert len(sim.placements()) == 20 + 20  # one of four victims stays on each node


def test_labels_the_pods_of_a_job_with_their_index() -> None:
    pod = WORKLOADS["indexed job"](7)
    assert pod.labels[INDEX] == pod.api.metadata.annotations[INDEX] == "7"
    owner = pod.api.metadata.controller
    assert owner is not None
    assert (owner.kind, owner.name) == ("Job", pod.labels["batch.kubernetes.io/job-name"])
    assert owner.uid == pod.labels["batch.kubernetes.io/controller-uid"]


def test_labels_the_pods_of_a_statefulset_with_name_and_index() -> None:
    pod = WORKLOADS["statefulset"](7)
    assert pod.labels["statefulset.kubernetes.io/pod-name"] == pod.name == "db-7"
    assert pod.labels[POD_INDEX] == "7"


def test_keeps_the_pods_of_a_statefulset_apart() -> None:
    with Simulation(keep_attempts=False) as sim:
        sim.apply(*cluster(40))
        sim.schedule(*(WORKLOADS["statefulset anti-affinity"](i) for i in range(401)))
        placed = {(name.rpartition("-")[0], on) for name, on in sim.placements().items() if on}
        assert len(placed) == 400  # ten StatefulSets on 40 nodes
        assert sim.node_of("db-0-40") == ""


def test_asks_for_other_amounts_with_every_pod() -> None:
    pods = [WORKLOADS["distinct requests"](i) for i in range(3_000)]
    for resource in ("cpu", "memory"):
        assert len({pod.requests(resource) for pod in pods}) == len(pods)


def test_has_a_thousand_labels_and_forty_requests() -> None:
    pods = [thousand_classes(i) for i in range(1_200)]
    assert len({pod.labels["app"] for pod in pods}) == 1_000
    assert len({(pod.requests("cpu"), pod.requests("memory")) for pod in pods}) == 40


def test_selects_by_the_app_label_and_not_by_the_index() -> None:
    pod = index_label_and_spread(3)
    (rule,) = pod.api.spec.topology_spread_constraints
    assert rule.label_selector is not None
    assert dict(rule.label_selector.match_labels) == {"app": pod.labels["app"]}
    assert pod.labels[POD_INDEX] == "3"


def test_mixes_pods_of_every_controller() -> None:
    pods = [realistic_mix(i) for i in range(2 * CONTROLLERS)]
    owners = [pod["metadata"]["ownerReferences"][0] for pod in pods]
    kinds = [owner["kind"] for owner in owners[:CONTROLLERS]]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(
        ("ReplicaSet", "Job", "StatefulSet"), 100
    )
    assert len({owner["uid"] for owner in owners}) == CONTROLLERS
    assert len({pod["metadata"]["name"] for pod in pods}) == len(pods)
    assert owners[:CONTROLLERS] != owners[CONTROLLERS:]  # in another order
    specs = [pod["spec"] for pod in pods[:CONTROLLERS]]
    used = {key: sum(key in spec for spec in specs) for key in ("affinity", "tolerations")}
    assert used == {"affinity": 70, "tolerations": 30}
    assert sum("topologySpreadConstraints" in spec for spec in specs) == 40


def test_has_goals_for_workloads_that_exist() -> None:
    assert {*GOALS, *(goal.base for goal in GOALS.values())} <= {*WORKLOADS}


def test_shows_costs_as_multiples_beside_their_goals() -> None:
    costs = {"basic @ 5000": 100.0, "spread @ 5000": 200.0}
    costs |= {"statefulset @ 5000": 130.0, "index label + spread @ 5000": 300.0}
    _, _, *lines = multiples(costs)
    assert [line.split() for line in lines] == [
        ["statefulset", "1.30x", "1.3x", "of", "basic"],
        ["index", "label", "+", "spread", "1.50x", "1.3x", "of", "spread", "missed"],
    ]
    assert multiples({"indexed job @ 5000": 100.0, "basic @ 500": 100.0}) == []
