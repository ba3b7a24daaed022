"""Rate limits and backoff: how often requests are sent, and how soon what failed is tried again.

The rate of requests is that of `clientConnection.qps` and `.burst`. When tokens are short, a bind
overtakes a status patch, and both overtake Events; requests of equal priority are sent in order.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
import math
import random
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_MOST_DOUBLINGS: Final = 64  # beyond, only the number grows


class Backoff(Generic[K]):
    """Seconds that double with every failure of a key, from `first` to `longest`.

    Up to `jitter` of them is taken off at random, so that what failed together is not tried again
    together. A key that did not fail for `forget_after` seconds begins with `first` again. The
    defaults are those of client-go's controllers.
    """

    def __init__(
        self,
        first: float = 0.005,
        longest: float = 1000.0,
        *,
        jitter: float = 0.2,
        forget_after: float = math.inf,
        rng: random.Random | None = None,
    ) -> None:
        if not 0 < first <= longest:
            raise ValueError(f"expected 0 < first <= longest, got {first:g} and {longest:g} s")
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter: expected a share from 0 to below 1, got {jitter:g}")
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._forget_after = forget_after
        self._rng = rng or random.Random()
        self._known: dict[K, tuple[int, float]] = {}  # failures, and when the last wait ends

    def next(self, key: K, now: float = 0.0, *, longest: float = math.inf) -> float:
        """How long to wait after another failure of this key, and `longest` at most this time.

        `now` is needed only with `forget_after`.
        """
        failures, until = self._known.get(key, (0, now))
        if now - until >= self._forget_after:
            failures = 0
        whole = self._first * 2.0 ** min(failures, _MOST_DOUBLINGS)
        pause = min(whole, self._longest, longest) * self._rng.uniform(1.0 - self._jitter, 1.0)
        self._known[key] = failures + 1, now + pause
        return pause

    def forget(self, key: K) -> None:
        """The next failure of this key is the first one again."""
        self._known.pop(key, None)

    def failures(self, key: K) -> int:
        return self._known.get(key, (0, 0.0))[0]


class TokenBucket:
    """At most `burst` at once and `rate` a second on average; a rate of 0 means no limit."""

    def __init__(self, rate: float = 10.0, burst: int = 100) -> None:
        self._rate = rate
        self._burst = float(max(burst, 1))
        self._tokens = self._burst
        self._filled_at: float | None = None

    def take(self) -> bool:
        if self._rate <= 0:
            return True
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self) -> float:
        """Take the next token in advance; the seconds until it is there."""
        if self._rate <= 0:
            return 0.0
        self._fill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def give_back(self) -> None:
        """Return a token that was not used."""
        self._tokens = min(self._tokens + 1, self._burst)

    @property
    def next_in(self) -> float:
        """Seconds until there is a token, as of the last call."""
        return (1 - self._tokens) / self._rate

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now


class RequestPriority(enum.IntEnum):
    """The order in which waiting requests are sent."""

    BIND = 0
    WRITE = 1
    EVENT = 2


class RateLimiter:
    """At most `burst` requests at once and `qps` a second on average; qps <= 0 means no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._bucket = TokenBucket(qps, burst)
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, priority: RequestPriority = RequestPriority.WRITE) -> None:
        if not self._waiting and self._bucket.take():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (int(priority), next(self._order), waiter))
        self._serve()
        await waiter

    def give_back(self) -> None:
        """The request was not sent: another may be in its place."""
        self._bucket.give_back()
        self._serve()

    def _serve(self) -> None:
        """Hand out the tokens there are; call again when there will be another."""
        # A waiter that was cancelled needs no token.
        while self._waiting and (self._waiting[0][2].done() or self._bucket.take()):
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(self._bucket.next_in, 0.001), self._serve)


class WritesInProgress:
    """Counts binds, evictions and status patches under way; Events wait for them, for a while."""

    def __init__(self) -> None:
        self._count = 0
        self._on_none: list[Callable[[], None]] = []

    @property
    def any(self) -> bool:
        return self._count > 0

    def begin(self) -> None:
        self._count += 1

    def end(self) -> None:
        self._count -= 1
        if not self._count:
            for call in self._on_none:
                call()

    def on_none(self, call: Callable[[], None]) -> None:
        """Call this each time that none is under way any more."""
        self._on_none.append(call)
