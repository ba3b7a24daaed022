"""The work queue of the built-in controllers.

A key that is added many times is reconciled once. Failures are retried with backoff. Keys are
reconciled synchronously on the event loop, in small batches, so that other tasks get their turn.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from typing import Final, Protocol

from mooring.client.errors import StatusError
from mooring.client.flowcontrol import Backoff

log = logging.getLogger(__name__)

_BATCH: Final = 16  # keys per callback of the event loop
_FIRST_RETRY: Final = 0.005  # seconds before a failed key is retried, then doubled
_LAST_RETRY: Final = 10.0

Key = tuple[str, str]  # namespace and name; a controller may give them another meaning


class KeyReconciler(Protocol):
    """Reconciles one key."""

    def reconcile(self, key: Key) -> float | None:
        """Do what is to be done; the seconds until the next call, if one is needed."""
        ...


_Work = tuple[KeyReconciler, Key]


class FailedPodBackoff:
    """Delays the replacement of failed pods: longer after each failure.

    A pod that its node rejects fails at once; without a delay its controller would create pods in a
    tight loop.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first = first  # seconds
        self._longest = longest
        self._known: dict[tuple[str, str], tuple[str, int, float]] = {}  # failure, count, until

    def left(self, key: tuple[str, str], failure: str, now: float) -> float:
        """Seconds left to wait; `failure` differs for every failure."""
        last, count, until = self._known.get(key, ("", 0, now))
        if last != failure:
            if now - until > self._longest:  # no failure for long enough
                count = 0
            length = min(self._first * 2.0 ** min(count, 30), self._longest)
            until = now + length
            self._known[key] = failure, count + 1, until
        return max(until - now, 0.0)

    def forget(self, owner: str) -> None:
        """The owner is gone; keys begin with its uid."""
        for key in [key for key in self._known if key[0] == owner]:
            del self._known[key]


class ReconcileQueue:
    """Keys to reconcile."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.unexpected_errors: int = 0  # exceptions other than refusals
        self._loop = loop
        self._ready: dict[_Work, None] = {}  # in order
        self._later: dict[_Work, float] = {}  # when, on the loop's clock
        self._timers: list[tuple[float, int, _Work]] = []
        self._order = itertools.count()
        self._backoff: Backoff[_Work] = Backoff(_FIRST_RETRY, _LAST_RETRY, jitter=0.0)
        self._batch: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._ready) + len(self._later)

    def add(self, reconciler: KeyReconciler, key: Key, after: float = 0.0) -> None:
        """Reconcile a key soon, or after some seconds; the earlier of two calls counts."""
        work = (reconciler, key)
        if self._is_closed or work in self._ready:
            return
        if after <= 0.0:
            self._ready[work] = None
            self._later.pop(work, None)
            if self._batch is None:
                self._batch = self._loop.call_soon(self._run_batch)
            return
        when = self._loop.time() + after
        if when < self._later.get(work, when + 1.0):
            self._later[work] = when
            heapq.heappush(self._timers, (when, next(self._order), work))
            self._set_timer()

    def close(self) -> None:
        """Drop all keys."""
        self._is_closed = True
        self._ready.clear()
        self._later.clear()
        self._timers.clear()
        for handle in (self._batch, self._timer):
            if handle is not None:
                handle.cancel()

    def _set_timer(self) -> None:
        when = self._timers[0][0]
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._timers and self._timers[0][0] <= now:
            when, _, work = heapq.heappop(self._timers)
            if self._later.get(work) == when:  # else there is an earlier one
                self.add(*work)
        if self._timers:
            self._set_timer()

    def _run_batch(self) -> None:
        self._batch = None
        for _ in range(min(_BATCH, len(self._ready))):
            work = next(iter(self._ready))
            del self._ready[work]
            self._reconcile(work)
        if self._ready and self._batch is None and not self._is_closed:
            self._batch = self._loop.call_soon(self._run_batch)

    def _reconcile(self, work: _Work) -> None:
        reconciler, key = work
        try:
            again = reconciler.reconcile(key)
        except StatusError as error:
            extra = {
                "controller": type(reconciler).__name__,
                "key": "/".join(key),
                "error": str(error),
            }
            log.debug("a controller was refused, trying again", extra=extra)
            again = self._backoff.next(work)
        except Exception:  # one object must not block the others
            self.unexpected_errors += 1
            extra = {"controller": type(reconciler).__name__, "key": "/".join(key)}
            log.exception("a controller failed, trying again", extra=extra)
            again = self._backoff.next(work)
        else:
            self._backoff.forget(work)
        if again is not None:
            self.add(reconciler, key, again)
