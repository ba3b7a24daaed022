"""Writes to claims: conflicts, answers that are lost, and the way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec
import pytest
from tests.plugins.dynamicresources.objects import (
    allocated,
    claim,
    device_class,
    pod_with,
    resource_slice,
)

import mooring.framework as fw
from mooring.api.resource import FINALIZER, ResourceClaim, ResourceClaimStatus
from mooring.cache.cache import Cache
from mooring.cache.objects import Objects
from mooring.client.errors import ConflictError, Forbidden, Unreachable
from mooring.errors import ApiError
from mooring.plugins.dynamicresources.plugin import DynamicResources
from mooring.simulator.object_writes import O, ObjectWrites
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import node


class Server(ObjectWrites):
    """Claims on a server; writes can fail before or after they are carried out."""

    def __init__(self, *claims: ResourceClaim) -> None:
        super().__init__()
        self.claims = {one.name: one for one in claims}
        self.faults: list[str] = []  # of the next writes
        self.later: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._version = 10

    def find(self, kind: type[O], name: str, namespace: str) -> O | None:
        return self.claims.get(name)  # type: ignore[return-value]  # there are only claims

    def store(self, value: O) -> O:
        self._version += 1
        meta = msgspec.structs.replace(value.metadata, resource_version=str(self._version))
        stored = msgspec.structs.replace(value, metadata=meta)
        assert isinstance(stored, ResourceClaim)
        self.claims[stored.name] = stored
        return stored

    async def change(self, value: O, change: Mapping[str, Any], **how: Any) -> O:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "never arrives":
            raise Unreachable("connection reset", sent=True)
        if fault == "forbidden":
            raise Forbidden("resourceclaims is forbidden", code=403, reason="Forbidden")
        if fault == "deleted":
            del self.claims[value.name]
            raise ConflictError("the object has been modified", code=409, reason="Conflict")
        if fault == "conflict":
            labels = {"metadata": {"labels": {"version": str(self._version)}}}
            await super().change(value, labels)
        written = await super().change(value, change, **how)
        if fault == "answer lost":
            raise Unreachable("connection reset", sent=True)
        return written

    def soon(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.later.append(write)


class Clock:
    """Moves when something sleeps."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class Rig:
    """A plugin, a node with one device, and a claim on a server."""

    def __init__(self, known: ResourceClaim | None = None) -> None:
        meta = {"resourceVersion": "5"}
        known = known or claim("c", metadata=meta)
        self.server = Server(known, claim("d", metadata=meta))
        self.objects = Objects()
        for value in (device_class(), resource_slice("a", 1), *self.server.claims.values()):
            self.objects.put(value)
        cache = Cache()
        cache.put_node(node("a").api)
        handle = StubHandle(nodes=cache.nodes, objects=self.objects)
        handle.client = self.server  # type: ignore[assignment]  # what the plugin uses of it
        handle.clock = Clock()  # type: ignore[assignment]  # it moves
        self.plugin = build(DynamicResources, handle=handle)
        self.nodes = cache.nodes
        self.pod = pod_with("c")
        self.state = fw.CycleState()
        assert self.plugin.pre_filter(self.state, self.pod, self.nodes).ok
        assert self.plugin.reserve(self.state, self.pod, "a").ok

    def bind(self) -> fw.Status:
        return asyncio.run(self.plugin.pre_bind(self.state, self.pod, "a"))

    def give_up(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "a")
        for write in self.server.later:
            asyncio.run(write())

    @property
    def is_device_free(self) -> bool:
        """Whether another pod could have it."""
        state, other = fw.CycleState(), pod_with("d", name="other")
        assert self.plugin.pre_filter(state, other, self.nodes).ok
        return self.plugin.filter(state, other, self.nodes[0]).ok


@pytest.mark.parametrize(
    "faults",
    [
        [],
        ["conflict"],
        ["", "conflict"],
        ["", "conflict", "conflict", "conflict"],
        ["answer lost"],
        ["", "answer lost"],
        ["", "never arrives"],
        ["", "never arrives", "never arrives", "answer lost"],
        ["conflict", "answer lost", "conflict", "never arrives"],
    ],
)
def test_a_claim_is_written_once_whatever_happens_on_the_way(faults: list[str]) -> None:
    rig = Rig()
    rig.server.faults = list(faults)
    assert rig.bind() == fw.OK
    written = rig.server.claims["c"]
    assert written.metadata.finalizers == (FINALIZER,)
    assert [one.name for one in written.status.reserved_for] == ["p"]
    assert written.allocation is not None
    assert not rig.is_device_free


def test_a_claim_that_conflicts_for_ever_is_given_up() -> None:
    rig = Rig()
    rig.server.faults = ["conflict"] * 20
    status = rig.bind()
    assert not status.ok
    assert status.message.startswith("add finalizer to claim default/c: ")
    rig.give_up()
    assert rig.is_device_free


def test_a_claim_that_was_allocated_elsewhere_is_left_alone() -> None:
    rig = Rig()
    rig.server.faults = ["conflict"]
    other = rig.server.claims["c"]
    allocation: dict[str, Any] = {"allocation": {"devices": {"results": []}}}
    changed = msgspec.convert(allocation, ResourceClaimStatus, strict=False)
    rig.server.store(msgspec.structs.replace(other, status=changed))
    status = rig.bind()
    assert status == fw.Status.error("claim default/c got allocated elsewhere in the meantime")


def test_a_claim_that_is_gone_after_a_conflict_is_given_up() -> None:
    rig = Rig()
    rig.server.faults = ["deleted"]
    assert rig.bind().message == (
        'get updated claim default/c after conflict: ResourceClaim "c" not found'
    )
    rig.give_up()
    assert rig.is_device_free


def test_a_claim_that_is_being_deleted_gets_no_devices() -> None:
    rig = Rig()
    rig.server.store(claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    status = rig.bind()
    assert status == fw.Status.error("claim default/c got deleted in the meantime")
    assert rig.server.claims["c"].allocation is None


def test_a_claim_that_lost_its_devices_is_not_reserved() -> None:
    rig = Rig(allocated("c", "a", "gpu-0"))
    rig.server.store(claim("c", metadata={"uid": rig.server.claims["c"].uid}))
    rig.server.faults = ["conflict"]
    status = rig.bind()
    assert status == fw.Status.error("claim default/c got deallocated elsewhere in the meantime")
    assert rig.server.claims["c"].status.reserved_for == ()


@pytest.mark.parametrize("is_written", [False, True])
def test_a_device_stays_taken_until_a_write_in_doubt_is_settled(is_written: bool) -> None:
    rig = Rig()
    rig.server.faults = ["", *["never arrives"] * 40]
    status = rig.bind()
    assert isinstance(status.cause, ApiError)
    rig.plugin.unreserve(rig.state, rig.pod, "a")
    assert not rig.is_device_free  # the write may yet succeed
    rig.server.faults = []
    if is_written:
        allocation: dict[str, Any] = {"allocation": {"devices": {"results": []}}}
        change = {"status": {**allocation, "reservedFor": [{"name": "p", "uid": "p"}]}}
        asyncio.run(rig.server.change(rig.server.claims["c"], change))
    for write in rig.server.later:
        asyncio.run(write())
    assert rig.server.claims["c"].status.reserved_for == ()
    assert rig.is_device_free


def test_what_was_reserved_is_free_again_if_the_pod_does_not_go_there() -> None:
    rig = Rig()
    assert not rig.is_device_free
    rig.give_up()
    assert rig.is_device_free


def test_a_pod_that_is_not_bound_after_all_leaves_its_claim_allocated() -> None:
    rig = Rig()
    assert rig.bind().ok
    rig.give_up()
    left = rig.server.claims["c"]
    assert left.status.reserved_for == ()
    assert left.allocation is not None


def test_a_claim_is_released_although_answers_are_lost() -> None:
    rig = Rig()
    assert rig.bind().ok
    rig.server.faults = ["never arrives", "never arrives", "answer lost"]
    rig.give_up()
    assert rig.server.claims["c"].status.reserved_for == ()


def test_a_claim_that_may_not_be_released_is_told(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    assert rig.bind().ok
    rig.server.faults = ["forbidden"]
    rig.give_up()
    (told,) = caplog.records
    assert told.message == "could not release a claim of a pod"
    assert vars(told)["error"] == "resourceclaims is forbidden"


def test_a_claim_in_flight_is_not_given_to_a_second_pod() -> None:
    rig = Rig()
    status = rig.plugin.pre_filter(fw.CycleState(), pod_with("c", name="second"), rig.nodes)
    assert status == fw.Status.unresolvable(
        "resource claim default/c is in the process of being allocated"
    )
