"""Decisions by class equal those of a full evaluation, whatever the cluster goes through.

`MOORING_CLASS_DECISIONS=20000` makes it that many decisions instead of a few hundred.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pytest

import mooring.framework as fw
from mooring.api import codec, core
from mooring.api.meta import ObjectMeta
from mooring.simulator import Simulation
from mooring.testing import _random_pods as hat
from mooring.testing import node, pod
from mooring.testing._random_clusters import random_node, random_objects
from mooring.testing._random_pods import NAMESPACES, Dice

WANTED = int(os.environ.get("MOORING_CLASS_DECISIONS", "800"))
SEEDS = range(8)


def templates(dice: Dice, count: int, names: list[str]) -> list[dict[str, Any]]:
    """Pods to be copied: what is the same in all copies makes their class."""
    found = []
    for number in range(count):
        raw = hat.random_pod(dice, f"t{number}", names, features=dice.number(0, 3), is_huge=False)
        for never in ("schedulingGates", "nodeName"):
            raw["spec"].pop(never, None)
        raw["metadata"].pop("deletionTimestamp", None)
        found.append(raw)
    return found


def copies(dice: Dice, of: list[dict[str, Any]]) -> Iterator[core.Pod]:
    number = 0
    while True:
        raw = dice.one(of)
        meta = {**raw["metadata"], "name": f"p{number}", "uid": f"uid-p{number}"}
        yield codec.convert({**raw, "metadata": meta, "status": {"phase": "Pending"}}, core.Pod)
        number += 1


def changed(dice: Dice, node: core.Node) -> core.Node:
    """The same node after something happened to it."""
    other = random_node(dice, node.metadata.name)
    part = dice.one(("metadata", "spec", "status", "nothing"))
    return (
        node if part == "nothing" else msgspec.structs.replace(node, **{part: getattr(other, part)})
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_as_a_full_evaluation_would(seed: int) -> None:
    rng = random.Random(seed)
    dice = Dice(rng)
    counted = 0
    while counted < WANTED // len(SEEDS):
        counted += live(dice, rng.getrandbits(32))


def live(dice: Dice, seed: int) -> int:
    """The life of a cluster; how many decisions were made by class and compared."""
    size = dice.one((1, 2, 3, 5, 9, 20, 40))
    nodes = {f"node-{i}": random_node(dice, f"node-{i}") for i in range(size)}
    with Simulation(seed=seed, keep_attempts=False, check_share=1.0) as sim:
        sim.apply(*(core.Namespace(metadata=_named(name)) for name in NAMESPACES))
        sim.apply(*random_objects(dice), *nodes.values())
        pods = copies(dice, templates(dice, dice.number(1, 5), list(nodes)))
        alive: list[core.Pod] = []
        for _ in range(60):
            what = dice.number(0, 19)
            if what < 13:
                new = [next(pods) for _ in range(dice.number(1, 4))]
                alive += new
                sim.apply(*new)
            elif what < 15 and alive:
                gone = alive.pop(dice.rng.randrange(len(alive)))
                sim.delete(gone)
            elif what < 17:
                name = dice.one(list(nodes))
                nodes[name] = changed(dice, nodes[name])
                sim.apply(nodes[name])
            elif what == 17:
                name = f"late-{len(nodes)}-{dice.number(0, 9)}"
                nodes[name] = random_node(dice, name)
                sim.apply(nodes[name])
            elif what == 18 and len(nodes) > 1:
                sim.delete(nodes.pop(dice.one(list(nodes))))
            else:
                sim.apply(*random_objects(dice))
            if dice.often():
                sim.settle()
            else:
                sim.advance(dice.one((1.0, 12.0)))
        checks = sim.scheduler.metrics.class_checks
        assert checks.labels("different").value == 0
        return int(checks.labels("equal").value)


def _named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name)


class OfThePool(fw.Score):
    """Prefers the node that a namespace names; asked again only when a namespace changes."""

    name = "OfThePool"
    scope = fw.Scope.NODE
    reads = (core.Namespace,)

    def part_of(self, pod: fw.Pod) -> str:
        return pod.namespace

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        space = self.handle.objects.get(core.Namespace, pod.namespace)
        return 100 if space is not None and space.metadata.labels.get("pool") == node.name else 0


class Fetched(fw.Score):
    """Prefers the node of which figures were fetched in the meantime."""

    name = "Fetched"
    scope = fw.Scope.OBJECT
    figures: str | None = None

    def stamp(self, pod: fw.Pod) -> str | None:
        return type(self).figures

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.name == type(self).figures else 0


def only(plugin: type[fw.Score]) -> Simulation:
    """A cluster of three nodes where only this plugin gives points."""
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      score: {{disabled: [{{name: "*"}}], enabled: [{{name: {plugin.name}}}]}}
"""
    sim = Simulation(config=config, plugins=[plugin], keep_attempts=False)
    sim.apply(*(node(name) for name in "abc"))
    return sim


def space(pool: str) -> core.Namespace:
    return codec.convert(
        {"metadata": {"name": "default", "labels": {"pool": pool}}}, core.Namespace
    )


def test_answers_that_classes_share_are_given_up_with_their_stamp() -> None:
    with only(OfThePool) as sim:
        for pool in ("b", "c", "a"):
            sim.apply(space(pool))
            sim.schedule(pod(f"in-{pool}"), pod(f"also-in-{pool}", labels={"x": pool}))
            assert sim.node_of(f"in-{pool}") == sim.node_of(f"also-in-{pool}") == pool


def test_a_stamp_may_begin_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with only(Fetched) as sim:
        sim.schedule(pod("before"))
        for name in ("b", "c"):
            monkeypatch.setattr(Fetched, "figures", name)
            sim.schedule(pod(f"then-{name}"))
            assert sim.node_of(f"then-{name}") == name


class Widespread(fw.Score):
    """Prefers nodes beyond the first three, as long as there are any."""

    name = "Widespread"
    scope = fw.Scope.OBJECT
    asked: ClassVar[list[int]] = []

    @fw.steady
    def stamp(self, pod: fw.Pod) -> int:
        self.asked.append(len(self.handle.nodes))
        return len(self.handle.nodes)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.name not in "abc" and len(self.handle.nodes) < 5 else 0


def test_a_steady_stamp_is_asked_for_when_nodes_changed() -> None:
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


def test_a_class_that_was_not_asked_about_for_long_makes_room() -> None:
    with only(Fetched) as sim:
        classes = next(iter(sim.scheduler.crews.values())).cycle._classes
        assert classes is not None
        classes._most_rows = 3 * 10  # for ten classes on three nodes
        sim.schedule(*(pod(f"p{i}", labels={"class": str(i)}) for i in range(40)))
        assert len(classes) == 10


class Picky(fw.PreFilter):
    """Knows the only node by a label of the pod."""

    name = "Picky"
    scope = fw.Scope.OBJECT

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.OnlyNodes:
        return fw.OnlyNodes(frozenset({pod.labels["to"]}))


def test_classes_that_will_not_do_make_room_too() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Picky}]}}
"""
    with Simulation(config=config, plugins=[Picky], keep_attempts=False) as sim:
        sim.apply(*(node(name) for name in "abc"))
        classes = next(iter(sim.scheduler.crews.values())).cycle._classes
        assert classes is not None
        classes._most_rows = 3 * 10
        targets = {f"p{i}": "abc"[i % 3] for i in range(40)}
        sim.schedule(*(pod(name, labels={"to": to, "of": name}) for name, to in targets.items()))
        assert {name: sim.node_of(name) for name in targets} == targets
        assert len(classes) == 10
