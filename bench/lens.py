"""Snapshots, what-if and capacity at 5,000 nodes and 50,000 pods: sizes, seconds, pods a second.

    python -m bench.lens                  this tree
    python -m bench.lens --nodes 500 --pods 5000

Pods are as in production: of 1,000 templates, with owners, labels, tolerations, probes' worth of
status and a start time. CPU seconds are measured, which other load disturbs less than the wall
clock; figures that the design promises are beside them.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mooring.api import codec, core
from mooring.api.apps import ReplicaSet
from mooring.lens.reading import read_snapshot
from mooring.lens.redaction import redact
from mooring.lens.snapshot import ClusterState, Snapshot
from mooring.lens.writing import encoded, write_snapshot
from mooring.observe import garbage_collection
from mooring.simulator.capacity import Demand, capacity
from mooring.simulator.changes import ClusterChanges
from mooring.simulator.imagine import Run, imagine, load, simulation
from mooring.simulator.workloads import Scaling, copied

T = TypeVar("T")
TEMPLATES = 1_000
ZONES = 10
SLICE = 0.005  # seconds


# --- a cluster as in production ------------------------------------------------------------------


def production(nodes: int, pods: int, templates: int = TEMPLATES) -> Snapshot:
    """Nodes with the labels, images and conditions of a cloud, and pods of Deployments."""
    dice = random.Random(1)
    return Snapshot(
        cluster=ClusterState(
            nodes=tuple(_node(i, dice) for i in range(nodes)),
            # As an API server lists them.
            pods=tuple(
                sorted(
                    (_pod(i, i % templates, nodes, dice) for i in range(pods)),
                    key=lambda pod: pod.key,
                )
            ),
            namespaces=tuple(
                codec.convert({"metadata": {"name": f"team-{i:02}"}}, core.Namespace)
                for i in range(50)
            ),
            replicasets=tuple(_replica_set(i) for i in range(templates)),
        ),
        at=1.8e9,
    )


def _uid(text: str) -> str:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def _time(dice: random.Random) -> str:
    day, second = dice.randrange(1, 29), dice.randrange(86_400)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"2026-0{dice.randrange(1, 10)}-{day:02}T{clock}Z"


def _node(i: int, dice: random.Random) -> core.Node:
    name = f"ip-10-{i // 65536}-{i // 256 % 256}-{i % 256}.eu-central-1.compute.internal"
    zone = f"eu-central-1{'abcdefghij'[i % ZONES]}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "eu-central-1",
        "node.kubernetes.io/instance-type": "m6i.8xlarge",
        "pool": f"pool-{i % 7}",
    }
    since = _time(dice)
    conditions = [
        {"type": kind, "status": status, "reason": f"Kubelet{kind}", "lastTransitionTime": since}
        for kind, status in (("Ready", "True"), ("MemoryPressure", "False"))
    ]
    images = [
        {
            "names": [f"registry.example.com/apps/app-{dice.randrange(TEMPLATES)}:v{n}"],
            "sizeBytes": dice.randrange(10**7, 10**9),
        }
        for n in range(5)
    ]
    raw = {
        "metadata": {"name": name, "uid": _uid(name), "labels": labels, "creationTimestamp": since},
        "spec": {"providerID": f"aws:///{zone}/i-{_uid(name)[:17]}"},
        "status": {
            "allocatable": {"cpu": "31850m", "memory": "127Gi", "pods": "234"},
            "conditions": conditions,
            "images": images,
        },
    }
    return codec.convert(raw, core.Node)


def _pod(i: int, app: int, nodes: int, dice: random.Random) -> core.Pod:
    owner = f"app-{app}-{_uid(f'rs{app}')[:10]}"
    name = f"{owner}-{_uid(f'pod{i}')[:5]}"
    started = _time(dice)
    requests = {"cpu": f"{100 + 50 * (app % 8)}m", "memory": f"{128 * (1 + app % 6)}Mi"}
    containers: list[dict[str, Any]] = [
        {
            "name": "app",
            "image": f"registry.example.com/apps/app-{app}:v{app % 5}",
            "resources": {"requests": requests, "limits": {"memory": "2Gi"}},
            "ports": [{"name": "http", "containerPort": 8080}],
        },
        {
            "name": "proxy",
            "image": "registry.example.com/mesh/proxy:1.2.3",
            "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
        },
    ]
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    types = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    raw = {
        "metadata": {
            "name": name,
            "namespace": f"team-{app % 50:02}",
            "uid": _uid(f"pod{i}"),
            "generateName": f"{owner}-",
            "labels": {"app": f"app-{app}", "pod-template-hash": owner[-10:], "tier": "backend"},
            "creationTimestamp": started,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": _uid(f"rs{app}"),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": _node_name(dice.randrange(nodes)),
            "containers": containers,
            "serviceAccountName": f"app-{app}",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "tolerations": tolerations,
            "volumes": [{"name": f"kube-api-access-{_uid(name)[:5]}"}],
        },
        "status": {
            "phase": "Running",
            "startTime": started,
            "podIP": f"10.{i // 65536}.{i // 256 % 256}.{i % 256}",
            "hostIP": f"172.16.{i % nodes // 256}.{i % nodes % 256}",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": started} for kind in types
            ],
            "containerStatuses": [
                {"name": one["name"], "ready": True, "restartCount": 0} for one in containers
            ],
        },
    }
    return codec.convert(raw, core.Pod)


def _node_name(i: int) -> str:
    return f"ip-10-{i // 65536}-{i // 256 % 256}-{i % 256}.eu-central-1.compute.internal"


def _replica_set(app: int) -> ReplicaSet:
    name = f"app-{app}-{_uid(f'rs{app}')[:10]}"
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{app}", "uid": "d"}
    raw = {
        "metadata": {
            "name": name,
            "namespace": f"team-{app % 50:02}",
            "uid": _uid(f"rs{app}"),
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"selector": {"matchLabels": {"app": f"app-{app}"}}, "replicas": 50},
    }
    return codec.convert(raw, ReplicaSet)


def shape(name: str, cpu: str, memory: str, **more: Any) -> core.Pod:
    """A pod whose number is asked for."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    raw = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}], **more},
    }
    return codec.convert(raw, core.Pod)


# --- measuring -----------------------------------------------------------------------------------


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and CPU seconds."""
    gc.collect()
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def say(what: str, value: str, bound: str = "") -> None:
    print(f"{what:<58}{value:>16}{bound:>20}", flush=True)


def measure(nodes: int, pods: int, more: int) -> None:
    garbage_collection.collect_rarely()
    given = production(nodes, pods)
    garbage_collection.freeze_existing_objects()  # as a running scheduler does
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.snap.gz")
        size, spent = timed(lambda: write_snapshot(given, file))
        say("snapshot file", f"{size / 1e6:.1f} MB", "at most 10")
        say("  encoding", f"{spent:.2f} s")
        say("  longest slice", f"{_longest_slice(given) * 1e3:.1f} ms", "at most 5")
        found, spent = timed(lambda: redact(given))
        size = write_snapshot(found, Path(folder, "r.snap.gz"))
        say("redacted", f"{size / 1e6:.1f} MB", "at most 15")
        say("  redaction", f"{spent:.2f} s")
        snapshot, reading = timed(lambda: read_snapshot(file))
        say("reading", f"{reading:.2f} s")
    garbage_collection.freeze_existing_objects()

    def rebuild() -> None:
        sim, _, _ = simulation(snapshot, Run())
        with sim:
            load(sim, snapshot.cluster)

    _, spent = timed(rebuild)
    say("rebuilding the cluster", f"{spent:.2f} s")
    say("reading and rebuilding", f"{reading + spent:.2f} s", "at most 3")
    _capacity(snapshot, more, "capacity, one class", (shape("small", "100m", "200Mi"),), 5000)
    zone = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"}
    rule = {**zone, "whenUnsatisfiable": "DoNotSchedule"}
    spread = {**rule, "labelSelector": {"matchLabels": {"app": "spread"}}}
    mixed = (
        shape("small", "100m", "200Mi"),
        shape("spread", "200m", "300Mi", topologySpreadConstraints=[spread]),
        shape("zonal", "100m", "1Gi", nodeSelector={"pool": "pool-3"}),
        shape("large", "2", "4Gi"),
    )
    _capacity(snapshot, more, "capacity, mixed", mixed, 2000)
    plain = shape("plain", "100m", "200Mi")
    many = ClusterState(pods=tuple(copied(plain, f"plain-{i}") for i in range(more // 2)))
    _what_if(snapshot, "pods of one class applied", ClusterChanges(applied=many), 5000)
    scaling = Scaling("Deployment", "app-1", more // 2, "team-01")
    # Its pods have default spread constraints.
    _what_if(snapshot, "one Deployment scaled", ClusterChanges(scale=(scaling,)), 2000)
    names = tuple(_node_name(i) for i in range(nodes // 5))
    hundred = production(nodes, pods, 100)
    _what_if(hundred, "a fifth of the nodes drained", ClusterChanges(drain=names), 2000)


def _longest_slice(snapshot: Snapshot) -> float:
    """CPU seconds, because the wall clock also counts what other processes do."""
    longest = 0.0
    chunks = encoded(snapshot)
    while True:
        began = time.process_time()
        chunk = next(chunks, None)
        longest = max(longest, time.process_time() - began)
        if chunk is None:
            return longest


def _capacity(
    snapshot: Snapshot, most: int, what: str, shapes: tuple[core.Pod, ...], bound: int
) -> None:
    def count(most: int) -> int:
        demand = Demand(shapes=shapes, most=most, gains=False)
        return capacity(snapshot, demand, Run()).total

    _, base = timed(lambda: count(len(shapes)))  # loading, and the first of each shape
    total, spent = timed(lambda: count(most))
    rate = (total - len(shapes)) / max(spent - base, 1e-9)
    say(f"{what}, {total:,} pods", f"{rate:,.0f} pods/s", f"at least {bound:,}")


def _what_if(snapshot: Snapshot, what: str, changes: ClusterChanges, bound: int) -> None:
    _, base = timed(lambda: imagine(snapshot, Run()))
    found, spent = timed(lambda: imagine(snapshot, Run(changes=changes)))
    rate = found.bound / max(spent - base, 1e-9)
    say(f"what-if: {what}, {found.bound:,} pods", f"{rate:,.0f} pods/s", f"at least {bound:,}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.lens", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--more", type=int, default=20_000, help="pods that capacity places")
    options = parser.parse_args(arguments)
    measure(options.nodes, options.pods, options.more)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
