"""The question which devices of a node serve a demand, without names: nodes alike share it.

Devices are numbers in the order in which they are tried. What the search needs to know of a device
is a tuple of features; nodes whose devices have equal features, in order, pose the same problem,
and where the same devices are in use, it has the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mooring.api.resource import ALL, Device
from mooring.plugins.dynamicresources.capacity import wanted
from mooring.plugins.dynamicresources.pools import DevicePool, PoolDevice
from mooring.plugins.dynamicresources.requests import DeviceDemand, WantedConstraint, WantedDevices

Amounts = tuple[int, ...]  # nanos of each capacity of a device, by sorted name


class AllocatorFeatures(msgspec.Struct, frozen=True):
    """What matters of a device for a demand."""

    matches: tuple[bool | str, ...]  # by request; a text: it could not be evaluated
    tolerated: tuple[bool, ...]  # by request
    wants: tuple[Amounts | None, ...]  # by request; None: not allowed
    limits: Amounts
    values: tuple[Any, ...]  # by constraint: of its attribute
    is_shared: bool  # allows multiple allocations
    pool: int  # which counters it takes from; -1: from none
    taken: tuple[tuple[int, int], ...]  # number and nanos of each counter


class Usage(msgspec.Struct, frozen=True):
    """What is in use of the devices of a problem, by other claims."""

    allocated: int = 0  # a bit for each device that is allocated as a whole
    consumed: tuple[tuple[int, Amounts], ...] = ()  # by device that is shared
    counters: tuple[int, ...] = ()  # nanos that are used of each counter


class AllocationProblem:
    """A demand, and devices to serve it."""

    def __init__(self, demand: DeviceDemand, key: tuple[Any, ...]) -> None:
        self.demand: DeviceDemand = demand
        self.key: tuple[Any, ...] = key
        features, trouble, is_troubled, counters, pool_counters = key
        self.devices: tuple[AllocatorFeatures, ...] = features
        self.trouble: tuple[int, str] | None = trouble  # of the first pool that is not usable
        self.is_troubled: bool = is_troubled  # a pool is invalid
        self.counters: tuple[int, ...] = counters  # declared, nanos
        self.pool_counters: tuple[tuple[int, ...], ...] = pool_counters
        self.requests: list[WantedDevices] = demand.requests
        self.constraints: list[tuple[int, WantedConstraint]] = [
            (place, constraint)
            for place, claim in enumerate(demand.claims)
            for constraint in claim.constraints
        ]
        self.answers: dict[Usage, Any] = {}  # outcomes of searches


class Content:
    """The devices that a node can have, in the order in which they are tried."""

    def __init__(self, pools: Sequence[DevicePool]) -> None:
        self.pools: tuple[DevicePool, ...] = tuple(sorted(pools, key=lambda pool: pool.order))
        usable = [pool for pool in self.pools if pool.is_usable]
        self.devices: tuple[PoolDevice, ...] = tuple(
            device for pool in usable for device in pool.devices
        )
        self.elsewhere: frozenset[int] = frozenset(
            place
            for place, (device, pool) in enumerate(
                (device, pool) for pool in usable for device in pool.devices
            )
            if device.id[2] in pool.elsewhere
        )
        self.capacity_names: tuple[tuple[str, ...], ...] = tuple(
            tuple(sorted(one.device.capacity)) for one in self.devices
        )
        self.limits: tuple[Amounts, ...] = tuple(
            tuple([one.device.capacity[name].value.nanos for name in names])
            for one, names in zip(self.devices, self.capacity_names, strict=True)
        )
        self.with_counters: tuple[DevicePool, ...] = tuple(pool for pool in usable if pool.counters)
        self.by_pool: dict[tuple[str, str], dict[str, int]] = {}
        for place, one in enumerate(self.devices):
            self.by_pool.setdefault(one.id[:2], {})[one.id[2]] = place
        self.problems: dict[DeviceDemand, AllocationProblem] = {}


def problem_key(demand: DeviceDemand, content: Content) -> tuple[Any, ...]:
    """All that the answer depends on but usage."""
    requests = demand.requests
    attributes = [one.attribute for claim in demand.claims for one in claim.constraints]
    numbers: dict[tuple[int, tuple[str, str]], int] = {}
    declared: list[int] = []
    pool_counters: list[tuple[int, ...]] = []
    for number, pool in enumerate(content.with_counters):
        for counter in sorted(pool.counters):
            numbers[number, counter] = len(declared)
            declared.append(pool.counters[counter])
        pool_counters.append(tuple(numbers[number, one] for one in sorted(pool.counters)))
    pool_numbers = {pool.id: number for number, pool in enumerate(content.with_counters)}
    features: list[AllocatorFeatures] = []
    tolerated = (True,) * len(requests)
    for place, one in enumerate(content.devices):
        device = one.device
        taken: tuple[tuple[int, int], ...] = ()
        number = -1
        if device.consumes_counters:
            number = pool_numbers[one.id[:2]]
            amounts = content.with_counters[number].consumption[device.name]
            taken = tuple((numbers[number, counter], amounts[counter]) for counter in amounts)
        is_here = place not in content.elsewhere
        limits = content.limits[place]
        features.append(
            AllocatorFeatures(
                tuple([_match(request, one, is_here) for request in requests]),
                tuple([request.tolerates(device.taints) for request in requests])
                if device.taints
                else tolerated,
                _wants(requests, device, limits),
                limits,
                tuple([one.attribute(name) for name in attributes]) if attributes else (),
                device.allow_multiple_allocations,
                number,
                taken,
            )
        )
    return (
        tuple(features),
        _trouble(content) if any(request.mode == ALL for request in requests) else None,
        any(pool.is_invalid for pool in content.pools),
        tuple(declared),
        tuple(pool_counters),
    )


def _wants(
    requests: Sequence[WantedDevices], device: Device, limits: Amounts
) -> tuple[Amounts | None, ...]:
    """What each request would take of the capacities of a device."""
    has_policies = any(one.request_policy is not None for one in device.capacity.values())
    found: list[Amounts | None] = []
    for request in requests:
        if not request.capacity and not has_policies:
            found.append(limits)  # all of it
            continue
        amounts = wanted(request.capacity, device.capacity)
        names = sorted(device.capacity)
        found.append(None if amounts is None else tuple(amounts[name].nanos for name in names))
    return tuple(found)


def _match(request: WantedDevices, device: PoolDevice, is_for_node: bool) -> bool | str:
    """Whether a request can have a device; the text of the error if that cannot be said."""
    for expression, prefix in request.expressions:
        answer = device.selected_by(expression)
        if answer is True:
            continue
        return False if answer is False else f"{prefix}: {answer}"
    return is_for_node


def _trouble(content: Content) -> tuple[int, str] | None:
    """Why not all devices are known: how many come before, and what is wrong with a pool."""
    at = 0
    for pool in content.pools:
        if not pool.is_usable:
            state = "being updated" if pool.is_incomplete else "invalid"
            return at, f"resource pool {'/'.join(pool.id)} is currently {state}"
        at += len(pool.devices)
    return None
