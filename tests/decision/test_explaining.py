"""Explaining reads what a decision left; nothing that is kept is asked for again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.decision.engine import evaluator_of

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import ClusterState, Scenario
from mooring.testing import node, pod

SIZE = 30
ASKED: Counter[str] = Counter()


class Closed(fw.Filter):
    name = "Closed"
    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        ASKED[self.name] += 1
        return fw.Status.unschedulable("closed") if "closed" in node.labels else fw.OK


class Size(fw.Score):
    name = "Size"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        ASKED[self.name] += 1
        return int(node.labels["size"])


def some_nodes() -> Cache:
    cache = Cache()
    for row in range(SIZE):
        labels = {"size": str(row % 7)}
        if row % 3 == 0:
            labels["closed"] = "repair"
        cache.put_node(node(f"n{row}", labels=labels).api)
    return cache


def chosen(evaluator: PodEvaluator, cache: Cache, *, use_memory: bool) -> Evaluation:
    for name in ("before", "now"):  # the second pod is decided by class
        evaluation = evaluator.begin(fw.CycleState(), pod(name), cache.nodes, use_memory=use_memory)
        evaluation.filter()
        evaluation.choose()
    assert evaluation.status.ok
    assert evaluation.by_class == use_memory
    return evaluation


@pytest.mark.parametrize("use_memory", [True, False])
def test_scores_are_whole_numbers(use_memory: bool) -> None:
    cache = some_nodes()
    scores = chosen(evaluator_of(cache, Closed, Size), cache, use_memory=use_memory).scores()
    assert scores is not None
    (of_size,) = scores.plugins
    assert {of_size.raw.dtype, of_size.scores.dtype, scores.totals.dtype} == {np.dtype(np.int64)}


def test_explaining_a_decision_by_class_asks_no_plugin_whose_results_are_kept() -> None:
    cache = some_nodes()
    evaluation = chosen(evaluator_of(cache, Closed, Size), cache, use_memory=True)
    ASKED.clear()
    evaluation.verdicts()
    assert evaluation.scores() is not None
    assert not ASKED


def test_a_what_if_can_add_remove_resize_relabel_and_taint_nodes() -> None:
    wanted = pod("wanted", cpu="2", node_selector={"disk": "fast"}).api
    nodes = [
        node("small", cpu="1", labels={"disk": "fast"}),
        node("slow", cpu="4", labels={"disk": "slow"}),
        node("busy", cpu="4", labels={"disk": "fast"}, taints=["dedicated=x:NoSchedule"]),
    ]
    cluster = ClusterState(nodes=tuple(one.api for one in nodes))
    trial = Evaluator().trial(Scenario(wanted, cluster=cluster))
    assert trial.run()["outcome"] == "Unschedulable"

    def places(*put: fw.Node, remove: tuple[str, ...] = ()) -> list[str]:
        imagined = trial.with_nodes(put=[one.api for one in put], remove=remove).run()
        return list(imagined.get("feasible", []))

    assert places(node("small", cpu="2", labels={"disk": "fast"})) == ["small"]  # resized
    assert places(node("slow", cpu="4", labels={"disk": "fast"})) == ["slow"]  # relabelled
    assert places(node("busy", cpu="4", labels={"disk": "fast"})) == ["busy"]  # without its taint
    assert places(node("new", cpu="4", labels={"disk": "fast"})) == ["new"]
    larger = node("small", cpu="8", labels={"disk": "fast"})
    assert places(larger, node("new", cpu="4", labels={"disk": "fast"}), remove=("new",)) == [
        "small"
    ]
    assert trial.run()["outcome"] == "Unschedulable"  # as it was
