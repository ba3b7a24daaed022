"""Snapshots for the page: a large cluster with all that can wait in it, and names that bite."""

from __future__ import annotations

import random
import time
from functools import lru_cache
from itertools import accumulate

from msgspec import structs

from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.wellknown import HOSTNAME
from mooring.cache.pods import Pod
from mooring.lens.snapshot import ClusterState, Snapshot
from mooring.testing.builders import node, pod

HOSTILE = "<img src=x onerror=alert(1)>"
RIGHT_TO_LEFT = "\u202eevil\u2066"
LONG = "a" * 63
EMOJI = "🚢⚓️"


def cluster(nodes: int = 300, pods: int = 3000, *, seed: int = 1) -> Snapshot:
    """Nodes in three zones and three pools, pods on them, and pods that wait for every reason."""
    rng = random.Random(seed)
    machines = [_node(number, rng) for number in range(nodes)]
    models = [
        pod(namespace=namespace, phase="Running", priority=priority, cpu=cpu, memory=memory).api
        for namespace, priority in (("shop", 0), ("web", 100), ("data", 200))
        for cpu in ("250m", "500m", "1", "2")
        for memory in ("512Mi", "2Gi", "6Gi")
    ]
    room = [1000.0 * (8, 16, 32)[number % 3] for number in range(nodes)]
    weights = list(accumulate(size * rng.uniform(0.3, 1.5) for size in room))
    found: list[core.Pod] = []
    for number in range(pods):
        model = models[number % len(models)]
        asks = Pod(model).all_requests["cpu"]
        tried = rng.choices(range(nodes), cum_weights=weights, k=8)
        place = next((one for one in tried if room[one] >= asks), tried[0])
        room[place] -= asks
        found.append(_renamed(model, f"app-{number % 40}-{number:05d}", machines[place]))
    return Snapshot(
        cluster=ClusterState(nodes=tuple(machines), pods=(*found, *_waiting())),
        at=time.time(),
        scheduler="mooring 1.0",
    )


def _renamed(model: core.Pod, name: str, place: core.Node) -> core.Pod:
    meta = structs.replace(model.metadata, name=name, uid=name)
    spec = structs.replace(model.spec, node_name=place.metadata.name)
    return structs.replace(model, metadata=meta, spec=spec)


@lru_cache
def _machine(pool: str, size: int, zone: str, disk: str, cordoned: bool) -> core.Node:
    return node(
        cpu=(8, 16, 32)[size],
        memory=("32Gi", "64Gi", "128Gi")[size],
        zone=zone,
        labels={"pool": pool, "disk": disk},
        taints=["pool=gpu:NoSchedule"] if pool == "gpu" else [],
        unschedulable=cordoned,
    ).api


def _node(number: int, rng: random.Random) -> core.Node:
    pool = ("general", "general", "memory", "gpu")[number % 4]
    disk = "ssd" if rng.random() < 0.6 else "hdd"
    model = _machine(pool, number % 3, "abc"[number * 3 // 7 % 3], disk, number % 61 == 7)
    name = f"{pool}-{number:04d}"
    labels = FrozenDict({**model.metadata.labels, HOSTNAME: name})
    meta = structs.replace(model.metadata, name=name, uid=f"uid-{name}", labels=labels)
    return structs.replace(model, metadata=meta)


def _waiting() -> list[core.Pod]:
    waits = [
        pod(f"train-{n}", namespace="data", cpu="64", memory="64Gi", priority=500)
        for n in range(12)
    ]
    waits += [pod(f"render-{n}", namespace="web", cpu="28", memory="100Gi") for n in range(5)]
    waits.append(pod("typo", namespace="shop", cpu="1", node_selector={"disk": "sdd"}))
    waits.append(pod("gated", namespace="shop", cpu="1", gates=["example.com/quota"]))
    waits.append(pod("gpu", namespace="data", cpu="1", requests={"example.com/gpu": 1}))
    waits.append(pod("new", namespace="shop", cpu="500m", memory="256Mi"))
    return [one.api for one in waits]


def hostile() -> Snapshot:
    """Names that an API server may or may not let in: in a dump there can be anything."""
    machines = (
        node(HOSTILE, labels={"pool": HOSTILE, "topology.kubernetes.io/zone": "<b>zone</b>"}).api,
        _with_taint(node(RIGHT_TO_LEFT, zone="\u202e").api, "<i>x</i>"),
        node(LONG, zone=LONG).api,
    )
    pods = (
        pod(HOSTILE, namespace="<svg onload=alert(2)>", cpu="1000").api,
        pod(RIGHT_TO_LEFT, namespace="shop", cpu="1000", annotations={"note": EMOJI}).api,
        pod(LONG, namespace=LONG, on=LONG, cpu="1", annotations={"note": EMOJI}).api,
        pod(EMOJI, namespace="shop", cpu="1", labels={"app": EMOJI}).api,
    )
    return Snapshot(cluster=ClusterState(nodes=machines, pods=pods), at=time.time())


def _with_taint(machine: core.Node, key: str) -> core.Node:
    taints = (core.Taint(key=key, effect="NoSchedule"),)
    return structs.replace(machine, spec=structs.replace(machine.spec, taints=taints))
