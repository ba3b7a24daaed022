"""The columns of nodes, namespaces, services, events, RBAC objects and the like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.tables.columns import (
    NONE,
    UNKNOWN,
    Cells,
    labels_text,
    layout,
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
    return {
        "Status": _node_state(node),
        "Roles": ",".join(_roles(node["metadata"].get("labels") or {})) or NONE,
        "Internal-IP": _address(status, "InternalIP"),
        "External-IP": _address(status, "ExternalIP"),
        "OS-Image": info.get("osImage") or UNKNOWN,
        "Kernel-Version": kernel,
        "Container-Runtime": info.get("containerRuntimeVersion") or UNKNOWN,
    }


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


def _data(value: Object, now: float) -> Cells:
    return {"Data": len(value.get("data") or ()) + len(value.get("binaryData") or ())}


def _quota(value: Object, now: float) -> Cells:
    status = part(value, "status")
    used = part(status, "used")
    texts: dict[bool, list[str]] = {False: [], True: []}
    for name, hard in sorted(part(status, "hard").items()):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard}")
    return {"Request": ", ".join(texts[False]), "Limit": ", ".join(texts[True])}


# --- services -------------------------------------------------------------------------------------


def _service(value: Object, now: float) -> Cells:
    spec = part(value, "spec")
    ports = [_port(port) for port in spec.get("ports") or ()]
    return {
        "Cluster-IP": (spec.get("clusterIPs") or [NONE])[0],
        "External-IP": _external_ip(value),
        "Port(s)": ",".join(ports) or NONE,
        "Selector": labels_text(spec.get("selector")),
    }


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
    return {"Endpoints": text}


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
    return {
        "Last Seen": last,
        "Object": target,
        "Source": f"{component}, {instance}" if instance else component,
        "Message": value.get("message", "").strip(),
        "First Seen": first,
        "Count": count,
    }


# --- permissions ----------------------------------------------------------------------------------


def _binding(value: Object, now: float) -> Cells:
    role, subjects = part(value, "roleRef"), value.get("subjects") or ()
    return {
        "Role": f"{role.get('kind', '')}/{role.get('name', '')}",
        "Users": _subjects(subjects, "User"),
        "Groups": _subjects(subjects, "Group"),
        "ServiceAccounts": _subjects(subjects, "ServiceAccount"),
    }


def _subjects(subjects: Iterable[Object], kind: str) -> str:
    chosen = [subject for subject in subjects if subject.get("kind") == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{one.get('namespace', '')}/{one['name']}" for one in chosen)
    return ", ".join(one["name"] for one in chosen)


_ROLE_BINDING: Final = layout("Name, Role, Age, +Users, +Groups, +ServiceAccounts", _binding)
COLUMNS: Final = {
    "configmaps": layout("Name, Data, Age", _data),
    "endpoints": layout("Name, Endpoints, Age", _endpoints),
    "events": layout(
        "Last Seen, Type=type, Reason=reason, Object, +Subobject=involvedObject.fieldPath, "
        "+Source, Message, +First Seen, +Count, +Name",
        _event,
    ),
    "namespaces": layout("Name, Status=status.phase, Age"),
    "nodes": layout(
        "Name, Status, Roles, Age, Version=status.nodeInfo.kubeletVersion, +Internal-IP, "
        "+External-IP, +OS-Image, +Kernel-Version, +Container-Runtime",
        _node,
    ),
    "resourcequotas": layout("Name, Request, Limit, Age", _quota),
    "secrets": layout("Name, Type=type, Data, Age", _data),
    "services": layout(
        "Name, Type=spec.type, Cluster-IP, External-IP, Port(s), Age, +Selector", _service
    ),
    "leases.coordination.k8s.io": layout("Name, Holder=spec.holderIdentity, Age"),
    "runtimeclasses.node.k8s.io": layout("Name, Handler=handler, Age"),
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "rolebindings.rbac.authorization.k8s.io": _ROLE_BINDING,
    "priorityclasses.scheduling.k8s.io": layout(
        "Name, Value:integer=value, Global-Default:boolean=globalDefault, Age, "
        "PreemptionPolicy=preemptionPolicy"
    ),
}
"""The columns of these kinds, by the key of their resource."""
