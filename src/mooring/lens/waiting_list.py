"""The pods without a node as rows of `/lens/v1/queue`, of a running scheduler or of a snapshot."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import Final

from mooring.api import core
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.lens.api import (
    LensQueue,
    LensState,
    Place,
    QueueCounts,
    SchedulerInfo,
    WaitingPodRow,
)
from mooring.lens.inspect import AT_PERMIT
from mooring.lens.queued import BINDING, IN_FLIGHT
from mooring.lens.snapshot import QueuedState, Snapshot
from mooring.lens.state import at_once, counted, node_columns, shape_of, time_text
from mooring.scheduler.failure import POD_SCHEDULED

MOST_ROWS: Final = 1_000
PLACES: Final[dict[str, Place]] = {
    "active": "active",
    "backoff": "backoff",
    "unschedulable": "unschedulable",
    "gated": "gated",
    AT_PERMIT: "waiting",
    IN_FLIGHT: "in flight",
    BINDING: "binding",
}
"""By the names that the queue has for them; in the order in which pods are told."""

_ORDER: Final = {place: number for number, place in enumerate(PLACES.values())}
_STEP: Final = 50  # pods between two yields

Queued = tuple[Pod, QueuedState]


def queue_of(
    queued: Iterable[Queued],
    at: float,
    *,
    place: str = "",
    namespace: str = "",
    limit: int = MOST_ROWS,
) -> Generator[None, None, LensQueue]:
    """The first pods by place, priority and time, of one place or namespace if it is given."""
    # The first ones in order, kept so from pod to pod: to sort all of them would be one long step.
    first: list[tuple[int, int, float, str, str, Queued]] = []
    places: dict[str, int] = {}
    matching = 0
    for number, (pod, state) in enumerate(queued):
        if not number % _STEP:
            yield
        known = PLACES.get(state.queue, "unschedulable")
        if namespace and pod.namespace != namespace:
            continue
        places[known] = places.get(known, 0) + 1
        if place and known != place:
            continue
        matching += 1
        order = _ORDER[known], -pod.priority, state.added_at, pod.key, pod.uid
        if len(first) < limit or order < first[-1][:5]:
            bisect.insort(first, (*order, (pod, state)))
            del first[limit:]
    yield
    rows: list[WaitingPodRow] = []
    for number, (*_, (pod, state)) in enumerate(first):
        rows.append(waiting_row(pod, state))
        if not number % _STEP:
            yield
    return LensQueue(
        at=time_text(at) or "",
        counts=counted(places),
        pods=tuple(rows),
        truncated=matching > limit,
    )


def waiting_row(pod: Pod, state: QueuedState) -> WaitingPodRow:
    """One pod and what the queue knows of it."""
    place = PLACES.get(state.queue, "unschedulable")
    return WaitingPodRow(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        place=place,
        priority=pod.priority,
        attempts=state.attempts,
        since=time_text(state.added_at or None),
        next_try=time_text(state.retry_at),
        plugins=state.plugins,
        shape=shape_of(pod),
        message=state.message,
        profile=pod.scheduler_name,
        kind="gated" if place == "gated" else "",
    )


# --- of a snapshot --------------------------------------------------------------------------------


def queued_of_snapshot(snapshot: Snapshot) -> Iterator[Queued]:
    """Its pods without a node; without a queue in it, by the conditions of the pods."""
    states = {state.uid: state for state in snapshot.queue or ()}
    for api in snapshot.cluster.pods:
        pod = Pod(api)
        known = states.get(pod.uid)
        if known is not None:
            yield pod, known
        elif not pod.node_name and not pod.is_finished and not pod.is_terminating:
            yield pod, _by_condition(api, pod)


def queue_of_snapshot(
    snapshot: Snapshot, *, place: str = "", namespace: str = "", limit: int = MOST_ROWS
) -> LensQueue:
    """As `queue_of`, of a snapshot."""
    queued = queued_of_snapshot(snapshot)
    work = queue_of(queued, snapshot.at, place=place, namespace=namespace, limit=limit)
    return at_once(work)


def state_of_snapshot(snapshot: Snapshot, cache: Cache) -> LensState:
    """The state of a snapshot; `cache` is that of a private copy of its cluster."""
    name, _, version = snapshot.scheduler.partition(" ")
    config = snapshot.config or {}
    profiles = [one.get("schedulerName", "") for one in config.get("profiles", ())]
    notes = [f"{one.resource} could not be read: {one.problem}" for one in snapshot.missing]
    return LensState(
        seq=snapshot.seq,
        at=time_text(snapshot.at) or "",
        source="file",
        scheduler=SchedulerInfo(name=name, version=version, profiles=tuple(profiles)),
        nodes=at_once(node_columns(cache)),
        queue=_counts(queued_of_snapshot(snapshot)),
        notes=(*snapshot.notes, *notes),
    )


def _counts(queued: Iterable[Queued]) -> QueueCounts:
    return counted(Counter(PLACES.get(state.queue, "unschedulable") for _, state in queued))


def _by_condition(api: core.Pod, pod: Pod) -> QueuedState:
    found = (one for one in api.status.conditions if one.type == POD_SCHEDULED)
    condition = next(found, None)
    name = "active"
    if api.spec.scheduling_gates:
        name = "gated"
    elif condition is not None and condition.status == "False":
        name = "unschedulable"
    message = "" if condition is None else condition.message
    return QueuedState(uid=pod.uid, queue=name, message=message)
