"""The memory of classes: what is kept, when it is dropped, and what makes a class."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import mooring.framework as fw
from mooring.api import codec, core
from mooring.decision.memory import ClassMemory
from mooring.framework._internal import DomainFilter
from mooring.simulator import Simulation
from mooring.testing import node, pod
from mooring.testing.builders import HOSTNAME, ZONE


class Closed(fw.Filter):
    """Lets nobody in where a label says closed; keeps count of whom it was asked about."""

    name = "Closed"
    depends_on = fw.NODE
    asked: ClassVar[list[str]] = []

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        self.asked.append(node.name)
        why = node.labels.get("closed")
        return fw.Status.unschedulable(f"node(s) closed for {why}") if why else fw.OK


class Moody(fw.Filter):
    """Refuses nodes of one zone, for reasons of the day."""

    name = "Moody"
    reason = "node(s) disliked today"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        disliked = node.labels.get(ZONE) == "disliked"
        return fw.Status.unschedulable(type(self).reason) if disliked else fw.OK


class MoodyByZone(Moody, DomainFilter):
    """Likewise, with a table of zones."""

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> dict[str, fw.BoolArray]:
        return {ZONE: np.array([zone == "disliked" for zone in nodes.label_values(ZONE)])}


def filtered_by(*plugins: type[fw.Filter]) -> Simulation:
    """A cluster of six closed nodes, with these filters before all others and no PostFilter."""
    names = ", ".join(f"{{name: {plugin.name}}}" for plugin in plugins)
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      filter: {{enabled: [{names}]}}
      postFilter: {{disabled: [{{name: "*"}}]}}
"""
    sim = Simulation(config=config, plugins=plugins, keep_attempts=False)
    sim.apply(*(node(name, labels={"closed": "repair"}) for name in "abcdef"))
    return sim


def test_why_a_class_fits_nowhere_is_asked_where_something_changed() -> None:
    with filtered_by(Closed) as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(10)))
        Closed.asked.clear()
        sim.schedule(*(pod(f"p{i}") for i in range(10, 20)))
        assert Closed.asked == []
        assert sim.why("p19") == "0/6 nodes are available: 6 node(s) closed for repair."
        sim.apply(node("c", labels={"closed": "lunch"}))
        sim.schedule(*(pod(f"p{i}") for i in range(20, 30)))
        assert set(Closed.asked) == {"c"}
        reasons = "1 node(s) closed for lunch, 5 node(s) closed for repair"
        assert sim.why("p29") == f"0/6 nodes are available: {reasons}."
        sim.apply(node("e"))
        sim.advance(60)
        assert set(sim.placements().values()) == {"e"}


@pytest.mark.parametrize("moody", [Moody, MoodyByZone])
def test_why_a_class_fits_nowhere_is_found_out_anew_with_a_filter_that_declares_nothing(
    moody: type[Moody], monkeypatch: pytest.MonkeyPatch
) -> None:
    with filtered_by(moody, Closed) as sim:
        sim.apply(node("a", labels={"closed": "repair"}, zone="disliked"))
        for day in ("today", "tomorrow"):
            monkeypatch.setattr(Moody, "reason", f"node(s) disliked {day}")
            sim.schedule(pod(day))
            reasons = f"1 node(s) disliked {day}, 5 node(s) closed for repair"
            assert sim.why(day) == f"0/6 nodes are available: {reasons}."


class OfThePool(fw.Score):
    """Prefers the node that a namespace names; asked again only when a namespace changes."""

    name = "OfThePool"
    depends_on = fw.NODE_AND_PODS
    reads = (core.Namespace,)

    def cache_key(self, pod: fw.Pod) -> str:
        return pod.namespace

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        space = self.handle.objects.get(core.Namespace, pod.namespace)
        return 100 if space is not None and space.metadata.labels.get("pool") == node.name else 0


class Labelled(fw.Score):
    """Prefers the node that a label of the pod names."""

    name = "Labelled"
    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.name == pod.labels.get("to") else 0


def only(plugin: type[fw.Score], check_share: float = 0.0) -> Simulation:
    """A cluster of three nodes where only this plugin gives points."""
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      score: {{disabled: [{{name: "*"}}], enabled: [{{name: {plugin.name}}}]}}
"""
    sim = Simulation(config=config, plugins=[plugin], keep_attempts=False, check_share=check_share)
    sim.apply(*(node(name) for name in "abc"))
    return sim


def space(pool: str) -> core.Namespace:
    return codec.convert(
        {"metadata": {"name": "default", "labels": {"pool": pool}}}, core.Namespace
    )


def test_answers_are_given_up_when_an_object_of_reads_changes() -> None:
    with only(OfThePool) as sim:
        for pool in ("b", "c", "a"):
            sim.apply(space(pool))
            sim.schedule(pod(f"in-{pool}"), pod(f"also-in-{pool}", labels={"x": pool}))
            assert sim.node_of(f"in-{pool}") == sim.node_of(f"also-in-{pool}") == pool


class Widespread(fw.Score):
    """Prefers nodes beyond the first three, as long as there are fewer than five nodes."""

    name = "Widespread"
    depends_on = fw.NODE
    asked: ClassVar[list[int]] = []

    def cache_key(self, pod: fw.Pod) -> int:
        self.asked.append(len(self.handle.nodes))
        return len(self.handle.nodes)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.name not in "abc" and len(self.handle.nodes) < 5 else 0


def test_a_cache_key_is_asked_for_again_when_nodes_changed() -> None:
    Widespread.asked.clear()
    with only(Widespread) as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(5)))
        assert Widespread.asked == [3]
        sim.apply(node("d"))
        sim.schedule(pod("then-d"), pod("also-d"))
        assert sim.node_of("then-d") == sim.node_of("also-d") == "d"
        sim.apply(node("e"))
        sim.schedule(pod("then-any"))
        assert set(Widespread.asked) == {3, 4, 5}
        assert sim.node_of("then-any") == "a"


def memory_of(sim: Simulation) -> ClassMemory:
    (runtime,) = sim.scheduler.runtimes.values()
    assert runtime.evaluator.memory is not None
    return runtime.evaluator.memory


def own_classes(sim: Simulation) -> int:
    """Of pods that are equal in all keys."""
    return sum(not one.is_shared for one in memory_of(sim)._classes.values())


def test_labels_that_no_plugin_looks_at_make_no_class() -> None:
    with Simulation(keep_attempts=False) as sim:
        sim.apply(*(node(name) for name in "abc"))
        sim.schedule(*(pod(f"p{i}", cpu="1m", labels={"index": str(i)}) for i in range(40)))
        assert own_classes(sim) == 1
        spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        spread["labelSelector"] = {"matchLabels": {"app": "x"}}
        spec = {"topologySpreadConstraints": [spread]}
        index = [{"app": "x", "index": str(i)} for i in range(40)]
        sim.schedule(*(pod(f"s{i}", labels=index[i], spec=spec) for i in range(40)))
        assert own_classes(sim) == 2


def test_a_label_that_becomes_visible_to_a_term_makes_classes() -> None:
    near = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"index": "7"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    with Simulation(keep_attempts=False, check_share=1.0) as sim:
        sim.apply(*(node(name) for name in "abc"))
        sim.schedule(*(pod(f"p{i}", cpu="1m", labels={"index": str(i)}) for i in range(5)))
        sim.schedule(pod("loner", affinity={"podAntiAffinity": {required: [near]}}))
        sim.schedule(*(pod(f"q{i}", cpu="1m", labels={"index": str(i)}) for i in range(5, 20)))
        assert sim.node_of("q7") != sim.node_of("loner")
        # One for all indexes but that of the rule, whose only pod makes none, nor does the loner.
        assert own_classes(sim) == 1
        assert sim.scheduler.metrics.class_checks.labels("different").value == 0


@pytest.mark.parametrize("check_share", [0.0, 1.0])
def test_nothing_is_kept_of_a_key_before_its_second_pod(check_share: float) -> None:
    with only(Labelled, check_share=check_share) as sim:
        memory = memory_of(sim)
        sim.schedule(*(pod(f"p{i}") for i in range(2)))
        before = len(memory._results)
        sim.schedule(*(pod(f"own-{i}", labels={"class": str(i)}) for i in range(200)))
        assert len(memory._results) == before
        assert own_classes(sim) == 1
        sim.schedule(pod("again", labels={"class": "7"}))
        assert len(memory._results) == before + 1
        assert own_classes(sim) == 2
        assert sim.scheduler.metrics.class_checks.labels("different").value == 0


def test_of_many_keys_the_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.decision.memory.MOST_KEYS", 50)
    with only(Labelled) as sim:
        memory = memory_of(sim)
        sim.schedule(*(pod(f"a{i}", labels={"class": "often"}) for i in range(2)))
        sim.schedule(*(pod(f"p{i}", labels={"class": str(i)}) for i in range(200)))
        assert sum(map(len, memory._known)) <= 50 + len(memory._known)
        classes = own_classes(sim)
        sim.schedule(pod("again", labels={"class": "often"}))
        assert own_classes(sim) == classes == 1


def test_the_classes_that_were_used_last_stay() -> None:
    with only(Labelled) as sim:
        memory = memory_of(sim)
        memory._most_bytes = 3 * 10 * (10 + 4)  # for ten classes on three nodes
        for number in range(40):
            of_this = [f"{number}-{i}" for i in range(2)]
            sim.schedule(*(pod(f"a{name}", labels={"class": "first"}) for name in of_this))
            sim.schedule(*(pod(f"b{name}", labels={"class": str(number)}) for name in of_this))
        assert len(memory) <= 11
        used_at = sorted(one.used_at for one in memory._classes.values() if not one.is_shared)
        assert used_at[-2:] == [memory._pods - 2, memory._pods]


class Picky(fw.PreFilter):
    """Knows the only node by a label of the pod."""

    name = "Picky"
    depends_on = fw.NODE

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.OnlyNodes:
        return fw.OnlyNodes(frozenset({pod.labels["to"]}))


def test_classes_that_are_restricted_to_some_nodes_make_room_too() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Picky}]}}
"""
    with Simulation(config=config, plugins=[Picky], keep_attempts=False) as sim:
        sim.apply(*(node(name) for name in "abc"))
        memory = memory_of(sim)
        memory._most_bytes = 3 * 10 * 10
        targets = {f"p{i}": "abc"[i % 3] for i in range(40)}
        sim.schedule(*(pod(name, labels={"to": to, "of": name}) for name, to in targets.items()))
        assert {name: sim.node_of(name) for name in targets} == targets
        assert len(memory) <= 11


class LastByName(fw.Score):
    """Keeps its scores by node, and normalizes them by the names of the nodes it is given."""

    name = "LastByName"
    depends_on = fw.NODE
    seen: ClassVar[list[tuple[list[str], int]]] = []

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return ord(node.name)

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        names = [node.name for node in nodes]
        self.seen.append((names, len(scores)))
        return np.array([100 * (name == max(names)) for name in names], dtype=np.int64)


def test_a_method_that_normalizes_kept_scores_is_given_the_feasible_nodes_alone() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: LastByName, weight: 100}]}}
"""
    LastByName.seen.clear()
    with Simulation(config=config, plugins=[LastByName], keep_attempts=False) as sim:
        sim.apply(*(node(name, unschedulable=name in "bf") for name in "abcdef"))
        sim.schedule(*(pod(f"p{i}") for i in range(4)))
        assert set(sim.placements().values()) == {"e"}
    assert LastByName.seen
    for names, count in LastByName.seen:
        assert (sorted(names), count) == (list("acde"), 4)
