"""Admission: changes to new objects, and refusals, that depend on other objects in the cluster.

As the admission plugins NamespaceLifecycle, LimitRanger, Priority, DefaultTolerationSeconds,
RuntimeClass, DefaultStorageClass and PodTopologyLabels; and the addresses and ports of services.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from mooring.api.wellknown import GIVEN_TO_PODS
from mooring.client.errors import Forbidden
from mooring.cluster.apiserver.defaulting.workloads import TEMPLATE_GENERATION
from mooring.cluster.apiserver.errors import forbidden, not_found
from mooring.cluster.apiserver.limit_ranges import set_default_resources
from mooring.cluster.apiserver.metadata import keep
from mooring.cluster.apiserver.resources import (
    NAMESPACES,
    NODES,
    SERVICES,
    STORAGE_CLASSES,
    Resource,
    known,
)
from mooring.cluster.apiserver.store import Item, Object, Store
from mooring.cluster.apiserver.validation.placement import merge_label_keys

PRIORITY_CLASSES: Final = known("priorityclasses", "scheduling.k8s.io")
_RUNTIME_CLASSES: Final = known("runtimeclasses", "node.k8s.io")

_NOT_READY_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS: Final = 300  # how long pods stay on a node that is not ready
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_ADDRESSES: Final = 1 << 16  # service addresses, from 10.96.0.0 on
_NODE_PORTS: Final = range(30_000, 32_768)


class _PriorityClass(msgspec.Struct, rename="camel"):
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"


_read_class: Final = msgspec.json.Decoder(_PriorityClass).decode


def check_namespace(store: Store, resource: Resource, meta: Object) -> None:
    """Refuse an object whose namespace does not exist or is terminating."""
    namespace = meta.get("namespace", "")
    item = store.get(NAMESPACES, "", namespace)
    if item is None:
        raise not_found(NAMESPACES, namespace)
    if b'"deletionTimestamp":' in item.raw:
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        error = forbidden(resource, meta.get("name", ""), why)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        details = {**(error.details or {}), "causes": [cause]}
        raise Forbidden(str(error), code=error.code, reason=error.reason, details=details)


def topology_labels(store: Store, node_name: str) -> dict[str, str]:
    """The labels of a node that are copied to its pods; empty if there is no such node."""
    item = store.get(NODES, "", node_name)
    if item is None:
        return {}
    return {key: item.labels[key] for key in GIVEN_TO_PODS if key in item.labels}


def admit_new(store: Store, resource: Resource, value: Object) -> None:
    """Mutate a new object as the admission plugins do, or refuse it."""
    match resource.key:
        case "pods":
            _admit_pod(store, resource, value)
        case "persistentvolumeclaims":
            _choose_storage_class(store, value)
        case "services":
            _allocate_addresses(store, value)
        case "priorityclasses.scheduling.k8s.io":
            default = _default_priority_class(store)
            if value.get("globalDefault") and default is not None:
                why = f"PriorityClass {default.name} is already marked as default. "
                name = value["metadata"].get("name", "")
                raise forbidden(resource, name, why + "Only one default can exist")


def admit_update(resource: Resource, value: Object, old: Object) -> None:
    """Keep in a changed object what admission added to it when it was created."""
    spec, before = value.get("spec", {}), old.get("spec", {})
    if resource.key == "pods":
        for field in ("priority", "preemptionPolicy", "overhead"):
            if field not in spec:
                keep(spec, before, field)
        _add_default_tolerations(spec)
    elif resource.key == "services" and spec.get("type") != "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field):
                keep(spec, before, field)
        _keep_node_ports(spec, before)
    elif resource.key == "jobs.batch" and "selector" not in spec:
        keep(spec, before, "selector")
    elif resource.key == "daemonsets.apps":
        generation = int(old["metadata"].get("annotations", {}).get(TEMPLATE_GENERATION, 1))
        generation += spec.get("template") != before.get("template")
        value["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = str(generation)


# --- pods --------------------------------------------------------------------------------------


def _admit_pod(store: Store, resource: Resource, pod: Object) -> None:
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    set_default_resources(store, pod)
    class_name, priority, policy = _priority_of(store, resource, spec, name)
    asked = spec.get("priority", priority)
    if asked != priority:
        why = (
            f"the integer value of priority ({asked}) must not be provided in pod spec; priority "
            f"admission controller computed {priority} from the given PriorityClass name"
        )
        raise forbidden(resource, name, why)
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name"
        )
        raise forbidden(resource, name, why)
    if class_name:
        spec["priorityClassName"] = class_name
    spec["priority"], spec["preemptionPolicy"] = priority, policy
    _add_default_tolerations(spec)
    _add_overhead(store, resource, spec, name)
    merge_label_keys(pod)
    if added := topology_labels(store, spec.get("nodeName", "")):
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **added}


def _priority_of(store: Store, resource: Resource, spec: Object, pod: str) -> tuple[str, int, str]:
    name = spec.get("priorityClassName", "")
    item = store.get(PRIORITY_CLASSES, "", name) if name else _default_priority_class(store)
    if item is None:
        if name:
            raise forbidden(resource, pod, f"no PriorityClass with name {name} was found")
        return "", 0, "PreemptLowerPriority"
    found = _read_class(item.raw)
    return item.name, found.value, found.preemption_policy


def _default_priority_class(store: Store) -> Item | None:
    """The one with the lowest value, if several are marked as the default."""
    marked = [item for item in store.items(PRIORITY_CLASSES) if b'"globalDefault":true' in item.raw]
    return min(marked, key=lambda item: _read_class(item.raw).value, default=None)


def _add_default_tolerations(spec: Object) -> None:
    tolerations: list[Object] = spec.get("tolerations") or []
    for key in _NOT_READY_TAINTS:
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            added: Object = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            added["tolerationSeconds"] = _TOLERATION_SECONDS
            spec["tolerations"] = tolerations = [*tolerations, added]


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and (
        toleration.get("effect", "") in ("NoExecute", "")
    )


def _add_overhead(store: Store, resource: Resource, spec: Object, name: str) -> None:
    """The overhead and the node selector of a pod's runtime class."""
    wanted = spec.get("runtimeClassName")
    if not wanted:
        if spec.get("overhead"):
            why = (
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
            raise forbidden(resource, name, why)
        return
    item = store.get(_RUNTIME_CLASSES, "", wanted)
    if item is None:
        raise forbidden(resource, name, f'pod rejected: RuntimeClass "{wanted}" not found')
    found = item.decoded()
    fixed = found.get("overhead", {}).get("podFixed")
    if fixed:
        if spec.get("overhead", fixed) != fixed:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise forbidden(resource, name, why)
        spec["overhead"] = fixed
    scheduling = found.get("scheduling", {})
    if selector := scheduling.get("nodeSelector"):
        for key, value in (spec.get("nodeSelector") or {}).items():
            if selector.get(key, value) != value:
                why = f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = "
                why += f"{selector[key]}; pod.spec.nodeSelector[{key}] = {value}"
                raise forbidden(resource, name, why)
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), **selector}
    if more := scheduling.get("tolerations"):
        present = spec.get("tolerations", [])
        spec["tolerations"] = [*present, *(one for one in more if one not in present)]


# --- claims and services -----------------------------------------------------------------------


def _choose_storage_class(store: Store, claim: Object) -> None:
    if claim["spec"].get("storageClassName") is not None:
        return
    newest: tuple[Any, ...] = ()
    for item in store.items(STORAGE_CLASSES):
        if _DEFAULT_CLASS.encode() not in item.raw:
            continue
        meta = item.decoded()["metadata"]
        if meta.get("annotations", {}).get(_DEFAULT_CLASS) == "true":
            # Of several default classes the newest; of those, the first by name.
            rank = (meta.get("creationTimestamp", ""), [-ord(letter) for letter in item.name])
            newest = max(newest, (rank, item.name))
    if newest:
        claim["spec"]["storageClassName"] = newest[1]


def _allocate_addresses(store: Store, service: Object) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    others = [item.decoded().get("spec", {}) for item in store.items(SERVICES)]
    if not spec.get("clusterIP"):
        taken = {other.get("clusterIP") for other in others}
        # The first address is the API server's.
        spec["clusterIP"] = next(
            address
            for number in range(2, _ADDRESSES)
            if (address := f"10.96.{number >> 8}.{number & 255}") not in taken
        )
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    if _has_node_ports(spec):
        busy = {port.get("nodePort") for other in others for port in other.get("ports", ())}
        _number_ports(spec, busy)


def _has_node_ports(spec: Object) -> bool:
    """A load balancer may do without."""
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _keep_node_ports(spec: Object, before: Object) -> None:
    if not _has_node_ports(spec):
        return
    known_ports = {
        (port.get("protocol"), port.get("port")): port.get("nodePort")
        for port in before.get("ports", ())
    }
    for port in spec.get("ports", ()):
        number = known_ports.get((port.get("protocol"), port.get("port")))
        if not port.get("nodePort") and number:
            port["nodePort"] = number
    _number_ports(spec, set(known_ports.values()))


def _number_ports(spec: Object, busy: set[int | None]) -> None:
    busy |= {port.get("nodePort") for port in spec.get("ports", ())}
    free = (number for number in _NODE_PORTS if number not in busy)
    for port in spec.get("ports", ()):
        if not port.get("nodePort"):
            port["nodePort"] = next(free)
