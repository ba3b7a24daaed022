"""The system clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Fulfils `framework.Clock`: seconds since the epoch that never run backwards.

    The wall clock is read once; then the monotonic clock counts, so that a step of the wall clock
    does not leave pods in backoff for an hour.
    """

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        return self._epoch + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
