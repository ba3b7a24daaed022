"""Pools of devices, as a node sees them.

A pool is the slices of one driver that have one pool name; only its latest generation counts. A
pool that is being republished, or contradicts itself, is never allocated from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mooring.api.resource import Device, DeviceAttribute, ResourceSlice

if TYPE_CHECKING:
    from mooring.plugins.dynamicresources.cel import CelError, CelSelector

PoolId = tuple[str, str]  # driver and pool name
DeviceId = tuple[str, str, str]  # driver, pool and device name


_MOST_ANSWERS: Final = 100_000  # of an expression


class PoolDevice:
    """A device of a slice revision, and what selectors say of it: each is evaluated once."""

    __slots__ = ("_answers", "_has_lists", "_problem", "_value", "device", "id", "slice")

    def __init__(self, slice_: ResourceSlice, device: Device, *, has_lists: bool = False) -> None:
        self._has_lists = has_lists  # attributes may have several values
        self.slice: ResourceSlice = slice_
        self.device: Device = device
        self.id: DeviceId = (slice_.spec.driver, slice_.spec.pool.name, device.name)
        self._value: Any = None
        self._problem: CelError | str | None = None  # "": there is none; None: not looked for
        self._answers: dict[str, bool | str] = {}

    def selected_by(self, expression: str) -> bool | str:
        """Whether an expression selects it; a text if that failed."""
        found = self._answers.get(expression)
        if found is None:
            found = self._answers[expression] = self._evaluate(expression)
        return found

    def _evaluate(self, expression: str) -> bool | str:
        # A tenth of a scheduler's start, and most clusters have no devices.
        from mooring.plugins.dynamicresources.cel import (
            CompileError,
            attribute_problem,
            compile_selector,
        )

        selector = compile_selector(expression, has_lists=self._has_lists)
        if isinstance(selector, CompileError):
            return f"CEL compile error: {selector.text}"
        if self._problem is None:
            self._problem = attribute_problem(self.device, has_lists=self._has_lists) or ""
        if self._problem:
            return f"CEL runtime error: {self._problem}"
        if selector.reads is None:
            return self._run(selector)
        read = tuple([self._read(path) for path in selector.reads])
        found = selector.known.get(read)
        if found is None:
            if len(selector.known) > _MOST_ANSWERS:
                selector.known.clear()
            found = selector.known[read] = self._run(selector)
        return found

    def _run(self, selector: CelSelector) -> bool | str:
        from mooring.plugins.dynamicresources.cel import CelError, device_value

        if self._value is None:
            self._value = device_value(self.id[0], self.device, has_lists=self._has_lists)
        try:
            return selector.matches(self._value)
        except CelError as error:
            return f"CEL runtime error: {error}"

    def _read(self, path: tuple[str, ...]) -> Any:
        """What a device has there; None: nothing."""
        if len(path) == 1:
            return self.id[0] if path[0] == "driver" else self.device.allow_multiple_allocations
        field, domain, name = path
        values: Any = self.device.attributes if field == "attributes" else self.device.capacity
        found = values.get(f"{domain}/{name}")
        return values.get(name) if found is None and domain == self.id[0] else found

    def attribute(self, name: str) -> Any:
        """The value of an attribute with its type, to be compared; None: it has none."""
        attributes = self.device.attributes
        found = attributes.get(name)
        if found is None:
            domain, slash, id_ = name.partition("/")
            if slash and domain == self.id[0]:
                found = attributes.get(id_)
        if found is None:
            return None
        if self._has_lists:
            return _values(found)
        if found.string_value is not None:
            return ("string", found.string_value)
        if found.int_value is not None:
            return ("int", found.int_value)
        if found.bool_value is not None:
            return ("bool", found.bool_value)
        if found.version_value is not None:
            return ("version", found.version_value)
        return UNKNOWN


UNKNOWN = ("unknown",)
"""The value of an attribute of a type that is not known: equal to none, distinct from none."""


def _values(attribute: DeviceAttribute) -> frozenset[tuple[str, Any]] | None:
    """All values of an attribute, with their type; None: it has none."""
    for kind, several, one in (
        ("int", attribute.int_values, attribute.int_value),
        ("bool", attribute.bool_values, attribute.bool_value),
        ("string", attribute.string_values, attribute.string_value),
        ("version", attribute.version_values, attribute.version_value),
    ):
        if several or one is not None:
            return frozenset((kind, value) for value in several or (one,))
    return None


class DevicePool(msgspec.Struct, frozen=True, eq=False):
    """The devices that a node can have of a pool."""

    id: PoolId
    devices: tuple[PoolDevice, ...] = ()
    is_incomplete: bool = False
    is_invalid: bool = False
    problem: str = ""  # why it is one of these
    elsewhere: frozenset[str] = frozenset()  # devices that are for other nodes
    counters: Mapping[tuple[str, str], int] = {}  # nanos, by counter set and counter
    consumption: Mapping[str, Mapping[tuple[str, str], int]] = {}  # by device, anywhere in the pool

    @property
    def is_usable(self) -> bool:
        return not (self.is_incomplete or self.is_invalid)

    @property
    def order(self) -> tuple[bool, str, str]:
        """Pools whose devices have binding conditions come last."""
        waits = any(one.device.binding_conditions for one in self.devices)
        return (waits, *self.id)


def gather(
    pool_id: PoolId,
    applying: Sequence[ResourceSlice],
    everywhere: Iterable[ResourceSlice],
    devices_of: Callable[[ResourceSlice], Sequence[PoolDevice]],
) -> DevicePool | None:
    """The pool from the slices that apply to a node and from all of them; None: it is ignored."""
    generation = max(one.spec.pool.generation for one in applying)
    kept = sorted(
        (one for one in applying if one.spec.pool.generation == generation),
        key=lambda one: one.name,
    )
    count = kept[0].spec.pool.resource_slice_count
    others: list[ResourceSlice] = []
    if len(kept) != count:
        everywhere = list(everywhere)
        if any(one.spec.pool.generation > generation for one in everywhere):
            return None  # it is being replaced by slices of which none is for this node
        same = [one for one in everywhere if one.spec.pool.generation == generation]
        if len(same) != count:
            problem = f"{len(same)} of {count} slices of generation {generation} are there"
            return DevicePool(pool_id, is_incomplete=True, problem=problem)
        names = {one.name for one in kept}
        others = [one for one in same if one.name not in names]
    with_devices = [one for one in kept if not one.spec.shared_counters]
    devices = tuple(device for one in with_devices for device in devices_of(one))
    if len({device.id for device in devices}) != len(devices):
        return DevicePool(pool_id, is_invalid=True, problem="two devices have one name")
    sets: dict[str, Mapping[str, int]] = {}
    for one in kept:
        for counter_set in one.spec.shared_counters:
            if counter_set.name in sets:
                problem = f"there are two counter sets {counter_set.name}"
                return DevicePool(pool_id, is_invalid=True, problem=problem)
            sets[counter_set.name] = {
                name: counter.value.nanos for name, counter in counter_set.counters.items()
            }
    counters = {(set_, name): value for set_ in sets for name, value in sets[set_].items()}
    consumption: dict[str, Mapping[tuple[str, str], int]] = {}
    for one in (*kept, *others):
        for device in one.spec.devices:
            if device.consumes_counters:
                taken = _taken(device)
                if any(part.counter_set not in sets for part in device.consumes_counters) or any(
                    counter not in counters for counter in taken
                ):
                    problem = f"device {device.name} takes from a counter that is not there"
                    return DevicePool(pool_id, is_invalid=True, problem=problem)
                consumption[device.name] = taken
    return DevicePool(pool_id, devices, counters=counters, consumption=consumption)


def _taken(device: Device) -> dict[tuple[str, str], int]:
    """Nanos of each counter that a device takes."""
    found: dict[tuple[str, str], int] = {}
    for part in device.consumes_counters:
        for name, counter in part.counters.items():
            key = (part.counter_set, name)
            found[key] = found.get(key, 0) + counter.value.nanos
    return found
