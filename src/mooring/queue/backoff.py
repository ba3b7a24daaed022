"""The backoff queue: pods whose attempt failed wait before they are tried again.

Refused pods and pods whose attempt ended in an error are kept apart: if nothing else is ready, the
queue may take a refused pod early, but none after an error. Expiries are whole seconds, so that
pods that fail within the same second are ordered by the QueueSort plugin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mooring.framework.results import QueuedPod
from mooring.queue._heap import NamedHeap
from mooring.queue.active import Order
from mooring.queue.options import QueueOptions


def has_rejectors(queued: QueuedPod) -> bool:
    """Whether a plugin refused the pod; if not, its last attempt ended in an error."""
    return bool(queued.unschedulable_plugins or queued.pending_plugins)


def backoff_duration(queued: QueuedPod, options: QueueOptions) -> float:
    """1, 2, 4, 8, 10, 10 … seconds by default; consecutive errors are counted separately."""
    count = queued.consecutive_errors or queued.unschedulable_count
    if count == 0:
        return 0.0
    # Compared before doubling: after many failures a float would overflow.
    if options.initial_backoff > math.ldexp(options.max_backoff, 1 - count):
        return options.max_backoff
    return math.ldexp(options.initial_backoff, count - 1)


class BackoffQueue:
    """Two heaps by expiry: refused pods (ties by QueueSort) and pods after an error."""

    __slots__ = ("_errors", "_options", "_refused")

    def __init__(self, order: Order, options: QueueOptions) -> None:
        self._options = options
        self._refused: NamedHeap[QueuedPod] = NamedHeap(lambda q: (self.expiry(q), order(q)))
        self._errors: NamedHeap[QueuedPod] = NamedHeap(self.expiry)

    def __len__(self) -> int:
        return len(self._refused) + len(self._errors)

    def __contains__(self, key: object) -> bool:
        return key in self._refused or key in self._errors

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._errors

    def items(self) -> list[QueuedPod]:
        """All, in no order."""
        return [*self._refused.items(), *self._errors.items()]

    def get(self, key: str) -> QueuedPod | None:
        return self._refused.get(key) or self._errors.get(key)

    def expiry(self, queued: QueuedPod) -> float:
        """The second in which the backoff of the pod ends; computed once per failure."""
        if queued.backoff_until is None:
            duration = backoff_duration(queued, self._options)
            if duration == 0:
                return 0.0
            queued.backoff_until = float(math.floor(queued.timestamp + duration))
        return queued.backoff_until

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        if queued.backoff_until is None and backoff_duration(queued, self._options) == 0:
            return False
        return self.expiry(queued) >= math.floor(now)

    def add(self, queued: QueuedPod) -> None:
        heap = self._refused if has_rejectors(queued) else self._errors
        heap.put(queued.pod.key, queued)

    def replace(self, queued: QueuedPod) -> None:
        """Sort a changed pod in again, in its heap."""
        heap = self._refused if queued.pod.key in self._refused else self._errors
        heap.put(queued.pod.key, queued)

    def remove(self, key: str) -> QueuedPod | None:
        return self._refused.remove(key) or self._errors.remove(key)

    def pop_refused(self) -> QueuedPod | None:
        """Take out the refused pod whose backoff ends first, even if it has not ended."""
        return self._refused.pop()

    def pop_completed(self, now: float) -> Iterator[QueuedPod]:
        """Take out every pod whose backoff has ended."""
        for heap in (self._refused, self._errors):
            while (head := heap.peek()) is not None and not self.is_backing_off(head, now):
                heap.pop()
                yield head
