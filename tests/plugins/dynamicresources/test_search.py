"""The search for devices: what is left out never changes what is found."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest
from tests.plugins.dynamicresources.objects import device_class, request, resource_slice
from tests.plugins.dynamicresources.random_pools import random_problem

from mooring.api.codec import convert
from mooring.api.resource import ResourceClaimSpec
from mooring.plugins.dynamicresources.pools import PoolDevice, gather
from mooring.plugins.dynamicresources.problem import AllocationProblem, Content, Usage, problem_key
from mooring.plugins.dynamicresources.requests import demand_of
from mooring.plugins.dynamicresources.search import SearchError, Solution, solve

POOLS = int(os.environ.get("MOORING_RANDOM_POOLS", "1000"))


def outcome(problem: AllocationProblem, usage: Usage, *, prune: bool) -> object:
    found = solve(problem, usage, prune=prune)
    if isinstance(found, SearchError):
        return (found.claim, found.text)
    return (found.picks, found.alternatives) if isinstance(found, Solution) else None


def test_a_pruned_search_finds_what_a_plain_one_finds() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(POOLS):
        problem, usage = random_problem(random.Random(seed))
        plain = outcome(problem, usage, prune=False)
        assert outcome(problem, usage, prune=True) == plain, f"seed {seed}"
        kinds["none" if plain is None else type(plain[0]).__name__] += 1  # type: ignore[index]  # one of two tuples
    # All kinds of outcomes occur: nothing found, devices, an error.
    assert min(kinds[kind] for kind in ("none", "tuple", "int")) > POOLS // 50


def equal_devices(count: int) -> Content:
    """One pool of devices that differ in nothing but their numbers."""
    devices = [
        {"name": f"gpu-{number:02}", "attributes": {"number": {"int": number}}}
        for number in range(count)
    ]
    slice_ = resource_slice("n", devices)
    pool = gather(
        ("gpu.example.com", "n"),
        [slice_],
        [slice_],
        lambda one: [PoolDevice(one, device) for device in one.spec.devices],
    )
    assert pool is not None
    return Content([pool])


def steps(devices: dict[str, Any], content: Content) -> tuple[bool, int]:
    """Whether there is a solution, and how many steps it took to know."""
    classes = {
        "gpu": device_class("gpu", "true"),
        "odd": device_class("odd", 'device.attributes["gpu.example.com"].number % 2 == 1'),
        "none": device_class("none", "false"),
    }
    demand = demand_of([convert({"devices": devices}, ResourceClaimSpec)], classes)
    found = solve(AllocationProblem(demand, problem_key(demand, content)), Usage())
    assert not isinstance(found, SearchError)
    return isinstance(found, Solution), found.steps


@pytest.mark.parametrize(
    ("requests", "constraints", "is_served"),
    [
        # kube-scheduler takes seven seconds for the first of these, on one node.
        ([request("a", 11), request("b", deviceClassName="none")], [], False),
        ([request("a", 11), request("b", 12)], [], False),
        ([request("a", 11), request("b", 12, deviceClassName="odd")], [], False),
        ([request("a", 8), request("b", 11, deviceClassName="odd")], [], True),
        (
            [request("a", 11), request("b", 12)],
            [{"matchAttribute": "gpu.example.com/none"}],
            False,
        ),
        (
            [request("a", 11), request("b", 12)],
            [{"distinctAttribute": "gpu.example.com/number"}],
            False,
        ),
        ([request("a", 2), request("b", 2)], [{"matchAttribute": "gpu.example.com/number"}], False),
    ],
)
def test_no_search_among_equal_devices_explodes(
    requests: list[dict[str, Any]], constraints: list[dict[str, Any]], is_served: bool
) -> None:
    found = steps({"requests": requests, "constraints": constraints}, equal_devices(22))
    assert found[0] is is_served
    assert found[1] <= 500
