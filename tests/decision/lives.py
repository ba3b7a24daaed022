"""Random lives of clusters, for comparisons of decisions; the same seed gives the same life.

A life is hard on an engine that remembers: pods of a class return after bursts of others have
changed dozens of nodes; nodes get other labels, sizes and taints, a dozen at a time, or flap; pods
leave in bulk; Services, owners, namespaces and volumes change what rules mean.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import structs
from tests.decision import workloads
from tests.decision.workloads import (
    CLAIMS,
    IN_EVERY_LIFE,
    KINDS,
    RACK,
    SETS,
    Kind,
    Raw,
    Workload,
)

from mooring.api import codec, core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import Object
from mooring.simulator import Simulation
from mooring.testing._random_clusters import random_images, random_node, random_taints
from mooring.testing._random_pods import NAMESPACES, Dice
from mooring.testing.builders import HOSTNAME, ZONE

ZONES: Final = ("a", "b", "c", "d")
RACKS: Final = tuple(f"r{number}" for number in range(15))
LARGE: Final = (30, 60)  # nodes
SMALL: Final = (1, 9)
BURST: Final = (13, 40)  # pods
ABOUT_INDEXES: Final = "rule"
_KINDS: Final = {kind.KIND: kind for kind in codec.KINDS}


class Life:
    """What a cluster goes through, one `turn` after the other."""

    def __init__(self, sim: Simulation, seed: int, *, is_large: bool) -> None:
        self._sim = sim
        self._dice = dice = Dice(random.Random(seed))
        make = roomy_node if is_large or dice.sometimes() else random_node
        names = [f"node-{i}" for i in range(dice.number(*(LARGE if is_large else SMALL)))]
        self._nodes = {name: make(dice, name) for name in names}
        self._pods: dict[str, core.Pod] = {}  # by name; some may have been preempted since
        self._made = 0
        self._deck: list[Kind] = []  # of the workloads to come
        self._workloads = [self._new_workload(kind) for kind in IN_EVERY_LIFE]
        others = (workloads.hosts_of_their_own, None, None)
        self._workloads += [self._new_workload(kind) for kind in others]
        self._workloads += [self._new_twin() for _ in range(2)]
        sim.apply(*(made("Namespace", name, labels=dict(NAMESPACES[name])) for name in NAMESPACES))
        sim.apply(*self._nodes.values())
        for name in CLAIMS:
            self._put_claim(name)
        for regular in self._workloads[: len(IN_EVERY_LIFE)]:
            self._create(regular, 2)
        for _ in range(6):
            self.change_owners()

    def turn(self) -> None:
        """Something happens, pods of known classes follow, and the scheduler reacts."""
        events, odds = zip(*EVENTS, strict=True)
        for event in self._dice.rng.choices(events, odds, k=self._dice.number(1, 2)):
            event(self)
        if self._dice.sometimes():
            self._sim.settle()
        # Some follow after every turn, so that they meet single changes; others after many turns.
        count = len(IN_EVERY_LIFE)
        for known in (*self._workloads[:count], *self._dice.some(self._workloads[count:])):
            self._create(known, 1)
        seconds = self._dice.one((0.0, 0.0, 0.0, 1.0, 12.0))
        if seconds:
            self._sim.advance(seconds)
        else:
            self._sim.settle()

    # --- pods ------------------------------------------------------------------------------------

    def burst(self) -> None:
        """Pods of one class, enough to change dozens of nodes between two pods of another."""
        self._create(self._dice.one(self._workloads), self._dice.number(*BURST))

    def start_workload(self) -> None:
        """A new class takes the place of one that follows now and then."""
        place = self._dice.rng.randrange(len(IN_EVERY_LIFE), len(self._workloads))
        new = self._new_twin() if self._dice.sometimes() else self._new_workload()
        self._workloads[place] = new
        self._create(new, self._dice.number(1, 3))

    def preempt(self) -> None:
        """A few pods that others have to make room for; until they have it, it is kept for them."""
        important = workloads.important(self._dice, self._new_name("w"), list(self._nodes))
        self._create(important, self._dice.number(2, 6))

    def start_rule_about_indexes(self) -> None:
        """A selector names a label that no selector may have named before."""
        rule = workloads.about_indexes(self._dice, self._new_name(ABOUT_INDEXES))
        self._create(rule, self._dice.number(1, 5))

    def end_rules_about_indexes(self) -> None:
        self._remove([name for name in self._pods if name.startswith(ABOUT_INDEXES)])

    def leave(self) -> None:
        """Some pods go, or most."""
        share = self._dice.one((0.03, 0.5, 0.8))
        self._remove(self._dice.rng.sample(list(self._pods), int(share * len(self._pods))))

    def give_up(self) -> None:
        """Pods that fit nowhere are not waited for any longer."""
        pods = self._sim.cluster.pods()
        pending = {pod.metadata.name for pod in pods if not pod.spec.node_name}
        self._remove([name for name in self._pods if name in pending])

    def relabel_pods(self) -> None:
        """Selectors select other pods from now on."""
        known = {pod.metadata.uid: pod for pod in self._sim.cluster.pods() if pod.spec.node_name}
        for pod in self._dice.rng.sample(list(known.values()), min(5, len(known))):
            labels = {**pod.metadata.labels, "app": self._dice.one(("web", "db"))}
            meta = structs.replace(pod.metadata, labels=FrozenDict(labels))
            self._sim.apply(structs.replace(pod, metadata=meta))

    # --- nodes -----------------------------------------------------------------------------------

    def change_nodes(self) -> None:
        """One change, on one node or on many."""
        changes = (relabelled, relabelled, relabelled, tainted, tainted)
        change = self._dice.one((*changes, resized, cordoned, other_images))
        for name in self._some_nodes(1, 1, 3, 20):
            self._nodes[name] = change(self._dice, self._nodes[name])
            self._sim.apply(self._nodes[name])

    def flap_nodes(self) -> None:
        """Nodes are deleted and come back, with their pods."""
        gone = [self._nodes[name] for name in self._some_nodes(1, 3)]
        self._sim.delete(*gone)
        if self._dice.sometimes():
            self._sim.settle()
        self._sim.apply(*gone)

    def add_node(self) -> None:
        name = self._new_name("node")
        self._nodes[name] = roomy_node(self._dice, name)
        self._sim.apply(self._nodes[name])

    def remove_node(self) -> None:
        if len(self._nodes) > 1:
            self._sim.delete(self._nodes.pop(self._dice.one(list(self._nodes))))

    # --- other objects ---------------------------------------------------------------------------

    def change_services(self) -> None:
        """Pods that a Service selects, by one of their labels, are spread by default."""
        dice = self._dice
        meta = self._any_pod().metadata
        selector = dict([dice.one(list(meta.labels.items()))]) if meta.labels else {"app": "web"}
        service = made("Service", dice.one(SETS), meta.namespace, spec={"selector": selector})
        self._put_or_delete(service)

    def change_owners(self) -> None:
        """Likewise for the selector of a controller."""
        dice = self._dice
        kind = dice.one(("ReplicaSet", "ReplicaSet", "StatefulSet"))
        meta = self._any_pod().metadata
        spec = {"selector": {"matchLabels": {"app": meta.labels.get("app", "web")}}, "replicas": 3}
        self._put_or_delete(made(kind, dice.one(SETS), meta.namespace, spec=spec))

    def relabel_namespace(self) -> None:
        team = {"team": self._dice.one(("a", "b"))}
        self._sim.apply(made("Namespace", self._dice.one(list(NAMESPACES)), labels=team))

    def change_claims(self) -> None:
        self._put_claim(self._dice.one(CLAIMS))

    def _put_claim(self, name: str) -> None:
        expression = {"key": ZONE, "operator": "In", "values": [self._dice.one(ZONES)]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
        volume = {"nodeAffinity": {"required": terms}, "claimRef": claim}
        self._sim.apply(made("PersistentVolume", f"of-{name}", spec=volume))
        bound = {"volumeName": f"of-{name}", "accessModes": ["ReadWriteMany"]}
        done = {"pv.kubernetes.io/bind-completed": "yes"}
        self._put_or_delete(
            made("PersistentVolumeClaim", name, "default", annotations=done, spec=bound)
        )

    # --- inside ----------------------------------------------------------------------------------

    def _new_name(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}-{self._made}"

    def _new_workload(self, kind: Kind | None = None) -> Workload:
        if not self._deck:
            self._deck = self._dice.rng.sample(KINDS, len(KINDS))
        kind = kind or self._deck.pop()
        return workloads.workload(self._dice, self._new_name("w"), kind, list(self._nodes))

    def _new_twin(self) -> Workload:
        model = self._dice.one(self._workloads)
        return model.twin(self._dice, self._new_name("w"))

    def _create(self, of: Workload, count: int) -> None:
        pods = of.pods(count)
        self._pods |= {pod.metadata.name: pod for pod in pods}
        self._sim.apply(*pods)

    def _remove(self, names: Iterable[str]) -> None:
        self._sim.delete(*(self._pods.pop(name) for name in names))

    def _some_nodes(self, *counts: int) -> list[str]:
        count = min(self._dice.one(counts), len(self._nodes))
        return self._dice.rng.sample(list(self._nodes), count)

    def _any_pod(self) -> core.Pod:
        return self._dice.one(list(self._pods.values()) or self._workloads[0].pods(1))

    def _put_or_delete(self, value: Object) -> None:
        if self._dice.sometimes():
            self._sim.delete(value)
        else:
            self._sim.apply(value)


EVENTS: Final[Sequence[tuple[Callable[[Life], None], int]]] = (
    (Life.burst, 6),
    (Life.start_workload, 3),
    (Life.preempt, 4),
    (Life.start_rule_about_indexes, 3),
    (Life.end_rules_about_indexes, 1),
    (Life.leave, 4),
    (Life.give_up, 5),
    (Life.relabel_pods, 1),
    (Life.change_nodes, 14),
    (Life.flap_nodes, 1),
    (Life.add_node, 1),
    (Life.remove_node, 1),
    (Life.change_services, 2),
    (Life.change_owners, 2),
    (Life.relabel_namespace, 3),
    (Life.change_claims, 1),
)
"""What may happen, and how often."""


def made(kind: str, name: str, namespace: str = "", spec: Raw | None = None, **meta: Raw) -> Object:
    raw: Raw = {"metadata": {"name": name, "namespace": namespace, **meta}}
    if spec is not None:
        raw["spec"] = spec
    return codec.convert(raw, _KINDS[kind])


# --- nodes ---------------------------------------------------------------------------------------


def roomy_node(dice: Dice, name: str) -> core.Node:
    """A node for a few pods; usually in a zone, rarely tainted."""
    labels = {HOSTNAME: name, RACK: dice.one(RACKS)}
    labels |= dice.some_of({"disk": ("ssd", "hdd"), "pool": ("x", "y")})
    if not dice.rarely():
        labels[ZONE] = dice.one(ZONES)
    cpu, memory = dice.one((("4", "16Gi"), ("6", "16Gi"), ("10", "12Gi")))
    raw = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"taints": random_taints(dice) if dice.rarely() else []},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": dice.one(("110", "110", "6"))},
            "images": random_images(dice),
        },
    }
    return codec.convert(raw, core.Node)


def relabelled(dice: Dice, node: core.Node) -> core.Node:
    """In another zone or rack, or with another host name, disk or pool."""
    new = f"zone-{dice.number(1, 1_000)}"  # a domain that no node was in before
    values: dict[str, Sequence[str]] = {
        ZONE: (*ZONES, *ZONES, new),
        RACK: RACKS,
        HOSTNAME: (node.metadata.name, "shared"),
        "disk": ("ssd", "hdd"),
        "pool": ("x", "y"),
    }
    key = dice.one((ZONE, ZONE, ZONE, RACK, RACK, RACK, HOSTNAME, "disk", "pool"))
    labels = dict(node.metadata.labels)
    labels.pop(key, None)
    if not dice.rarely():
        labels[key] = dice.one(values[key])
    meta = structs.replace(node.metadata, labels=FrozenDict(labels))
    return structs.replace(node, metadata=meta)


def resized(dice: Dice, node: core.Node) -> core.Node:
    other = roomy_node(dice, "").status.allocatable
    return structs.replace(node, status=structs.replace(node.status, allocatable=other))


def tainted(dice: Dice, node: core.Node) -> core.Node:
    soft = [{"key": "gpu", "value": "", "effect": "PreferNoSchedule"}]
    raw = {"spec": {"taints": dice.one(([], [], soft, random_taints(dice)))}}
    other = codec.convert(raw, core.Node).spec.taints
    return structs.replace(node, spec=structs.replace(node.spec, taints=other))


def cordoned(dice: Dice, node: core.Node) -> core.Node:
    spec = structs.replace(node.spec, unschedulable=dice.rarely())
    return structs.replace(node, spec=spec)


def other_images(dice: Dice, node: core.Node) -> core.Node:
    other = roomy_node(dice, "").status.images
    return structs.replace(node, status=structs.replace(node.status, images=other))
