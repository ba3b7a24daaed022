"""The columns of nodes, namespaces, services, events, RBAC objects and the like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    NONE,
    UNKNOWN,
    Cells,
    age,
    labels_text,
    layout,
    layout_of_paths,
    name_of,
    part,
    since,
)

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"
_MOST_ENDPOINTS: Final = 3


def _node(node: Object, now: float) -> Cells:
    status = part(node, "status")
    info = part(status, "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name_of(node),
        _node_state(node),
        ",".join(_roles(node["metadata"].get("labels") or {})) or NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_state(node: Object) -> str:
    states = ["Unknown"]
    for condition in part(node, "status").get("conditions") or ():
        if condition["type"] == "Ready":
            states = ["Ready" if condition["status"] == "True" else "NotReady"]
    if part(node, "spec").get("unschedulable"):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    return sorted(filter(None, roles | {labels.get(_ROLE_LABEL, "")}))


def _address(status: Object, kind: str) -> str:
    for address in status.get("addresses") or ():
        if address["type"] == kind:
            return str(address["address"])
    return NONE


def _config_map(value: Object, now: float) -> Cells:
    count = len(value.get("data") or ()) + len(value.get("binaryData") or ())
    return [name_of(value), count, age(value, now)]


def _secret(value: Object, now: float) -> Cells:
    return [name_of(value), value.get("type", ""), len(value.get("data") or ()), age(value, now)]


def _quota(value: Object, now: float) -> Cells:
    status = part(value, "status")
    used = part(status, "used")
    texts: dict[bool, list[str]] = {False: [], True: []}
    for name, hard in sorted(part(status, "hard").items()):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard}")
    return [name_of(value), ", ".join(texts[False]), ", ".join(texts[True]), age(value, now)]


# --- services -------------------------------------------------------------------------------------


def _service(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    ports = [_port(port) for port in spec.get("ports") or ()]
    return [
        name_of(value),
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external_ip(value),
        ",".join(ports) or NONE,
        age(value, now),
        labels_text(spec.get("selector")),
    ]


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"


def _external_ip(value: Object) -> str:
    spec = part(value, "spec")
    given = spec.get("externalIPs") or []
    kind = spec.get("type", "")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        ingress = part(value, "status", "loadBalancer").get("ingress") or ()
        found = {place.get("ip") or place.get("hostname") for place in ingress}
        return ",".join([*sorted(filter(None, found)), *given]) or "<pending>"
    return str(spec.get("externalName", "")) if kind == "ExternalName" else UNKNOWN


def _endpoints(value: Object, now: float) -> Cells:
    found: list[str] = []
    for subset in value.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += addresses if not ports else [_joined(ip, p) for p in ports for ip in addresses]
    if not value.get("subsets"):
        text = NONE
    elif len(found) > _MOST_ENDPOINTS:
        more = len(found) - _MOST_ENDPOINTS
        text = f"{','.join(found[:_MOST_ENDPOINTS])} + {more} more..."
    else:
        text = ",".join(found)
    return [name_of(value), text, age(value, now)]


def _joined(address: str, port: Object) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port['port']}"


# --- events ---------------------------------------------------------------------------------------


def _event(value: Object, now: float) -> Cells:
    first = since(value.get("firstTimestamp") or value.get("eventTime"), now)
    last = since(value["lastTimestamp"], now) if value.get("lastTimestamp") else first
    count = value.get("count") or 1
    if series := value.get("series"):
        last = since(series.get("lastObservedTime"), now)
        count = series.get("count", 0)
    about = part(value, "involvedObject")
    target = about.get("kind", "").lower()
    if about.get("name"):
        target += f"/{about['name']}"
    source = part(value, "source")
    component = source.get("component") or value.get("reportingComponent") or ""
    instance = source.get("host") or value.get("reportingInstance") or ""
    return [
        last,
        value.get("type", ""),
        value.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        value.get("message", "").strip(),
        first,
        count,
        name_of(value),
    ]


# --- permissions ----------------------------------------------------------------------------------


def _binding(value: Object, now: float) -> Cells:
    role, subjects = part(value, "roleRef"), value.get("subjects") or ()
    return [
        name_of(value),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(value, now),
        _subjects(subjects, "User"),
        _subjects(subjects, "Group"),
        _subjects(subjects, "ServiceAccount"),
    ]


def _subjects(subjects: Iterable[Object], kind: str) -> str:
    chosen = [subject for subject in subjects if subject.get("kind") == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{one.get('namespace', '')}/{one['name']}" for one in chosen)
    return ", ".join(one["name"] for one in chosen)


NODE: Final = layout(
    _node,
    "Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, "
    "+Kernel-Version, +Container-Runtime",
)
NAMESPACE: Final = layout_of_paths("Name, Status=status.phase, Age")
CONFIG_MAP: Final = layout(_config_map, "Name, Data, Age")
SECRET: Final = layout(_secret, "Name, Type, Data, Age")
RESOURCE_QUOTA: Final = layout(_quota, "Name, Request, Limit, Age")
SERVICE: Final = layout(_service, "Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector")
ENDPOINTS: Final = layout(_endpoints, "Name, Endpoints, Age")
EVENT: Final = layout(
    _event,
    "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name",
)
ROLE_BINDING: Final = layout(_binding, "Name, Role, Age, +Users, +Groups, +ServiceAccounts")
LEASE: Final = layout_of_paths("Name, Holder=spec.holderIdentity, Age")
PRIORITY_CLASS: Final = layout_of_paths(
    "Name, Value:integer=value, Global-Default:boolean=globalDefault, Age, "
    "PreemptionPolicy=preemptionPolicy"
)
RUNTIME_CLASS: Final = layout_of_paths("Name, Handler=handler, Age")
