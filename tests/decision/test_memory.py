"""Decisions by class equal those of a full evaluation, whatever the cluster goes through.

`MOORING_CLASS_DECISIONS=20000` makes it that many decisions instead of a few hundred.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import mooring.framework as fw
from mooring.api import codec, core
from mooring.api.meta import ObjectMeta
from mooring.decision.memory import ClassMemory
from mooring.framework._internal import DomainFilter
from mooring.simulator import Simulation
from mooring.simulator.cluster import RecordedEvent
from mooring.testing import node, pod
from mooring.testing._random_clusters import random_node, random_objects, random_taints
from mooring.testing._random_pods import NAMESPACES, Dice, random_pod
from mooring.testing.builders import HOSTNAME, ZONE

WANTED = int(os.environ.get("MOORING_CLASS_DECISIONS", "800"))
SEEDS = range(8)

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
    for number in range(100 * seed, 100 * seed + 5):
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
