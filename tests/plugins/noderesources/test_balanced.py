"""How evenly the resources of a node are used."""

from typing import Any

import pytest

from mooring.framework import OK, SKIP, CycleState, Node, Pod
from mooring.plugins.noderesources.balanced import NodeResourcesBalancedAllocation, balance
from mooring.testing.build import build
from mooring.testing.builders import node, nodes, pod

GPU = "nvidia.com/gpu"
THREE: dict[str, Any] = {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": GPU}]}


def milli(amount: int) -> str:
    return f"{amount}m"


def asking(amounts: tuple[int, ...], name: str = "pod") -> Pod:
    cpu, memory, *rest = amounts
    extended = {GPU: rest[0]} if rest else {}
    return pod(name, requests={"cpu": milli(cpu), "memory": memory, **extended})


def offering(amounts: tuple[int, ...], used: tuple[int, ...]) -> Node:
    cpu, memory, *rest = amounts
    extended = {GPU: rest[0]} if rest else {}
    return node(
        "n", cpu=milli(cpu), memory=memory, resources=extended, pods=[asking(used, "resident")]
    )


def scores(incoming: Pod, *members: Node, **args: Any) -> list[int]:
    """The scores, after both forms gave the same ones, with and without PreScore."""
    plugin, cluster = build(NodeResourcesBalancedAllocation, **args), nodes(*members)
    state = CycleState()
    assert plugin.pre_score(state, incoming, cluster) is OK
    found: list[int] = plugin.score_all(state, incoming, cluster).tolist()
    assert found == [plugin.score(state, incoming, each) for each in cluster]
    assert found == plugin.score_all(CycleState(), incoming, cluster).tolist()
    return found


@pytest.mark.parametrize(
    ("used", "asked", "capacity", "expected"),
    [
        ((3000, 0), (3000, 5000), (10000, 20000), 73),
        ((3000, 5000), (3000, 5000), (10000, 50000), 70),
        ((3000, 0), (0, 5000), (3000, 5000), 100),
        ((0, 0), (0, 5000), (3000, 5000), 50),
        ((1000, 1000), (1000, 1000), (10000, 10000), 75),
        ((9000, 9000), (9000, 9000), (10000, 10000), 75),
        ((3000, 5000, 3), (0, 0, 1), (3500, 40000, 8), 75),
        ((3000, 5000, 0), (0, 0, 1), (3500, 40000, 8), 76),
    ],
)
def test_scores_the_change_of_balance(
    used: tuple[int, ...], asked: tuple[int, ...], capacity: tuple[int, ...], expected: int
) -> None:
    args = THREE if len(capacity) == 3 else {}
    assert scores(asking(asked), offering(capacity, used), **args) == [expected]


def test_skips_pods_that_ask_for_nothing() -> None:
    plugin, cluster = build(NodeResourcesBalancedAllocation), nodes(node("a"), node("b"))
    for nothing in (pod(), pod(requests={GPU: 1}), pod(requests={"cpu": 0})):
        assert plugin.pre_score(CycleState(), nothing, cluster) is SKIP
        # Where PreScore is switched off, nobody gets a point.
        assert plugin.score_all(CycleState(), nothing, cluster).tolist() == [0, 0]
        assert plugin.score(CycleState(), nothing, cluster[0]) == 0


def test_counts_requests_of_the_pod_as_a_whole() -> None:
    whole = pod(spec={"resources": {"requests": {"cpu": "1"}}})
    assert scores(whole, node("n", cpu="2", memory="2Gi")) == scores(
        pod(cpu="1"), node("n", cpu="2", memory="2Gi")
    )


def test_does_not_count_defaults_for_containers_that_ask_for_nothing() -> None:
    empty, occupied = node("a", cpu="1"), node("b", cpu="1", pods=[pod("r")])
    both = scores(pod(cpu="500m"), empty, occupied)
    assert both[0] == both[1]


def test_leaves_out_what_a_node_does_not_have() -> None:
    incoming = pod(cpu="1", memory="1Gi", requests={GPU: 1})
    alone = [
        node("plain", cpu="4", memory="4Gi"),
        node("gpu", cpu="4", memory="4Gi", resources={GPU: 8}),
        node("no-memory", cpu="4", memory=0, resources={GPU: 2}),
        node("nothing", cpu=0, memory=0),
        node("plain-2", cpu="8", memory="4Gi"),
    ]
    together = scores(incoming, *alone, **THREE)
    assert together == [scores(incoming, each, **THREE)[0] for each in alone]
    assert together[0] == 75
    assert together[3] == 75


def test_stays_within_bounds_when_numbers_are_absurd() -> None:
    huge = 2**63 - 1
    members = [
        node("vast", memory=huge),
        node("crammed", memory="1Gi", pods=[pod("r", memory=huge)]),
        node("usual"),
    ]
    for incoming in (pod(memory=huge, cpu="1"), pod(cpu="1", memory="1Gi")):
        assert all(50 <= score <= 100 for score in scores(incoming, *members))


@pytest.mark.parametrize(
    ("fractions", "expected"),
    [
        ([], 100),
        ([0.3], 100),
        ([0.5, 0.5], 100),
        ([0.0, 1.0], 50),
        ([0.2, 0.5, 0.8], 75),
        ([0.0, 0.0, 1.0, 1.0], 50),
    ],
)
def test_balance_falls_with_the_spread(fractions: list[float], expected: int) -> None:
    assert balance(fractions) == expected
