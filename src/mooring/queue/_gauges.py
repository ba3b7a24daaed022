"""The queue's metrics, with kube-scheduler's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from mooring.framework.results import QueuedPod
from mooring.observe.metrics import Metrics
from mooring.queue.inflight import InFlight

_POPPED: Final = "PodPopped"


class QueueGauges:
    """Counts pods that arrive in each queue, wait in each queue, and are refused by each plugin."""

    __slots__ = ("_metrics",)

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def pending(self, counts: Mapping[str, int]) -> None:
        for queue, count in counts.items():
            self._metrics.pending_pods.labels(queue).set(count)

    def incoming(self, queue: str, label: str) -> None:
        self._metrics.queue_incoming.labels(queue, label).add()

    def refused(self, queued: QueuedPod, plugins: Iterable[str]) -> None:
        """Count a pod for these plugins, which refused it."""
        for plugin in plugins:
            self._metrics.unschedulable_pods.labels(plugin, queued.pod.scheduler_name).add()

    def released(self, queued: QueuedPod) -> None:
        """Stop counting a pod that leaves the queue: its rejectors are cleared."""
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            self._metrics.unschedulable_pods.labels(plugin, queued.pod.scheduler_name).add(-1.0)


def publish_flights(metrics: Metrics, flights: InFlight) -> None:
    """Pods in flight and the events remembered for them; counted at each scrape."""
    held = Counter({_POPPED: len(flights)})
    for event, count in flights.held().items():
        held[event.label] += count
    for (label,), child in metrics.inflight_events:
        child.set(held.pop(label, 0))
    for label, count in held.items():
        metrics.inflight_events.labels(label).set(count)
