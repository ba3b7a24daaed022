"""What is scheduled: the workloads of kube's own scheduler_perf, and others beside them.

Nodes are larger than there, so that all workloads fit on the same ones. Where kube's benchmarks
create pods while the clock runs, ours are there before the scheduler starts: what is measured is
then the scheduler, not the program that creates pods, which would need one of two cores for it.
Pods as controllers make them come from `bench.manifests`, full clusters and volumes from
`bench.shapes`; the benchmarks in process use both, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from bench import manifests
from bench.device_shapes import DEVICE_SHAPES
from bench.manifests import Object
from bench.shapes import SHAPES, Shape
from bench.versus import surroundings as around
from bench.versus import writers
from bench.versus.pods import (
    HIGH,
    LOW,
    MEASURED,
    affinity,
    anti_affinity,
    basic,
    daemon,
    mixed,
    node,
    node_affinity,
    node_name,
    pod,
    preferred_affinity,
    preferred_anti_affinity,
    preferred_spread,
    spread,
)

if TYPE_CHECKING:
    from bench.versus.rig import Rig


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Pods to be bound, and what else is there.

    `count` tells how many of the pods asked for make sense on so many nodes; `before` gets both
    numbers, the other functions the number of a pod, a node or a write.
    """

    title: str
    pod: Callable[[int], Object]
    count: Callable[[int, int], int] = lambda pods, nodes: pods
    node: Callable[[int], Object] = node
    before: Callable[[int, int], Iterable[Object]] = lambda pods, nodes: ()
    during: Callable[[Rig, int], None] | None = None  # called `rate` times a second meanwhile
    rate: float = 5.0  # as in kube's benchmarks
    binds_claims: bool = False  # whether chosen volumes are bound, as a controller would


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
        during=lambda rig, i: rig.create([_impossible(f"later-{i:06d}")]),
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

SURROUNDINGS: dict[str, Workload] = {
    "existing": Workload(
        title="plain, 20 pods run on each node", pod=basic, before=around.existing_pods
    ),
    "existing-affinity": Workload(
        title="affinity, hard (zone), 20 pods run on each node",
        pod=affinity,
        before=around.existing_pods,
    ),
    "existing-preferred-anti-affinity": Workload(
        title="anti-affinity, preferred (host), 20 pods run on each node",
        pod=preferred_anti_affinity,
        before=around.existing_pods,
    ),
    "namespaces-anti-affinity": Workload(
        title="anti-affinity, hard (host), in 100 namespaces",
        pod=around.apart_across_namespaces,
        count=lambda pods, nodes: min(pods, nodes),
        before=lambda pods, nodes: around.namespaces(),
    ),
    "namespaces-affinity": Workload(
        title="affinity, hard (zone), in 100 namespaces",
        pod=around.together_across_namespaces,
        before=lambda pods, nodes: around.namespaces(),
    ),
    "churn": Workload(
        title="plain, beside pods, Services and nodes that come and go",
        pod=basic,
        during=writers.come_and_go,
        rate=50.0,
    ),
    "churn-pod-status": Workload(
        title="plain, beside status updates of running pods",
        pod=basic,
        before=lambda pods, nodes: around.running_pods(2 * nodes, nodes),
        during=lambda rig, i: writers.pod_status(rig, i, 2 * rig.nodes),
        rate=300.0,
    ),
    "churn-heartbeats": Workload(
        title="plain, beside heartbeats of nodes",
        pod=basic,
        during=writers.heartbeat,
        rate=500.0,
    ),
    "long-queue": Workload(
        title="plain, five times as many wait for other nodes",
        pod=basic,
        before=lambda pods, nodes: around.waiting_in_vain(5 * pods),
    ),
    "gated-affinity": Workload(
        title="plain, five times as many gated pods with affinity",
        pod=basic,
        before=lambda pods, nodes: around.gated_with_affinity(5 * pods),
    ),
    "taints-spread": Workload(
        title="spread, hard (zone), taints honoured",
        pod=around.spread_off_taints,
        node=around.partly_tainted_node,
    ),
    "default-spread": Workload(
        title="pods of 300 Services",
        pod=around.served,
        before=lambda pods, nodes: around.services(),
    ),
    "secrets": Workload(title="plain, with a secret", pod=around.with_secret),
    "extended-resources": Workload(
        title="five of 20 extended resources",
        pod=around.extended_pod,
        node=around.extended_node,
    ),
}

WORKLOADS: dict[str, Workload] = {
    **USUAL,
    **SURROUNDINGS,
    **{name: _shaped(shape) for name, shape in {**SHAPES, **DEVICE_SHAPES}.items()},
}
"""The usual ones, and those that have to be asked for."""
