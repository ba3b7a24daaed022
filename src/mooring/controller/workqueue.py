"""A work queue of keys: each key once, with one worker at a time, perhaps after a delay.

    add ──────────────▶ ready ──get──▶ being worked on ──done──▶ (gone)
    add_after ─ time ─────▲                  │ add             │
                          └───── done ◀── to be worked on again

The guarantees are those of client-go's queue. A key that is added while it is ready is there once;
one that is added while a worker has it is ready again, once, after `done`. So whatever changes
after `get` is seen by a later `get`, and no two workers have one key.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict, deque
from typing import Final, Generic

from mooring.client.flowcontrol import Backoff, K, TokenBucket
from mooring.controller.metrics import ControllerMetrics

_RESOLUTION: Final = 1e-6  # seconds; a loop may call a little early


class WorkQueue(Generic[K]):
    """For one event loop; everything but `get` is a plain call, so that informers may make it.

    while (key := await queue.get()) is not None:
        try:
            ...
            queue.forget(key)
        except ApiError:
            queue.add_rate_limited(key)
        finally:
            queue.done(key)
    """

    def __init__(
        self,
        name: str = "",
        *,
        backoff: Backoff[K] | None = None,
        rate: TokenBucket | None = None,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        self.name: str = name
        self._backoff: Backoff[K] = backoff or Backoff()
        self._rate = rate or TokenBucket()
        self._ready: OrderedDict[K, float] = OrderedDict()  # since when
        self._working: dict[K, float] = {}  # since when
        self._again: set[K] = set()  # those of `_working` that were added meanwhile
        self._due: dict[K, float] = {}  # when a key will be added
        self._delayed: list[tuple[float, int, K]] = []  # a heap; only what `_due` says counts
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._is_shut = False
        self._loop: asyncio.AbstractEventLoop | None = None

        self._metrics = metrics or ControllerMetrics()
        self._depth = self._metrics.queue_depth.labels(name)
        self._adds = self._metrics.queue_adds.labels(name)
        self._waits = self._metrics.queue_wait.labels(name)
        self._works = self._metrics.queue_work.labels(name)
        self._retries = self._metrics.queue_retries.labels(name)
        self._metrics.before_scrape(self._measure)

    def __len__(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    @property
    def is_shut(self) -> bool:
        return self._is_shut

    def add(self, key: K) -> None:
        """Make this key ready; if a worker has it, again after `done`."""
        if self._is_shut or key in self._ready or key in self._again:
            return
        self._adds.add()
        if key in self._working:
            self._again.add(key)
        else:
            self._make_ready(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add this key later; of several times the earliest counts."""
        if self._is_shut:
            return
        if seconds <= 0:
            self.add(key)
            return
        when = self._now() + seconds
        if when < self._due.get(key, when + 1.0):
            self._due[key] = when
            heapq.heappush(self._delayed, (when, next(self._order), key))
            self._set_timer()

    def add_rate_limited(self, key: K) -> None:
        """Add this key after its backoff, and when the rate of retries allows it."""
        if self._is_shut:
            return
        self._retries.add()
        self.add_after(key, max(self._backoff.next(key), self._rate.reserve()))

    def forget(self, key: K) -> None:
        """Reset the backoff of this key. Does not remove it from the queue."""
        self._backoff.forget(key)

    def retries(self, key: K) -> int:
        """How often a key was rate limited since it was last forgotten."""
        return self._backoff.failures(key)

    async def get(self) -> K | None:
        """The next key, for this caller alone until it calls `done`; None after `shutdown`."""
        while not self._ready:
            if self._is_shut:
                return None
            getter = self._running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter in self._getters:
                    self._getters.remove(getter)
                elif self._ready:  # woken, so another getter must be
                    self._call_getter()
                raise
        key, since = self._ready.popitem(last=False)
        now = self._now()
        self._working[key] = now
        self._depth.set(len(self._ready))
        self._waits.observe(now - since)
        return key

    def done(self, key: K) -> None:
        """The worker is finished with this key."""
        since = self._working.pop(key, None)
        if since is None:
            raise ValueError(f"queue {self.name!r}: {key!r} is done, but no worker has it")
        self._works.observe(self._now() - since)
        if key in self._again:
            self._again.remove(key)
            self._make_ready(key)

    def shutdown(self, *, drop: bool = False) -> None:
        """Accept no more keys, and hand out those that are ready, or with `drop` none.

        Delayed keys are dropped, and waiting calls of `get` return.
        """
        self._is_shut = True
        self._due.clear()
        self._delayed.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if drop:
            self._ready.clear()
            self._again.clear()
            self._depth.set(0)
        while self._getters:
            self._call_getter()

    def _make_ready(self, key: K) -> None:
        self._ready[key] = self._now()
        self._depth.set(len(self._ready))
        self._call_getter()

    def _call_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self) -> None:
        when = self._delayed[0][0]
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._running_loop().call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        due = self._now() + _RESOLUTION
        while self._delayed and self._delayed[0][0] <= due:
            when, _, key = heapq.heappop(self._delayed)
            if self._due.get(key) == when:  # else it was wanted sooner
                del self._due[key]
                self.add(key)
        if self._delayed:
            self._set_timer()

    def _now(self) -> float:
        return self._running_loop().time()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _measure(self) -> None:
        since = [self._now() - began for began in self._working.values()]
        self._metrics.queue_unfinished.labels(self.name).set(sum(since))
        self._metrics.queue_longest.labels(self.name).set(max(since, default=0.0))
