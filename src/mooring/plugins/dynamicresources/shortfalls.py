"""Why the devices of a node do not serve a demand: request by request, device by device.

Read when a refusal is explained. The search itself only says that there is no solution; here every
request is looked at by itself, and then what requests ask for together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mooring.api.quantity import Format, Quantity
from mooring.api.resource import ALL
from mooring.plugins.dynamicresources.pools import DeviceId, PoolDevice
from mooring.plugins.dynamicresources.problem import (
    AllocationProblem,
    AllocatorFeatures,
    Content,
    Usage,
)
from mooring.plugins.dynamicresources.requests import (
    CLAIM,
    WantedConstraint,
    WantedDevices,
    taint_text,
)

IN_USE: Final = "in use"
"""The cause of devices that other claims have."""
_MOST_VALUES: Final = 4  # of an attribute that are listed


class RequestTally(msgspec.Struct, frozen=True):
    """What the devices of a node are to one request."""

    request: WantedDevices
    needs: int
    devices: int
    free: int  # could serve it, if nothing else were asked for
    causes: tuple[tuple[str, int], ...]  # why others cannot, and how many
    held: tuple[DeviceId, ...] = ()  # by other claims

    @property
    def is_short(self) -> bool:
        return self.free < self.needs or (self.request.mode == ALL and not self.needs)


class Shortfall(msgspec.Struct, frozen=True):
    """Why a demand is not served."""

    requests: tuple[RequestTally, ...]  # those that are short by themselves
    together: tuple[str, ...] = ()  # what they ask for together, if none is


class Shortfalls:
    """Looks at one problem, with what is in use."""

    def __init__(self, content: Content, problem: AllocationProblem, usage: Usage) -> None:
        self._content = content
        self._problem = problem
        self._allocated = usage.allocated
        self._consumed = dict(usage.consumed)
        used = usage.counters or (0,) * len(problem.counters)
        self._left = [a - b for a, b in zip(problem.counters, used, strict=True)]
        self._counter_names: list[str] = [
            "/".join(counter) for pool in content.with_counters for counter in sorted(pool.counters)
        ]
        self._free: dict[int, list[int]] = {}  # devices that could serve a request

    def found(self) -> Shortfall:
        """The slots that no alternative can serve; if all can be, what is asked for together."""
        short: list[RequestTally] = []
        number = 0
        for claim in self._problem.demand.claims:
            for slot in claim.slots:
                tallies = [self._tally(number + place) for place in range(len(slot))]
                number += len(slot)
                if all(one.is_short for one in tallies):
                    short += tallies
        if short:
            return Shortfall(tuple(short))
        together = (*self._by_constraint(), *self._by_counter())
        return Shortfall((), together or (self._competing(),))

    # --- one request -----------------------------------------------------------------------------

    def _tally(self, number: int) -> RequestTally:
        request, devices = self._problem.requests[number], self._problem.devices
        causes: Counter[str] = Counter()
        held: list[DeviceId] = []
        free = self._free.setdefault(number, [])
        matching = 0
        for place, features in enumerate(devices):
            matching += features.matches[number] is True
            cause = self._cause(number, place, features)
            if cause:
                causes[cause] += 1
                if cause == IN_USE:
                    held.append(self._content.devices[place].id)
            else:
                free.append(place)
        needs = matching if request.mode == ALL else request.count
        return RequestTally(
            request, needs, len(devices), len(free), tuple(causes.most_common()), tuple(held)
        )

    def _cause(self, number: int, place: int, features: AllocatorFeatures) -> str:
        """Why a request cannot have a device; nothing if it can."""
        request, device = self._problem.requests[number], self._content.devices[place]
        match = features.matches[number]
        if match is not True:
            return self._unmatched(request, device, match)
        if not features.tolerated[number]:
            taint = next(one for one in device.device.taints if not request.tolerates([one]))
            return f"tainted {taint_text(taint)}"
        short = self._short_capacity(number, place, features)
        if short:
            return short
        if self._allocated >> place & 1 and not request.is_admin:
            return IN_USE
        if not (features.is_shared and place in self._consumed):
            for counter, amount in features.taken:
                if amount > self._left[counter]:
                    name, left = self._counter_names[counter], self._left[counter]
                    return f"taking {text_of(amount)} of {name}, {text_of(left)} left"
        for constraint, value in self._covering(request, features):
            if value is None:
                return f"without attribute {constraint.attribute}"
        return ""

    def _unmatched(self, request: WantedDevices, device: PoolDevice, match: bool | str) -> str:
        if isinstance(match, str):
            return f"with an error: {match.replace(CLAIM, 'of the claim')}"
        for expression, _ in request.expressions:
            if device.selected_by(expression) is not True:
                return f"not selected by {expression}"
        return "for other nodes"

    def _short_capacity(self, number: int, place: int, features: AllocatorFeatures) -> str:
        request, names = self._problem.requests[number], self._content.capacity_names[place]
        wants = features.wants[number]
        if wants is None:
            unknown = [name for name in request.capacity if name not in names]
            if unknown:
                return f"without capacity {unknown[0]}"
            return "that do not allow the amounts of capacity asked for"
        consumed = self._consumed.get(place) or (0,) * len(wants)
        for name, want, used, limit in zip(names, wants, consumed, features.limits, strict=True):
            if used + want > limit:
                if used:
                    left = text_of(limit - used)
                    return f"shared, with {left} of {text_of(limit)} {name} left"
                return f"with {text_of(limit)} {name}, less than {text_of(want)}"
        return ""

    def _covering(
        self, request: WantedDevices, features: AllocatorFeatures
    ) -> Iterator[tuple[WantedConstraint, Any]]:
        for (claim, constraint), value in zip(
            self._problem.constraints, features.values, strict=True
        ):
            if claim == request.claim and request.is_named_by(constraint.names):
                yield constraint, value

    # --- together --------------------------------------------------------------------------------

    def _by_constraint(self) -> Iterator[str]:
        """Constraints that the free devices cannot satisfy, each by itself."""
        for place, (claim, constraint) in enumerate(self._problem.constraints):
            covered = [
                (number, request)
                for number, request in enumerate(self._problem.requests)
                if request.claim == claim
                and not request.is_alternative
                and request.is_named_by(constraint.names)
            ]
            counts = [
                Counter(
                    self._problem.devices[device].values[place] for device in self._free[number]
                )
                for number, _ in covered
            ]
            if any(isinstance(value, frozenset) for one in counts for value in one):
                continue  # devices with several values match in several ways
            needs = [request.count for _, request in covered]
            every: Counter[Any] = Counter()
            for one in counts:
                every |= one
            total = sum(needs)
            if constraint.is_distinct:
                if len(every) < total:
                    yield (
                        f"{total} devices with different {constraint.attribute} are asked for;"
                        f" those that are free have {len(every)} value{_s(len(every))}"
                    )
            elif counts and not any(
                every[value] >= total
                and all(one[value] >= need for one, need in zip(counts, needs, strict=True))
                for value in every
            ):
                shown = ", ".join(
                    f"{n} with {_value(value)}" for value, n in every.most_common(_MOST_VALUES)
                )
                yield (
                    f"{total} devices with equal {constraint.attribute} are asked for;"
                    f" free are {shown}"
                )

    def _by_counter(self) -> Iterator[str]:
        """Counters of which the devices take more than is left, however they are chosen."""
        least: Counter[int] = Counter()
        for number, request in enumerate(self._problem.requests):
            if request.is_alternative or request.mode == ALL:
                continue
            taken = [dict(self._problem.devices[one].taken) for one in self._free[number]]
            if any(self._problem.devices[one].is_shared for one in self._free[number]):
                continue
            for counter in range(len(self._left)):
                amounts = sorted(one.get(counter, 0) for one in taken)
                least[counter] += sum(amounts[: request.count])
        for counter, amount in least.items():
            if amount > self._left[counter]:
                name, left = self._counter_names[counter], text_of(self._left[counter])
                yield f"the requests take {text_of(amount)} of {name}; {left} are left"

    def _competing(self) -> str:
        names = [one.full_name for one in self._problem.requests]
        devices = len({device for free in self._free.values() for device in free})
        wanted = sum(
            min(one.count if one.mode != ALL else 1 for one in slot)
            for claim in self._problem.demand.claims
            for slot in claim.slots
            if slot
        )
        if wanted > devices:
            return (
                f"requests {' and '.join(names)} ask for {wanted} devices, {devices} can serve them"
            )
        return f"the devices cannot serve requests {' and '.join(names)} at once"


def text_of(nanos: int) -> str:
    """An amount of a capacity or counter."""
    return str(Quantity(nanos, Format.BINARY_SI))


def _value(value: Any) -> str:
    return str(value[1]) if len(value) == 2 else "a value of an unknown type"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
