"""The active, backoff and unschedulable queues, and the gate (PreEnqueue) in front of them.

`queue.py` decides what happens to a pod, and this module does it: it keeps a pod in exactly one
sub-queue, runs the gate before, and updates the metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from mooring.cache.pods import Pod
from mooring.framework.results import QueuedPod
from mooring.framework.status import OK, Code, Status
from mooring.observe.metrics import Metrics
from mooring.queue._gauges import QueueGauges
from mooring.queue.active import ActiveQueue, Order
from mooring.queue.backoff import BackoffQueue, has_rejectors
from mooring.queue.hints import Requeue
from mooring.queue.options import QueueOptions
from mooring.queue.unschedulable import UnschedulablePods

log = logging.getLogger(__name__)

QueueName = Literal["active", "backoff", "unschedulable", "gated"]


class _Gate(NamedTuple):
    """The last refusal of a gated pod, and the plugins reported since it was let in last."""

    status: Status
    reported: frozenset[str]


_OPEN: Final = _Gate(OK, frozenset())


class SubQueues:
    """Active, backoff and unschedulable as one; names are "namespace/name".

    `has_ready_pods` is set when a pod has become ready; the caller that reports it resets it.
    """

    def __init__(
        self,
        *,
        order: Order,
        gate: Callable[[Pod, str], Status],
        options: QueueOptions,
        metrics: Metrics,
        on_gated: Callable[[Pod, Status], None],
    ) -> None:
        self.active: ActiveQueue = ActiveQueue(order)
        self.backoff: BackoffQueue = BackoffQueue(order, options)
        self.unschedulable: UnschedulablePods = UnschedulablePods()
        self.has_ready_pods: bool = False
        self._gate = gate
        self._on_gated = on_gated
        self._gated: dict[str, _Gate] = {}
        self._gauges = QueueGauges(metrics)

    def __len__(self) -> int:
        return len(self.active) + len(self.backoff) + len(self.unschedulable)

    def __contains__(self, key: object) -> bool:
        return key in self.active or key in self.backoff or key in self.unschedulable

    def find(self, key: str) -> QueuedPod | None:
        return self.active.get(key) or self.backoff.get(key) or self.unschedulable.get(key)

    def where(self, key: str) -> QueueName | None:
        if key in self.active:
            return "active"
        if key in self.backoff:
            return "backoff"
        queued = self.unschedulable.get(key)
        if queued is None:
            return None
        return "gated" if queued.gated_by else "unschedulable"

    def pending(self) -> dict[str, list[Pod]]:
        return {
            "active": [queued.pod for queued in self.active],
            "backoff": [queued.pod for queued in self.backoff],
            "unschedulable": [q.pod for q in self.unschedulable if not q.gated_by],
            "gated": [q.pod for q in self.unschedulable if q.gated_by],
        }

    def listed(self) -> dict[QueueName, list[QueuedPod]]:
        return {
            "active": self.active.items(),
            "backoff": self.backoff.items(),
            "unschedulable": [queued for queued in self.unschedulable if not queued.gated_by],
            "gated": [queued for queued in self.unschedulable if queued.gated_by],
        }

    def sizes(self) -> dict[str, int]:
        """How many pods are in each."""
        gated = self.unschedulable.gated_count
        return {
            "active": len(self.active),
            "backoff": len(self.backoff),
            "unschedulable": len(self.unschedulable) - gated,
            "gated": gated,
        }

    def gate_of(self, key: str) -> Status:
        """Why a pod is gated; OK if it is not."""
        return self._gated.get(key, _OPEN).status

    def take_next(self, label: str) -> QueuedPod | None:
        """The next pod, without its rejectors; `label` is counted if its backoff was cut short."""
        queued = self.active.pop()
        if queued is None:
            queued = self.backoff.pop_refused()
            if queued is None:
                return None
            self._arrived("active", queued, label)
        if has_rejectors(queued):
            self._gauges.released(queued)
            queued.unschedulable_plugins = queued.pending_plugins = frozenset()
        queued.backoff_until = None
        return queued

    def remove(self, queued: QueuedPod) -> None:
        """Take the pod out for good."""
        key = queued.pod.key
        _ = self.active.remove(key) or self.backoff.remove(key) or self.unschedulable.remove(key)
        self._gated.pop(key, None)
        self._gauges.released(queued)

    def readmit(self, queued: QueuedPod, requeue: Requeue, label: str, now: float) -> None:
        """As `place`, after a failed attempt: the rejectors are counted from now on."""
        self._gauges.refused(queued, queued.unschedulable_plugins | queued.pending_plugins)
        self.place(queued, requeue, label, now)

    def place(self, queued: QueuedPod, requeue: Requeue, label: str, now: float) -> None:
        """Put a pod that is in no sub-queue, or in unschedulable, into its sub-queue."""
        queued.woken_by = label
        # Removed first, because the gate changes the plugins by which the pod is indexed.
        was_inside = self.unschedulable.remove(queued.pod.key) is not None
        if requeue is Requeue.SKIP or not self._passes_gate(queued):
            self.unschedulable.add(queued)
            if not was_inside:
                self._arrived("unschedulable", queued, label)
        elif requeue is Requeue.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now):
            self.backoff.add(queued)
            self._arrived("backoff", queued, label)
            self.has_ready_pods |= has_rejectors(queued)
        else:
            self.make_active(queued, label, now)

    def make_active(self, queued: QueuedPod, label: str, now: float) -> None:
        """Make a pod active that is in no sub-queue and has passed the gate."""
        self.active.add(queued, now)
        self._arrived("active", queued, label)
        self.has_ready_pods = True

    def publish(self) -> None:
        """Set the gauges of pending pods; called at each scrape."""
        self._gauges.pending(self.sizes())

    def _passes_gate(self, queued: QueuedPod) -> bool:
        status = self._gate(queued.pod, queued.gated_by)
        if status.ok:
            if queued.gated_by:
                queued.gated_by = ""
                self._gated.pop(queued.pod.key, None)
            return True
        plugin = status.plugin
        log.debug(
            "Status after running PreEnqueue plugin",
            extra={"pod": queued.pod.key, "plugin": plugin, "status": status.message},
        )
        if status.code is Code.ERROR:
            log.error(
                "Unexpected error running PreEnqueue plugin",
                extra={"plugin": plugin, "pod": queued.pod.key, "error": status.message},
            )
        if plugin not in queued.unschedulable_plugins | queued.pending_plugins:
            self._gauges.refused(queued, (plugin,))
        queued.unschedulable_plugins |= {plugin}
        queued.gated_by = plugin
        reported = self._gated.get(queued.pod.key, _OPEN).reported
        self._gated[queued.pod.key] = _Gate(status, reported | {plugin})
        if plugin not in reported:
            self._on_gated(queued.pod, status)
        return False

    def _arrived(self, queue: str, queued: QueuedPod, label: str) -> None:
        self._gauges.incoming(queue, label)
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "Pod moved to an internal scheduling queue",
                extra={"pod": queued.pod.key, "event": label, "queue": queue.capitalize()},
            )
