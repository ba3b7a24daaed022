"""How full a node would be, as a score."""

from typing import Any

import pytest

from mooring.framework import OK, CycleState, Node, Pod
from mooring.plugins.noderesources.args import RequestedToCapacityRatioParam, ShapePoint
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.plugins.noderesources.strategies import RequestedToCapacityRatio
from mooring.testing.build import build
from mooring.testing.builders import node, nodes, pod

Json = dict[str, Any]
MIB = 1024 * 1024
LEAST: Json = {"type": "LeastAllocated"}
MOST: Json = {"type": "MostAllocated"}
GPU: Json = {"name": "nvidia.com/gpu", "weight": 3}
BOTH = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def ratio(*points: tuple[int, int], resources: list[Json] | None = None) -> Json:
    return {
        "type": "RequestedToCapacityRatio",
        "resources": resources or [],
        "requestedToCapacityRatio": {"shape": [{"utilization": x, "score": y} for x, y in points]},
    }


def scores(strategy: Json, incoming: Pod, *members: Node) -> list[int]:
    """The scores, after both forms gave the same ones, with and without PreScore."""
    plugin, cluster, state = (
        build(NodeResourcesFit, scoring_strategy=strategy),
        nodes(*members),
        CycleState(),
    )
    assert plugin.pre_score(state, incoming, cluster) is OK
    found: list[int] = plugin.score_all(state, incoming, cluster).tolist()
    assert found == [plugin.score(state, incoming, each) for each in cluster]
    assert found == plugin.score_all(CycleState(), incoming, cluster).tolist()
    return found


@pytest.mark.parametrize(
    ("strategy", "capacities", "expected"),
    [
        pytest.param(LEAST, ("4", 10_000), 37, id="least: (25 + 50) / 2"),
        pytest.param(LEAST, ("6", 10_000), 50, id="least: (50 + 50) / 2"),
        pytest.param(LEAST, ("3", 5_000), 0, id="least: full"),
        pytest.param(LEAST, ("2", 10_000), 25, id="least: overfull counts as full"),
        pytest.param(MOST, ("4", 10_000), 62, id="most: (75 + 50) / 2"),
        pytest.param(MOST, ("2", 10_000), 75, id="most: overfull counts as full"),
        pytest.param(ratio((0, 0), (100, 10)), ("4", 10_000), 63, id="ratio: 62.5 is rounded up"),
        pytest.param(ratio((0, 10), (100, 0)), ("4", 10_000), 38, id="ratio: 37.5 is rounded up"),
        pytest.param(ratio((0, 10), (100, 0)), ("2", 10_000), 50, id="ratio: no points, no weight"),
        pytest.param(ratio((0, 0)), ("4", 10_000), 0, id="ratio: no points at all"),
    ],
)
def test_scores_what_the_pod_would_leave(
    strategy: Json, capacities: tuple[str, int], expected: int
) -> None:
    cpu, memory = capacities
    used = pod("r", cpu="1", memory=2_000)
    target = node("n", cpu=cpu, memory=memory, pods=[used])
    assert scores(strategy, pod(cpu="2", memory=3_000), target) == [expected]


def test_takes_a_default_for_containers_that_ask_for_nothing() -> None:
    # 100m of 1 CPU and 200 MiB of 1000 MiB, by the pod that is there and by the one that comes.
    target = node("n", cpu="1", memory=1_000 * MIB, pods=[pod("r")])
    assert scores(LEAST, pod(), target) == [(80 + 60) // 2]
    assert scores(LEAST, pod(requests={"cpu": 0, "memory": 0}), target) == [(90 + 80) // 2]


def test_leaves_out_requests_of_the_pod_as_a_whole() -> None:
    whole = pod(cpu="1", memory="1Gi", spec={"resources": {"requests": {"cpu": "3"}}})
    assert scores(LEAST, whole, node("n", cpu="4", memory="4Gi")) == [75]


def test_leaves_out_resources_that_pod_or_node_do_not_have() -> None:
    strategy = {"type": "MostAllocated", "resources": [*BOTH, GPU]}
    plain, rich = node("plain", cpu="4", memory="4Gi"), node("rich", cpu="4", memory="4Gi")
    gpu = node("gpu", cpu="4", memory="4Gi", resources={GPU["name"]: 4})
    asks = pod(cpu="1", memory="2Gi", requests={GPU["name"]: 4})
    assert scores(strategy, asks, plain, gpu, rich) == [
        (25 + 50) // 2,
        (25 + 50 + 3 * 100) // 5,
        (25 + 50) // 2,
    ]
    assert scores(strategy, pod(cpu="1", memory="2Gi"), plain, gpu) == [37, 37]


def test_weighs_resources() -> None:
    resources = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]
    target = node("n", cpu="4", memory=10_000)
    assert scores({**LEAST, "resources": resources}, pod(cpu="3", memory=5_000), target) == [
        (3 * 25 + 50) // 4
    ]


def test_scores_nothing_where_no_resource_counts() -> None:
    for strategy in (LEAST, MOST, ratio((0, 5))):
        only_gpu = {**strategy, "resources": [GPU]}
        assert scores(only_gpu, pod(cpu="1"), node("a"), node("b")) == [0, 0]
        assert scores(only_gpu, pod(requests={GPU["name"]: 1}), node("a"), node("b")) == [0, 0]
        assert scores({**strategy, "resources": [{"name": "pods"}]}, pod(), node("a")) == [0]


@pytest.mark.parametrize("strategy", [LEAST, MOST, ratio((0, 0), (100, 10))])
def test_stays_within_bounds_when_numbers_are_absurd(strategy: Json) -> None:
    huge = 2**63 - 1
    members = [
        node("vast", memory=huge),
        node("vast-and-full", memory=huge, pods=[pod("r1", memory=huge)]),
        node("crammed", memory="1Gi", pods=[pod("r2", memory=huge)]),
        node("usual"),
    ]
    for incoming in (pod(memory=huge), pod(memory="1Gi")):
        assert all(0 <= score <= 100 for score in scores(strategy, incoming, *members))
        assert all(0 <= score <= 100 for score in scores(strategy, incoming, *members[2:]))


@pytest.mark.parametrize(
    ("points", "at", "expected"),
    [
        ([(0, 10), (100, 0)], [0, 33, 50, 99, 100], [100, 67, 50, 1, 0]),
        ([(0, 0), (40, 7), (100, 10)], [15, 41, 77], [26, 70, 88]),
        ([(20, 2), (80, 8)], [0, 20, 50, 80, 100], [20, 20, 50, 80, 80]),
        ([(50, 4)], [0, 50, 100], [40, 40, 40]),
    ],
)
def test_follows_the_line_through_the_points_of_a_shape(
    points: list[tuple[int, int]], at: list[int], expected: list[int]
) -> None:
    shape = tuple(ShapePoint(utilization=x, score=y) for x, y in points)
    strategy = RequestedToCapacityRatio(RequestedToCapacityRatioParam(shape=shape))
    assert [strategy.points(100 - used, 100) for used in at] == expected
