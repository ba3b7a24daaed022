"""What is scheduled in the benchmarks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import mooring.framework as fw
from mooring.testing import node, pod
from mooring.testing.builders import HOSTNAME, ZONE

ZONES = 10
CLASSES = 100


def cluster(count: int, first: int = 0) -> list[fw.Node]:
    """Identical nodes of 32 cores and 64 GiB over ten zones, numbered from `first`."""
    return [
        node(f"node-{i:05}", cpu=32, memory="64Gi", zone=f"zone-{i % ZONES}")
        for i in range(first, first + count)
    ]


def basic(i: int) -> fw.Pod:
    """A pod that asks for cpu and memory and nothing else."""
    return pod(f"basic-{i}", cpu="100m", memory="200Mi")


def node_affinity(i: int) -> fw.Pod:
    """A pod that may run in two of the ten zones."""
    zones = {"key": "topology.kubernetes.io/zone", "operator": "In"}
    term = {"matchExpressions": [{**zones, "values": ["zone-1", "zone-2"]}]}
    required = {"nodeSelectorTerms": [term]}
    rules = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod(f"zonal-{i}", cpu="100m", memory="200Mi", affinity=rules)


def spread(i: int) -> fw.Pod:
    """A pod that must be spread over the zones."""
    return pod(f"spread-{i}", cpu="100m", memory="200Mi", labels={"app": "s"}, spread={"zone": 1})


def preferred_spread(i: int) -> fw.Pod:
    """A pod that should be spread over the zones if that is possible."""
    selector = {"matchLabels": {"app": "w"}}
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    spec = {"topologySpreadConstraints": [{**rule, "labelSelector": selector}]}
    return pod(f"even-{i}", cpu="100m", memory="200Mi", labels={"app": "w"}, spec=spec)


def _term(topology: str, app: str) -> dict[str, Any]:
    return {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}


def affinity(i: int) -> fw.Pod:
    """A pod that must be in a zone with others of its kind."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(ZONE, "a")]}
    rules = {"podAffinity": required}
    return pod(f"affine-{i}", cpu="100m", memory="200Mi", labels={"app": "a"}, affinity=rules)


def anti_affinity(i: int) -> fw.Pod:
    """A pod that wants a node without others of its kind, ten kinds in turn."""
    app = f"x{i % 10}"
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(HOSTNAME, app)]}
    rules = {"podAntiAffinity": required}
    return pod(f"anti-{i}", cpu="100m", memory="200Mi", labels={"app": app}, affinity=rules)


def preferred_affinity(i: int) -> fw.Pod:
    """A pod that would like to be on a node with others of its kind."""
    wish = {"weight": 1, "podAffinityTerm": _term(HOSTNAME, "p")}
    rules = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    return pod(f"wish-{i}", cpu="100m", memory="200Mi", labels={"app": "p"}, affinity=rules)


def preferred_anti_affinity(i: int) -> fw.Pod:
    """A pod that would rather be on a node without others of its kind."""
    wish = {"weight": 1, "podAffinityTerm": _term(HOSTNAME, "q")}
    rules = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    return pod(f"shy-{i}", cpu="100m", memory="200Mi", labels={"app": "q"}, affinity=rules)


def mixed(i: int) -> fw.Pod:
    """Six kinds in turn."""
    kinds = (basic, spread, affinity, anti_affinity, preferred_affinity, node_affinity)
    return kinds[i % len(kinds)](i)


def hundred_classes(i: int) -> fw.Pod:
    """A pod of one of a hundred classes that differ in requests and labels, in random order.

    Each hundred pods have all of them, so that all are known after the first hundred.
    """
    order = random.Random(i // CLASSES).sample(range(CLASSES), CLASSES)
    kind = order[i % CLASSES]
    cpu, memory = f"{50 + 10 * (kind % 10)}m", f"{100 + 20 * (kind // 10)}Mi"
    return pod(f"class-{i}", cpu=cpu, memory=memory, labels={"app": f"app-{kind}"})


def too_big(i: int) -> fw.Pod:
    """A pod that fits nowhere: every attempt ends in a full diagnosis."""
    return pod(f"big-{i}", cpu="64", memory="200Mi")


WORKLOADS: dict[str, Callable[[int], fw.Pod]] = {
    "basic": basic,
    "spread": spread,
    "preferred spread": preferred_spread,
    "affinity": affinity,
    "anti-affinity": anti_affinity,
    "preferred affinity": preferred_affinity,
    "preferred anti-affinity": preferred_anti_affinity,
    "node affinity": node_affinity,
    "mixed": mixed,
    "100 classes": hundred_classes,
    "unschedulable": too_big,
}
