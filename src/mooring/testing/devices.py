"""Builders of devices and of claims to them, in the style of `pod` and `node`.

    resource_slice("gpu-1", [device("gpu-0", attributes={"model": "A100"}), device("gpu-1")])
    resource_claim("training", device_request("gpus", 2), match="gpu.example.com/numa")

They return API objects, for `Simulation.apply`, `Sandbox.apply` or the objects of a `StubHandle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mooring.api.codec import convert, to_builtins
from mooring.api.resource import (
    ALL,
    EXACT_COUNT,
    Device,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from mooring.api.selectors import NODE_NAME_FIELD
from mooring.api.taints import parse_taint
from mooring.cache.pods import Pod
from mooring.testing.builders import toleration

DRIVER: Final = "gpu.example.com"
"""The driver of everything that is built without one."""

Amount = str | int
AttributeValue = str | int | bool


# --- devices --------------------------------------------------------------------------------------


def device(
    name: str = "gpu-0",
    *,
    attributes: Mapping[str, AttributeValue] | None = None,
    capacity: Mapping[str, Amount] | None = None,
    taints: Iterable[str] = (),
    consumes: Mapping[str, Mapping[str, Amount]] | None = None,
    shared: bool = False,
    spec: Mapping[str, Any] | None = None,
) -> Device:
    """A device of a slice.

    `taints` are "key=value:Effect" or "key:Effect"; `consumes` maps a counter set to what the
    device takes of its counters; `shared` allows multiple allocations. `spec` is merged into the
    device, in the form of YAML.
    """
    parsed = [parse_taint(text) for text in taints]
    full: dict[str, Any] = {
        "name": name,
        "attributes": {key: _attribute(value) for key, value in (attributes or {}).items()},
        "capacity": _values(capacity or {}),
        "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in parsed],
        "consumesCounters": [
            {"counterSet": name, "counters": _values(counters)}
            for name, counters in (consumes or {}).items()
        ],
        "allowMultipleAllocations": shared,
        **(spec or {}),
    }
    return convert(full, Device)


def resource_slice(
    node: str = "",
    devices: int | Iterable[Device] = 1,
    *,
    name: str = "",
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    slices: int = 1,
    node_selector: Mapping[str, str] | None = None,
    counters: Mapping[str, Mapping[str, Amount]] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> ResourceSlice:
    """A slice of a pool with so many slices; by default the whole pool of a node, with its name.

    A number of `devices` is that many without attributes, gpu-0 and so on. Without a node they are
    for nodes with the labels of `node_selector`, without that for all nodes. `counters` maps
    counter sets to their counters; such a slice has no devices.
    """
    if isinstance(devices, int):
        devices = [device(f"gpu-{number}") for number in range(0 if counters else devices)]
    pool = pool or node or "shared"
    full: dict[str, Any] = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
        "devices": [to_builtins(one) for one in devices],
        "sharedCounters": [
            {"name": one, "counters": _values(values)} for one, values in (counters or {}).items()
        ],
        **_selection(node, node_selector),
        **(spec or {}),
    }
    if full.get("perDeviceNodeSelection"):
        full.pop("allNodes", None)
    return convert({"metadata": {"name": name or f"slice-{pool}"}, "spec": full}, ResourceSlice)


def device_class(
    name: str = "gpu",
    *selectors: str,
    extended_resource: str | None = None,
    spec: Mapping[str, Any] | None = None,
) -> DeviceClass:
    """A class of devices that all CEL expressions select; without any, of all devices."""
    full: dict[str, Any] = {"selectors": _expressions(selectors), **(spec or {})}
    if extended_resource is not None:
        full["extendedResourceName"] = extended_resource
    return convert({"metadata": {"name": name}, "spec": full}, DeviceClass)


# --- claims ---------------------------------------------------------------------------------------


def device_request(
    name: str = "gpu",
    count: int | str = 1,
    *,
    device_class: str = "gpu",
    selectors: Iterable[str] = (),
    tolerates: Iterable[str] = (),
    capacity: Mapping[str, Amount] | None = None,
    admin: bool = False,
    first_available: Iterable[DeviceRequest] = (),
    spec: Mapping[str, Any] | None = None,
) -> DeviceRequest:
    """A request of a claim.

    `count` may be "All". `selectors` are CEL expressions; `tolerates` as for pods. Of the requests
    of `first_available` the first that can be served is taken. `spec` is merged into `exactly`.
    """
    alternatives = [to_builtins(one) for one in first_available]
    if alternatives:
        subs = [{"name": one["name"], **one["exactly"]} for one in alternatives]
        return convert({"name": name, "firstAvailable": subs}, DeviceRequest)
    exactly: dict[str, Any] = {
        "deviceClassName": device_class,
        "selectors": _expressions(selectors),
        "allocationMode": ALL if count == ALL else EXACT_COUNT,
        "count": 0 if count == ALL else count,
        "tolerations": [toleration(text) for text in tolerates],
        **({"capacity": {"requests": dict(capacity)}} if capacity else {}),
        **({"adminAccess": True} if admin else {}),
        **(spec or {}),
    }
    return convert({"name": name, "exactly": exactly}, DeviceRequest)


def resource_claim(
    name: str = "claim",
    *requests: DeviceRequest,
    namespace: str = "default",
    uid: str | None = None,
    match: str = "",
    distinct: str = "",
    owner: Pod | None = None,
    allocated: Iterable[str] = (),
    on: str = "",
    driver: str = DRIVER,
    used_by: Iterable[Pod | str] = (),
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> ResourceClaim:
    """A claim; without requests, to one device of the class gpu.

    All its devices have equal (`match`) or different (`distinct`) values of an attribute.
    `allocated` are devices that it has: of the pool of the node `on`, or "pool/device". `used_by`
    are the pods that it is reserved for. `owner` is the pod that it was made for. `metadata` and
    `spec` (its part `devices`) are merged in, in the form of YAML.
    """
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    if owner is not None:
        ref = {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "controller": True}
        meta["ownerReferences"] = [{**ref, "uid": owner.api.metadata.uid}]
    devices = _claim_spec(requests, match, distinct, spec)
    first = devices["requests"][0]["name"] if devices["requests"] else ""
    results = [_result(text, first, on, driver) for text in allocated]
    status: dict[str, Any] = {"reservedFor": [_user(one) for one in used_by]}
    if results:
        status["allocation"] = {"devices": {"results": results}}
        if on:
            only = {"key": NODE_NAME_FIELD, "operator": "In", "values": [on]}
            term = {"matchFields": [only]}
            status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    full = {
        "metadata": {**meta, **(metadata or {})},
        "spec": {"devices": devices},
        "status": status,
    }
    return convert(full, ResourceClaim)


def resource_claim_template(
    name: str = "claim",
    *requests: DeviceRequest,
    namespace: str = "default",
    match: str = "",
    distinct: str = "",
    spec: Mapping[str, Any] | None = None,
) -> ResourceClaimTemplate:
    """What each pod that names it gets a claim of its own by."""
    devices = _claim_spec(requests, match, distinct, spec)
    full = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }
    return convert(full, ResourceClaimTemplate)


# --- parts ----------------------------------------------------------------------------------------


def _claim_spec(
    requests: Iterable[DeviceRequest], match: str, distinct: str, spec: Mapping[str, Any] | None
) -> dict[str, Any]:
    constraints = [{"matchAttribute": match}] if match else []
    constraints += [{"distinctAttribute": distinct}] if distinct else []
    asked = [to_builtins(one) for one in tuple(requests) or (device_request(),)]
    return {"requests": asked, "constraints": constraints, **(spec or {})}


def _result(text: str, request: str, node: str, driver: str) -> dict[str, str]:
    pool, slash, name = text.rpartition("/")
    pool = pool if slash else node or "shared"
    return {"request": request, "driver": driver, "pool": pool, "device": name}


def _user(pod: Pod | str) -> dict[str, str]:
    name, uid = (pod, pod) if isinstance(pod, str) else (pod.name, pod.api.metadata.uid)
    return {"resource": "pods", "name": name, "uid": uid}


def _selection(node: str, labels: Mapping[str, str] | None) -> dict[str, Any]:
    if node:
        return {"nodeName": node}
    if labels is None:
        return {"allNodes": True}
    tests = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": tests}]}}


def _attribute(value: AttributeValue) -> dict[str, AttributeValue]:
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: value}


def _values(amounts: Mapping[str, Amount]) -> dict[str, dict[str, Amount]]:
    return {name: {"value": amount} for name, amount in amounts.items()}


def _expressions(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"cel": {"expression": text}} for text in texts]
