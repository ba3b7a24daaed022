"""What is scheduled: the workloads of kube's own scheduler_perf, on the nodes of one cluster.

Nodes are larger than there, so that all workloads fit on the same ones. Where kube's benchmarks
create pods while the clock runs, ours are there before the scheduler starts: what is measured is
then the scheduler, not the program that creates pods, which would need one of two cores for it.
Pods as controllers make them come from `bench.manifests`, full clusters and volumes from
`bench.shapes`; the benchmarks in process use both, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bench import manifests
from bench.device_shapes import DEVICE_SHAPES
from bench.manifests import HOST, IMAGE, ZONE, Object
from bench.shapes import SHAPES, Shape

ZONES = 10
MEASURED = "measured"  # label: "yes" on pods that are waited for, "victim" on those that go
LOW, HIGH = "bench-low", "bench-high"  # priority classes

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Pods to be bound, and what else is there meanwhile.

    All functions get the number of a pod; `count` tells how many of the pods asked for make sense
    on so many nodes.
    """

    title: str
    pod: Callable[[int], Object]
    count: Callable[[int, int], int] = lambda pods, nodes: pods
    before: Callable[[int, int], Sequence[Object]] = lambda pods, nodes: ()
    during: Callable[[int], Object] | None = None  # one of these every `EVERY` seconds
    binds_claims: bool = False  # whether chosen volumes are bound, as a controller would


EVERY = 0.2  # seconds, as in kube's benchmarks


# --- nodes ---------------------------------------------------------------------------------------


def node(number: int) -> Object:
    """One of many alike: 32 cores, 128 GiB, 250 pods, in ten zones."""
    name = node_name(number)
    has = {"cpu": "32", "memory": "128Gi", "pods": "250", "ephemeral-storage": "500Gi"}
    labels = {
        HOST: name,
        ZONE: f"zone-{number % ZONES}",
        "topology.kubernetes.io/region": "region-1",
        "disk": "ssd" if number % 3 else "hdd",
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": has, "allocatable": has, "conditions": [ready]},
    }


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def priority_classes() -> list[Object]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    values = {LOW: -10, HIGH: 1000}
    return [{**kind, "metadata": {"name": name}, "value": v} for name, v in values.items()]


# --- pods ----------------------------------------------------------------------------------------


def pod(
    name: str,
    labels: dict[str, str] | None = None,
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    measured: bool = True,
    **spec: Any,
) -> Object:
    """A pod with one container; `spec` adds any field."""
    marks = {MEASURED: "yes"} if measured else {}
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": IMAGE, "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**(labels or {}), **marks}},
        # Without kubelets a pod with a grace period would be terminating forever.
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def basic(i: int) -> Object:
    return pod(f"basic-{i:06d}", {"app": f"app-{i % 50}"})


def node_affinity(i: int) -> Object:
    zones = {"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}
    rules = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}}}
    return pod(f"zonal-{i:06d}", {"app": f"app-{i % 50}"}, affinity=rules)


def _spread(name: str, color: str, otherwise: str) -> Object:
    selector = {"matchLabels": {"color": color}}
    rule = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": otherwise}
    return pod(
        name, {"color": color}, topologySpreadConstraints=[{**rule, "labelSelector": selector}]
    )


def spread(i: int) -> Object:
    return _spread(f"spread-{i:06d}", "blue", "DoNotSchedule")


def preferred_spread(i: int) -> Object:
    return _spread(f"even-{i:06d}", "cyan", "ScheduleAnyway")


def _near(name: str, color: str, kind: str, topology: str, *, wish: bool) -> Object:
    term = {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": topology}
    rule = {_PREFERRED: [{"weight": 1, "podAffinityTerm": term}]} if wish else {_REQUIRED: [term]}
    return pod(name, {"color": color}, affinity={kind: rule})


def affinity(i: int) -> Object:
    return _near(f"affine-{i:06d}", "green", "podAffinity", ZONE, wish=False)


def preferred_affinity(i: int) -> Object:
    return _near(f"wish-{i:06d}", "red", "podAffinity", HOST, wish=True)


def anti_affinity(i: int) -> Object:
    return _near(f"anti-{i:06d}", "yellow", "podAntiAffinity", HOST, wish=False)


def preferred_anti_affinity(i: int) -> Object:
    return _near(f"shy-{i:06d}", "orange", "podAntiAffinity", HOST, wish=True)


def mixed(i: int) -> Object:
    kinds = (basic, spread, node_affinity, preferred_affinity, affinity)
    return kinds[i % len(kinds)](i)


def daemon(i: int) -> Object:
    this = {"key": "metadata.name", "operator": "In", "values": [node_name(i)]}
    rules = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [this]}]}}}
    return pod(f"daemon-{i:06d}", {"app": "agent"}, affinity=rules)


def preemptor(i: int) -> Object:
    return pod(f"urgent-{i:06d}", {"app": "urgent"}, cpu="10", priorityClassName=HIGH)


def _victims(pods: int, nodes: int) -> list[Object]:
    """Two to a node, so that nowhere is room for another one of that size."""
    return [
        pod(
            f"victim-{i:06d}",
            {"app": "victim", MEASURED: "victim"},
            cpu="15",
            measured=False,
            priorityClassName=LOW,
            nodeName=node_name(i // 2),
        )
        for i in range(2 * nodes)
    ]


def _impossible(name: str) -> Object:
    return pod(name, {"app": "huge"}, cpu="64", measured=False, priorityClassName=HIGH)


def _gated(pods: int, nodes: int) -> list[Object]:
    gates = [{"name": "example.com/not-yet"}]
    return [
        pod(f"gated-{i:06d}", {"app": "gated"}, measured=False, schedulingGates=gates)
        for i in range(pods)
    ]


def distinct_requests(i: int) -> Object:
    cpu, memory = manifests.distinct_requests(i)
    return pod(f"distinct-{i:06d}", cpu=cpu, memory=memory)


def _measured(manifest: Callable[[int], Object]) -> Callable[[int], Object]:
    """Pods of these manifests, with the label and the grace period of all pods measured here."""

    def make(i: int) -> Object:
        value = manifest(i)
        meta, spec = value["metadata"], value["spec"]
        labels = {**meta["labels"], MEASURED: "yes"}
        return {
            **value,
            "metadata": {**meta, "labels": labels},
            "spec": {**spec, "terminationGracePeriodSeconds": 0},
        }

    return make


def _shaped(shape: Shape) -> Workload:
    """The same pods, and what is there before, for an API server that sets priorities itself."""
    make = _measured(lambda i: _by_class(shape.pod(i)))

    def before(pods: int, nodes: int) -> list[Object]:
        values = shape.before(nodes, min(pods, shape.at_most(nodes)), node_name)
        return [_victim(_by_class(it)) if it["kind"] == "Pod" else it for it in values]

    return Workload(
        title=shape.title,
        pod=make,
        count=lambda pods, nodes: min(pods, shape.at_most(nodes)),
        before=before,
        binds_claims=shape.binds_claims,
    )


def _by_class(value: Object) -> Object:
    spec = {**value["spec"]}
    name = HIGH if spec.pop("priority", 0) else LOW
    return {**value, "spec": {**spec, "priorityClassName": name}}


def _victim(value: Object) -> Object:
    meta = value["metadata"]
    return {**value, "metadata": {**meta, "labels": {**meta["labels"], MEASURED: "victim"}}}


USUAL: dict[str, Workload] = {
    "basic": Workload(title="plain pods", pod=basic),
    "node-affinity": Workload(title="node affinity (2 of 10 zones)", pod=node_affinity),
    "spread": Workload(title="spread, hard (zone)", pod=spread),
    "preferred-spread": Workload(title="spread, preferred (zone)", pod=preferred_spread),
    "affinity": Workload(title="pod affinity, hard (zone)", pod=affinity),
    "preferred-affinity": Workload(title="pod affinity, preferred (host)", pod=preferred_affinity),
    "anti-affinity": Workload(
        title="pod anti-affinity, hard (host)",
        pod=anti_affinity,
        count=lambda pods, nodes: min(pods, nodes),
    ),
    "preferred-anti-affinity": Workload(
        title="pod anti-affinity, preferred (host)", pod=preferred_anti_affinity
    ),
    "mixed": Workload(title="five of these, mixed", pod=mixed),
    "preemption": Workload(
        title="preemption on a full cluster",
        pod=preemptor,
        count=lambda pods, nodes: max(min(pods // 6, nodes), 1),
        before=_victims,
    ),
    "unschedulable": Workload(
        title="plain, beside unschedulable urgent pods",
        pod=basic,
        before=lambda pods, nodes: [_impossible(f"huge-{i:06d}") for i in range(pods // 10)],
        during=lambda i: _impossible(f"later-{i:06d}"),
    ),
    "daemonset": Workload(
        title="one pod per node, by node name",
        pod=daemon,
        count=lambda pods, nodes: min(pods, nodes),
    ),
    "gated": Workload(title="plain, beside as many gated pods", pod=basic, before=_gated),
    "indexed-job": Workload(title="an Indexed Job", pod=_measured(manifests.indexed_job)),
    "statefulset-anti-affinity": Workload(
        title="ten StatefulSets, anti-affinity (host)",
        pod=_measured(manifests.statefulset_anti_affinity),
        count=lambda pods, nodes: min(pods, manifests.STATEFULSETS * nodes),
    ),
    "distinct-requests": Workload(title="plain, all requests different", pod=distinct_requests),
    "realistic-mix": Workload(
        title="300 controllers, mixed", pod=_measured(manifests.realistic_mix)
    ),
}

WORKLOADS: dict[str, Workload] = {
    **USUAL,
    **{name: _shaped(shape) for name, shape in {**SHAPES, **DEVICE_SHAPES}.items()},
}
"""The usual ones, and those that have to be asked for."""
