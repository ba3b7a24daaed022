"""What the claims of a pod ask for, in the form in which devices are searched for.

A claim has slots, one for each request; a slot has alternatives, of which one is taken. Pods whose
claims have equal specs ask for the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mooring.api.quantity import Quantity
from mooring.api.resource import (
    DeviceClass,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from mooring.api.taints import tolerates

CLAIM: Final = "\0"
"""Stands in texts of errors for the namespace and name of the claim."""
DEVICE: Final = "\1"
"""Stands, before and after its number, for a device."""
_PREVENTING: Final = ("NoSchedule", "NoExecute")


class WantedDevices(msgspec.Struct, frozen=True):
    """One alternative: devices of one class."""

    claim: int  # the place of its claim
    slot: str  # the name of the request
    name: str  # of the alternative, or of the request
    is_alternative: bool
    device_class: DeviceClass | None
    class_name: str
    expressions: tuple[tuple[str, str], ...]  # with the text that a failure begins with
    mode: str
    count: int
    is_admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    problem: str  # what is wrong with it, whatever the devices are

    @property
    def full_name(self) -> str:
        return f"{self.slot}/{self.name}" if self.is_alternative else self.name

    def tolerates(self, taints: Sequence[DeviceTaint]) -> bool:
        """Whether no taint keeps the request away from a device."""
        return all(
            not is_preventing(taint)
            or any(tolerates(toleration, taint) for toleration in self.tolerations)
            for taint in taints
        )

    def is_named_by(self, names: tuple[str, ...]) -> bool:
        """Whether a constraint with these names covers it; none covers all."""
        return not names or self.slot in names or self.full_name in names


class WantedConstraint(msgspec.Struct, frozen=True):
    """Equal or distinct values of an attribute among the devices of some requests."""

    attribute: str
    is_distinct: bool
    names: tuple[str, ...]


class ClaimRequests(msgspec.Struct, frozen=True, eq=False):
    """What one claim asks for."""

    spec: ResourceClaimSpec
    slots: tuple[tuple[WantedDevices, ...], ...]
    constraints: tuple[WantedConstraint, ...]
    problem: str  # of a constraint


class DeviceDemand(msgspec.Struct, frozen=True, eq=False):
    """What all unallocated claims of a pod ask for, in order. One object for equal demands."""

    claims: tuple[ClaimRequests, ...]
    is_best_fit: bool = False  # devices that are just large enough are tried first

    @property
    def requests(self) -> list[WantedDevices]:
        return [one for claim in self.claims for slot in claim.slots for one in slot]


def demand_of(
    specs: Sequence[ResourceClaimSpec],
    classes: Mapping[str, DeviceClass],
    *,
    is_best_fit: bool = False,
) -> DeviceDemand:
    claims = tuple(_claim(place, spec, classes) for place, spec in enumerate(specs))
    return DeviceDemand(claims, is_best_fit)


def _claim(
    place: int, spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]
) -> ClaimRequests:
    slots: list[tuple[WantedDevices, ...]] = []
    for request in spec.devices.requests:
        given: Sequence[ExactDeviceRequest | DeviceSubRequest] = request.first_available
        if request.exactly is not None:
            given = (request.exactly,)
        slots.append(tuple(_request(place, request.name, one, classes) for one in given))
    constraints: list[WantedConstraint] = []
    problem = ""
    for number, one in enumerate(spec.devices.constraints):
        attribute = one.match_attribute or one.distinct_attribute
        if attribute is None:
            problem = problem or (
                f"claim {CLAIM}, constraint #{number}: empty constraint"
                " (unsupported constraint type?)"
            )
            continue
        constraints.append(WantedConstraint(attribute, one.match_attribute is None, one.requests))
    return ClaimRequests(spec, tuple(slots), tuple(constraints), problem)


def _request(
    place: int,
    slot: str,
    given: ExactDeviceRequest | DeviceSubRequest,
    classes: Mapping[str, DeviceClass],
) -> WantedDevices:
    is_alternative = isinstance(given, DeviceSubRequest)
    name = given.name if isinstance(given, DeviceSubRequest) else slot
    device_class = classes.get(given.device_class_name)
    subject = f"claim {CLAIM}, request {name}"
    problem = ""
    for number, selector in enumerate(given.selectors):
        if selector.cel is None:
            problem = (
                f"{subject}, selector #{number}: CEL expression empty (unsupported selector type?)"
            )
            break
    if not problem and not given.device_class_name:
        problem = f"{subject}: missing device class name (unsupported request type?)"
    expressions: list[tuple[str, str]] = []
    if device_class is not None:
        for number, selector in enumerate(device_class.spec.selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            expressions.append((expression, f"class {device_class.name}: selector #{number}"))
    for number, selector in enumerate(given.selectors):
        if selector.cel is not None:
            prefix = f"claim {CLAIM}: selector #{number}"
            expressions.append((selector.cel.expression, prefix))
    return WantedDevices(
        claim=place,
        slot=slot,
        name=name,
        is_alternative=is_alternative,
        device_class=device_class,
        class_name=given.device_class_name,
        expressions=tuple(expressions),
        mode=given.allocation_mode,
        count=given.count,
        is_admin=bool(given.admin_access) if isinstance(given, ExactDeviceRequest) else False,
        tolerations=given.tolerations,
        capacity=given.capacity.requests if given.capacity is not None else {},
        problem=problem,
    )


def is_preventing(taint: DeviceTaint) -> bool:
    """Whether a taint keeps claims away; others only inform."""
    return taint.effect in _PREVENTING


def taint_text(taint: DeviceTaint) -> str:
    """As `kubectl taint` writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
