from pathlib import Path

import numpy as np
import pytest

import mooring.framework as fw
from mooring.scheduler import Attempt
from mooring.simulator import Simulation
from mooring.testing import build, check_plugin, node, nodes, pod
from tonodename_scoring import ToNodeName

CONFIG = Path(__file__).with_name("config.yaml")
MASTER = node("master", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])


def replicas(count: int) -> list[fw.Pod]:
    """The pods of the Deployment `test-scheduler`."""
    return [pod(f"test-scheduler-{i}", scheduler="sample-scheduler") for i in range(count)]


def points(attempt: Attempt) -> dict[str, int]:
    """What the plugin gave each node that fits, after NormalizeScore."""
    scores = attempt.decision.scores
    assert scores is not None
    ours = next(table.scores for table in scores.plugins if table.plugin == ToNodeName.name)
    return dict(zip(attempt.decision.feasible, ours.tolist(), strict=True))


def totals(attempt: Attempt) -> dict[str, int]:
    """The points of all plugins together, each times its weight."""
    scores = attempt.decision.scores
    assert scores is not None
    return dict(zip(attempt.decision.feasible, scores.totals.tolist(), strict=True))


def test_gives_ten_replicas_the_same_points_and_each_the_node_with_the_most() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(MASTER, *[node(f"piworknode00{i}") for i in (1, 2, 3)])
        sim.schedule(*replicas(10))
        assert len(sim.attempts) == len(sim.cluster.bindings) == 10
        for attempt in sim.attempts:
            assert points(attempt) == {
                "piworknode001": 100,
                "piworknode002": 25,
                "piworknode003": 25,
            }
            found = totals(attempt)
            assert found[attempt.decision.node_name] == max(found.values())


def test_prefers_piworknode001_among_equals() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(*[node(f"piworknode00{i}") for i in (3, 2, 1)])
        sim.schedule(*replicas(1))
        assert sim.node_of("test-scheduler-0") == "piworknode001"


def test_lets_the_others_take_over_when_piworknode001_is_full() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("piworknode001", max_pods=2), node("piworknode002"), node("piworknode003"))
        sim.schedule(*replicas(6))
        bound = [name for _, name in sim.cluster.bindings]
        assert bound[:2] == ["piworknode001", "piworknode001"]
        assert sorted(bound[2:]) == ["piworknode002"] * 2 + ["piworknode003"] * 2
        for attempt in sim.attempts[2:]:
            assert points(attempt) == {"piworknode002": 100, "piworknode003": 100}


@pytest.mark.parametrize(
    ("raw", "normal"),
    [([80, 20, 20], [100, 25, 25]), ([20, 20], [100, 100]), ([0, 0], [100, 100]), ([], [])],
)
def test_scales_from_zero_to_the_best_node(raw: list[int], normal: list[int]) -> None:
    plugin = build(ToNodeName)
    ranked = nodes(*[node(f"n{i}") for i in range(len(raw))])
    scores = np.array(raw, dtype=np.int64)
    assert plugin.normalize_score(fw.CycleState(), pod(), ranked, scores).tolist() == normal


def test_tonodename_scoring_honours_the_contract() -> None:
    check_plugin(ToNodeName)
