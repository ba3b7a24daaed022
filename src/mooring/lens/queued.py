"""What the queue of a running scheduler knows about its pods, for explanations and snapshots."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from mooring.cache.pods import Pod
from mooring.framework.results import QueuedPod
from mooring.lens.inspect import AT_PERMIT
from mooring.lens.snapshot import QueuedState, WakingEvent
from mooring.queue.hints import declined_hints
from mooring.runtime.waiting import WaitingPod
from mooring.scheduler.failure import POD_SCHEDULED
from mooring.scheduler.scheduler import Scheduler

IN_FLIGHT: Final = "in flight"  # being decided
BINDING: Final = "binding"


def queued_states(scheduler: Scheduler) -> Iterator[QueuedState]:
    """All pods that wait now, are held or are decided; in short, in no order, and one by one."""
    return (state for _, state in queued_pods(scheduler))


def queued_pods(scheduler: Scheduler) -> Iterator[tuple[Pod, QueuedState]]:
    """Likewise, each with its pod."""
    queue, waiting = scheduler.queue, {held.pod.uid: held for held in scheduler.waiting}
    in_flight = [queue.in_flight[uid] for uid in queue.in_flight if uid not in waiting]
    in_queue = [(name, queued) for name, some in queue.listed().items() for queued in some]
    return itertools.chain(
        ((queued.pod, _in_queue(scheduler, queued, name)) for name, queued in in_queue),
        ((held.pod, _at_permit(scheduler, held)) for held in waiting.values()),
        ((pod, _in_flight(pod)) for pod in in_flight),
    )


def queued_state(scheduler: Scheduler, pod: Pod, now: float) -> QueuedState | None:
    """All that is known about one pod; None if it does not wait. `now` is the scheduler's time."""
    queue = scheduler.queue
    queued = queue.find(pod.key)
    if queued is None:
        held = scheduler.waiting.get(pod.uid)
        if held is not None:
            return _at_permit(scheduler, held, now)
        if pod.uid in queue.in_flight:
            return _in_flight(pod)
        assumed = scheduler.cache.get_pod(pod.uid)
        if assumed is None or not scheduler.cache.is_assumed(pod.uid):
            return None
        return QueuedState(uid=pod.uid, queue=BINDING, node=assumed.node_name)
    name = queue.where(pod.key) or ""
    brief = _in_queue(scheduler, queued, name)
    is_refused = name in ("unschedulable", "gated")
    return structs.replace(
        brief,
        since=queued.timestamp,
        ahead=queue.ahead_of(pod.key),
        wakes_on=tuple(
            WakingEvent(known.plugin, known.event.label)
            for known in (queue.wakes_on(queued) if is_refused else ())
        ),
        declined=tuple(declined_hints(queued)),
    )


def _in_queue(scheduler: Scheduler, queued: QueuedPod, name: str) -> QueuedState:
    plugins = queued.unschedulable_plugins | queued.pending_plugins
    if queued.gated_by:
        plugins = frozenset({queued.gated_by})
    added_at = queued.first_attempt_at
    return QueuedState(
        uid=queued.pod.uid,
        queue=name,
        attempts=queued.attempts,
        added_at=queued.timestamp if added_at is None else added_at,
        retry_at=scheduler.queue.next_try(queued),
        plugins=tuple(sorted(plugins)),
        message=scheduler.queue.gate_of(queued.pod.key).message or _condition(queued.pod),
    )


def _at_permit(scheduler: Scheduler, held: WaitingPod, now: float | None = None) -> QueuedState:
    waited = asyncio.get_running_loop().time() - held.since
    return QueuedState(
        uid=held.pod.uid,
        queue=AT_PERMIT,
        attempts=held.attempts,
        plugins=tuple(held.pending_plugins),
        message=scheduler.held.why(held.pod.key),
        since=None if now is None else now - waited,
        node="" if now is None else held.node_name,
    )


def _in_flight(pod: Pod) -> QueuedState:
    return QueuedState(uid=pod.uid, queue=IN_FLIGHT, message=_condition(pod))


def _condition(pod: Pod) -> str:
    found = (one.message for one in pod.status.conditions if one.type == POD_SCHEDULED)
    return next(found, "")
