"""Decisions by class equal those of a full evaluation, whatever the cluster goes through.

`MOORING_CLASS_DECISIONS=20000` makes it that many decisions instead of a few hundred.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from mooring.api import codec, core
from mooring.simulator import Simulation
from mooring.testing import _random_pods as hat
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


def _named(name: str) -> Any:
    from mooring.api.meta import ObjectMeta

    return ObjectMeta(name=name)
