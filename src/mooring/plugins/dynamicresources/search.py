"""The search for devices: depth first, claim by claim, the first complete solution wins.

The order is kube-scheduler's: requests in order, alternatives in order, devices in order, devices
of one request as growing combinations. What cannot be part of any solution is not tried; that
changes how long it takes, and not what comes out:

- a request that has too few candidates for itself fails at once, also by value of an attribute
  that must match, and by counters;
- a device that is like one that failed in the same place fails as well;
- a state in which a request could not be served is remembered.

Where trying a device may end the search with an error, nothing is skipped that might do so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.api.resource import ALL, EXACT_COUNT, MOST_RESULTS
from mooring.plugins.dynamicresources.candidates import CandidateDevices
from mooring.plugins.dynamicresources.pools import UNKNOWN
from mooring.plugins.dynamicresources.problem import AllocationProblem, Amounts, Usage
from mooring.plugins.dynamicresources.requests import CLAIM, DEVICE, WantedDevices

_STEPS_BETWEEN_LOOKS: Final = 256  # at the clock


class Pick(msgspec.Struct, frozen=True):
    """A device for a request; both are numbers of the problem."""

    request: int
    device: int


class Solution(msgspec.Struct, frozen=True):
    """The devices of every claim in the order of picking, and the alternatives taken."""

    picks: tuple[tuple[Pick, ...], ...]
    alternatives: tuple[tuple[int, ...], ...]  # by claim and request
    steps: int = 0


class NoSolution(msgspec.Struct, frozen=True):
    """There is none."""

    steps: int = 0


class SearchError(Exception):
    """The search cannot go on. `CLAIM` in the text stands for the claim's name."""

    def __init__(self, claim: int, text: str) -> None:
        super().__init__(text)
        self.claim = claim
        self.text = text


class OutOfTime(Exception):
    """The search took longer than it may."""


Outcome = Solution | NoSolution | SearchError

_EXCEEDED: Final = "exceeded"  # a claim would get more devices than it may have
_Result = bool | str


class _State:
    """Values of the devices picked so far, for one constraint."""

    __slots__ = ("before", "count", "values")

    def __init__(self) -> None:
        self.before: list[Any] = []  # values in common, before each device that has several
        self.values: dict[str, Any] = {}  # by request; for equal values, under ""
        self.count = 0


def solve(
    problem: AllocationProblem,
    usage: Usage,
    *,
    prune: bool = True,
    is_late: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Search. Raises OutOfTime."""
    try:
        return _Search(problem, usage, prune, is_late).run()
    except SearchError as error:
        return error


class _Search:
    def __init__(
        self, problem: AllocationProblem, usage: Usage, prune: bool, is_late: Callable[[], bool]
    ) -> None:
        self._problem = problem
        self._devices = problem.devices
        self._allocated = usage.allocated
        self._consumed: dict[int, Amounts] = dict(usage.consumed)
        self._available = [
            declared - used
            for declared, used in zip(
                problem.counters, usage.counters or (0,) * len(problem.counters), strict=True
            )
        ]
        self._is_late = is_late
        self.steps = 0
        claims = problem.demand.claims
        self._slots: list[list[list[int]]] = []  # numbers of requests by claim, slot, alternative
        number = 0
        for claim in claims:
            slots: list[list[int]] = []
            for slot in claim.slots:
                slots.append(list(range(number, number + len(slot))))
                number += len(slot)
            self._slots.append(slots)
        self._requests: list[WantedDevices] = problem.requests
        self._all: dict[int, list[int]] = {}
        self._needs: list[int] = [0] * number  # devices of each request
        self._check_requests()

        self._marks = [0] * len(self._devices)  # the claims that a device is picked for, as bits
        self._shares: dict[int, list[int]] = {}  # picked of devices that are shared
        self._used = [0] * len(self._available)  # of each counter, by picked devices
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._chosen: list[list[int]] = [[0] * len(slots) for slots in self._slots]
        self._states = [_State() for _ in problem.constraints]
        # The constraints of each request, with the name that distinct values are kept under.
        self._covering: list[list[int]] = [
            [
                number
                for number, (claim, constraint) in enumerate(problem.constraints)
                if claim == request.claim and request.is_named_by(constraint.names)
            ]
            for request in self._requests
        ]
        self._candidates = CandidateDevices(
            problem, usage, self._available, self._covering, self._needs, self._slots, prune=prune
        )
        self._alike = self._candidates.alike
        self._failed: set[Any] = set()

    # --- before the search -----------------------------------------------------------------------

    def _check_requests(self) -> None:
        for claim, slots in enumerate(self._slots):
            least = 0
            for slot in slots:
                for number in slot:
                    self._needs[number] = self._check_request(claim, number)
                least += min((self._needs[number] for number in slot), default=0)
            if least > MOST_RESULTS:
                raise SearchError(
                    claim,
                    f"claim {CLAIM}: number of requested devices {least} exceeds the claim limit"
                    f" of {MOST_RESULTS}",
                )
            if self._problem.demand.claims[claim].problem:
                raise SearchError(claim, self._problem.demand.claims[claim].problem)

    def _check_request(self, claim: int, number: int) -> int:
        """How many devices a request needs; of `All`, also which. Raises SearchError."""
        request = self._requests[number]
        subject = f"claim {CLAIM}, request {request.name}"
        if request.problem:
            raise SearchError(claim, request.problem)
        if request.device_class is None:
            raise SearchError(
                claim,
                f"{subject}: could not retrieve device class {request.class_name}:"
                f' deviceclass.resource.k8s.io "{request.class_name}" not found',
            )
        if request.mode == EXACT_COUNT:
            return request.count
        if request.mode != ALL:
            raise SearchError(claim, f"{subject}: unsupported count mode {request.mode}")
        trouble_at, trouble = self._problem.trouble or (-1, "")
        found: list[int] = []
        for place, device in enumerate(self._devices):
            if place == trouble_at:
                break
            match = device.matches[number]
            if isinstance(match, str):
                raise SearchError(claim, match)
            if match and self._has_room(number, place, {}):
                found.append(place)
        if trouble:
            raise SearchError(claim, f"{subject}: asks for all devices, but {trouble}")
        self._all[number] = found
        return len(found)

    # --- the walk --------------------------------------------------------------------------------

    def run(self) -> Solution | NoSolution:
        if self._candidates.is_hopeless or self._next(0, 0) is not True:
            return NoSolution(self.steps)
        return Solution(tuple(map(tuple, self._picks)), tuple(map(tuple, self._chosen)), self.steps)

    def _next(self, claim: int, slot: int) -> _Result:
        """Serve this request of this claim, and all that follow."""
        if claim == len(self._slots):
            return True
        if slot == len(self._slots[claim]):
            result = self._next(claim + 1, 0)
            return False if result is _EXCEEDED else result
        remembers = self._candidates.remembers
        state = self._state(claim, slot) if remembers else None
        if remembers and state in self._failed:
            return False
        result = self._serve(claim, slot)
        if remembers and result is False:
            self._failed.add(state)
        return result

    def _serve(self, claim: int, slot: int) -> _Result:
        alternatives = self._slots[claim][slot]
        if not self._requests[alternatives[0]].is_alternative:
            return self._fill(claim, slot, alternatives[0], 0, 0)
        is_exceeded = True
        for place, number in enumerate(alternatives):
            result = self._fill(claim, slot, number, 0, 0)
            if result is _EXCEEDED:
                continue
            is_exceeded = False
            if result is True:
                self._chosen[claim][slot] = place
                return True
        return _EXCEEDED if is_exceeded else False

    def _fill(self, claim: int, slot: int, number: int, filled: int, start: int) -> _Result:
        """Pick the next device of a request, from a place among its candidates on."""
        self.steps += 1
        if self.steps % _STEPS_BETWEEN_LOOKS == 0 and self._is_late():
            raise OutOfTime
        request = self._requests[number]
        all_devices = self._all.get(number)
        if all_devices is not None and not all_devices:
            return False
        needs = self._needs[number]
        if filled >= needs:
            return self._next(claim, slot + 1)
        if len(self._picks[claim]) + needs - filled > MOST_RESULTS:
            return _EXCEEDED
        if all_devices is not None:
            device = all_devices[filled]
            undo = self._take(claim, number, device, must=True)
            if undo is None:
                return False
            result = self._fill(claim, slot, number, filled + 1, 0)
            if result is not True:
                undo()
            return result
        failed: set[Any] = set()
        candidates = self._candidates.of(number)
        is_admin, bit = request.is_admin, 1 << claim
        for place in range(start, len(candidates)):
            device = candidates[place]
            marks = self._marks[device]
            if marks & bit if is_admin else (marks or self._allocated >> device & 1):
                continue
            match = self._devices[device].matches[number]
            if isinstance(match, str):
                raise SearchError(claim, match)
            kind: Any = None
            if self._alike is not None:
                kind = (self._alike[device], marks, self._share(device))
                if kind in failed:
                    continue
            if not self._has_room(number, device, self._shares):
                continue
            undo = self._take(claim, number, device, must=False)
            if undo is None:
                continue
            result = self._fill(claim, slot, number, filled + 1, place + 1)
            if result is True:
                return True
            undo()
            if result is _EXCEEDED:
                return result
            if kind is not None:
                failed.add(kind)
        return False

    def _share(self, device: int) -> tuple[int, ...] | None:
        share = self._shares.get(device)
        return None if share is None else tuple(share)

    def _state(self, claim: int, slot: int) -> Any:
        """All that decides whether the rest can be served; devices alike count by number."""
        alike = self._alike
        assert alike is not None
        touched: dict[Any, int] = {}
        for picks in self._picks:
            for device in {pick.device for pick in picks}:
                kind = (alike[device], self._marks[device], self._share(device) or ())
                touched[kind] = touched.get(kind, 0) + 1
        states = tuple(
            (state.count, frozenset(state.values.items())) if state.count else None
            for state in self._states
        )
        return claim, slot, len(self._picks[claim]), frozenset(touched.items()), states

    # --- one device ------------------------------------------------------------------------------

    def _take(
        self, claim: int, number: int, device: int, *, must: bool
    ) -> Callable[[], None] | None:
        """Pick a device, and how to give it back; None if that is not possible."""
        features, request = self._devices[device], self._requests[number]
        is_shared, bit = features.is_shared, 1 << claim
        if request.is_admin:
            if not is_shared and self._marks[device] & bit:
                return None
        elif self._marks[device] or self._allocated >> device & 1:
            return None
        is_first = not (is_shared and (device in self._consumed or device in self._shares))
        takes_counters = is_first and features.pool >= 0
        if takes_counters and not self._take_counters(device):
            return None
        if not features.tolerated[number]:
            self._release(number, 0, device if takes_counters else -1)
            return None
        for place, constraint in enumerate(self._covering[number]):
            if not self._add(constraint, request.slot, features.values[constraint]):
                self._release(number, place, device if takes_counters else -1)
                if must:
                    raise SearchError(
                        claim,
                        f"claim {CLAIM}, request {request.name}: cannot add device {DEVICE}{device}"
                        f"{DEVICE} because a claim constraint would not be satisfied",
                    )
                return None
        if must and not self._has_room(number, device, self._shares):
            self._release(number, len(self._covering[number]), device if takes_counters else -1)
            return None
        wants = features.wants[number]
        before = self._shares.get(device)
        if is_shared:
            assert wants is not None
            self._shares[device] = [
                a + b for a, b in zip(before or (0,) * len(wants), wants, strict=True)
            ]
        else:
            self._marks[device] |= bit
        picks = self._picks[claim]
        picks.append(Pick(number, device))

        def undo() -> None:
            picks.pop()
            if not is_shared:
                self._marks[device] &= ~bit
            elif before is None:
                del self._shares[device]
            else:
                self._shares[device] = before
            self._release(number, len(self._covering[number]), device if takes_counters else -1)

        return undo

    def _release(self, number: int, constraints: int, device: int) -> None:
        """Forget the first constraints of a request, and the counters of a device (-1: none)."""
        slot = self._requests[number].slot
        for constraint in reversed(self._covering[number][:constraints]):
            state = self._states[constraint]
            # As in 1.36, whichever device of the request it was: one value is kept per request.
            if self._problem.constraints[constraint][1].is_distinct:
                state.values.pop(slot, None)
            elif state.before:
                state.values[""] = state.before.pop()
            state.count -= 1
            if not state.count:
                state.values.clear()
        if device >= 0:
            for counter, amount in self._devices[device].taken:
                self._used[counter] -= amount

    def _take_counters(self, device: int) -> bool:
        features = self._devices[device]
        for counter, amount in features.taken:
            self._used[counter] += amount
        for counter in self._problem.pool_counters[features.pool]:
            if self._used[counter] > self._available[counter]:
                for taken, amount in features.taken:
                    self._used[taken] -= amount
                return False
        return True

    def _add(self, constraint: int, slot: str, value: Any) -> bool:
        """Count a device's value for a constraint, if that fits."""
        if value is None:
            return False
        state = self._states[constraint]
        if self._problem.constraints[constraint][1].is_distinct:
            if state.count and not self._is_distinct(value, state):
                return False
            state.values[slot] = value
        elif not state.count:
            state.values[""] = value
        elif isinstance(value, frozenset):
            common = value & state.values[""]
            if not common:
                return False
            state.before.append(state.values[""])
            state.values[""] = common
        elif value != state.values[""] or value == UNKNOWN:
            return False
        state.count += 1
        return True

    @staticmethod
    def _is_distinct(value: Any, state: _State) -> bool:
        if value == UNKNOWN:
            return not state.values
        if isinstance(value, frozenset):
            return all(value.isdisjoint(known) for known in state.values.values())
        return value not in state.values.values()

    def _has_room(self, number: int, device: int, shares: dict[int, list[int]]) -> bool:
        """Whether the capacities of a device suffice, beside what is consumed and picked."""
        features = self._devices[device]
        wants = features.wants[number]
        if wants is None:
            return False
        consumed, share = self._consumed.get(device), shares.get(device)
        for place, (want, limit) in enumerate(zip(wants, features.limits, strict=True)):
            used = (consumed[place] if consumed else 0) + (share[place] if share else 0)
            if used + want > limit:
                return False
        return True
