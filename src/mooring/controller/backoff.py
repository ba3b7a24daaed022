"""When to try again: longer after each failure of one key, and not too many keys at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_MOST_DOUBLINGS: Final = 64  # beyond, only the number grows


class Backoff(Generic[K]):
    """Seconds that double with every failure of a key, from `first` to `longest`.

    Up to `jitter` of them is taken off by chance, so that what failed together is not tried again
    together. The defaults are those of client-go's controllers.
    """

    def __init__(
        self,
        first: float = 0.005,
        longest: float = 1000.0,
        *,
        jitter: float = 0.2,
        rng: random.Random | None = None,
    ) -> None:
        if not 0 < first <= longest:
            raise ValueError(f"expected 0 < first <= longest, got {first:g} and {longest:g} s")
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter: expected a share from 0 to below 1, got {jitter:g}")
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._rng = rng or random.Random()
        self._failures: dict[K, int] = {}

    def next(self, key: K) -> float:
        """A key has failed once more; how long to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        whole = min(self._first * 2.0 ** min(failures, _MOST_DOUBLINGS), self._longest)
        return whole * self._rng.uniform(1.0 - self._jitter, 1.0)

    def forget(self, key: K) -> None:
        """The next failure of this key is the first one again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)


class TokenBucket:
    """At most `burst` at once and `rate` a second on average; a rate of 0 means no limit.

    Unlike `client.limits.Limiter` nobody waits here: whoever asks is told when its turn will be.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100) -> None:
        self._rate = rate
        self._burst = float(max(burst, 1))
        self._tokens = self._burst
        self._filled_at: float | None = None

    def reserve(self) -> float:
        """Take the next turn; the seconds until then."""
        if self._rate <= 0:
            return 0.0
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)
