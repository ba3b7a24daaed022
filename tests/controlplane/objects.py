"""Nodes and pods as dictionaries, with what a test wants to say about them as keywords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.controlplane.admin import Object

IMAGE = "registry.example/pause:3.10"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "32Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    zone: str = "",
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    resources: Mapping[str, str] | None = None,
) -> Object:
    """A ready node; by default the size of those in kube-scheduler's own benchmarks.

    `taints` are written as for kubectl: "key=value:NoSchedule".
    """
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    where = {"topology.kubernetes.io/zone": zone} if zone else {}
    spec: Object = {"unschedulable": True} if unschedulable else {}
    if tainted := [_taint(text) for text in taints]:
        spec["taints"] = tainted
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **where, **(labels or {})},
        },
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def nodes(count: int, *, prefix: str = "node", zones: int = 0, **options: Any) -> list[Object]:
    """Many nodes of one kind, spread over `zones`."""
    return [
        node(f"{prefix}-{index:05d}", zone=f"zone-{index % zones}" if zones else "", **options)
        for index in range(count)
    ]


def pod(
    name: str,
    *,
    namespace: str = "default",
    scheduler: str = "default-scheduler",
    cpu: str = "100m",
    memory: str = "500Mi",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    node_selector: Mapping[str, str] | None = None,
    priority_class: str = "",
    gates: Sequence[str] = (),
    spec: Mapping[str, Any] | None = None,
) -> Object:
    """A pod with one container; an empty `cpu` or `memory` is not requested at all.

    `node` puts it there at once, without a scheduler; `spec` adds any other field.
    """
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    optional: Object = {
        "nodeName": node,
        "nodeSelector": dict(node_selector or {}),
        "priorityClassName": priority_class,
        "schedulingGates": [{"name": gate} for gate in gates],
    }
    container = {"name": "main", "image": IMAGE, "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            **{key: value for key, value in optional.items() if value},
            **(spec or {}),
        },
    }


def pods(count: int, *, prefix: str = "pod", **options: Any) -> list[Object]:
    """Many pods of one kind."""
    return [pod(f"{prefix}-{index:06d}", **options) for index in range(count)]


def namespace(name: str, labels: Mapping[str, str] | None = None) -> Object:
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def priority_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


def _taint(text: str) -> Object:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
