"""Pods without claims pass in silence; pods with claims get their devices, or a reason."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.plugins.dynamicresources.objects import (
    allocated,
    claim,
    device_class,
    gpu,
    pod_with,
    request,
    resource_slice,
)

import mooring.framework as fw
from mooring.api.codec import convert
from mooring.api.core import PodStatus
from mooring.api.resource import FINALIZER, ResourceClaim, ResourceClaimStatus
from mooring.errors import ConfigError
from mooring.plugins.dynamicresources.plugin import DynamicResources
from mooring.simulator import Simulation
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import node, nodes, pod

NONE = fw.Verdicts(0)


# --- pods without claims --------------------------------------------------------------------------


def test_says_nothing_about_a_pod_without_claims() -> None:
    plugin, plain, cluster = build(DynamicResources), pod(), nodes(node("a"), node("b"))
    state = fw.CycleState()
    assert plugin.pre_enqueue(plain) is fw.OK
    assert plugin.pre_filter(state, plain, cluster) is fw.SKIP
    assert plugin.filter(state, plain, cluster[0]) is fw.OK
    assert plugin.score_all(state, plain, cluster).tolist() == [0, 0]
    zeros = np.zeros(2, dtype=np.int64)
    assert plugin.normalize_score(state, plain, cluster, zeros).tolist() == [0, 0]
    assert plugin.reserve(state, plain, "a") is fw.OK
    assert plugin.pre_flight(state, plain, "a") is fw.SKIP


def test_has_nothing_to_deallocate() -> None:
    plugin, cluster, state = build(DynamicResources), nodes(node("a")), fw.CycleState()
    plugin.pre_filter(state, pod(), cluster)
    expected = fw.Status.unschedulable("no new claims to deallocate")
    assert plugin.post_filter(state, pod(), cluster, NONE) == expected


def test_is_lost_if_it_was_not_asked_before() -> None:
    plugin, cluster = build(DynamicResources), nodes(node("a"))
    found = plugin.post_filter(fw.CycleState(), pod(), cluster, NONE)
    assert found == fw.Status.error("not found")


# --- arguments ------------------------------------------------------------------------------------


def test_knows_the_arguments() -> None:
    args = build(DynamicResources, filterTimeout="0s", bindingTimeout="1s").args
    assert (str(args.filter_timeout), str(args.binding_timeout)) == ("0s", "1s")
    args = build(DynamicResources).args
    assert (str(args.filter_timeout), str(args.binding_timeout)) == ("10s", "10m0s")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"filterTimeout": "-1s"}, 'filterTimeout: Invalid value: "-1s": must be zero or positive'),
        (
            {"bindingTimeout": "999ms"},
            'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
        ),
        ({"bindingTimeout": "soon"}, "time: invalid duration"),
    ],
)
def test_refuses_times_that_make_no_sense(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build(DynamicResources, **args)
    assert problem in str(refused.value)


# --- a life in simulation -------------------------------------------------------------------------


def stored(sim: Simulation, name: str) -> ResourceClaim:
    found = sim.cluster.find(ResourceClaim, name, "default")
    assert found is not None
    return found


def devices(sim: Simulation, name: str) -> list[str]:
    allocation = stored(sim, name).allocation
    assert allocation is not None
    return [f"{one.pool}/{one.device}" for one in allocation.devices.results]


def test_gives_every_claim_devices_of_its_own() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), *(node(name) for name in "ab"))
        sim.apply(resource_slice("a", 2), resource_slice("b", 2))
        for number in range(5):
            sim.apply(claim(f"c{number}"))
            sim.schedule(pod_with(f"c{number}", name=f"p{number}"))
        given = sorted(device for number in range(4) for device in devices(sim, f"c{number}"))
        assert given == ["a/gpu-0", "a/gpu-1", "b/gpu-0", "b/gpu-1"]
        assert sim.why("p4").startswith("0/2 nodes are available: 2 cannot allocate all claims.")
        first = stored(sim, "c0")
        assert first.metadata.finalizers == (FINALIZER,)
        assert [(one.resource, one.name) for one in first.status.reserved_for] == [("pods", "p0")]
        assert first.allocation is not None
        assert first.allocation.allocation_timestamp is not None


def test_a_device_that_becomes_free_wakes_a_pod() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), resource_slice("a", 1), claim("c1"))
        sim.apply(allocated("c0", "a", "gpu-0", reserved_for=("p0", "p2")))
        sim.schedule(pod_with("c0", name="p0"), pod_with("c1", name="p1"))
        assert sim.where("p1") == "unschedulable"
        sim.delete(sim.pod("p0"))
        sim.advance(20)
        assert sim.node_of("p1") == ""  # the claim has the device, not the pod
        sim.apply(msgspec.structs.replace(stored(sim, "c0"), status=ResourceClaimStatus()))
        sim.advance(20)
        assert sim.node_of("p1") == "a"


@pytest.mark.parametrize("what", ["slice", "class", "claim deleted"])
def test_what_was_missing_wakes_a_pod(what: str) -> None:
    held = allocated("other", "a", "gpu-0")
    parts = {"class": device_class(), "slice": resource_slice("a", 1)}
    with Simulation() as sim:
        sim.apply(node("a"), claim("c"), *(value for key, value in parts.items() if key != what))
        if what == "claim deleted":
            sim.apply(held)
        sim.schedule(pod_with("c"))
        assert sim.where("p") == "unschedulable"
        if what in parts:
            sim.apply(parts[what])
        else:
            sim.delete(stored(sim, "other"))
        sim.advance(20)
        assert sim.node_of("p") == "a"


def test_a_pod_waits_outside_the_queue_for_its_claims() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), resource_slice("a", 1))
        sim.schedule(pod_with("late"))
        assert sim.where("p") == "gated"
        sim.apply(claim("late"))
        sim.advance(20)
        assert sim.node_of("p") == "a"


def test_a_shared_claim_keeps_its_pods_on_its_node() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), *(node(name) for name in "abc"), resource_slice("b", 1))
        sim.apply(claim("shared"))
        for number in range(3):
            sim.schedule(pod_with("shared", name=f"p{number}"))
        assert {sim.node_of(f"p{number}") for number in range(3)} == {"b"}
        users = stored(sim, "shared").status.reserved_for
        assert [one.name for one in users] == ["p0", "p1", "p2"]


def test_an_unused_claim_on_the_wrong_node_is_deallocated() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), node("b", cpu="1"), resource_slice("a", 1))
        sim.apply(resource_slice("b", 1), allocated("c", "b", "gpu-0"))
        sim.schedule(pod_with("c", cpu="2"))
        sim.advance(30)
        assert sim.node_of("p") == "a"
        assert devices(sim, "c") == ["a/gpu-0"]
        assert any("deallocation of ResourceClaim completed" in one.note for one in sim.events)


def test_a_claim_that_is_used_elsewhere_is_left_alone() -> None:
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), node("b", cpu="1"), resource_slice("a", 1))
        sim.apply(resource_slice("b", 1), allocated("c", "b", "gpu-0", reserved_for=("q",)))
        sim.schedule(pod_with("c", cpu="2"))
        sim.advance(30)
        assert (sim.where("p"), devices(sim, "c")) == ("unschedulable", ["b/gpu-0"])
        assert "still not schedulable" in sim.why("p")


def test_alternatives_are_scored_by_preference() -> None:
    better = gpu("big", attributes={"model": {"string": "H100"}})
    wishes = [
        {"name": "big", "deviceClassName": "big", "allocationMode": "ExactCount", "count": 1},
        {"name": "any", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
    ]
    big = device_class("big", 'device.attributes["gpu.example.com"].model == "H100"')
    with Simulation() as sim:
        sim.apply(device_class(), big, *(node(name) for name in "abc"))
        sim.apply(resource_slice("a", 4), resource_slice("b", [gpu("gpu-0"), better]))
        sim.apply(claim("c", {"name": "r", "firstAvailable": wishes}))
        sim.schedule(pod_with("c"))
        assert devices(sim, "c") == ["b/big"]


def test_extended_resources_are_served_by_devices() -> None:
    serving = device_class(extendedResourceName="example.com/gpu")
    with Simulation() as sim:
        sim.apply(serving, node("a"), node("b"), resource_slice("b", 2))
        sim.schedule(pod("p", uid="p", requests={"example.com/gpu": "2"}))
        sim.advance(5)
        assert sim.node_of("p") == "b"
        status = sim.pod("p").status.extended_resource_claim_status
        assert status is not None
        assert [one.request_name for one in status.request_mappings] == ["container-0-request-0"]
        assert devices(sim, status.resource_claim_name) == ["b/gpu-0", "b/gpu-1"]
        sim.schedule(pod("q", uid="q", requests={"example.com/gpu": "1"}))
        assert sim.why("q").startswith("0/2 nodes are available: 2 cannot allocate all claims.")


def test_binding_conditions_are_waited_for() -> None:
    slow = gpu("gpu-0", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), resource_slice("a", [slow]), claim("c"))
        sim.schedule(pod_with("c"))
        sim.advance(10)
        assert sim.node_of("p") == ""
        assert any(one.reason == "BindingConditionsPending" for one in sim.events)
        ready = {"driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}
        ready["conditions"] = [{"type": "Ready", "status": "True"}]  # type: ignore[assignment]  # of a mixed dict
        known = stored(sim, "c")
        status = msgspec.to_builtins(known.status, str_keys=True)
        status["devices"] = [ready]
        sim.apply(msgspec.structs.replace(known, status=convert(status, ResourceClaimStatus)))
        sim.advance(10)
        assert sim.node_of("p") == "a"


def test_claims_of_templates_are_found_by_the_status_of_the_pod() -> None:
    entry = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "template"}]}
    owner = {"kind": "Pod", "name": "p", "uid": "p", "controller": True}
    mine = claim("p-gpu-x", metadata={"ownerReferences": [owner]})
    with Simulation() as sim:
        sim.apply(device_class(), node("a"), resource_slice("a", 1))
        sim.schedule(pod("p", uid="p", spec=entry))
        assert sim.where("p") == "gated"
        sim.apply(mine)
        said = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]}
        waiting = sim.pod("p")
        sim.apply(msgspec.structs.replace(waiting, status=convert(said, PodStatus)))
        sim.advance(20)
        assert sim.node_of("p") == "a"


@pytest.mark.parametrize(
    ("entry", "known", "message"),
    [
        (
            {"resourceClaimName": "c"},
            [],
            'could not find ResourceClaim "default/c"',
        ),
        (
            {"resourceClaimTemplateName": "t"},
            [],
            'pod "default/p": ResourceClaim not created yet',
        ),
        (
            {},
            [],
            'pod "default/p", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
        (
            {"resourceClaimName": "c"},
            [claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'resourceclaim "c" is being deleted',
        ),
    ],
)
def test_gates_pods_whose_claims_cannot_be_used(
    entry: dict[str, str], known: list[ResourceClaim], message: str
) -> None:
    plugin = build(DynamicResources, handle=StubHandle(objects=known))
    gated = pod("p", uid="p", spec={"resourceClaims": [{"name": "gpu", **entry}]})
    expected = fw.Status.unresolvable(message)
    assert plugin.pre_enqueue(gated) == expected
    assert plugin.pre_filter(fw.CycleState(), gated, nodes(node("a"))) == expected


def test_a_request_for_an_unknown_class_is_refused() -> None:
    plugin = build(
        DynamicResources,
        handle=StubHandle(objects=[claim("c", request("r", deviceClassName="no"))]),
    )
    status = plugin.pre_filter(fw.CycleState(), pod_with("c"), nodes(node("a")))
    assert status == fw.Status.unresolvable("request r: device class no does not exist")
