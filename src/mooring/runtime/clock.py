"""The time of the real world."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Fulfils `framework.Clock`: seconds since the epoch that never run backwards.

    Read once off the wall, then counted by the monotonic clock: a step of the wall clock must not
    leave pods in backoff for an hour.
    """

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        return self._epoch + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
