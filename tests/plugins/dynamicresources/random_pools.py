"""Small random pools and claims, with every feature that a search has to deal with."""

from __future__ import annotations

import random
from typing import Any

from mooring.api.codec import convert
from mooring.api.resource import DeviceClass, ResourceClaimSpec, ResourceSlice
from mooring.plugins.dynamicresources.pools import DevicePool, PoolDevice, gather
from mooring.plugins.dynamicresources.problem import AllocationProblem, Content, Usage, problem_key
from mooring.plugins.dynamicresources.requests import demand_of

DRIVER = "d.example.com"
CLASSES = ("any", "small", "odd")
SELECTORS = {
    "any": [],
    "small": [f'device.attributes["{DRIVER}"].size == 1'],
    # Fails for devices without the attribute.
    "odd": [f'device.attributes["{DRIVER}"].number % 2 == 1'],
}
ATTRIBUTES = ("size", "root", "number")


def random_problem(rng: random.Random) -> tuple[AllocationProblem, Usage]:
    """A problem, and what is in use of its devices."""
    content = Content([_pool(rng, number) for number in range(rng.choice((1, 1, 2)))])
    classes = {
        name: convert(
            {
                "metadata": {"name": name},
                "spec": {"selectors": [{"cel": {"expression": one}} for one in SELECTORS[name]]},
            },
            DeviceClass,
        )
        for name in CLASSES
    }
    specs = [_claim(rng) for _ in range(rng.choice((1, 1, 2)))]
    demand = demand_of(specs, classes)
    problem = AllocationProblem(demand, problem_key(demand, content))
    count = len(content.devices)
    allocated = sum(1 << place for place in range(count) if rng.random() < 0.2)
    consumed = tuple(
        (place, tuple(10**9 for _ in names))
        for place, names in enumerate(content.capacity_names)
        if content.devices[place].device.allow_multiple_allocations and rng.random() < 0.3
    )
    used = tuple(rng.choice((0, 0, 10**9)) for _ in problem.counters)
    return problem, Usage(allocated, consumed, used if any(used) else ())


def _pool(rng: random.Random, number: int) -> DevicePool:
    name = f"pool-{number}"
    has_counters = rng.random() < 0.35
    may_fail = rng.random() < 0.15
    devices = [_device(rng, place, has_counters, may_fail) for place in range(rng.randrange(1, 7))]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1 + has_counters}
    slices = [_slice(f"{name}-a", {"driver": DRIVER, "pool": pool, "devices": devices})]
    if has_counters:
        sets = [{"name": "set", "counters": {"memory": {"value": str(rng.randrange(1, 6))}}}]
        slices.append(_slice(f"{name}-b", {"driver": DRIVER, "pool": pool, "sharedCounters": sets}))
    found = gather(
        (DRIVER, name),
        slices,
        slices,
        lambda one: [PoolDevice(one, device) for device in one.spec.devices],
    )
    assert found is not None
    assert found.is_usable
    return found


def _slice(name: str, spec: dict[str, Any]) -> ResourceSlice:
    return convert({"metadata": {"name": name}, "spec": {"nodeName": "n", **spec}}, ResourceSlice)


def _device(rng: random.Random, place: int, has_counters: bool, may_fail: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {"size": {"int": rng.choice((1, 2))}}
    if not may_fail or rng.random() < 0.7:
        attributes["number"] = {"int": place}
    if rng.random() < 0.85:
        attributes["root"] = {"string": rng.choice("ab")}
    if rng.random() < 0.05:
        attributes["root"] = {"ints": [1]}
    device: dict[str, Any] = {"name": f"dev-{place}", "attributes": attributes}
    if has_counters and rng.random() < 0.8:
        counters = {"memory": {"value": str(rng.randrange(0, 4))}}
        device["consumesCounters"] = [{"counterSet": "set", "counters": counters}]
    if rng.random() < 0.3:
        device["capacity"] = {"memory": {"value": str(rng.randrange(1, 5))}}
        device["allowMultipleAllocations"] = rng.random() < 0.6
        if rng.random() < 0.4:
            device["capacity"]["memory"]["requestPolicy"] = {"default": "1"}
    if rng.random() < 0.15:
        device["taints"] = [{"key": "t", "effect": rng.choice(("NoSchedule", "None"))}]
    return device


def _claim(rng: random.Random) -> ResourceClaimSpec:
    requests: list[dict[str, Any]] = []
    names: list[str] = []
    for number in range(rng.randrange(1, 4)):
        name = f"r{number}"
        names.append(name)
        if rng.random() < 0.25:
            alternatives = [{"name": f"s{n}", **_asked(rng)} for n in range(rng.randrange(1, 4))]
            requests.append({"name": name, "firstAvailable": alternatives})
            names.append(f"{name}/s0")
        else:
            exactly = _asked(rng)
            if rng.random() < 0.1:
                exactly["adminAccess"] = True
            requests.append({"name": name, "exactly": exactly})
    constraints = [
        {
            rng.choice(("matchAttribute", "distinctAttribute")): f"{DRIVER}/{attribute}",
            "requests": rng.sample(names, rng.randrange(0, len(names) + 1)),
        }
        for attribute in rng.sample(ATTRIBUTES, rng.choice((0, 0, 1, 1, 2)))
    ]
    spec = {"devices": {"requests": requests, "constraints": constraints}}
    return convert(spec, ResourceClaimSpec)


def _asked(rng: random.Random) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "deviceClassName": rng.choice(("any", "any", "small", "odd")),
        "allocationMode": "ExactCount",
        "count": rng.choice((1, 1, 2, 3)),
    }
    if rng.random() < 0.1:
        asked["allocationMode"] = "All"
        del asked["count"]
    if rng.random() < 0.02:
        asked["count"] = 20
    if rng.random() < 0.2:
        asked["tolerations"] = [{"key": "t", "operator": "Exists"}]
    if rng.random() < 0.2:
        asked["capacity"] = {"requests": {"memory": str(rng.randrange(1, 3))}}
    return asked
