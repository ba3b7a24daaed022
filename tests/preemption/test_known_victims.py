"""What a search found on a node is used again until something changes that it was found by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.preemption.builders import NOW, runs

import mooring.framework as fw
from mooring.framework._internal import what_if_of
from mooring.preemption import all_victims
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.candidates import search
from mooring.preemption.known_victims import KnownVictims
from mooring.preemption.ranks import Ranks
from mooring.preemption.victims import PreemptionRequest
from mooring.simulator import Simulation
from mooring.testing.builders import ZONE, node, pod

TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


class Searches:
    """One after the other, for pods of one kind."""

    def __init__(self, sim: Simulation, **kind: Any) -> None:
        self._sim = sim
        self._kind = {"cpu": 1, "priority": 1, **kind}
        self._kept: dict[str, Any] = {
            "ranks": Ranks(),
            "known": KnownVictims(),
            "budgets": DisruptionBudgets(),
        }

    def victims(
        self,
        now: float = NOW,
        *,
        name: str = "new",
        among: Sequence[int] | None = None,
        wanted: int | None = None,
    ) -> dict[str, str]:
        """By node, where there is a candidate."""
        runtime = self._sim.scheduler.runtimes["default-scheduler"]
        nodes, new = self._sim.scheduler.cache.nodes, pod(name, uid=name, **self._kind)
        if among is not None:
            nodes = nodes.take(np.array(among))
        evaluation = runtime.evaluator.begin(fw.CycleState(), new, nodes, use_memory=False)
        request = PreemptionRequest(
            state=evaluation.state,
            pod=new,
            what_if=what_if_of(runtime.handle),
            spares=lambda other: False,
            now=now,
            **self._kept,
        )
        found = search(request, nodes, np.arange(len(nodes)), wanted=wanted).candidates
        return {one.node_name: " ".join(it.name for it in one.victims) for one in found}


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that were searched, because their result was not known."""
    rows: list[int] = []
    plain = all_victims._find

    def noted(request: Any, nodes: Any, some: Any, ranked: Any) -> Any:
        rows.extend(some)
        return plain(request, nodes, some, ranked)

    monkeypatch.setattr(all_victims, "_find", noted)
    return rows


def test_searches_a_node_once_as_long_as_nothing_changes(searched: list[int]) -> None:
    with Simulation() as sim:
        sim.apply(*(node(name, cpu=1) for name in "abc"))
        sim.apply(*(runs(f"on-{name}", on=name) for name in "abc"))
        searches = Searches(sim)
        for _ in range(3):
            assert searches.victims() == {"a": "on-a", "b": "on-b", "c": "on-c"}
        assert searched == [0, 1, 2]
        sim.apply(runs("later", cpu="0", on="b"))
        assert searches.victims()["b"] == "on-b"
        assert searched == [0, 1, 2, 1]


def test_notices_pods_on_other_nodes_that_a_filter_counts() -> None:
    with Simulation() as sim:
        sim.apply(*(node(name, cpu=1, zone="z") for name in "ab"), node("c", cpu=1, zone="y"))
        sim.apply(*(runs(f"on-{name}", on=name) for name in "abc"))
        searches = Searches(sim, affinity=APART)
        assert searches.victims() == {"a": "on-a", "b": "on-b", "c": "on-c"}
        sim.apply(pod("db", labels={"app": "db"}, priority=9, on="a"))
        assert searches.victims() == {"c": "on-c"}


def test_notices_that_time_passes_where_only_some_pods_have_started() -> None:
    with Simulation() as sim:
        sim.apply(node("a", cpu=2))
        sim.apply(runs("known", 30, on="a"), runs("unknown", None, on="a"))
        searches = Searches(sim)
        assert searches.victims(now=NOW) == {"a": "unknown"}  # the later one goes
        assert searches.victims(now=NOW - 3600) == {"a": "known"}


def test_a_preemptor_does_not_wait_for_its_own_nomination() -> None:
    with Simulation() as sim:
        sim.apply(node("a", cpu=1), runs("on-a", on="a"))
        searches = Searches(sim)
        sim.scheduler.queue.nominator.nominate(pod("new", uid="new", cpu=1, priority=1), "a")
        for _ in range(2):
            assert searches.victims(name="new") == {"a": "on-a"}
            assert searches.victims(name="other") == {}


def test_notices_nodes_that_come_and_go() -> None:
    with Simulation() as sim:
        sim.apply(*(node(name, cpu=1) for name in "ac"), *(runs(f"on-{it}", on=it) for it in "ac"))
        searches = Searches(sim)
        assert searches.victims() == {"a": "on-a", "c": "on-c"}
        sim.apply(node("b", cpu=1), runs("on-b", on="b"))
        assert searches.victims() == {"a": "on-a", "b": "on-b", "c": "on-c"}
        sim.delete(runs("on-a", on="a"), node("a", cpu=1))
        assert searches.victims() == {"b": "on-b", "c": "on-c"}


def test_keeps_nothing_for_some_of_the_nodes() -> None:
    with Simulation() as sim:
        sim.apply(*(node(name, cpu=1) for name in "ab"), *(runs(f"on-{it}", on=it) for it in "ab"))
        searches = Searches(sim)
        for _ in range(2):
            assert searches.victims(among=[1]) == {"b": "on-b"}
            assert searches.victims() == {"a": "on-a", "b": "on-b"}


def test_searches_no_more_nodes_than_it_needs(searched: list[int]) -> None:
    with Simulation() as sim:
        sim.apply(*(node(f"n{i:03}", cpu=1) for i in range(300)))
        sim.apply(*(runs(f"r{i}", on=f"n{i:03}", priority=i % 2) for i in range(300)))
        searches = Searches(sim)
        assert len(searches.victims(wanted=5)) == 5
        assert searched == list(range(0, 64, 2))  # the pods of the others are as important
        assert len(searches.victims(wanted=100)) == 100
        assert searched == list(range(0, 200, 2))
        sim.apply(runs("later", cpu="0", on="n002"))
        assert len(searches.victims(wanted=100)) == 100
        assert searched == [*range(0, 200, 2), 2]


def test_remembers_only_a_few_kinds_of_preemptors(searched: list[int]) -> None:
    with Simulation() as sim:
        sim.apply(node("a", cpu=1), runs("r", on="a"))
        kept = KnownVictims()
        for _ in range(2):
            for kind in range(8):
                searches = Searches(sim, labels={"app": "x"}, priority=1 + kind)
                searches._kept["known"] = kept
                assert searches.victims() == {"a": "r"}
        assert len(searched) == 16
