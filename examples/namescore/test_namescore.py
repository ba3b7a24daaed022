from pathlib import Path

import pytest

import mooring.framework as fw
from mooring.simulator import Simulation
from mooring.testing import build, check_plugin, node, pod
from namescore import NameScore

CONFIG = Path(__file__).with_name("config.yaml")
SCHEDULER = "namescore-scheduler"
NODES = ("k8s-master", "k8s-node01", "k8s-node02")


def test_places_the_pod_on_the_node_with_the_highest_number() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(*[node(name) for name in NODES])
        sim.schedule(pod("busybox-test-scheduler", scheduler=SCHEDULER))
        assert sim.node_of("busybox-test-scheduler") == "k8s-node02"
        decision = sim.attempts[0].decision
        assert decision.scores is not None
        points = dict(zip(decision.feasible, decision.scores.totals.tolist(), strict=True))
        assert points == {"k8s-master": 0, "k8s-node01": 1, "k8s-node02": 2}


def test_goes_down_the_ranking_as_nodes_fill_up() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(*[node(name, cpu=1) for name in NODES])
        sim.schedule(*[pod(f"p{i}", cpu=1, scheduler=SCHEDULER) for i in range(4)])
        placed = {"p0": "k8s-node02", "p1": "k8s-node01", "p2": "k8s-master", "p3": ""}
        assert sim.placements() == placed
        assert sim.why("p3").startswith("0/3 nodes are available: 3 Insufficient cpu.")


def test_leaves_pods_of_other_schedulers_alone() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("k8s-node01"))
        sim.schedule(pod("theirs"), pod("ours", scheduler=SCHEDULER))
        assert sim.placements() == {"theirs": "", "ours": "k8s-node01"}


@pytest.mark.parametrize(
    ("name", "points"),
    [("node7", 7), ("node-007", 7), ("node100", 100), ("node2026", 100), ("10-9-101-rack", 0)],
)
def test_counts_only_the_number_at_the_end_and_at_most_100(name: str, points: int) -> None:
    assert build(NameScore).score(fw.CycleState(), pod(), node(name)) == points


def test_namescore_honours_the_contract() -> None:
    check_plugin(NameScore)
