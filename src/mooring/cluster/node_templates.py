"""Node objects as in a real cluster, made from templates."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from mooring import __version__
from mooring.api.meta import format_time
from mooring.api.quantity import Quantity, parse_quantity
from mooring.api.taints import parse_taint
from mooring.api.wellknown import HOSTNAME, REGION, ZONE
from mooring.cluster.apiserver.store import Object

MAX_NODES: Final = 65_536  # the number of node addresses

_IDENTITY: Final = uuid.UUID("5a6d7c2e-8f52-5b8e-9a0b-6d6f6f72696e")  # same name, same machine id
_CONDITIONS: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


class NodeTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A number of equal nodes.

    `name` may contain `{i}`, counted from 0 within the template, `{zone}` and `{region}`; formats
    such as `{i:03}` work. Nodes are spread over the zones in turn, zones over the regions.
    """

    name: str = "node-{i}"
    count: int = 1
    cpu: str | int = "4"
    memory: str = "16Gi"
    pods: int = 110
    storage: str = "100Gi"  # ephemeral
    resources: Mapping[str, str | int] = {}  # extended ones, such as nvidia.com/gpu
    reserved: Mapping[str, str | int] = {}  # of the capacity, not for pods
    zones: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[str, ...] = ()  # key=value:Effect or key:Effect
    images: Mapping[str, int] = {}  # name -> bytes
    instance_type: str = "simulated"
    architecture: str = "amd64"
    unschedulable: bool = False
    ready: bool = True
    kubelet_version: str = "v1.36.0"


def make_nodes(
    templates: Iterable[NodeTemplate], *, now: float = 0.0, first: int = 0
) -> list[Object]:
    """The nodes of these templates; `first` is the number of existing nodes.

    ValueError if two of them would have the same name, or if there are too many for the addresses.
    """
    nodes: list[Object] = []
    names: set[str] = set()
    for template in templates:
        for i in range(template.count):
            node = _node(template, i, first + len(nodes), format_time(now))
            name = node["metadata"]["name"]
            if name in names:
                raise ValueError(
                    f"nodes of template {template.name!r}: the name {name!r} is taken;"
                    " expected a pattern with {i}"
                )
            names.add(name)
            nodes.append(node)
    if first + len(nodes) > MAX_NODES:
        raise ValueError(f"expected at most {MAX_NODES} nodes, got {first + len(nodes)}")
    return nodes


def _node(template: NodeTemplate, i: int, number: int, time: str) -> Object:
    place = i % len(template.zones) if template.zones else i
    zone = template.zones[place] if template.zones else ""
    region = template.regions[place % len(template.regions)] if template.regions else ""
    name = template.name.format(i=i, zone=zone, region=region)
    network = f"10.{number >> 8}.{number & 255}.0/24"
    spec: dict[str, Any] = {
        "podCIDR": network,
        "podCIDRs": [network],
        "providerID": f"mooring://simulated/{name}",
    }
    if template.taints:
        spec["taints"] = [_taint(text) for text in template.taints]
    if template.unschedulable:
        spec["unschedulable"] = True
    meta: dict[str, Any] = {"name": name, "labels": _labels(template, name, zone, region)}
    if template.annotations:
        meta["annotations"] = dict(template.annotations)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": spec,
        "status": _status(template, name, _address(number), time),
    }


def _address(number: int) -> str:
    place = number + 1  # the first address is that of the network
    return f"172.{16 + (place >> 16)}.{place >> 8 & 255}.{place & 255}"


def _labels(template: NodeTemplate, name: str, zone: str, region: str) -> dict[str, str]:
    labels = {
        HOSTNAME: name,
        "kubernetes.io/arch": template.architecture,
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": template.architecture,
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": template.instance_type,
    }
    if zone:
        labels[ZONE] = zone
    if region:
        labels[REGION] = region
    return labels | dict(template.labels)


def _status(template: NodeTemplate, name: str, address: str, time: str) -> dict[str, Any]:
    capacity = {
        "cpu": str(template.cpu),
        "memory": template.memory,
        "ephemeral-storage": template.storage,
        "pods": str(template.pods),
        **{resource: str(amount) for resource, amount in template.resources.items()},
    }
    allocatable = dict(capacity)
    for resource, amount in template.reserved.items():
        offered = parse_quantity(capacity.get(resource, "0"))
        allocatable[resource] = str(max(offered - parse_quantity(amount), Quantity.ZERO))
    status: dict[str, Any] = {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "conditions": _conditions(template.ready, time),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(template, name),
    }
    if template.images:
        status["images"] = [
            {"names": [image], "sizeBytes": size} for image, size in template.images.items()
        ]
    return status


def _conditions(is_ready: bool, time: str) -> list[dict[str, str]]:
    times = {"lastHeartbeatTime": time, "lastTransitionTime": time}
    found = [
        {"type": kind, "status": "False", **times, "reason": reason, "message": message}
        for kind, reason, message in _CONDITIONS
    ]
    ready = ("True", "KubeletReady", "kubelet is posting ready status")
    silent = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    status, reason, message = ready if is_ready else silent
    found.append({"type": "Ready", "status": status, **times, "reason": reason, "message": message})
    return found


def _node_info(template: NodeTemplate, name: str) -> dict[str, str]:
    return {
        "architecture": template.architecture,
        "bootID": str(uuid.uuid5(_IDENTITY, f"{name}/boot")),
        "containerRuntimeVersion": f"mooring://{__version__}",
        "kernelVersion": "6.12.0-simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": template.kubelet_version,
        "machineID": uuid.uuid5(_IDENTITY, name).hex,
        "operatingSystem": "linux",
        "osImage": "mooring simulated node",
        "systemUUID": str(uuid.uuid5(_IDENTITY, f"{name}/system")),
    }


def _taint(text: str) -> dict[str, str]:
    taint = parse_taint(text)
    found = {"key": taint.key, "effect": taint.effect}
    return found | {"value": taint.value} if taint.value else found
