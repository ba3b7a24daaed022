"""The scheduling queue: the sub-queue of every pod without a node, and what moves it.

    add, update
         |
         v        no
       gate? ------------> gated         gate? again on an event of the gating plugin,
         | yes                           on update and on activate
         v
      active <------- flush_backoff, activate ------- backoff
         |                                              |  ^
         | pop      pop, if nothing is active           |  |
         v          (not after an error)                |  |
     in flight <----------------------------------------+  |
         |                                                 |
         | add_unschedulable                               | gate?, then backoff,
         +--- error, or a helpful event meanwhile ---------+ or active if it is over
         |                                                 |
         +--- otherwise ---> unschedulable ----------------+
         |                         event and hint, update, flush_unschedulable;
         +--- done: bound, gone    activate: straight to active

A pod is in exactly one sub-queue. A new uid under an old name is a new pod. Not thread-safe, and
synchronous; callbacks must not call the queue.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from mooring.cache.pods import Pod
from mooring.framework.events import (
    ANY_RESOURCE,
    ASSIGNED_POD,
    UNSCHEDULABLE_POD,
    Action,
    ClusterEvent,
)
from mooring.framework.plugin import QueueSort
from mooring.framework.results import NOTHING_DECLINED, QueuedPod
from mooring.framework.status import Status
from mooring.observe.metrics import Metrics
from mooring.queue._gauges import publish_flights
from mooring.queue.active import order_by
from mooring.queue.backoff import has_rejectors
from mooring.queue.hints import Hints, Registration, Requeue
from mooring.queue.inflight import InFlight, ObservedEvent
from mooring.queue.nominator import NominatedPods
from mooring.queue.options import QueueOptions
from mooring.queue.sub_queues import QueueName, SubQueues
from mooring.queue.updates import pod_update_events

log = logging.getLogger(__name__)

_ADDED: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD).label
_UPDATED: Final = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE).label
_ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
_PUT_BACK: Final = "PluginOverrun"
_BACKOFF_COMPLETE: Final = "BackoffComplete"
_POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
_FORCE_ACTIVATE: Final = ClusterEvent(ANY_RESOURCE, Action.ALL, "ForceActivate")
_TIMEOUT: Final = ClusterEvent(ANY_RESOURCE, Action.ALL, "UnschedulableTimeout")
_ASSIGNED_POD_DELETED: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)
_DEFAULTS: Final = QueueOptions()
_DESCRIPTIONS: Final[Mapping[QueueName, str]] = {
    "active": "the active queue",
    "backoff": "the backoff queue",
    "unschedulable": "unschedulable queue",
    "gated": "unschedulable queue",
}


class SchedulingQueue:
    """All pods that wait for a node, of every profile.

    `gate(pod, first)` runs the PreEnqueue plugins of the pod's profile, the one named `first`
    before the others, and never raises. `shut` gives the uids of pods that the gate would refuse,
    as far as that is known: events skip them. `on_ready` is called when a pod has become ready for
    `pop`, `on_gated` when one is gated: once for each plugin until the pod is let in.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        sort: QueueSort,
        gate: Callable[[Pod, str], Status],
        shut: Callable[[], AbstractSet[str]] = frozenset,
        registrations: Mapping[str, Sequence[Registration]],
        options: QueueOptions = _DEFAULTS,
        metrics: Metrics | None = None,
        on_ready: Callable[[], None] = lambda: None,
        on_gated: Callable[[Pod, Status], None] = lambda pod, status: None,
    ) -> None:
        self.nominator: NominatedPods = NominatedPods()
        self.in_flight: InFlight = InFlight()
        self._now = now
        self._options = options
        self._shut = shut
        self._on_ready = on_ready
        metrics = metrics or Metrics()
        self._hints = Hints(registrations, metrics, now=now)
        self._sub_queues = SubQueues(
            order=order_by(sort), gate=gate, options=options, metrics=metrics, on_gated=on_gated
        )
        metrics.before_scrape(self._sub_queues.publish)
        metrics.before_scrape(lambda: publish_flights(metrics, self.in_flight))

    # Reading

    def __len__(self) -> int:
        return len(self._sub_queues)

    def __contains__(self, key: object) -> bool:
        return key in self._sub_queues

    def holds(self, pod: Pod) -> bool:
        """Whether this pod, by uid, is in a queue."""
        held = self._sub_queues.find(pod.key)
        return held is not None and held.pod.uid == pod.uid

    def find(self, key: str) -> QueuedPod | None:
        """The pod "namespace/name" with its history; None also while it is in flight."""
        return self._sub_queues.find(key)

    def where(self, key: str) -> QueueName | None:
        """The queue of the pod "namespace/name"; None if there is none, as while in flight."""
        return self._sub_queues.where(key)

    def gate_of(self, key: str) -> Status:
        """Why the pod "namespace/name" is gated; OK if it is not."""
        return self._sub_queues.gate_of(key)

    def pending(self) -> dict[str, list[Pod]]:
        """Every waiting pod by queue, each queue in its own order."""
        return self._sub_queues.pending()

    def next_try(self, queued: QueuedPod) -> float | None:
        """When a pod is tried again at the latest; None if it is ready."""
        if queued.pod.key in self._sub_queues.active:
            return None
        if queued.pod.key in self._sub_queues.backoff:
            return self._sub_queues.backoff.expiry(queued) + 1
        return queued.timestamp + self._options.max_in_unschedulable

    def ahead_of(self, key: str) -> int | None:
        """How many ready pods come before this one; None if it is not ready, or they are many."""
        return self._sub_queues.active.ahead_of(key)

    def wakes_on(self, queued: QueuedPod) -> list[Registration]:
        """The events that may wake a pod."""
        return list(self._hints.wakes_on(queued))

    def listed(self) -> dict[QueueName, list[QueuedPod]]:
        """Every waiting pod with its history by queue, in no order: cheaper than `pending`."""
        return self._sub_queues.listed()

    def sizes(self) -> dict[str, int]:
        """The number of waiting pods by queue."""
        return self._sub_queues.sizes()

    # Changes seen by the watch

    def add(self, pod: Pod) -> None:
        """Add a pod without a node."""
        held = self._sub_queues.find(pod.key)
        if held is not None and held.pod.uid == pod.uid:
            self.update(held.pod, pod)
            return
        if held is not None:
            self._discard(held)
        self._enter(pod, _ADDED)
        self._settle()

    def update(self, old: Pod | None, new: Pod) -> None:
        """Update a pod without a node."""
        if old is not None and old.uid != new.uid:
            self.delete(old)
            self.add(new)
            return
        if old is not None and _is_same_version(old, new):
            return
        held = self._sub_queues.find(new.key)
        is_held = held is not None and held.pod.uid == new.uid
        if new.uid in self.in_flight:
            for event in pod_update_events(old or self.in_flight[new.uid], new):
                self.in_flight.record(event, old, new)
        elif not is_held:
            if held is not None:
                self._discard(held)
            self._enter(new, _UPDATED)
        if held is not None and is_held:
            self._replace(held, old or held.pod, new)
        if old is not None and old.nominated_node_name not in ("", new.nominated_node_name):
            self._release_nomination(old)
        self._settle()

    def delete(self, pod: Pod, *, bound: bool = False) -> None:
        """Remove a deleted or `bound` pod; if it is bound, its nomination frees no node."""
        ends = not (bound or pod.node_name)
        was_nominated = ends and (pod.nominated_node_name or self.nominator.node_of(pod.uid))
        self.nominator.delete(pod)
        held = self._sub_queues.find(pod.key)
        if held is not None and held.pod.uid == pod.uid:
            self._discard(held)
        if was_nominated:
            self._release_nomination(pod)
        self._settle()

    # One attempt

    def pop(self) -> QueuedPod | None:
        """The next pod to try, in flight from now on; None if nothing is ready."""
        while (queued := self._sub_queues.take_next(_POP_FROM_BACKOFF)) is not None:
            if self.in_flight.start(queued.pod):
                queued.attempts += 1
                break
            log.error(
                "the same pod is tracked in multiple places in the scheduler; discarding it",
                extra={"pod": queued.pod.key, "uid": queued.pod.uid},
            )
        self._settle()
        return queued

    def add_unschedulable(self, queued: QueuedPod, penalty: float = 0.0) -> None:
        """Return a pod after a failed attempt, with its rejectors; without any after an error.

        The pod is no longer in flight: if an event during the attempt may help it, it is retried
        without waiting for another one. A `penalty`, in seconds, replaces the backoff after errors.
        """
        key, uid = queued.pod.key, queued.pod.uid
        observed_events = self.in_flight.since(uid)
        self.in_flight.done(uid)
        held_in = self._sub_queues.where(key)
        if held_in is not None:
            log.error(
                "Pod %s is already present in %s", key, _DESCRIPTIONS[held_in], extra={"pod": key}
            )
            return
        queued.timestamp = self._now()
        queued.backoff_until = None
        queued.was_flushed = False
        queued.gated_by = ""
        queued.declined = NOTHING_DECLINED
        if has_rejectors(queued):
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        if penalty and not has_rejectors(queued):
            queued.backoff_until = math.floor(queued.timestamp + penalty)
        requeue = self._requeue_after_attempt(queued, observed_events)
        self._sub_queues.readmit(queued, requeue, _ATTEMPT_FAILED, queued.timestamp)
        self._settle()

    def put_back(self, queued: QueuedPod, seconds: float) -> None:
        """Return a pod that was not tried: it waits in backoff, or until `activate`."""
        self.in_flight.done(queued.pod.uid)
        queued.attempts -= 1
        queued.backoff_until = math.floor(self._now() + seconds)
        self._place(queued, Requeue.AFTER_BACKOFF, _PUT_BACK)
        self._settle()

    def take_back(self, pod: Pod) -> QueuedPod | None:
        """Take a pod out of backoff, as `pop` does; None if it is not in backoff."""
        queued = self._sub_queues.backoff.get(pod.key)
        if queued is None or queued.pod.uid != pod.uid or not self.in_flight.start(queued.pod):
            return None
        self._sub_queues.backoff.remove(pod.key)
        queued.backoff_until = None
        queued.attempts += 1
        return queued

    def done(self, uid: str) -> None:
        """End the attempt of a pod that does not return to the queue."""
        self.in_flight.done(uid)

    # Moving pods

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        precheck: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Handle an event: retry the pods it may help, of those that `precheck` accepts."""
        if event.is_wildcard:
            candidates = list(self._sub_queues.unschedulable)
        else:
            plugins = self._hints.plugins_for(event)
            if not plugins:
                return
            candidates = self._sub_queues.unschedulable.concerned(plugins, self._shut)
        if precheck is not None:
            candidates = [queued for queued in candidates if precheck(queued.pod)]
        if candidates:
            self._wake(candidates, ObservedEvent(event, old, new))
            self._settle()
        self.in_flight.record(event, old, new)

    def activate(self, pod_keys: Iterable[str]) -> None:
        """Make these pods active now; a pod in flight is retried if its attempt fails."""
        for key in pod_keys:
            if (queued := self._sub_queues.backoff.remove(key)) is not None:
                self._sub_queues.make_active(queued, _FORCE_ACTIVATE.label, self._now())
            elif (queued := self._sub_queues.unschedulable.get(key)) is not None:
                self._place(queued, Requeue.IMMEDIATELY, _FORCE_ACTIVATE.label)
            elif (pod := self.in_flight.find(key)) is not None:
                self.in_flight.record(_FORCE_ACTIVATE, None, pod)
        self._settle()

    def flush_backoff(self) -> None:
        """Make pods active whose backoff has ended. To be called at every whole second."""
        now = self._now()
        for queued in self._sub_queues.backoff.pop_completed(now):
            self._sub_queues.make_active(queued, _BACKOFF_COMPLETE, now)
        self._settle()

    def flush_unschedulable(self) -> None:
        """Retry pods that have waited too long for an event. To be called every 30 s."""
        now, patience = self._now(), self._options.max_in_unschedulable
        stale = [q for q in self._sub_queues.unschedulable if now - q.timestamp > patience]
        if not stale:
            return
        for queued in stale:
            queued.was_flushed = not queued.gated_by
        self._wake(stale, ObservedEvent(_TIMEOUT, None, None))
        self.in_flight.record(_TIMEOUT, None, None)
        self._settle()

    # Inside

    def _enter(self, pod: Pod, label: str) -> None:
        self._place(QueuedPod(pod, self._now()), Requeue.IMMEDIATELY, label)
        if pod.key in self._sub_queues.active:
            self.nominator.nominate(pod, None)

    def _replace(self, held: QueuedPod, old: Pod, new: Pod) -> None:
        held.pod = new
        self.nominator.update(old, new)
        if new.key in self._sub_queues.active:
            self._sub_queues.active.replace(held)
            return
        if new.key in self._sub_queues.backoff:
            self._sub_queues.backoff.replace(held)
            return
        for event in pod_update_events(old, new):
            requeue = self._hints.requeue_for(held, ObservedEvent(event, old, new))
            if requeue is not Requeue.SKIP:
                self._place(held, requeue, event.label)
                if new.key not in self._sub_queues.unschedulable:
                    return

    def _discard(self, held: QueuedPod) -> None:
        self._sub_queues.remove(held)
        self.nominator.delete(held.pod)

    def _release_nomination(self, pod: Pod) -> None:
        """A nomination ends: other pods are woken as if the pod had been deleted from the node."""
        self.move_all(
            _ASSIGNED_POD_DELETED,
            pod,
            None,
            lambda other: other.uid != pod.uid and other.priority <= pod.priority,
        )

    def _requeue_after_attempt(
        self, queued: QueuedPod, observed_events: Sequence[ObservedEvent] | None
    ) -> Requeue:
        if not has_rejectors(queued):
            return Requeue.AFTER_BACKOFF
        if observed_events is None:
            # The missed events are unknown, and one of them may have helped.
            log.error("pod came back without being in flight", extra={"pod": queued.pod.key})
            return Requeue.AFTER_BACKOFF
        return self._hints.requeue_for_any(queued, observed_events)

    def _wake(self, candidates: Sequence[QueuedPod], observed: ObservedEvent) -> None:
        event = observed.event
        label = event.label  # read once, because it is computed each time
        for queued in candidates:
            if queued.gated_by and not self._hints.concerns_gate(queued, event):
                continue
            requeue = self._hints.requeue_for(queued, observed)
            if requeue is not Requeue.SKIP:
                self._place(queued, requeue, label)

    def _place(self, queued: QueuedPod, requeue: Requeue, label: str) -> None:
        self._sub_queues.place(queued, requeue, label, self._now())

    def _settle(self) -> None:
        """The last step of every method that moves pods: report pods that became ready."""
        if self._sub_queues.has_ready_pods:
            self._sub_queues.has_ready_pods = False
            self._on_ready()


def _is_same_version(old: Pod, new: Pod) -> bool:
    """Whether an update only repeats a version; without a resourceVersion, never."""
    version = new.api.metadata.resource_version
    return bool(version) and version == old.api.metadata.resource_version
