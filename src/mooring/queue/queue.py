"""The scheduling queue: where a pod without a node is, and what moves it on.

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

A pod is in exactly one sub-queue. A name stands for one life of a pod: a new uid under an old name
is a new pod. Single-threaded and synchronous; callbacks must not call back into the queue.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from mooring.framework.results import QueuedPod
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
    before the others, and never raises. `on_ready` is called whenever `pop` has something new to
    give.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        sort: QueueSort,
        gate: Callable[[Pod, str], Status],
        registrations: Mapping[str, Sequence[Registration]],
        options: QueueOptions = _DEFAULTS,
        metrics: Metrics | None = None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.nominator: NominatedPods = NominatedPods()
        self.in_flight: InFlight = InFlight()
        self._now = now
        self._options = options
        self._on_ready = on_ready
        metrics = metrics or Metrics()
        self._hints = Hints(registrations, metrics)
        self._sub_queues = SubQueues(
            order=order_by(sort), gate=gate, options=options, metrics=metrics
        )
        metrics.before_scrape(self._sub_queues.publish)
        metrics.before_scrape(lambda: publish_flights(metrics, self.in_flight))

    # Looking

    def __len__(self) -> int:
        return len(self._sub_queues)

    def __contains__(self, key: object) -> bool:
        return key in self._sub_queues

    def holds(self, pod: Pod) -> bool:
        """Whether this very pod is in a queue."""
        held = self._sub_queues.find(pod.key)
        return held is not None and held.pod.uid == pod.uid

    def where(self, key: str) -> QueueName | None:
        """Which queue holds the pod "namespace/name"; None also while it is in flight."""
        return self._sub_queues.where(key)

    def pending(self) -> dict[str, list[Pod]]:
        """Every waiting pod by queue, each queue in its own order."""
        return self._sub_queues.pending()

    # What the watch sees

    def add(self, pod: Pod) -> None:
        """A pod without a node has appeared."""
        held = self._sub_queues.find(pod.key)
        if held is not None and held.pod.uid == pod.uid:
            self.update(held.pod, pod)
            return
        if held is not None:
            self._discard(held)
        self._enter(pod, _ADDED)
        self._settle()

    def update(self, old: Pod | None, new: Pod) -> None:
        """A pod without a node has changed."""
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
        if old is not None and old.nominated_node_name != new.nominated_node_name:
            self._release_nomination(old)
        self._settle()

    def delete(self, pod: Pod, *, bound: bool = False) -> None:
        """The pod is gone, or `bound`: then its nomination is fulfilled and frees nothing."""
        self.nominator.delete(pod)
        held = self._sub_queues.find(pod.key)
        if held is not None and held.pod.uid == pod.uid:
            self._discard(held)
        if not (bound or pod.node_name):
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
        """The attempt failed; the pod carries the plugins that refused it, or none after an error.

        Ends its flight: if something happened meanwhile that may help, it is retried without
        waiting for another event. With a `penalty`, in seconds, the backoff after an error is that.
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
        """The pod was not tried after all: it waits in backoff, or until `activate`."""
        self.in_flight.done(queued.pod.uid)
        queued.attempts -= 1
        queued.backoff_until = math.floor(self._now() + seconds)
        self._place(queued, Requeue.AFTER_BACKOFF, _PUT_BACK)
        self._settle()

    def take_back(self, pod: Pod) -> QueuedPod | None:
        """The pod out of backoff and in flight, as if by `pop`; None if it is not there."""
        queued = self._sub_queues.backoff.get(pod.key)
        if queued is None or queued.pod.uid != pod.uid or not self.in_flight.start(queued.pod):
            return None
        self._sub_queues.backoff.remove(pod.key)
        queued.backoff_until = None
        queued.attempts += 1
        return queued

    def done(self, uid: str) -> None:
        """The attempt is over and the pod will not come back."""
        self.in_flight.done(uid)

    # What moves pods on

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        precheck: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Something happened: retry the pods it may help, of those `precheck` lets through."""
        if event.is_wildcard:
            candidates = list(self._sub_queues.unschedulable)
        else:
            plugins = self._hints.plugins_for(event)
            if not plugins:
                return
            candidates = self._sub_queues.unschedulable.refused_by(plugins)
        if precheck is not None:
            candidates = [queued for queued in candidates if precheck(queued.pod)]
        if candidates:
            self._wake(candidates, ObservedEvent(event, old, new))
            self._settle()
        self.in_flight.record(event, old, new)

    def activate(self, pod_keys: Iterable[str]) -> None:
        """Make these pods ready now; one that is in flight is retried if its attempt fails."""
        for key in pod_keys:
            if (queued := self._sub_queues.backoff.remove(key)) is not None:
                self._sub_queues.make_active(queued, _FORCE_ACTIVATE.label, self._now())
            elif (queued := self._sub_queues.unschedulable.get(key)) is not None:
                self._place(queued, Requeue.IMMEDIATELY, _FORCE_ACTIVATE.label)
            elif (pod := self.in_flight.find(key)) is not None:
                self.in_flight.record(_FORCE_ACTIVATE, None, pod)
        self._settle()

    def flush_backoff(self) -> None:
        """Make the pods ready whose backoff is over. Call at every whole second."""
        now = self._now()
        for queued in self._sub_queues.backoff.pop_completed(now):
            self._sub_queues.make_active(queued, _BACKOFF_COMPLETE, now)
        self._settle()

    def flush_unschedulable(self) -> None:
        """Retry what has waited too long for an event that may never come. Call every 30 s."""
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
        """A node was kept free for this pod and is no longer: as if the pod had left it."""
        if pod.nominated_node_name:
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
            # Which events it missed is unknown; one of them may have helped.
            log.error("pod came back without being in flight", extra={"pod": queued.pod.key})
            return Requeue.AFTER_BACKOFF
        return self._hints.requeue_for_any(queued, observed_events)

    def _wake(self, candidates: Sequence[QueuedPod], observed: ObservedEvent) -> None:
        event = observed.event
        label = event.label  # once: it is spelled out anew each time
        for queued in candidates:
            if queued.gated_by and not self._hints.concerns_gate(queued, event):
                continue
            requeue = self._hints.requeue_for(queued, observed)
            if requeue is not Requeue.SKIP:
                self._place(queued, requeue, label)

    def _place(self, queued: QueuedPod, requeue: Requeue, label: str) -> None:
        self._sub_queues.place(queued, requeue, label, self._now())

    def _settle(self) -> None:
        """Last step of every method that moves pods: report that `pop` has something new."""
        if self._sub_queues.has_ready_pods:
            self._sub_queues.has_ready_pods = False
            self._on_ready()


def _is_same_version(old: Pod, new: Pod) -> bool:
    """A resync repeats what is known. Pods that no API server has numbered always differ."""
    version = new.api.metadata.resource_version
    return bool(version) and version == old.api.metadata.resource_version
