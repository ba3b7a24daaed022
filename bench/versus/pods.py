"""Nodes and pods of the workloads, as manifests; all functions get a number."""

from __future__ import annotations

from typing import Any, Final

from bench.manifests import HOST, IMAGE, ZONE, Object

NAMESPACE: Final = "bench"  # of everything that names no other
ZONES: Final = 10
MEASURED: Final = "measured"  # label: "yes" on pods that are waited for, "victim" on those that go
LOW, HIGH = "bench-low", "bench-high"  # priority classes

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
