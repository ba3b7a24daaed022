"""Rollouts of Deployments: the sizes of ReplicaSets and the conditions; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mooring.api.meta import format_time, parse_time
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.base import int_or_percent, replicas_of, with_condition

DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
"""Annotations of a ReplicaSet: the size of its Deployment, and its size with the surge."""
_DEFAULT: Final = "25%"  # of both limits
_PROGRESS_DEADLINE: Final = 600  # seconds


def total(sets: Sequence[Object], field: str) -> int:
    """The sum of a number in the status of ReplicaSets."""
    return sum((one.get("status") or {}).get(field) or 0 for one in sets)


def spec_replicas(sets: Sequence[Object]) -> int:
    """The replicas that ReplicaSets should have."""
    return sum(one["spec"].get("replicas") or 0 for one in sets)


def uses_recreate(owner: Object) -> bool:
    return (owner["spec"].get("strategy") or {}).get("type") == "Recreate"


def limits(owner: Object) -> tuple[int, int]:
    """The numbers of pods for maxSurge and maxUnavailable."""
    wanted = replicas_of(owner)
    if uses_recreate(owner) or wanted == 0:
        return 0, 0
    rolling = (owner["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = int_or_percent(rolling.get("maxSurge", _DEFAULT), wanted, up=True)
    missing = int_or_percent(rolling.get("maxUnavailable", _DEFAULT), wanted, up=False)
    if surge == 0 and missing == 0:
        missing = 1  # or there could be no progress
    return surge, min(missing, wanted)


# --- sizes -------------------------------------------------------------------------------------


def first_size(owner: Object, old: Sequence[Object]) -> int:
    wanted = replicas_of(owner)
    if uses_recreate(owner):
        return wanted
    room = wanted + limits(owner)[0] - spec_replicas(old)
    return max(min(room, wanted), 0)


def sizes(owner: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    """The sizes that the ReplicaSets should be scaled to now, by name."""
    if uses_recreate(owner):
        found = {one["metadata"]["name"]: 0 for one in old}
        if new is not None:
            found[new["metadata"]["name"]] = replicas_of(owner)
        return found
    if new is None:
        return {}
    wanted = replicas_of(owner)
    surge, missing = limits(owner)
    size = spec_replicas([new])
    grown = min(size + max(wanted + surge - spec_replicas([*old, new]), 0), wanted)
    if grown != size:  # also if the Deployment was scaled down
        return {new["metadata"]["name"]: grown}
    return _shrunk(new, old, wanted - missing)


def rescaled(owner: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    """New sizes in proportion, if the Deployment was scaled during a rollout; otherwise none."""
    live = [one for one in (*old, new) if one is not None and spec_replicas([one])]
    wanted = replicas_of(owner)
    if uses_recreate(owner) or all(_noted(one, DESIRED) in (None, wanted) for one in live):
        return {}
    if len(live) < 2:
        return {one["metadata"]["name"]: wanted for one in live}
    allowed = wanted + limits(owner)[0] if wanted else 0
    change = allowed - spec_replicas(live)
    # The largest first; of equal ones the newest if it grows, the oldest if it shrinks.
    ranked = sorted(reversed(live) if change > 0 else live, key=lambda one: -spec_replicas([one]))
    found: dict[str, int] = {}
    given = 0
    for one in ranked:
        size = spec_replicas([one])
        before = _noted(one, MOST) or allowed
        share = (2 * size * allowed + before) // (2 * before) - size  # rounded
        left = change - given
        share = min(max(share, 0), left) if change > 0 else max(min(share, 0), left)
        found[one["metadata"]["name"]] = size + share
        given += share
    first = ranked[0]["metadata"]["name"]
    found[first] = max(found[first] + change - given, 0)
    return found


def _noted(one: Object, annotation: str) -> int | None:
    text = str((one["metadata"].get("annotations") or {}).get(annotation, ""))
    return int(text) if text.isdecimal() else None


def _shrunk(new: Object, old: Sequence[Object], least: int) -> dict[str, int]:
    """Old ReplicaSets, scaled down as far as availability allows; unhealthy pods first."""
    new_missing = spec_replicas([new]) - total([new], "availableReplicas")
    spare = spec_replicas([*old, new]) - least - new_missing
    found: dict[str, int] = {}
    for one in old:
        size = spec_replicas([one])
        broken = size - total([one], "availableReplicas")
        cut = max(min(broken, spare, size), 0)
        spare -= cut
        found[one["metadata"]["name"]] = size - cut
    # Unhealthy pods were counted above.
    spare = min(spare, total([*old, new], "availableReplicas") - least)
    for one in old:
        name = one["metadata"]["name"]
        cut = max(min(found[name], spare), 0)
        spare -= cut
        found[name] -= cut
    return found


# --- conditions --------------------------------------------------------------------------------


def with_availability(
    known: Sequence[Object] | None, owner: Object, available: int, now: float
) -> list[Object]:
    time = format_time(now)
    if available >= replicas_of(owner) - limits(owner)[1]:
        said = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        words = "Deployment does not have minimum availability."
        said = ("False", "MinimumReplicasUnavailable", words)
    return with_condition(known, "Available", *said, time, lastUpdateTime=time)


class Progress:
    """The Progressing condition, which `kubectl rollout status` reads."""

    def __init__(self, known: Sequence[Object], name: str, now: float) -> None:
        self._known = known
        self._name = name  # of the new ReplicaSet
        self._now = now
        self._old = next((one for one in known if one["type"] == "Progressing"), None)

    def created(self) -> list[Object]:
        words = f'Created new replica set "{self._name}"'
        return self._renewed("True", "NewReplicaSetCreated", words)

    def completed(self) -> list[Object]:
        words = f'ReplicaSet "{self._name}" has successfully progressed.'
        time = format_time(self._now)
        said = ("True", "NewReplicaSetAvailable", words)
        return with_condition(self._known, "Progressing", *said, time, lastUpdateTime=time)

    def moved(self) -> list[Object]:
        words = f'ReplicaSet "{self._name}" is progressing.'
        return self._renewed("True", "ReplicaSetUpdated", words)

    def stalled(self, deadline: int | None) -> tuple[list[Object], float | None]:
        """No progress, which is a failure after the deadline; with the seconds until then."""
        old = self._old
        if old is None:
            return self.moved(), None
        if old["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
            return list(self._known), None
        left = parse_time(old["lastUpdateTime"]) + (deadline or _PROGRESS_DEADLINE) - self._now
        if left > 0:
            return list(self._known), left
        words = f'ReplicaSet "{self._name}" has timed out progressing.'
        return self._renewed("False", "ProgressDeadlineExceeded", words), None

    def _renewed(self, status: str, reason: str, message: str) -> list[Object]:
        time = format_time(self._now)
        old = self._old
        changed = old["lastTransitionTime"] if old and old["status"] == status else time
        condition = {"type": "Progressing", "status": status, "reason": reason, "message": message}
        condition |= {"lastUpdateTime": time, "lastTransitionTime": changed}
        return [*(one for one in self._known if one is not old), condition]
