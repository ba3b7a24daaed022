"""Milliseconds per pod with claims to devices, in process: queue, cycle, devices, binding.

    python -m bench.devices
    python -m bench.devices --nodes 5000 --devices 8 --pods 500 --workload plain

Every pod has a claim of its own, as a controller makes it from a template. CPU time is measured.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import mooring.framework as fw
from bench.workloads import cluster
from mooring.api.codec import convert
from mooring.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.simulator import Simulation
from mooring.testing import pod

DRIVER = "gpu.example.com"
WARM_UP = 20  # pods

Claim = dict[str, Any]  # spec.devices of a claim


def device_class(name: str, expression: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": expression}}]
    return convert(
        {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}, DeviceClass
    )


CLASSES = (
    device_class("gpu", f'device.driver == "{DRIVER}"'),
    device_class(
        "big",
        f'device.driver == "{DRIVER}" &&'
        f' device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("100Gi"))',
    ),
    device_class("served", f'device.driver == "{DRIVER}"', extendedResourceName="example.com/gpu"),
)


def slices(node: str, count: int, *, counters: bool) -> list[ResourceSlice]:
    """The devices of a node; with counters, every second one is a part of another."""
    devices: list[dict[str, Any]] = []
    for number in range(count):
        device: dict[str, Any] = {
            "name": f"gpu-{number}",
            "attributes": {
                "model": {"string": "A100"},
                "uuid": {"string": f"{node}-{number}"},
                "numa": {"int": number * 2 // count},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        if counters:
            taken = {"memory": {"value": "40Gi" if number % 2 else "80Gi"}}
            device["consumesCounters"] = [{"counterSet": f"set-{number // 2}", "counters": taken}]
        devices.append(device)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1 + counters}
    spec: dict[str, Any] = {"driver": DRIVER, "pool": pool, "nodeName": node}
    found = [{"metadata": {"name": node}, "spec": {**spec, "devices": devices}}]
    if counters:
        sets = [
            {"name": f"set-{number}", "counters": {"memory": {"value": "80Gi"}}}
            for number in range(count // 2)
        ]
        found.append({"metadata": {"name": f"{node}-c"}, "spec": {**spec, "sharedCounters": sets}})
    return [convert(one, ResourceSlice) for one in found]


def exactly(count: int = 1, **more: Any) -> dict[str, Any]:
    return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **more}


def requests(**named: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "exactly": one} for name, one in named.items()]


SELECTOR = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "A100"'}}
ALTERNATIVES = [
    {"name": "big", **exactly(deviceClassName="big")},
    {"name": "any", **exactly()},
]
WORKLOADS: dict[str, Claim] = {
    "plain": {"requests": requests(gpu=exactly())},
    "selector": {"requests": requests(gpu=exactly(selectors=[SELECTOR]))},
    "constraints": {
        "requests": requests(a=exactly(), b=exactly()),
        "constraints": [{"matchAttribute": f"{DRIVER}/numa"}],
    },
    "counters": {"requests": requests(gpu=exactly())},
    "first available": {"requests": [{"name": "gpu", "firstAvailable": ALTERNATIVES}]},
    "nowhere": {"requests": requests(gpu=exactly(), big=exactly(deviceClassName="big"))},
}


def claim(name: str, devices: Claim) -> ResourceClaim:
    meta = {"name": name, "namespace": "default"}
    return convert({"metadata": meta, "spec": {"devices": devices}}, ResourceClaim)


def claiming(name: str) -> fw.Pod:
    entry = {"name": "gpu", "resourceClaimName": name}
    return pod(name, cpu="10m", spec={"resourceClaims": [entry]})


def serving(name: str) -> fw.Pod:
    return pod(name, cpu="10m", requests={"example.com/gpu": "1"})


def cost(workload: str, nodes: int, devices: int, pods: int) -> float:
    """Milliseconds per pod."""
    gc.set_threshold(50_000)
    make: Callable[[str], fw.Pod] = serving if workload == "extended" else claiming
    with Simulation(keep_attempts=False) as sim:
        sim.apply(*CLASSES, *cluster(nodes))
        for number in range(nodes):
            sim.apply(*slices(f"node-{number:05}", devices, counters=workload == "counters"))
        if workload in WORKLOADS:
            sim.apply(*(claim(f"p{i}", WORKLOADS[workload]) for i in range(WARM_UP + pods)))
        sim.schedule(*(make(f"p{i}") for i in range(WARM_UP)))
        sim.apply(*(make(f"p{i}") for i in range(WARM_UP, WARM_UP + pods)))
        gc.collect()
        gc.freeze()
        began = time.process_time()
        sim.settle()
        spent = time.process_time() - began
    gc.unfreeze()
    return spent / pods * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--devices", type=int, default=8, help="of each node")
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--workload", action="append", choices=[*WORKLOADS, "extended"])
    options = parser.parse_args()
    for name in options.workload or [*WORKLOADS, "extended"]:
        found = cost(name, options.nodes, options.devices, options.pods)
        print(f"{name:16} {found:8.3f} ms per pod", flush=True)


if __name__ == "__main__":
    main()
