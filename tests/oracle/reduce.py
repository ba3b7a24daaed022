"""Makes a scenario smaller while something stays true of it: fewer objects, then fewer fields."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.oracle.scenarios.dice import Object

# Without these an object means nothing, or something that no API server would store.
_KEPT = frozenset(
    {
        *("metadata", "name", "namespace", "uid", "spec", "status", "containers", "schedulerName"),
        *("key", "operator", "topologyKey", "whenUnsatisfiable", "maxSkew", "effect", "weight"),
        *("type", "kind", "provisioner", "driver", "startTime", "labelSelector", "podAffinityTerm"),
        *("preference", "claimName", "volumeClaimTemplate", "accessModes", "utilization", "score"),
        *("containerPort", "action", "exitCodes", "values", "nodeTopology", "selector", "capacity"),
    }
)


class Reducer:
    """Greedy: tries to do without each thing in turn, as long as its budget of questions lasts."""

    def __init__(self, still_true: Callable[[Object], bool], budget: int = 2000) -> None:
        self._still_true = still_true
        self._left = budget

    def reduce(self, scenario: Object) -> Object:
        """A smaller scenario of which the same is true; the one given is not touched."""
        smallest = copy.deepcopy(scenario)
        before = None
        while before != (before := _size(smallest)) and self._left > 0:
            self._without_profile(smallest)
            for kind in smallest["cluster"]:
                self._thin_out(smallest, smallest["cluster"][kind])
            for part in ("profile", "pod", "cluster"):
                self._prune(smallest, smallest[part], inside_lists=part == "cluster")
        return smallest

    def _holds(self, scenario: Object) -> bool:
        self._left -= 1
        return self._left >= 0 and self._still_true(scenario)

    def _without_profile(self, scenario: Object) -> None:
        profile = scenario["profile"]
        if profile is not None:
            scenario["profile"] = None
            if not self._holds(scenario):
                scenario["profile"] = profile

    def _thin_out(self, scenario: Object, items: list[Any]) -> None:
        """Drop halves, then quarters, ... then single objects."""
        step = len(items)
        while step:
            at = 0
            while at < len(items):
                dropped = items[at : at + step]
                del items[at : at + step]
                if not self._holds(scenario):
                    items[at:at] = dropped
                    at += step
            step //= 2

    def _prune(self, scenario: Object, part: Any, *, inside_lists: bool = False) -> None:
        """Drop keys and elements, outermost first. The lists of a cluster are thin already."""
        if isinstance(part, dict):
            for key in list(part):
                if key in _KEPT or inside_lists:
                    self._prune(scenario, part[key])
                    continue
                whole = dict(part)
                del part[key]
                if not self._holds(scenario):
                    part.clear()
                    part.update(whole)
                    self._prune(scenario, part[key])
        elif isinstance(part, list):
            self._thin_out(scenario, part)
            for item in part:
                self._prune(scenario, item)


def _size(part: Any) -> int:
    if isinstance(part, dict):
        return 1 + sum(_size(value) for value in part.values())
    if isinstance(part, list):
        return 1 + sum(_size(value) for value in part)
    return 1
