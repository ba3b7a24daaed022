"""Backoff of preemptors whose evictions did not help.

A preemptor makes room, another scheduler or a controller that recreates the victims takes it, and
the preemptor makes room again: two schedulers have been seen to evict pods thousands of times that
way. After a few evictions without effect a preemptor waits, longer each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_FREE: Final = 3  # evictions without a pause
_FIRST_PAUSE: Final = 30.0  # seconds
_LONGEST_PAUSE: Final = 600.0
_REMEMBERED: Final = 4096  # preemptors; the oldest is forgotten first


class PreemptionBackoff:
    """Counts the evictions of each preemptor that was still not bound afterwards."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._evictions: OrderedDict[str, tuple[int, float]] = OrderedDict()  # uid: count, last

    def pause(self, uid: str) -> float:
        """Seconds until this pod may preempt again; 0 if it may now."""
        count, last = self._evictions.get(uid, (0, 0.0))
        if count < _FREE:
            return 0.0
        length = min(_FIRST_PAUSE * 2.0 ** (count - _FREE), _LONGEST_PAUSE)
        return max(0.0, last + length - self._now())

    def evicted(self, uid: str) -> int:
        """Count a preemption; returns the number so far."""
        count = self._evictions.pop(uid, (0, 0.0))[0] + 1
        self._evictions[uid] = count, self._now()
        if len(self._evictions) > _REMEMBERED:
            self._evictions.popitem(last=False)
        return count

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound or deleted."""
        self._evictions.pop(uid, None)
