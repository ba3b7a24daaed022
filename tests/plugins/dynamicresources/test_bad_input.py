"""Objects that make no sense: a message, no crash, and the next pod is scheduled."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plugins.dynamicresources.objects import (
    claim,
    device_class,
    gpu,
    pod_with,
    request,
    resource_slice,
)

from mooring.api.resource import ResourceSlice
from mooring.simulator import Simulation
from mooring.testing import devices
from mooring.testing.builders import node

G = 'device.attributes["gpu.example.com"]'


def selecting(expression: str, **more: Any) -> dict[str, Any]:
    return request(selectors=[{"cel": {"expression": expression}}], **more)


def pool(count: int, generation: int = 1) -> dict[str, Any]:
    return {"name": "a", "generation": generation, "resourceSliceCount": count}


DUPLICATE = resource_slice("a", [gpu("gpu-0"), gpu("gpu-0")])
LOST_COUNTER = resource_slice(
    "a",
    [gpu("gpu-0", consumesCounters=[{"counterSet": "no", "counters": {"x": {"value": "1"}}}])],
)
ODD_COUNTS = [
    resource_slice("a", 1, name="one", pool=pool(1)),
    resource_slice("a", [gpu("gpu-9")], name="two", pool=pool(7)),
]
HUGE = gpu("gpu-0", capacity={"memory": {"value": "1e900"}, "other": {"value": "-5"}})
# Two counter sets, two devices: each needs all that the other takes a part of.
CIRCLE = [
    devices.resource_slice(
        "a",
        [
            devices.device("gpu-0", consumes={"one": {"n": 2}, "two": {"n": 1}}),
            devices.device("gpu-1", consumes={"one": {"n": 1}, "two": {"n": 2}}),
        ],
        slices=2,
    ),
    devices.resource_slice("a", name="c", slices=2, counters={"one": {"n": 2}, "two": {"n": 2}}),
]
STEPLESS = gpu(
    "gpu-0",
    allowMultipleAllocations=True,
    capacity={
        "memory": {
            "value": "10",
            "requestPolicy": {"validRange": {"min": "1", "step": "0"}, "default": "1"},
        }
    },
)


@pytest.mark.parametrize(
    ("slices", "wish", "message"),
    [
        (
            [resource_slice("a", 1)],
            selecting("device.nothing"),
            "claim default/bad: selector #0: CEL compile error: undefined field 'nothing'",
        ),
        (
            [resource_slice("a", 1)],
            selecting(f"{G}.nothing == 1"),
            "claim default/bad: selector #0: CEL runtime error: no such key: nothing",
        ),
        ([DUPLICATE], request(), "1 invalid resource pools were encountered"),
        ([LOST_COUNTER], request(), "1 invalid resource pools were encountered"),
        (
            [DUPLICATE],
            request(allocationMode="All", count=0),
            "claim default/bad, request gpu: asks for all devices, but resource pool"
            " gpu.example.com/a is currently invalid",
        ),
        (CIRCLE, request(count=2), "1 cannot allocate all claims"),
        (ODD_COUNTS, request(), "1 cannot allocate all claims"),
        (
            [resource_slice("a", 1, pool=pool(2))],
            request(allocationMode="All", count=0),
            "claim default/bad, request gpu: asks for all devices, but resource pool"
            " gpu.example.com/a is currently being updated",
        ),
        ([resource_slice("a", 1)], request(deviceClassName="no"), "device class no does not exist"),
        ([resource_slice("a", 1)], request(allocationMode="Some"), "unsupported count mode Some"),
        (
            [resource_slice("a", 1)],
            request(count=33),
            "claim default/bad: number of requested devices 33 exceeds the claim limit of 32",
        ),
        (
            [resource_slice("a", [HUGE])],
            request(capacity={"requests": {"memory": "1e901"}}),
            "1 cannot allocate all claims",
        ),
        ([resource_slice("a", 1)], {"name": "empty"}, "request empty: unknown request type"),
        (
            [resource_slice("a", 1)],
            request(selectors=[{}]),
            "claim default/bad, request gpu, selector #0: CEL expression empty",
        ),
    ],
)
def test_says_what_is_wrong_and_goes_on(
    slices: list[ResourceSlice], wish: dict[str, Any], message: str
) -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), *slices, claim("bad", wish), claim("good"))
        sim.schedule(pod_with("bad", name="bad"))
        assert sim.node_of("bad") == ""
        assert message in sim.why("bad")
        sim.apply(node("b"), resource_slice("b", 1))
        sim.schedule(pod_with("good", name="good"))
        assert sim.node_of("good") != ""


def test_a_policy_without_steps_is_no_division_by_zero() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), resource_slice("a", [STEPLESS]))
        sim.apply(claim("c", request(capacity={"requests": {"memory": "3"}})))
        sim.schedule(pod_with("c"))
        assert sim.node_of("p") == "a"


def test_ten_thousand_devices_are_no_problem() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"))
        for number in range(79):
            devices = [gpu(f"gpu-{number}-{place}") for place in range(128)]
            spec = {"allNodes": True, "pool": {**pool(79), "name": "shared"}}
            sim.apply(resource_slice("", devices, name=f"s{number:02}", **spec))
        sim.apply(claim("c", request(count=32)), claim("d", request(count=20), request("more", 12)))
        sim.schedule(pod_with("c", "d"))
        assert sim.node_of("p") == "a"
