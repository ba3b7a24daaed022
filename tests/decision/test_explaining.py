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
from mooring.lens.snapshot import ClusterState
from mooring.simulator.evaluate import Evaluator
from mooring.simulator.scenario import Scenario
from mooring.testing import node, pod

SIZE = 30
ASKED: Counter[str] = Counter()


class _ByLabel(fw.Filter):
    label: str

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        ASKED[self.name] += 1
        why = node.labels.get(self.label)
        return fw.Status.unschedulable(f"{self.name}: {why}") if why else fw.OK


class Closed(_ByLabel):
    name = "Closed"
    label = "closed"
    depends_on = fw.NODE


class Noisy(_ByLabel):
    """Without a declaration: asked for each pod."""

    name = "Noisy"
    label = "noisy"


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
        if row % 4 == 0:
            labels["noisy"] = f"n{row % 8}"
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
def test_every_refusal_of_every_plugin_can_be_read(use_memory: bool) -> None:
    cache = some_nodes()
    evaluation = chosen(evaluator_of(cache, Closed, Noisy, Size), cache, use_memory=use_memory)
    found = evaluation.refusals_by_plugin()
    assert list(found) == ["Closed", "Noisy"]
    for plugin, verdicts in found.items():
        for row, status in enumerate(verdicts.each()):
            why = cache.nodes[row].labels.get(plugin.lower())
            expected = fw.Status.unschedulable(f"{plugin}: {why}").by(plugin) if why else fw.OK
            assert status == expected


def test_a_plugin_that_fails_on_a_node_others_refuse_is_named_by_the_status() -> None:
    class Fragile(fw.Filter):
        name = "Fragile"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
            return fw.Status.error("no") if "closed" in node.labels else fw.OK

    cache = some_nodes()
    evaluation = chosen(evaluator_of(cache, Closed, Fragile, Size), cache, use_memory=True)
    assert list(evaluation.refusals_by_plugin()) == ["Closed"]
    assert evaluation.status.plugin == "Fragile"


@pytest.mark.parametrize("use_memory", [True, False])
def test_the_runner_up_is_the_best_of_the_others(use_memory: bool) -> None:
    cache = some_nodes()
    evaluation = chosen(evaluator_of(cache, Closed, Noisy, Size), cache, use_memory=use_memory)
    sizes = {row: int(cache.nodes[row].labels["size"]) for row in evaluation.rows.tolist()}
    best = max(sizes.values())
    assert sizes[evaluation.row] == best
    runner_up = evaluation.runner_up()
    assert runner_up is not None
    row, margin = runner_up
    others = [size for other, size in sizes.items() if other != evaluation.row]
    assert row != evaluation.row
    assert sizes[row] == max(others)
    assert margin == best - max(others)


@pytest.mark.parametrize("use_memory", [True, False])
def test_scores_are_whole_numbers(use_memory: bool) -> None:
    cache = some_nodes()
    scores = chosen(evaluator_of(cache, Closed, Size), cache, use_memory=use_memory).scores()
    assert scores is not None
    (of_size,) = scores.plugins
    assert {of_size.raw.dtype, of_size.scores.dtype, scores.totals.dtype} == {np.dtype(np.int64)}


def test_one_feasible_node_has_no_runner_up() -> None:
    cache = Cache()
    cache.put_node(node("only", labels={"size": "1"}).api)
    evaluation = chosen(evaluator_of(cache, Closed, Size), cache, use_memory=True)
    assert evaluation.runner_up() is None


def test_explaining_a_decision_by_class_asks_no_plugin_whose_results_are_kept() -> None:
    cache = some_nodes()
    evaluation = chosen(evaluator_of(cache, Closed, Size), cache, use_memory=True)
    ASKED.clear()
    evaluation.verdicts()
    evaluation.refusals_by_plugin()
    assert evaluation.scores() is not None
    assert evaluation.runner_up() is not None
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
