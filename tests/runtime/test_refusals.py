"""Verdicts that are kept for a class equal those that are asked for anew."""

from __future__ import annotations

import random

import pytest

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.cache.snapshot import Nodes
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.answers import Unsure
from mooring.runtime.refusals import Refusals
from mooring.testing import node, pod

SIZE = 40
POD = pod("refused")


def put(cache: Cache, row: int, reason: str) -> None:
    cache.put_node(node(f"n{row}", labels={"closed": reason}).api)


def closed(reason: str = "repair") -> Cache:
    cache = Cache()
    for row in range(SIZE):
        put(cache, row, reason)
    return cache


def judge(state: CycleState, pod: fw.Pod, nodes: Nodes) -> tuple[Verdicts, Status]:
    reasons = (node.labels["closed"] for node in nodes)
    return Verdicts.of(Status.unschedulable(why) if why else OK for why in reasons), OK


@pytest.mark.parametrize("seed", range(5))
def test_verdicts_follow_the_nodes_and_those_handed_out_stay(seed: int) -> None:
    rng, cache, refusals = random.Random(seed), closed(), Refusals(judge)
    handed_out = []
    for step in range(100):
        for row in rng.sample(range(SIZE), rng.choice((0, 1, 2, 5, 30))):
            put(cache, row, rng.choice((f"reason {step}", "repair")))
        found = refusals.follow(CycleState(), POD, cache.nodes)
        handed_out.append((found, found.copy()))
        assert found == judge(CycleState(), POD, cache.nodes)[0]
    assert all(verdicts == as_they_were for verdicts, as_they_were in handed_out)


def test_all_nodes_are_asked_about_after_more_changes_than_are_remembered() -> None:
    cache, refusals = closed(), Refusals(judge)
    refusals.follow(CycleState(), POD, cache.nodes)
    cache.table.node_journal._limit = 10
    for number in range(50):
        put(cache, number % 5, f"reason {number}")
    found = refusals.follow(CycleState(), POD, cache.nodes)
    assert found == judge(CycleState(), POD, cache.nodes)[0]


def test_a_node_that_will_do_after_all_is_nothing_to_be_sure_of() -> None:
    cache, refusals = closed(), Refusals(judge)
    refusals.follow(CycleState(), POD, cache.nodes)
    put(cache, 3, "")
    with pytest.raises(Unsure, match="a node will do after all"):
        refusals.follow(CycleState(), POD, cache.nodes)


def test_a_filter_that_breaks_is_nothing_to_be_sure_of() -> None:
    def breaks(state: CycleState, pod: fw.Pod, nodes: Nodes) -> tuple[Verdicts, Status]:
        return Verdicts.passing(nodes), Status.error("no figures").by("Figures")

    with pytest.raises(Unsure, match="Figures broke"):
        Refusals(breaks).follow(CycleState(), POD, closed().nodes)
