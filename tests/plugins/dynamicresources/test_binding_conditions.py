"""Devices that a driver has to prepare before the pod is bound: ready, failed, or too late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.lens.clusters import explained
from tests.plugins.dynamicresources.objects import (
    DRIVER,
    claim,
    device_class,
    gpu,
    pod_with,
    resource_slice,
)

from mooring.api.codec import convert
from mooring.api.resource import ResourceClaim, ResourceClaimStatus
from mooring.simulator import Simulation
from mooring.testing.builders import node

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: DynamicResources
        args: {bindingTimeout: 30s}
"""
SLOW = gpu("gpu-0", bindingConditions=["Ready", "Cool"], bindingFailureConditions=["Broken"])
FAILED = 'running PreBind plugin "DynamicResources": '


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A pod that waits for the device of its claim."""
    with Simulation(config=CONFIG) as simulation:
        simulation.apply(device_class(), node("a"), resource_slice("a", [SLOW]), claim("c"))
        simulation.schedule(pod_with("c"))
        yield simulation


def stored(sim: Simulation) -> ResourceClaim:
    found = sim.cluster.find(ResourceClaim, "c", "default")
    assert found is not None
    return found


def report(sim: Simulation, **conditions: str) -> None:
    """What the driver says of the device."""
    known = stored(sim)
    status: dict[str, Any] = msgspec.to_builtins(known.status, str_keys=True)
    said = [
        {"type": kind, "status": value, "reason": "Seen", "message": "by the driver"}
        for kind, value in conditions.items()
    ]
    status["devices"] = [{"driver": DRIVER, "pool": "a", "device": "gpu-0", "conditions": said}]
    sim.apply(msgspec.structs.replace(known, status=convert(status, ResourceClaimStatus)))


def failures(sim: Simulation) -> list[str]:
    return [event.note for event in sim.events if event.reason == "FailedScheduling"]


def test_all_conditions_have_to_be_true(sim: Simulation) -> None:
    report(sim, Ready="True", Cool="False")
    sim.advance(10)
    assert sim.node_of("p") == ""
    report(sim, Ready="True", Cool="True", Broken="False")
    sim.advance(5)
    assert sim.node_of("p") == "a"


def test_a_device_that_failed_is_given_back(sim: Simulation) -> None:
    report(sim, Ready="True", Cool="True", Broken="True")
    sim.advance(5)
    assert failures(sim) == [
        f'{FAILED}device binding failed: claim=c, reason=Seen, message="by the driver"'
    ]
    sim.advance(2)
    assert failures(sim)[1].startswith(
        "0/1 nodes are available: 1 resourceclaim not available on the node."
        " deallocation of ResourceClaim completed"
    )
    sim.advance(10)  # it is allocated again, and has no conditions yet
    report(sim, Ready="True", Cool="True")
    sim.advance(5)
    assert sim.node_of("p") == "a"


def test_a_device_that_failed_is_what_an_explanation_tells(sim: Simulation) -> None:
    report(sim, Broken="True")
    objects = [device_class(), resource_slice("a", [SLOW]), stored(sim)]
    found = explained(pod_with("c"), [node("a")], objects=objects)
    assert [
        fact.text for group in found.groups for one in group.refusals for fact in one.facts
    ] == ["claim default/c: its devices did not become ready"]


def test_a_device_that_takes_too_long_is_given_back(sim: Simulation) -> None:
    sim.advance(29)
    assert failures(sim) == []
    sim.advance(2)
    assert failures(sim)[0].startswith(f"{FAILED}device binding timeout: ")
    sim.advance(3)
    assert "deallocation of ResourceClaim completed" in failures(sim)[1]


def test_a_claim_that_was_allocated_long_ago_is_not_waited_for(sim: Simulation) -> None:
    known = stored(sim)
    assert known.allocation is not None
    long_ago = msgspec.structs.replace(
        known.allocation, allocation_timestamp="2020-01-01T00:00:00Z"
    )
    status = msgspec.structs.replace(known.status, allocation=long_ago)
    sim.apply(msgspec.structs.replace(known, status=status))
    sim.advance(5)
    assert failures(sim)[0] == f"{FAILED}device binding timeout: claim=c"


def test_a_claim_that_lost_its_devices_is_waited_for_until_the_time_is_over(
    sim: Simulation,
) -> None:
    sim.apply(msgspec.structs.replace(stored(sim), status=ResourceClaimStatus()))
    sim.advance(29)
    assert failures(sim) == []
    sim.advance(1)
    assert failures(sim) == [f"{FAILED}device binding timeout: context deadline exceeded"]


def test_a_claim_that_is_deleted_is_not_waited_for(sim: Simulation) -> None:
    sim.delete(stored(sim))
    sim.advance(5)
    assert failures(sim) == [f'{FAILED}could not find ResourceClaim "default/c"']
