"""The handling of a failed attempt: requeue, condition, Event and nomination.

    attempt failed ──▶ queue, Event ──▶ status patch: condition and nomination
                                  └───▶ put off, while victims without a grace period are deleted
                                          │ the next attempt ended, or a bind began: never written
                                          └─ the pod still waits a moment later ──▶ status patch

The nomination of a pod that is bound as soon as its victims are deleted is of no use to anyone, and
a status patch costs the API server milliseconds: so it is written only if the pod is not bound. If
victims have a grace period, it is written at once: a scheduler that starts anew has to know it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from mooring.api.meta import Condition, format_time
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.client.errors import NotFound
from mooring.client.event_series import truncated
from mooring.errors import ApiError
from mooring.framework.handle import Client, Clock, Recorder
from mooring.framework.results import QueuedPod
from mooring.framework.status import Status
from mooring.observe.texts import cut
from mooring.queue.queue import SchedulingQueue
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.handlers import Handlers

log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"
LONGEST_PUT_OFF: Final = 30.0  # seconds; an API server that does not answer must not hide a reason
MAX_MESSAGE: Final = 32_768  # bytes; what Kubernetes allows in the conditions of other objects

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class _Report(msgspec.Struct):
    """What is to be written about a failed attempt."""

    key: str
    reason: str
    message: str
    nominate: str | None
    announced: str
    at_latest: float  # when it is written even if victims are still being deleted
    is_due: bool = False  # the victims are deleted: written next time


class FailureHandler:
    """Returns pods to the queue and reports the reason."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        handlers: Handlers,
        client: Client,
        recorder: Recorder,
        clock: Clock,
        spawn: Spawn,
        makes_room_at_once: Callable[[str], bool],
    ) -> None:
        """`makes_room_at_once` says of a uid whether that pod will be bound in a moment."""
        self._cache = cache
        self._queue = queue
        self._handlers = handlers
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._spawn = spawn
        self._makes_room_at_once = makes_room_at_once
        self._put_off: dict[str, _Report] = {}  # by uid

    def handle(
        self,
        queued: QueuedPod,
        status: Status,
        diagnosis: Diagnosis | None,
        nominate: str | None,
        announced: str = "",
        *,
        is_moot: bool = False,
        penalty: float = 0.0,
    ) -> None:
        """`nominate` as in `Decision`: None keeps the nomination, "" withdraws it.

        `announced` is a nomination that this attempt has written and that the watch may not have
        shown yet. With `is_moot` the failure is not reported: the pod is deleted, or another
        replica decides about it. `penalty` as in the queue.
        """
        pod = queued.pod
        self._put_off.pop(pod.uid, None)
        queued.unschedulable_plugins = frozenset()
        queued.pending_plugins = frozenset()
        if diagnosis is not None:
            queued.unschedulable_plugins = diagnosis.unschedulable_plugins
            queued.pending_plugins = diagnosis.pending_plugins
        latest = self._handlers.pending(pod.key)
        if latest is not None and latest.uid != pod.uid:
            self._queue.done(pod.uid)  # another pod has its name now
            return
        self._requeue(queued, latest, penalty)
        if latest is None or is_moot:
            return  # deleted, or bound by another scheduler
        self._queue.nominator.nominate(latest, nominate)
        message = cut(status.message, MAX_MESSAGE)
        if status.rejected:
            extra = {"pod": pod.key, "error": message}
            log.info("Unable to schedule pod; no fit; waiting", extra=extra)
        else:
            extra = {"pod": pod.key, "error": message, "plugin": status.plugin}
            log.error("Error scheduling pod; retrying", extra=extra)
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", truncated(message))
        reason = "Unschedulable" if status.rejected else "SchedulerError"
        at_latest = self._clock.now() + LONGEST_PUT_OFF
        report = _Report(pod.key, reason, message, nominate, announced, at_latest)
        if self._makes_room_at_once(pod.uid):
            self._put_off[pod.uid] = report
        else:
            self._spawn(self._patch(latest, report))

    def report_put_off(self) -> None:
        """Write what was put off about pods that wait nonetheless. Call every second."""
        for uid, report in tuple(self._put_off.items()):
            pod = self._handlers.pending(report.key)
            if pod is None or pod.uid != uid or self._cache.is_assumed(uid):
                del self._put_off[uid]
            elif self._makes_room_at_once(uid) and self._clock.now() < report.at_latest:
                continue
            elif report.is_due:
                del self._put_off[uid]
                self._spawn(self._patch(pod, report))
            else:
                report.is_due = True

    def _requeue(self, queued: QueuedPod, latest: Pod | None, penalty: float) -> None:
        pod = queued.pod
        if latest is None:
            bound = self._cache.get_pod(pod.uid)
            why = "has been assigned to a node" if bound is not None else "does not exist any more"
            log.info("not queued again: the pod %s", why, extra={"pod": pod.key})
            self._queue.done(pod.uid)
            return
        queued.pod = latest
        self._queue.add_unschedulable(queued, penalty)

    async def _patch(self, pod: Pod, report: _Report) -> None:
        reason, message, nominate = report.reason, report.message, report.nominate
        known = next((c for c in pod.status.conditions if c.type == POD_SCHEDULED), None)
        if known is not None and (known.status, known.reason, known.message) == (
            "False",
            reason,
            message,
        ):
            condition = None
        else:
            condition = Condition(
                type=POD_SCHEDULED,
                status="False",
                reason=reason,
                message=message,
                observed_generation=pod.api.metadata.generation,
                last_transition_time=format_time(self._clock.now()),
            )
        written = report.announced or pod.nominated_node_name
        changed = nominate if nominate != written else None
        if condition is None and changed is None:
            return
        try:
            await self._client.patch_pod_status(pod, condition, changed)
        except NotFound:
            return  # deleted; the watch will show it
        except ApiError as error:
            extra = {"pod": pod.key, "error": str(error)}
            log.warning("could not write the status of a pod", extra=extra)
