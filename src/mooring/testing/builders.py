"""Builders of pods and nodes, with kubectl-like shorthand: a test shows only what matters to it.

    node("gpu-1", cpu="8", zone="a", taints=["gpu=yes:NoSchedule"])
    pod("web", cpu="500m", labels={"app": "web"}, tolerates=["gpu"])

Both return the types that plugins get (`fw.Pod`, `fw.Node`); the API object is in `.api`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mooring.api import codec, core
from mooring.api.taints import parse_taint
from mooring.api.wellknown import HOSTNAME as HOSTNAME
from mooring.api.wellknown import REGION as REGION
from mooring.api.wellknown import ZONE as ZONE
from mooring.cache.cache import Cache
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes

_uids = itertools.count(1)

_TOPOLOGY = {"zone": ZONE, "region": REGION, "hostname": HOSTNAME, "host": HOSTNAME}

Amount = str | int | float


def pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    cpu: Amount | None = None,
    memory: Amount | None = None,
    requests: Mapping[str, Amount] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    on: str = "",
    nominated: str = "",
    scheduler: str = "default-scheduler",
    priority: int | None = None,
    image: str = "app",
    images: Sequence[str] = (),
    ports: Iterable[int | str] = (),
    tolerates: Iterable[str] = (),
    node_selector: Mapping[str, str] | None = None,
    affinity: Mapping[str, Any] | None = None,
    spread: Mapping[str, int] | None = None,
    gates: Iterable[str] = (),
    claims: Iterable[str] = (),
    claim_templates: Iterable[str] = (),
    phase: str = "Pending",
    deleting: bool = False,
    spec: Mapping[str, Any] | None = None,
) -> Pod:
    """A pod.

    `on` is the node it is bound to. `ports` are host ports: 8080, "8080/UDP" or "10.0.0.1:8080".
    `tolerates` takes "key", "key=value" and both with ":Effect"; "" tolerates everything. `spread`
    maps a topology ("zone", "host", or a label key) to the allowed skew. `claims` and
    `claim_templates` are the names of ResourceClaims and of templates for them. `spec` is merged
    into the pod's spec, in the form of YAML.
    """
    asked = {"cpu": cpu, "memory": memory, **(requests or {})}
    resources = {"requests": {key: value for key, value in asked.items() if value is not None}}
    names = list(images) or [image]
    containers: list[dict[str, Any]] = [
        {"name": f"c{i}", "image": text, "resources": resources if i == 0 else {}}
        for i, text in enumerate(names)
    ]
    containers[0]["ports"] = [_port(text) for text in ports]
    full: dict[str, Any] = {
        "containers": containers,
        "schedulerName": scheduler,
        "nodeName": on,
        "tolerations": [toleration(text) for text in tolerates],
        "schedulingGates": [{"name": gate} for gate in gates],
        "topologySpreadConstraints": [
            {
                "topologyKey": _TOPOLOGY.get(key, key),
                "maxSkew": skew,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": dict(labels or {})},
            }
            for key, skew in (spread or {}).items()
        ],
    }
    if priority is not None:
        full["priority"] = priority
    if node_selector is not None:
        full["nodeSelector"] = dict(node_selector)
    if affinity is not None:
        full["affinity"] = affinity
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    entries += [{"name": one, "resourceClaimTemplateName": one} for one in claim_templates]
    if entries:
        full["resourceClaims"] = entries
    full.update(spec or {})
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}-{next(_uids)}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": phase, "nominatedNodeName": nominated}
    return Pod(codec.convert({"metadata": metadata, "spec": full, "status": status}, core.Pod))


def node(
    name: str = "node",
    *,
    cpu: Amount = "4",
    memory: Amount = "16Gi",
    max_pods: int = 110,
    resources: Mapping[str, Amount] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    zone: str | None = None,
    region: str | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    pods: Iterable[Pod] = (),
) -> Node:
    """A node, alone in its cluster; put several together with `nodes(...)`.

    `taints` are "key=value:Effect" or "key:Effect"; `images` map names to bytes; `pods` are on this
    node, whatever their `on` is.
    """
    all_labels = {HOSTNAME: name, **(labels or {})}
    if zone is not None:
        all_labels[ZONE] = zone
    if region is not None:
        all_labels[REGION] = region
    offered = {"cpu": cpu, "memory": memory, "pods": max_pods, **(resources or {})}
    parsed = [parse_taint(text) for text in taints]
    raw = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": all_labels,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "unschedulable": unschedulable,
            "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in parsed],
        },
        "status": {
            "allocatable": offered,
            "images": [
                {"names": [image], "sizeBytes": size} for image, size in (images or {}).items()
            ],
        },
    }
    cache = Cache()
    cache.put_node(codec.convert(raw, core.Node))
    for resident in pods:
        cache.put_pod(resident.assumed_on(name))
    return cache.nodes[0]


def nodes(*members: Node) -> Nodes:
    """One cluster of these nodes, with the pods on them."""
    cache = Cache()
    for member in members:
        cache.put_node(member.api)
        for resident in member.pods:
            cache.put_pod(resident)
    return cache.nodes


def _port(text: int | str) -> dict[str, Any]:
    address, _, protocol = str(text).partition("/")
    ip, _, number = address.rpartition(":")
    port = int(number)
    return {
        "containerPort": port,
        "hostPort": port,
        "hostIP": ip,
        "protocol": protocol or "TCP",
    }


def toleration(text: str) -> dict[str, str]:
    """Of "key", "key=value", both with ":Effect"; "" tolerates everything."""
    rest, _, effect = text.partition(":")
    key, equals, value = rest.partition("=")
    operator = "Equal" if equals else "Exists"
    return {"key": key, "operator": operator, "value": value, "effect": effect}
