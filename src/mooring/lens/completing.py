"""Objects from files, as an API server would have stored them.

A manifest lacks what the server adds, and a dump has what the server would refuse: `reading` brings
both to the same form. What a plugin can see is set as kube-apiserver sets it.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object, ResourceList
from mooring.api.scheduling import PriorityClass
from mooring.lens.snapshot import ClusterState

O = TypeVar("O", bound=Object)  # noqa: E741 - an object

_SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def completed(cluster: ClusterState) -> ClusterState:
    """The cluster with names, uids, requests and priorities as a server sets them."""
    changed = {
        field: tuple(map(identified, getattr(cluster, field)))
        for field in cluster.__struct_fields__
    }
    given = ClusterState(**changed)
    pods = tuple(completed_pod(pod, given.priorityclasses) for pod in given.pods)
    return structs.replace(given, pods=pods)


def identified(value: O) -> O:
    """With a namespace and a uid, and without the version that a server counts."""
    meta = value.metadata
    namespace = (meta.namespace or "default") if value.NAMESPACED else ""
    uid = meta.uid or f"{value.KIND}/{namespace}/{meta.name}"
    if (meta.namespace, meta.uid, meta.resource_version) == (namespace, uid, ""):
        return value
    meta = structs.replace(meta, namespace=namespace, uid=uid, resource_version="")
    return structs.replace(value, metadata=meta)


def completed_pod(pod: core.Pod, classes: tuple[PriorityClass, ...] = ()) -> core.Pod:
    """With requests for what only has limits, host ports, and the priority of its class."""
    spec = pod.spec
    changes: dict[str, Any] = {}
    for field in ("containers", "init_containers"):
        given = getattr(spec, field)
        filled = tuple(_container(one, spec.host_network) for one in given)
        if filled != given:
            changes[field] = filled
    if spec.priority is None:
        priority = _priority(spec.priority_class_name, classes)
        if priority is not None:
            changes["priority"] = priority
    return structs.replace(pod, spec=structs.replace(spec, **changes)) if changes else pod


def _container(container: core.Container, host_network: bool) -> core.Container:
    resources = container.resources
    if resources.limits and resources.limits.keys() - resources.requests.keys():
        requests = ResourceList({**resources.limits, **resources.requests})
        resources = structs.replace(resources, requests=requests)
    ports = container.ports
    if host_network:
        ports = tuple(
            port if port.host_port else structs.replace(port, host_port=port.container_port)
            for port in ports
        )
    return structs.replace(container, resources=resources, ports=ports)


def _priority(name: str, classes: tuple[PriorityClass, ...]) -> int | None:
    if name in _SYSTEM_PRIORITIES:
        return _SYSTEM_PRIORITIES[name]
    for one in classes:
        if one.metadata.name == name if name else one.global_default:
            return one.value
    return None
