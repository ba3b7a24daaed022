"""What is scheduled in the benchmarks."""

from __future__ import annotations

from collections.abc import Callable

import mooring.framework as fw
from mooring.testing import node, pod

ZONES = 10


def cluster(count: int) -> list[fw.Node]:
    """Identical nodes of 32 cores and 64 GiB over ten zones."""
    return [
        node(f"node-{i:05}", cpu=32, memory="64Gi", zone=f"zone-{i % ZONES}") for i in range(count)
    ]


def basic(i: int) -> fw.Pod:
    """A pod that asks for cpu and memory and nothing else."""
    return pod(f"basic-{i}", cpu="100m", memory="200Mi")


def node_affinity(i: int) -> fw.Pod:
    """A pod that may run in two of the ten zones."""
    zones = {"key": "topology.kubernetes.io/zone", "operator": "In"}
    term = {"matchExpressions": [{**zones, "values": ["zone-1", "zone-2"]}]}
    required = {"nodeSelectorTerms": [term]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod(f"affine-{i}", cpu="100m", memory="200Mi", affinity=affinity)


def too_big(i: int) -> fw.Pod:
    """A pod that fits nowhere: every attempt ends in a full diagnosis."""
    return pod(f"big-{i}", cpu="64", memory="200Mi")


WORKLOADS: dict[str, Callable[[int], fw.Pod]] = {
    "basic": basic,
    "node affinity": node_affinity,
    "unschedulable": too_big,
}
