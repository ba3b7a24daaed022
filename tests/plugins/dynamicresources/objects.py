"""Devices, claims and pods in the shorthand of these tests: fields in the form of YAML."""

from __future__ import annotations

from typing import Any

import mooring.framework as fw
from mooring.api.codec import convert, to_builtins
from mooring.api.resource import Device, DeviceClass, ResourceClaim, ResourceSlice
from mooring.testing import builders, devices
from mooring.testing.devices import DRIVER as DRIVER


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    """All devices of the driver, or those that the expressions select."""
    expressions = expressions or (f'device.driver == "{DRIVER}"',)
    return devices.device_class(name, *expressions, spec=spec)


def gpu(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"model": {"string": "A100"}}, **fields}


def resource_slice(
    node: str = "", given: int | list[dict[str, Any]] = 2, *, name: str = "", **spec: Any
) -> ResourceSlice:
    """The pool of a node; without one, `spec` says which nodes it is for."""
    if isinstance(given, int):
        given = [gpu(f"gpu-{number}") for number in range(given)]
    built = [convert(one, Device) for one in given]
    return devices.resource_slice(node, built, name=name, spec=spec)


def request(name: str = "gpu", count: int = 1, **exactly: Any) -> dict[str, Any]:
    found: dict[str, Any] = to_builtins(devices.device_request(name, count, spec=exactly))
    return found


def claim(name: str = "claim", *requests: dict[str, Any], **fields: Any) -> ResourceClaim:
    """A claim; `status` and `metadata` may be given, `devices` adds to its spec."""
    asked = {"requests": list(requests or (request(),)), **fields.get("devices", {})}
    built = devices.resource_claim(name, metadata=fields.get("metadata"), spec=asked)
    return convert({**to_builtins(built), "status": fields.get("status", {})}, ResourceClaim)


def allocated(
    name: str, node: str, *taken: str, reserved_for: tuple[str, ...] = (), **fields: Any
) -> ResourceClaim:
    """A claim that has devices of a node."""
    return devices.resource_claim(name, allocated=taken, on=node, used_by=reserved_for, **fields)


def pod_with(*claims: str, name: str = "p", **fields: Any) -> fw.Pod:
    """A pod that uses claims by name."""
    return builders.pod(name, uid=name, claims=claims, **fields)
