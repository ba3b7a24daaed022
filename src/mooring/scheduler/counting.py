"""The metrics of attempts; each is looked up at its first use and kept."""

from __future__ import annotations

from typing import Final

from mooring.framework.results import QueuedPod
from mooring.observe.family import Histogram, MetricValue
from mooring.observe.metrics import Metrics

_MANY_ATTEMPTS: Final = 15  # the largest label; pods with more attempts count here


class AttemptCounts:
    """The metrics of attempts and of the pods that are bound in the end."""

    def __init__(self, metrics: Metrics) -> None:
        self.decided: Histogram = metrics.algorithm_duration.labels()
        self.binding: MetricValue = metrics.goroutines.labels("binding")
        self._metrics = metrics
        self._attempts = metrics.pod_attempts.labels()
        self._after_flush = metrics.pod_scheduled_after_flush.labels()
        self._results: dict[tuple[str, str], tuple[MetricValue, Histogram]] = {}
        self._waits: dict[int, Histogram] = {}  # by attempts

    def ended(self, profile: str, result: str, took: float) -> None:
        """An attempt is over: scheduled, unschedulable or error."""
        known = self._results.get((profile, result))
        if known is None:
            count = self._metrics.schedule_attempts.labels(result, profile)
            duration = self._metrics.attempt_duration.labels(result, profile)
            known = self._results[profile, result] = (count, duration)
        known[0].add()
        known[1].observe(took)

    def bound(self, queued: QueuedPod, now: float) -> None:
        self._attempts.observe(queued.attempts)
        if queued.was_flushed:
            self._after_flush.add()
        if queued.first_attempt_at is not None:
            self._waited(queued.attempts).observe(now - queued.first_attempt_at)

    def _waited(self, attempts: int) -> Histogram:
        attempts = min(attempts, _MANY_ATTEMPTS)
        known = self._waits.get(attempts)
        if known is None:
            label = str(attempts) if attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
            known = self._waits[attempts] = self._metrics.pod_sli_duration.labels(label)
        return known
