"""Claims to devices, in the shapes of kube's scheduler_perf: ten devices on every node.

Claims are there before the pods, as a controller makes them from a template. `bench.versus` runs
them with `--devices`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.manifests import IMAGE, Object
from bench.shapes import Shape

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
DEVICES = 10  # of each node
RESOURCE = "example.com/gpu"
CARDS = 2  # of each node, if they have parts
SHARES = 4  # of each shared device


def classes() -> list[Object]:
    """All devices of the driver; and those with much memory, of which there are none."""
    mine = f'device.driver == "{DRIVER}"'
    memory = f'device.capacity["{DRIVER}"].memory'
    big = f'{mine} && {memory}.isGreaterThan(quantity("100Gi"))'
    return [
        _object("DeviceClass", "gpu", spec={"selectors": [_cel(mine)]}),
        _object("DeviceClass", "big", spec={"selectors": [_cel(big)]}),
    ]


def serving_class() -> list[Object]:
    selectors = [_cel(f'device.driver == "{DRIVER}"')]
    spec = {"selectors": selectors, "extendedResourceName": RESOURCE}
    return [_object("DeviceClass", "gpu", spec=spec)]


# --- devices --------------------------------------------------------------------------------------


def plain(number: int, name: str) -> list[Object]:
    """Whole devices of a node."""
    devices = [_device(f"gpu-{place}", f"{name}-{place}") for place in range(DEVICES)]
    return [_slice(name, name, devices=devices)]


def half_taken(number: int, name: str) -> list[Object]:
    """As `plain`, and every second device is in use."""
    return plain(number, name) + [_holder(name, place) for place in range(0, DEVICES, 2)]


def with_parts(number: int, name: str) -> list[Object]:
    """Cards that can be had as a whole, or in four parts."""
    counters = {f"card-{card}": {"memory": {"value": "80Gi"}} for card in range(CARDS)}
    devices = []
    for card in range(CARDS):
        for part, amount in (("whole", "80Gi"), *((f"part-{p}", "20Gi") for p in range(4))):
            device = _device(f"gpu-{card}-{part}", f"{name}-{card}-{part}")
            taken = {"counterSet": f"card-{card}", "counters": {"memory": {"value": amount}}}
            device["capacity"] = {"memory": {"value": amount}}
            devices.append({**device, "consumesCounters": [taken]})
    sets = [{"name": key, "counters": value} for key, value in counters.items()]
    return [
        _slice(name, name, 2, devices=devices),
        _slice(f"{name}-counters", name, 2, sharedCounters=sets),
    ]


def shared(number: int, name: str) -> list[Object]:
    """Devices of which several claims have a part."""
    devices = []
    for place in range(DEVICES):
        policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "80Gi"}}
        device = _device(f"gpu-{place}", f"{name}-{place}")
        device["capacity"] = {"memory": {"value": "80Gi", "requestPolicy": policy}}
        devices.append({**device, "allowMultipleAllocations": True})
    return [_slice(name, name, devices=devices)]


# --- pods and claims ------------------------------------------------------------------------------


def claiming(i: int) -> Object:
    entry = {"name": "gpu", "resourceClaimName": f"claim-{i:06d}"}
    return _pod(f"claiming-{i:06d}", {}, resourceClaims=[entry])


def asking(i: int) -> Object:
    return _pod(f"asking-{i:06d}", {RESOURCE: "1"})


def claim(request: Object) -> Callable[[int], list[Object]]:
    return lambda i: [
        _object("ResourceClaim", f"claim-{i:06d}", spec={"devices": {"requests": [request]}})
    ]


def _exactly(**more: Any) -> Object:
    return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **more}


ONE: Object = {"name": "gpu", "exactly": _exactly()}
PART: Object = {
    "name": "gpu",
    "exactly": _exactly(
        selectors=[
            {
                "cel": {
                    "expression": f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi"))'
                    " == 0"
                }
            }
        ]
    ),
}
SHARE: Object = {
    "name": "gpu",
    "exactly": _exactly(capacity={"requests": {"memory": f"{80 // SHARES}Gi"}}),
}
EITHER: Object = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "big", **_exactly(deviceClassName="big")},
        {"name": "any", **_exactly()},
    ],
}


def _holder(node: str, place: int) -> Object:
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{place}"}
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
    spec = {"devices": {"requests": [ONE]}}
    name = f"held-{node}-{place}"
    return _object("ResourceClaim", name, spec=spec, status={"allocation": allocation})


def _device(name: str, uuid: str) -> Object:
    attributes = {"model": {"string": "A100"}, "uuid": {"string": uuid}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


def _slice(name: str, node: str, slices: int = 1, **spec: Any) -> Object:
    pool = {"name": node, "generation": 1, "resourceSliceCount": slices}
    full = {"driver": DRIVER, "nodeName": node, "pool": pool, **spec}
    return _object("ResourceSlice", name, spec=full)


def _object(kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, **fields}


def _cel(expression: str) -> Object:
    return {"cel": {"expression": expression}}


def _pod(name: str, more: dict[str, str], **spec: Any) -> Object:
    requests = {"cpu": "10m", "memory": "10Mi", **more}
    resources = {"requests": requests, "limits": more}
    container = {"name": "main", "image": IMAGE, "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "devices"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


DEVICE_SHAPES: dict[str, Shape] = {
    "claims": Shape(
        title="a claim to one of ten devices",
        pod=claiming,
        at_most=lambda nodes: nodes * DEVICES,
        shared=classes,
        for_node=plain,
        for_pod=claim(ONE),
    ),
    "claims-half-full": Shape(
        title="as before, half of the devices in use",
        pod=claiming,
        at_most=lambda nodes: nodes * DEVICES // 2,
        shared=classes,
        for_node=half_taken,
        for_pod=claim(ONE),
    ),
    "claims-parts": Shape(
        title="parts of devices (counters)",
        pod=claiming,
        at_most=lambda nodes: nodes * CARDS * 4,
        shared=classes,
        for_node=with_parts,
        for_pod=claim(PART),
    ),
    "claims-shares": Shape(
        title="shares of devices (consumable capacity)",
        pod=claiming,
        at_most=lambda nodes: nodes * DEVICES * SHARES,
        shared=classes,
        for_node=shared,
        for_pod=claim(SHARE),
    ),
    "claims-first-available": Shape(
        title="the second of two alternatives",
        pod=claiming,
        at_most=lambda nodes: nodes * DEVICES,
        shared=classes,
        for_node=plain,
        for_pod=claim(EITHER),
    ),
    "extended-resource": Shape(
        title="an extended resource served by devices",
        pod=asking,
        at_most=lambda nodes: nodes * DEVICES,
        shared=serving_class,
        for_node=plain,
    ),
}
