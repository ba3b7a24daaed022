"""Why a node and not another: margins, ties, and the smallest change of a weight."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.lens.clusters import cluster_of, default_plan, explained

from mooring.cache.pods import Pod
from mooring.lens.private import PrivateCluster, sorted_by_name
from mooring.lens.snapshot import ClusterState
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario
from mooring.testing import node, pod
from mooring.testing._random_clusters import random_cluster

PLAN = default_plan()


def totals_with(state: ClusterState, wanted: Pod, plugin: str, weight: int) -> dict[str, int]:
    """The totals with another weight of one plugin, asked of the evaluation itself."""
    point: dict[str, Any] = {"disabled": [{"name": plugin}]}
    if weight:
        point["enabled"] = [{"name": plugin, "weight": weight}]
    profile = {"plugins": {"score": point}}
    result = Evaluator().trial(Scenario(wanted.api, profile=profile, cluster=state)).run()
    totals: dict[str, int] = result["total"]
    return totals


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_the_told_weight_flips_the_choice_and_a_smaller_change_does_not(seed: int) -> None:
    cluster = random_cluster(seed)
    state = structs.replace(cluster_of((), cluster.residents, cluster.objects), nodes=cluster.nodes)
    for wanted in cluster.incoming:
        if wanted.node_name or wanted.spec.scheduling_gates:
            continue
        found = PrivateCluster(PLAN, sorted_by_name(state)).inspector.explain(wanted).choice
        if found is None or found.flip is None:
            continue
        flip = found.flip
        totals = totals_with(state, wanted, flip.plugin, flip.to)
        assert totals[flip.node] == max(totals.values())
        assert totals[flip.node] >= totals[found.node]
        step = 1 if flip.to > flip.weight else -1
        if flip.to - step != flip.weight:
            before = totals_with(state, wanted, flip.plugin, flip.to - step)
            assert before[found.node] == max(before.values())


def test_the_difference_adds_up_to_the_margin() -> None:
    nodes = [node(f"n{i}", cpu=8 + i, images={"app": 10**9 * i}) for i in range(5)]
    found = explained(pod("p", cpu=2, memory="2Gi"), nodes, ask=["n0"]).choice
    assert found is not None
    assert sum(one.points for one in found.difference) == found.margin
    assert [score.place for score in found.nodes] == sorted(score.place for score in found.nodes)
    for score in found.nodes:
        assert score.total == sum(one.weighted for one in score.plugins)
        assert all(one.weighted == one.normalized * one.weight for one in score.plugins)


def test_a_node_that_was_asked_for_is_among_the_scores_whatever_its_place() -> None:
    nodes = [node(f"n{i:02}", cpu=4 + i) for i in range(30)]
    found = explained(pod("p", cpu=2), nodes, ask=["n00"])
    assert found.choice is not None
    assert len(found.choice.nodes) == 11
    assert found.choice.nodes[-1].node == "n00"
    (answer,) = found.asked
    assert answer.score == found.choice.nodes[-1]


def test_a_bound_pod_is_looked_at_as_if_it_were_not_there() -> None:
    here = pod("p", cpu=3, on="b")
    found = explained(here, [node("a", cpu=2), node("b")])
    assert (found.kind, found.node, found.feasible) == ("scheduled", "b", 1)
    assert found.choice is not None
    assert found.choice.margin is None  # the only node
    assert found.summary == "default/p is on b, and would be put there again now"
    moved = explained(pod("p", cpu=1, on="b"), [node("a", cpu=8), node("b")])
    assert moved.summary == "default/p is on b; now a would be chosen"
    assert moved.choice is not None
    assert "b" in [score.node for score in moved.choice.nodes]
    nowhere = explained(pod("p", cpu=3, on="b"), [node("b", cpu=2)])
    assert nowhere.summary == "default/p is on b; now it would fit no node of 1"
