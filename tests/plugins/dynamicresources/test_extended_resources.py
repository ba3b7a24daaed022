"""Claims that are made for extended resources: requests, mappings, and claims that were left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.plugins.dynamicresources.objects import (
    DRIVER,
    claim,
    device_class,
    request,
    resource_slice,
)

from mooring.api.meta import Object
from mooring.api.resource import EXTENDED_RESOURCE_CLAIM, FINALIZER, ResourceClaim
from mooring.client.errors import ConflictError, Forbidden, NotFound
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod

GPU = "example.com/gpu"
SERVING = device_class(extendedResourceName=GPU)


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation() as simulation:
        yield simulation


def container(name: str, count: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {GPU: count}}, **fields}


def made_for(sim: Simulation, name: str) -> ResourceClaim:
    status = sim.pod(name).status.extended_resource_claim_status
    assert status is not None
    found = sim.cluster.find(ResourceClaim, status.resource_claim_name, "default")
    assert found is not None
    return found


def requested(sim: Simulation, name: str) -> dict[str, int]:
    requests = made_for(sim, name).spec.devices.requests
    return {one.name: one.exactly.count for one in requests if one.exactly is not None}


def mapped(sim: Simulation, name: str) -> list[tuple[str, str]]:
    status = sim.pod(name).status.extended_resource_claim_status
    assert status is not None
    return [(one.container_name, one.request_name) for one in status.request_mappings]


def failures(sim: Simulation) -> list[str]:
    return [event.note for event in sim.events if event.reason == "FailedScheduling"]


# --- init containers ------------------------------------------------------------------------------


def test_an_init_container_uses_the_devices_of_the_containers_that_come_later(
    sim: Simulation,
) -> None:
    sim.apply(SERVING, node("a"), resource_slice("a", 2))
    before = [container("prepare", "2")]
    sim.schedule(pod("p", spec={"initContainers": before, "containers": [container("main", "2")]}))
    sim.advance(5)
    assert sim.node_of("p") == "a"  # two devices are enough
    assert requested(sim, "p") == {"container-1-request-0": 2}
    assert mapped(sim, "p") == [
        ("main", "container-1-request-0"),
        ("prepare", "container-1-request-0"),
    ]


def test_init_containers_that_need_more_share_the_largest_remainder(sim: Simulation) -> None:
    sim.apply(SERVING, node("a"), resource_slice("a", 5))
    before = [container("first", "4"), container("second", "5"), container("third", "3")]
    sim.schedule(pod("p", spec={"initContainers": before, "containers": [container("main", "2")]}))
    sim.advance(5)
    assert requested(sim, "p") == {"container-1-request-0": 3, "container-3-request-0": 2}
    shared = ["container-3-request-0", "container-1-request-0"]
    assert mapped(sim, "p") == [
        ("main", "container-3-request-0"),
        *((name, one) for name in ("first", "second", "third") for one in shared),
    ]


def test_a_sidecar_keeps_its_devices_and_serves_only_those_before_it(sim: Simulation) -> None:
    sim.apply(SERVING, node("a"), resource_slice("a", 4))
    before = [
        container("early", "1"),
        container("sidecar", "1", restartPolicy="Always"),
        container("late", "2"),
    ]
    sim.schedule(pod("p", spec={"initContainers": before, "containers": [container("main", "1")]}))
    sim.advance(5)
    assert requested(sim, "p") == {
        "container-1-request-0": 1,
        "container-2-request-0": 1,
        "container-3-request-0": 1,
    }
    assert mapped(sim, "p") == [
        ("sidecar", "container-1-request-0"),
        ("main", "container-3-request-0"),
        ("early", "container-1-request-0"),
        ("late", "container-3-request-0"),
        ("late", "container-2-request-0"),
    ]


# --- writes that are refused ----------------------------------------------------------------------


def test_a_claim_that_may_not_be_created_is_told_and_tried_again(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(value: Object) -> Object:
        raise Forbidden("resourceclaims is forbidden", code=403, reason="Forbidden")

    sim.apply(SERVING, node("a"), resource_slice("a", 1))
    with monkeypatch.context() as patch:
        patch.setattr(sim.cluster, "create", refuse)
        sim.schedule(pod("p", requests={GPU: "1"}))
    assert failures(sim) == [
        'running PreBind plugin "DynamicResources": create claim for extended resources'
        " default/: resourceclaims is forbidden"
    ]
    sim.advance(10)
    assert sim.node_of("p") == "a"


def test_a_pod_that_cannot_be_told_of_its_claim_leaves_none_behind(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = sim.cluster.change

    async def refuse_pods(value: Any, *args: Any, **how: Any) -> Any:
        if not isinstance(value, ResourceClaim):
            raise Forbidden("pods is forbidden", code=403, reason="Forbidden")
        return await change(value, *args, **how)

    sim.apply(SERVING, node("a"), resource_slice("a", 1))
    with monkeypatch.context() as patch:
        patch.setattr(sim.cluster, "change", refuse_pods)
        sim.schedule(pod("p", requests={GPU: "1"}))
    assert failures(sim) == [
        'running PreBind plugin "DynamicResources": update pod default/p'
        " ExtendedResourceClaimStatus: pods is forbidden"
    ]
    assert sim.scheduler.cache.objects.list(ResourceClaim) == []
    sim.advance(10)
    assert sim.node_of("p") == "a"


# --- claims of earlier attempts -------------------------------------------------------------------


def left_behind(node_name: str = "") -> ResourceClaim:
    """The claim of an earlier attempt, allocated on a node."""
    meta = {
        "uid": "left",
        "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
        "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "p", "controller": True}],
        "finalizers": [FINALIZER],
    }
    status: dict[str, Any] = {}
    if node_name:
        name = {"key": "metadata.name", "operator": "In", "values": [node_name]}
        device = {"driver": DRIVER, "pool": node_name, "device": "gpu-0"}
        status["allocation"] = {
            "devices": {"results": [{"request": "container-0-request-0", **device}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [name]}]},
        }
    return claim("left", request("container-0-request-0"), metadata=meta, status=status)


def is_there(sim: Simulation) -> bool:
    """Whether the claim is in the cluster; the scheduler knows the same."""
    stored = sim.cluster.find(ResourceClaim, "left", "default")
    assert sim.scheduler.cache.objects.get(ResourceClaim, "left", "default") == stored
    return stored is not None


@pytest.mark.parametrize("conflicts", [0, 2])
def test_a_claim_that_was_left_on_the_wrong_node_is_deleted(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    change, faults = sim.cluster.change, [ConflictError("modified", code=409)] * conflicts

    async def conflict(value: Any, *args: Any, **how: Any) -> Any:
        if faults:
            raise faults.pop()
        return await change(value, *args, **how)

    monkeypatch.setattr(sim.cluster, "change", conflict)
    sim.apply(SERVING, node("a"), node("b", unschedulable=True), left_behind("b"))
    sim.apply(resource_slice("a", 1), resource_slice("b", 1))
    sim.schedule(pod("p", uid="p", requests={GPU: "1"}))
    assert "deletion of ResourceClaim completed" in failures(sim)[0]
    assert not is_there(sim)
    sim.advance(20)
    assert sim.node_of("p") == "a"
    assert [one.pool for one in _results(made_for(sim, "p"))] == ["a"]


def _results(found: ResourceClaim) -> Any:
    assert found.allocation is not None
    return found.allocation.devices.results


def test_a_claim_that_was_left_without_devices_is_deleted(sim: Simulation) -> None:
    sim.apply(SERVING, node("a"), resource_slice("a", 1), left_behind())
    sim.schedule(pod("p", uid="p", requests={GPU: "1"}))
    assert failures(sim)[0].startswith(
        "0/1 nodes are available: 1 cannot schedule extended resource claim."
        " deletion of ResourceClaim completed"
    )
    assert not is_there(sim)
    sim.advance(400)
    assert sim.node_of("p") == "a"


def test_a_pod_waits_before_a_delete_that_was_refused_is_repeated(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    async def refuse(value: Any, *args: Any, **how: Any) -> Any:
        asked.append(sim.clock.now())
        raise Forbidden("resourceclaims is forbidden", code=403, reason="Forbidden")

    monkeypatch.setattr(sim.cluster, "change", refuse)
    sim.apply(SERVING, node("a"), resource_slice("a", 1), left_behind())
    sim.schedule(pod("p", uid="p", requests={GPU: "1"}))
    sim.advance(16)
    assert [at - asked[0] for at in asked] == [0, 5, 10, 15]
    assert {one.message for one in caplog.records} == {"could not release a claim of a pod"}
    assert is_there(sim)
    sim.close()
    assert not asyncio.all_tasks(sim.loop)


def test_a_claim_that_is_gone_already_needs_no_second_delete(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    async def gone(value: Any, *args: Any, **how: Any) -> Any:
        asked.append(value.name)
        raise NotFound("not found", code=404, reason="NotFound")

    monkeypatch.setattr(sim.cluster, "change", gone)
    sim.apply(SERVING, node("a"), resource_slice("a", 1), left_behind())
    sim.schedule(pod("p", uid="p", requests={GPU: "1"}))
    sim.advance(20)  # the watch is late
    assert (asked, caplog.records) == (["left"], [])
