"""A plugin that fails somewhere among all nodes costs a pod only where it matters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from tests.decision.engine import evaluator_of

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.framework._internal import DomainFilter, InternalPlugin
from mooring.simulator import Simulation
from mooring.testing import node, pod
from mooring.testing.builders import ZONE


class Closed(fw.Filter):
    """Refuses node a."""

    name = "Closed"
    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable("node(s) closed") if node.name == "a" else fw.OK


class Fails(fw.Filter, fw.Score):
    """Fails over some nodes, in the way that a test asks for."""

    name = "Fails"
    over: ClassVar[str] = "a"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.error("no figures") if node.name in self.over else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        return fw.Verdicts.of(self.filter(state, pod, node) for node in nodes)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 1_000 if node.name in self.over else 1


class Raises(Fails):
    """Likewise by an exception."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if node.name in self.over:
            raise RuntimeError("no figures")
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        if node.name in self.over:
            raise RuntimeError("no figures")
        return 1


class Remembered(Fails):
    """Likewise, and the answers are kept."""

    depends_on = fw.NODE


class RaisesRemembered(Raises):
    """Likewise."""

    depends_on = fw.NODE


PLUGINS = [Fails, Raises, Remembered, RaisesRemembered]
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Closed}, {name: Fails}]}}
"""


def cluster(plugin: type[Fails]) -> Simulation:
    sim = Simulation(config=CONFIG, plugins=[Closed, plugin])
    sim.apply(node("a"), node("b"), node("c"))
    return sim


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_failure_over_a_node_that_is_refused_before_does_not_matter(plugin: Any) -> None:
    with cluster(plugin) as sim:
        sim.schedule(pod("p"), pod("q"))
        assert sorted(sim.placements().values()) == ["b", "c"]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_failure_over_any_other_node_ends_the_attempt(
    plugin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(plugin) as sim:
        sim.schedule(pod("before"))
        monkeypatch.setattr(Fails, "over", "c")
        sim.apply(node("c", labels={"now": "changed"}))
        sim.schedule(pod("p"))
        assert not sim.node_of("p")
        assert sim.why("p").startswith('running "Fails" filter plugin: ')
        monkeypatch.setattr(Fails, "over", "a")
        sim.advance(60)
        assert sim.node_of("p")


class Keyed(InternalPlugin, Closed):
    """Its key, which follows from the spec, can't be had; its answers can."""

    name = "Keyed"
    key_from_spec = True

    def cache_key(self, pod: fw.Pod) -> str:
        raise RuntimeError("no key")


def test_a_key_that_cannot_be_had_costs_no_more_than_the_memory_of_its_plugin() -> None:
    cache = Cache()
    for name in "ab":
        cache.put_node(node(name).api)
    evaluator = evaluator_of(cache, Closed, Keyed)
    for name in ("first", "second"):
        evaluation = evaluator.begin(fw.CycleState(), pod(name), cache.nodes)
        evaluation.filter()
        assert evaluation.status.ok
        assert evaluation.feasible.tolist() == [False, True]
        assert {*evaluation.refusals_by_plugin()} == {"Closed", "Keyed"}


class Unhashable(Closed):
    """Its key is no key."""

    name = "Unhashable"

    def cache_key(self, pod: fw.Pod) -> Any:
        return [pod.name]


def test_nor_does_a_key_that_cannot_be_hashed() -> None:
    cache = Cache()
    for name in "ab":
        cache.put_node(node(name).api)
    evaluator = evaluator_of(cache, Unhashable)
    for _ in range(2):
        evaluation = evaluator.begin(fw.CycleState(), pod("p"), cache.nodes)
        evaluation.filter()
        assert evaluation.feasible.tolist() == [False, True]


class Mixed(fw.Filter):
    """Refuses node a and fails over node b."""

    name = "Mixed"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable("no") if node.name == "a" else fw.Status.error("no figures")

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        return fw.Verdicts.of(self.filter(state, pod, node) for node in nodes)


def test_a_failure_is_told_and_not_a_refusal_beside_it() -> None:
    cache = Cache()
    for name in "ab":
        cache.put_node(node(name).api)
    evaluation = evaluator_of(cache, Mixed).begin(fw.CycleState(), pod("p"), cache.nodes)
    evaluation.filter()
    assert evaluation.status.message == 'running "Mixed" filter plugin: no figures'


class OnlyB(fw.PreFilter):
    """Leaves node b."""

    name = "OnlyB"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.OnlyNodes:
        return fw.OnlyNodes.of(["b"])


def test_a_failure_over_a_node_that_is_ruled_out_is_told_to_those_who_ask_about_it() -> None:
    cache = Cache()
    for name in "ab":
        cache.put_node(node(name).api)
    evaluation = evaluator_of(cache, OnlyB, Fails).begin(fw.CycleState(), pod("p"), cache.nodes)
    evaluation.filter()
    assert evaluation.status.ok
    assert evaluation.feasible.tolist() == [False, True]
    evaluation.filter_verdicts()
    assert evaluation.status.message == 'running "Fails" filter plugin: no figures'


class ByZone(DomainFilter):
    """Refuses nodes of the zone "closed"; may fail."""

    name = "ByZone"
    is_broken: ClassVar[bool] = False

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        is_closed = node.labels.get(ZONE) == "closed"
        return fw.Status.unschedulable("zone closed") if is_closed else fw.OK

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> dict[str, fw.BoolArray]:
        if self.is_broken:
            raise RuntimeError("no table")
        return {ZONE: np.array([zone == "closed" for zone in nodes.label_values(ZONE)])}


def test_after_a_failure_nothing_is_missed_of_what_changed_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = Cache()
    for name, zone in (("a", "open"), ("b", "open"), ("c", "closed")):
        cache.put_node(node(name, zone=zone).api)
    evaluator = evaluator_of(cache, ByZone)

    def feasible() -> list[bool]:
        evaluation = evaluator.begin(fw.CycleState(), pod("p"), cache.nodes)
        evaluation.filter()
        found: list[bool] = evaluation.feasible.tolist()
        return found

    assert [feasible() for _ in range(3)] == [[True, True, False]] * 3
    cache.put_node(node("b", zone="closed").api)
    monkeypatch.setattr(ByZone, "is_broken", True)
    assert feasible() == [True, False, False]  # it was asked about every node
    monkeypatch.setattr(ByZone, "is_broken", False)
    assert [feasible() for _ in range(3)] == [[True, False, False]] * 3


class BreaksWhenTold(fw.PreFilter):
    """Fails at PreFilter as long as it is told to; its answers are kept."""

    name = "BreaksWhenTold"
    depends_on = fw.NODE
    is_broken: ClassVar[bool] = False

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if self.is_broken:
            raise RuntimeError("no figures")
        return fw.OK


@pytest.mark.parametrize("broken", [1, 2])
def test_a_failure_at_pre_filter_is_that_of_one_pod(
    broken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache()
    cache.put_node(node("a").api)
    evaluator = evaluator_of(cache, BreaksWhenTold)
    codes = []
    for number in range(5):
        monkeypatch.setattr(BreaksWhenTold, "is_broken", number == broken)
        evaluation = evaluator.begin(fw.CycleState(), pod("p"), cache.nodes)
        codes.append(evaluation.outcome.status.code)
    failed = [number for number, code in enumerate(codes) if code is fw.Code.ERROR]
    # By the third pod the answer is kept and the plugin is not called any more.
    assert failed == ([1] if broken == 1 else [])
