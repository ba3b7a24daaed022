"""Decisions by class equal those of a full evaluation, whatever the cluster goes through.

`MOORING_CLASS_DECISIONS=20000` makes it that many decisions instead of a few hundred.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from mooring.api import codec, core
from mooring.api.meta import ObjectMeta
from mooring.simulator import Simulation
from mooring.simulator.cluster import RecordedEvent
from mooring.testing._random_clusters import random_node, random_objects, random_taints
from mooring.testing._random_pods import NAMESPACES, Dice, random_pod
from mooring.testing.builders import HOSTNAME, ZONE

WANTED = int(os.environ.get("MOORING_CLASS_DECISIONS", "500"))
SEEDS = range(5)

Step = Callable[[Simulation], None]


def templates(dice: Dice, count: int, names: list[str]) -> list[dict[str, Any]]:
    """Pods to be copied: what is the same in all copies makes their class."""
    found = []
    for number in range(count):
        raw = random_pod(dice, f"t{number}", names, features=dice.number(0, 3), is_huge=False)
        for never in ("schedulingGates", "nodeName"):
            raw["spec"].pop(never, None)
        raw["metadata"].pop("deletionTimestamp", None)
        found.append(raw)
    return found


def copies(dice: Dice, of: list[dict[str, Any]], prefix: str = "p") -> Iterator[core.Pod]:
    number = 0
    while True:
        raw = dice.one(of)
        name = f"{prefix}{number}"
        meta = {**raw["metadata"], "name": name, "uid": f"uid-{name}"}
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
def test_answers_as_a_full_evaluation_would(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(seed)
    dice = Dice(rng)
    counted = 0
    while counted < WANTED // len(SEEDS):
        counted += live(life(dice), rng.getrandbits(32))
        # An exception while deciding costs the pod its attempt, and nothing else would show it.
        assert not [record for record in caplog.records if record.exc_info]
        caplog.clear()


def live(steps: list[Step], seed: int) -> int:
    """The life of a cluster; how many decisions were made by class and compared."""
    with Simulation(seed=seed, keep_attempts=False, check_share=1.0) as sim:
        for step in steps:
            step(sim)
        checks = sim.scheduler.metrics.class_checks
        assert checks.labels("different").value == 0
        return int(checks.labels("equal").value)


def life(dice: Dice) -> list[Step]:
    """What a cluster goes through."""
    size = dice.one((1, 2, 3, 5, 9, 20, 40))
    nodes = {f"node-{i}": random_node(dice, f"node-{i}") for i in range(size)}
    spaces = [core.Namespace(metadata=_named(name)) for name in NAMESPACES]
    steps = [applied(*spaces, *random_objects(dice), *nodes.values())]
    pods = copies(dice, templates(dice, dice.number(1, 5), list(nodes)))
    alive: list[core.Pod] = []
    for _ in range(60):
        what = dice.number(0, 19)
        if what < 13:
            new = [next(pods) for _ in range(dice.number(1, 4))]
            alive += new
            steps.append(applied(*new))
        elif what < 15 and alive:
            gone = alive.pop(dice.rng.randrange(len(alive)))
            steps.append(deleted(gone))
        elif what < 17:
            name = dice.one(list(nodes))
            nodes[name] = changed(dice, nodes[name])
            steps.append(applied(nodes[name]))
        elif what == 17:
            name = f"late-{len(nodes)}-{dice.number(0, 9)}"
            nodes[name] = random_node(dice, name)
            steps.append(applied(nodes[name]))
        elif what == 18 and len(nodes) > 1:
            steps.append(deleted(nodes.pop(dice.one(list(nodes)))))
        else:
            steps.append(applied(*random_objects(dice)))
        steps.append(advanced(0.0 if dice.often() else dice.one((1.0, 12.0))))
    return steps


LOW: dict[str, int] = {
    "columns.FEW": 2,
    "domains._ONE_BY_ONE": 2,
    "memory.FEW": 2,
    "memory.MOST_KEYS": 20,
    "memory._MOST_STATUSES": 2,
    "normalize._FEW": 3,
    "normalize._MOST_GROUPS": 3,
    "normalize._MOST_NEW": 3,
    "results._MOST_STATUSES": 2,
}
"""Limits above which many rows are treated in another way than few."""


@pytest.mark.parametrize("limits", [{}, LOW], ids=["usual limits", "low limits"])
@pytest.mark.parametrize("seed", SEEDS)
def test_answers_as_a_full_evaluation_would_when_many_nodes_change(
    seed: int, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(f"mooring.decision.{name}", limit)
    rng = random.Random(1000 + seed + len(limits))
    counted = 0
    while counted < WANTED // len(SEEDS):
        counted += live(busy_life(Dice(rng)), rng.getrandbits(32))


def busy_life(dice: Dice) -> list[Step]:
    """Large enough, and busy enough, that dozens of nodes change between two pods of a class.

    Bursts of pods of one class fill nodes that another class knew empty, many pods leave at once,
    and nodes get other zones, sizes and taints a dozen at a time.
    """
    nodes = {f"node-{i}": roomy_node(dice, f"node-{i}") for i in range(dice.number(30, 60))}
    spaces = [core.Namespace(metadata=_named(name)) for name in NAMESPACES]
    steps = [applied(*spaces, *random_objects(dice), *nodes.values())]
    bursts = [
        copies(dice, [template], f"{number}-")
        for number, template in enumerate(templates(dice, dice.number(2, 5), list(nodes)))
    ]
    bursts += [copies(dice, [of], f"plain-{number}-") for number, of in enumerate(PLAIN)]
    alive: list[core.Pod] = []
    for _ in range(20):
        new = [next(pods) for pods in (dice.one(bursts),) for _ in range(dice.one((1, 2, 15, 30)))]
        alive += new
        steps.append(applied(*new))
        what = dice.number(0, 5)
        if what == 0:
            gone = dice.rng.sample(alive, len(alive) // 2)
            alive = [pod for pod in alive if pod not in gone]
            steps.append(deleted(*gone))
        elif what < 4:
            for name in dice.rng.sample(list(nodes), dice.one((1, 3, 20))):
                other = roomy_node(dice, name)
                part = dice.one(("metadata", "metadata", "spec", "status"))
                nodes[name] = msgspec.structs.replace(nodes[name], **{part: getattr(other, part)})
                steps.append(applied(nodes[name]))
        elif what == 4:
            name = dice.one(list(nodes))
            steps += [deleted(nodes[name]), applied(nodes[name])]
        steps.append(advanced(0.0 if dice.often() else dice.one((1.0, 12.0))))
    return steps


PLAIN: list[dict[str, Any]] = [
    {
        "metadata": {"namespace": "default", "labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]},
    },
    {
        "metadata": {"namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "podAffinityTerm": {
                                "topologyKey": ZONE,
                                "labelSelector": {"matchLabels": {"app": "web"}},
                            },
                        }
                    ]
                }
            },
        },
    },
]
"""Without oddities: many nodes fit, until they are full."""


def roomy_node(dice: Dice, name: str) -> core.Node:
    """A node that takes a few pods and then no more; usually in a zone, rarely tainted."""
    size = dice.one(({"cpu": "4", "memory": "8Gi"}, {"cpu": "5", "memory": "16Gi"}))
    labels = {HOSTNAME: name, **dice.some_of({"disk": ("ssd", "hdd"), "pool": ("x", "y")})}
    if not dice.rarely():
        labels[ZONE] = dice.one(("a", "b", "c", "d"))
    raw = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"taints": random_taints(dice) if dice.rarely() else []},
        "status": {"allocatable": {**size, "pods": "110"}},
    }
    return codec.convert(raw, core.Node)


def applied(*objects: Any) -> Step:
    return lambda sim: sim.apply(*objects)


def deleted(*objects: Any) -> Step:
    return lambda sim: sim.delete(*objects)


def advanced(seconds: float) -> Step:
    return lambda sim: sim.advance(seconds) if seconds else sim.settle()


def _named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name)


@pytest.mark.parametrize("seed", range(4))
def test_pods_that_fit_nowhere_are_told_what_a_full_evaluation_would_say(seed: int) -> None:
    refused_by_class = 0
    for number in range(100 * seed, 100 * seed + 3):
        (said, decided), (in_full, _) = told(number), told(number, in_full=True)
        assert said == in_full
        placed = sum(event.reason == "Scheduled" for event in said)
        refused_by_class += max(0, decided - placed)  # at least
    assert refused_by_class


def told(seed: int, *, in_full: bool = False) -> tuple[list[RecordedEvent], int]:
    """The Events in the life of a cluster, and how many decisions were made by class."""
    with Simulation(seed=seed, keep_attempts=in_full) as sim:
        for step in life(Dice(random.Random(seed))):
            step(sim)
        return sim.events, int(sim.scheduler.metrics.decisions.labels("class").value)
