"""Devices, claims and pods for tests, in the shorthand of these tests."""

from __future__ import annotations

from typing import Any

import mooring.framework as fw
from mooring.api.codec import convert
from mooring.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.testing.builders import pod

DRIVER = "gpu.example.com"


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    """All devices of the driver, or those that the expressions select."""
    selectors = [
        {"cel": {"expression": one}} for one in expressions or (f'device.driver == "{DRIVER}"',)
    ]
    return convert(
        {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}, DeviceClass
    )


def gpu(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"model": {"string": "A100"}}, **fields}


def resource_slice(
    node: str = "", devices: int | list[dict[str, Any]] = 2, *, name: str = "", **spec: Any
) -> ResourceSlice:
    """The pool of a node; without one, `spec` says which nodes it is for."""
    if isinstance(devices, int):
        devices = [gpu(f"gpu-{number}") for number in range(devices)]
    where = {"nodeName": node} if node else {}
    pool = {"name": node or "shared", "generation": 1, "resourceSliceCount": 1}
    return convert(
        {
            "metadata": {"name": name or f"slice-{node or 'shared'}"},
            "spec": {"driver": DRIVER, "pool": pool, **where, "devices": devices, **spec},
        },
        ResourceSlice,
    )


def request(name: str = "gpu", count: int = 1, **exactly: Any) -> dict[str, Any]:
    asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **exactly}
    return {"name": name, "exactly": asked}


def claim(name: str = "claim", *requests: dict[str, Any], **fields: Any) -> ResourceClaim:
    """A claim; `status` and `metadata` may be given, `devices` adds to its spec."""
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        **fields.get("metadata", {}),
    }
    devices = {"requests": list(requests or (request(),)), **fields.get("devices", {})}
    body = {"metadata": meta, "spec": {"devices": devices}, "status": fields.get("status", {})}
    return convert(body, ResourceClaim)


def allocated(
    name: str, node: str, *devices: str, reserved_for: tuple[str, ...] = (), **fields: Any
) -> ResourceClaim:
    """A claim that has devices of a node."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": one} for one in devices]
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
    }
    users = [{"resource": "pods", "name": one, "uid": one} for one in reserved_for]
    return claim(name, status={"allocation": allocation, "reservedFor": users}, **fields)


def pod_with(*claims: str, name: str = "p", **fields: Any) -> fw.Pod:
    """A pod that uses claims by name."""
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    return pod(name, uid=name, spec={"resourceClaims": entries}, **fields)
