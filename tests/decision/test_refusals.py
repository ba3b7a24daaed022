"""Refusals that are kept for a class equal those that are asked for anew."""

from __future__ import annotations

import random

import pytest
from tests.decision.engine import evaluator_of

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.decision.evaluation import Evaluation
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.testing import node, pod

SIZE = 40


class Closed(fw.Filter):
    """Refuses nodes by a label, with its value as the reason."""

    name = "Closed"
    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        why = node.labels.get("closed")
        return fw.Status.unschedulable(why) if why else fw.OK


def put(cache: Cache, row: int, reason: str) -> None:
    cache.put_node(node(f"n{row}", labels={"closed": reason}).api)


def closed(reason: str = "repair") -> Cache:
    cache = Cache()
    for row in range(SIZE):
        put(cache, row, reason)
    return cache


def expected(cache: Cache) -> Verdicts:
    reasons = [node.labels["closed"] for node in cache.nodes]
    return Verdicts.of(Status.unschedulable(why).by("Closed") for why in reasons)


class Refused:
    """One pod after another of a class that fits nowhere."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._evaluator = evaluator_of(cache, Closed)

    def evaluate(self) -> Evaluation:
        evaluation = self._evaluator.begin(CycleState(), pod("refused"), self._cache.nodes)
        evaluation.filter()
        assert evaluation.by_class
        return evaluation

    def verdicts(self) -> Verdicts:
        evaluation = self.evaluate()
        assert not evaluation.count
        return evaluation.verdicts()


@pytest.mark.parametrize("seed", range(5))
def test_verdicts_follow_the_nodes_and_those_handed_out_stay(seed: int) -> None:
    rng, cache = random.Random(seed), closed()
    refused = Refused(cache)
    handed_out = []
    for step in range(100):
        for row in rng.sample(range(SIZE), rng.choice((0, 1, 2, 5, 30))):
            put(cache, row, rng.choice((f"reason {step}", "repair")))
        found = refused.verdicts()
        handed_out.append((found, found.copy()))
        assert found == expected(cache)
    assert all(verdicts == as_they_were for verdicts, as_they_were in handed_out)


def test_all_nodes_are_asked_about_after_more_changes_than_are_remembered() -> None:
    cache = closed()
    refused = Refused(cache)
    refused.verdicts()
    cache.table.node_journal._limit = 10
    for number in range(50):
        put(cache, number % 5, f"reason {number}")
    assert refused.verdicts() == expected(cache)


def test_a_node_that_is_open_again_is_feasible() -> None:
    cache = closed()
    refused = Refused(cache)
    refused.verdicts()
    put(cache, 3, "")
    evaluation = refused.evaluate()
    assert evaluation.count == 1
    assert evaluation.rows.tolist() == [3]
    assert evaluation.verdicts().passed.nonzero()[0].tolist() == [3]
