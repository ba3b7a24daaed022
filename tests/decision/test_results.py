"""What is kept for a class follows the nodes; each pod gets what every plugin says of it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from tests.decision.engine import evaluator_of

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.framework.plugin import Base
from mooring.queue.nominator import NominatedPods
from mooring.testing import node, pod

CLOSED = fw.Status.unschedulable("node(s) closed")


class Closed(fw.Filter):
    """Refuses nodes with the label closed."""

    name = "Closed"
    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return CLOSED if "closed" in node.labels else fw.OK


class Size(fw.Score):
    """Prefers large nodes."""

    name = "Size"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(node.labels.get("size", "0"))


class Rig:
    """Nodes, all alike, and one pod after another of one class."""

    def __init__(self, *plugins: type[Base], size: int = 9) -> None:
        self.cache = Cache()
        for row in range(size):
            self.put(row)
        self.evaluator = evaluator_of(self.cache, *plugins)

    def put(self, *rows: int, **labels: str) -> None:
        for row in rows:
            self.cache.put_node(node(f"n{row}", labels=labels).api)

    def decide(self) -> Evaluation:
        evaluation = self.evaluator.begin(fw.CycleState(), pod("p"), self.cache.nodes)
        assert evaluation.passed_pre_filter
        evaluation.filter()
        evaluation.choose()
        assert evaluation.status.ok
        return evaluation

    def decide_by_class(self) -> Evaluation:
        evaluation = self.decide()
        assert evaluation.by_class
        return evaluation


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_first_refusal_and_a_first_difference_in_scores_may_come_together(count: int) -> None:
    rig = Rig(Closed, Size)
    for _ in range(3):
        assert rig.decide_by_class().row == 0
    rig.put(*range(count), closed="yes")
    rig.put(*range(count, 2 * count - 1), size="7")
    rig.put(8, size="8")
    for _ in range(2):
        evaluation = rig.decide_by_class()
        assert evaluation.row == 8
        assert evaluation.rows.tolist() == list(range(count, 9))


@pytest.mark.parametrize("count", [1, 5])
def test_scores_may_differ_for_the_first_time_at_the_first_node(count: int) -> None:
    rig = Rig(Size)
    for _ in range(3):
        assert rig.decide_by_class().row == 0
    rig.put(*range(8, 8 - count, -1), size="8")
    assert rig.decide_by_class().row in range(9 - count, 9)
    rig.put(*range(9), size="3")
    rig.put(0, size="4")
    assert rig.decide_by_class().row == 0


@pytest.mark.parametrize("size", ["0", "100"])
def test_the_least_and_the_most_that_a_score_may_be_are_kept(size: str) -> None:
    rig = Rig(Size)
    rig.put(*range(9), size="50")
    for _ in range(2):
        rig.decide_by_class()
    rig.put(*range(8), size=size)
    assert rig.decide_by_class().row == (0 if size == "100" else 8)
    rig.put(8, size=size)
    assert rig.decide_by_class().row == 0


class Coded(Closed):
    """Gives its answers in an array of its own."""

    name = "Coded"
    given: ClassVar[list[fw.IntArray]] = []

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        self.given.append(np.array([int("closed" in one.labels) for one in nodes]))
        return fw.Verdicts.coded(self.given[-1], [CLOSED])


def test_the_array_of_a_plugin_stays_its_own() -> None:
    Coded.given.clear()
    rig = Rig(Coded)
    rig.put(4, closed="yes")
    for _ in range(3):
        rig.decide_by_class()
    answered = [given.tolist() for given in Coded.given]
    rig.put(4)
    rig.put(5, closed="yes")
    assert 5 not in rig.decide_by_class().rows
    assert [given.tolist() for given in Coded.given] == answered


class ForWeb(fw.PreFilter, fw.Filter, fw.Score):
    """Is asked about pods of the web only."""

    name = "ForWeb"
    depends_on = fw.NODE

    def applies_to(self, pod: fw.Pod) -> bool:
        return pod.labels.get("app") == "web"

    def cache_key(self, pod: fw.Pod) -> str:
        return "any"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        assert self.applies_to(pod)
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        assert self.applies_to(pod)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        assert self.applies_to(pod)
        return 7


class Some(fw.PreFilter):
    """Leaves three nodes, which is kept."""

    name = "Some"
    depends_on = fw.NODE

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.OnlyNodes:
        return fw.OnlyNodes.of(["n3", "n4", "n5"])


class Asked(fw.PreFilter):
    """Is asked for each pod, which is refused if its label says so."""

    name = "Asked"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.Status.unresolvable("no") if pod.labels.get("refused") else fw.OK


@pytest.mark.parametrize("others", [(), (Asked,), (Some,), (Some, Asked)])
def test_a_plugin_that_does_not_apply_to_a_pod_is_not_asked(others: tuple[type[Base], ...]) -> None:
    rig = Rig(*others, Size, ForWeb)
    for _ in range(3):
        evaluation = rig.decide()
        scores = evaluation.scores()
        assert scores is not None
        assert [one.plugin for one in scores.plugins] == ["Size"]
        assert "ForWeb" not in evaluation.refusals_by_plugin()


class Others(Some):
    """Leaves other nodes."""

    name = "Others"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.OnlyNodes:
        return fw.OnlyNodes.of(["n5", "n6"] if pod.labels.get("app") == "web" else [])


@pytest.mark.parametrize("use_memory", [True, False])
@pytest.mark.parametrize(
    ("plugins", "labels", "expected"),
    [
        ((Some,), {}, "345"),
        ((Some, Others), {"app": "web"}, "5"),
        ((Others,), {}, "node(s) didn't satisfy plugin Others"),
        ((Some, Others), {}, "node(s) didn't satisfy plugin(s) [Others Some] simultaneously"),
    ],
)
def test_nodes_that_all_plugins_leave_are_looked_at(
    plugins: tuple[type[Base], ...], labels: dict[str, str], expected: str, use_memory: bool
) -> None:
    rig = Rig(*plugins)
    for _ in range(3):
        evaluation = rig.evaluator.begin(
            fw.CycleState(), pod("p", labels=labels), rig.cache.nodes, use_memory=use_memory
        )
        outcome = evaluation.outcome
        if evaluation.passed_pre_filter:
            assert sorted(outcome.only or ()) == [f"n{number}" for number in expected]
            evaluation.filter()
            assert evaluation.rows.tolist() == [int(number) for number in expected]
        else:
            assert outcome.status == fw.Status.unresolvable(expected)
            assert outcome.ended_by == "Others"


STORED: fw.StateKey[str] = fw.StateKey("Stores/what")


class Stores(fw.PreFilter):
    """Stores something that is kept."""

    name = "Stores"
    depends_on = fw.NODE

    def cache_key(self, pod: fw.Pod) -> str:
        return "any"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[STORED] = "what"
        return fw.OK


@pytest.mark.parametrize(
    ("plugins", "is_stored"), [((Asked, Stores), False), ((Stores, Asked), True)]
)
def test_a_plugin_stores_nothing_for_a_pod_that_one_before_it_refused(
    plugins: tuple[type[Base], ...], is_stored: bool
) -> None:
    rig = Rig(*plugins)
    for _ in range(3):
        assert STORED in rig.decide().state
    state = fw.CycleState()
    refused = pod("p", labels={"refused": "yes"})
    assert not rig.evaluator.begin(state, refused, rig.cache.nodes).passed_pre_filter
    assert (STORED in state) == is_stored


def test_a_pod_without_containers_has_a_class() -> None:
    rig = Rig(Size)
    empty = pod("p", spec={"containers": []})
    for _ in range(2):
        evaluation = rig.evaluator.begin(fw.CycleState(), empty, rig.cache.nodes)
        evaluation.filter()
        assert evaluation.by_class
        assert evaluation.count == 9


def test_an_evaluator_without_objects_keeps_nothing() -> None:
    rig = Rig(Closed, Size)
    rig.evaluator = PodEvaluator(rig.evaluator.plugins, NominatedPods())
    rig.put(7, size="7")
    rig.put(8, size="8", closed="yes")
    for _ in range(2):
        evaluation = rig.decide()
        assert evaluation.row == 7
        assert not evaluation.by_class
