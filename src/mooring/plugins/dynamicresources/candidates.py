"""Which devices are worth trying for a request, found before the search begins to branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from mooring.api.resource import ALL
from mooring.plugins.dynamicresources.pools import UNKNOWN
from mooring.plugins.dynamicresources.problem import AllocationProblem, AllocatorFeatures, Usage

Slots = Sequence[Sequence[Sequence[int]]]  # numbers of requests by claim, slot and alternative


class CandidateDevices:
    """The candidates of every request; and which devices are alike.

    Without `prune`, every device that selectors do not rule out is one, and none are alike.
    """

    def __init__(
        self,
        problem: AllocationProblem,
        usage: Usage,
        available: Sequence[int],
        covering: Sequence[Sequence[int]],
        needs: Sequence[int],
        slots: Slots,
        *,
        prune: bool,
    ) -> None:
        self._problem = problem
        self._usage = usage
        self._consumed = dict(usage.consumed)
        self._available = available
        self._covering = covering
        self._needs = needs
        self._found: list[list[int]] = [
            [place for place, one in enumerate(problem.devices) if one.matches[number] is not False]
            for number in range(len(problem.requests))
        ]
        if problem.demand.is_best_fit:
            for found in self._found:
                found.sort(key=self._size)
        self.is_hopeless: bool = False
        self.alike: list[int] | None = None  # equal numbers: equal devices; None: do not compare
        if not prune:
            return
        without_effect = self._without_effect()
        if without_effect is not None:
            self.alike = self._kinds(without_effect)
        if self._can_fail():
            return
        every = list(self._found)
        self._narrow(slots)
        if without_effect is None:
            self._found = every  # a device that is tried and refused makes a difference as well

    def _size(self, place: int) -> tuple[float, tuple[int, ...]]:
        """What a device takes from others, then what is left of it: the least fits best."""
        features = self._problem.devices[place]
        declared = self._problem.counters
        taken = sum(amount / max(declared[counter], 1) for counter, amount in features.taken)
        used = self._consumed.get(place) or (0,) * len(features.limits)
        return taken, tuple(a - b for a, b in zip(features.limits, used, strict=True))

    @property
    def remembers(self) -> bool:
        """Whether states in which a request could not be served are to be remembered."""
        return self.alike is not None

    def of(self, request: int) -> list[int]:
        """The devices to try, in order."""
        return self._found[request]

    def _can_fail(self) -> bool:
        """Whether trying a device may end the search with an error."""
        requests, devices = self._problem.requests, self._problem.devices
        return any(
            (request.mode == ALL and self._covering[number])
            or any(isinstance(devices[place].matches[number], str) for place in found)
            for number, (request, found) in enumerate(zip(requests, self._found, strict=True))
        )

    # --- devices alike ---------------------------------------------------------------------------

    def _without_effect(self) -> set[int] | None:
        """The constraints on distinct values that all values satisfy.

        None if a constraint keeps only the last value of a request with several devices, as in
        1.36: then it matters which devices were tried before, and none are alike.
        """
        found: set[int] = set()
        for number, (_, constraint) in enumerate(self._problem.constraints):
            if not constraint.is_distinct:
                continue
            values = [one.values[number] for one in self._problem.devices]
            known = [value for value in values if value is not None]
            if _are_distinct(known):
                found.add(number)
            elif any(
                needs > 1 and number in covering
                for needs, covering in zip(self._needs, self._covering, strict=True)
            ):
                return None
        return found

    def _kinds(self, without_effect: set[int]) -> list[int]:
        numbers: dict[Any, int] = {}
        kinds: list[int] = []
        for place, features in enumerate(self._problem.devices):
            if without_effect:
                values = tuple(
                    (value is None) if number in without_effect else value
                    for number, value in enumerate(features.values)
                )
                features = structs.replace(features, values=values)
            key = (features, self._usage.allocated >> place & 1, self._consumed.get(place))
            kinds.append(numbers.setdefault(key, len(numbers)))
        return kinds

    # --- candidates ------------------------------------------------------------------------------

    def _narrow(self, slots: Slots) -> None:
        """Leave out what cannot be part of a solution."""
        for number, found in enumerate(self._found):
            is_whole = self._problem.requests[number].mode == ALL
            usable = [place for place in found if self._is_usable(number, place)]
            if is_whole and len(usable) < self._needs[number]:
                usable = []
            self._found[number] = usable
        dead = {number for number in range(len(self._found)) if not self._suffices(number)}
        for number, (claim, constraint) in enumerate(self._problem.constraints):
            if not constraint.is_distinct:
                self._narrow_by_value(number, slots[claim], dead)
        dead |= {number for number in range(len(self._found)) if not self._suffices(number)}
        for number in dead:
            if self._problem.requests[number].mode != ALL:
                self._found[number] = []
        self.is_hopeless = any(
            all(number in dead for number in slot) for claim in slots for slot in claim if slot
        )

    def _is_usable(self, number: int, place: int) -> bool:
        """Whether a request can have a device, if it gets no other."""
        features, request = self._problem.devices[place], self._problem.requests[number]
        if self._usage.allocated >> place & 1 and not request.is_admin:
            return False
        if not features.tolerated[number] or not self._has_room(number, place, features):
            return False
        if any(features.values[constraint] is None for constraint in self._covering[number]):
            return False
        if features.pool < 0 or (features.is_shared and place in self._consumed):
            return True
        taken = dict(features.taken)
        return all(
            taken.get(counter, 0) <= self._available[counter]
            for counter in self._problem.pool_counters[features.pool]
        )

    def _has_room(self, number: int, place: int, features: AllocatorFeatures) -> bool:
        wants = features.wants[number]
        if wants is None:
            return False
        consumed = self._consumed.get(place) or (0,) * len(wants)
        amounts = zip(wants, consumed, features.limits, strict=True)
        return all(want + used <= limit for want, used, limit in amounts)

    def _suffices(self, number: int) -> bool:
        """Whether a request has enough candidates, and these enough of each counter."""
        found, needs = self._found[number], self._needs[number]
        if len(found) < needs or (self._problem.requests[number].mode == ALL and not needs):
            return False
        if not self._available or not needs:
            return True
        taken: dict[int, list[int]] = {}
        for place in found:
            features = self._problem.devices[place]
            if features.is_shared:
                return True  # it takes counters once, however often it is picked
            for counter, amount in features.taken:
                taken.setdefault(counter, []).append(amount)
        for counter, amounts in taken.items():
            most_without = len(found) - len(amounts)
            least = sum(sorted(amounts)[: max(0, needs - most_without)])
            if least > self._available[counter] and needs > most_without:
                return False
        return True

    def _narrow_by_value(
        self, constraint: int, slots: Sequence[Sequence[int]], dead: set[int]
    ) -> None:
        """Leave out devices with a value of which some request has too few."""
        devices = self._problem.devices
        if any(isinstance(one.values[constraint], frozenset) for one in devices):
            return  # devices with several values match in several ways
        allowed: set[Any] | None = None
        covered = [n for slot in slots for n in slot if constraint in self._covering[n]]
        for slot in slots:
            if len(slot) != 1 or slot[0] not in covered or not self._needs[slot[0]]:
                continue
            counts: dict[Any, int] = {}
            for place in self._found[slot[0]]:
                value = devices[place].values[constraint]
                counts[value] = counts.get(value, 0) + 1
            enough = {value for value, n in counts.items() if n >= self._needs[slot[0]]}
            allowed = enough if allowed is None else allowed & enough
            if not allowed:
                dead.add(slot[0])
        if allowed is None:
            return
        for number in covered:
            self._found[number] = [
                place
                for place in self._found[number]
                if devices[place].values[constraint] in allowed
            ]


def _are_distinct(values: list[Any]) -> bool:
    """Whether no two devices have a value in common."""
    if any(isinstance(value, frozenset) for value in values):
        return len(frozenset().union(*values)) == sum(map(len, values))
    return len(set(values)) == len(values) and UNKNOWN not in values
