"""How hard to lean on an API server: a token bucket whose waiters stand in line by importance.

The rate is that of `clientConnection.qps` and `.burst`. When tokens are short, a bind overtakes a
status patch, and both overtake Events; among equals, who came first goes first. A server may be
short of breath long before tokens are: who can wait does so while there is a `BindsInProgress`.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
from collections.abc import Callable


class RequestPriority(enum.IntEnum):
    """Who goes first when not all can."""

    BIND = 0
    WRITE = 1
    EVENT = 2


class RateLimiter:
    """At most `burst` requests at once and `qps` a second on average; qps <= 0 means no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._tokens = self._burst
        self._filled_at: float | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, priority: RequestPriority = RequestPriority.WRITE) -> None:
        """Wait for a token."""
        if self._qps <= 0:
            return
        self._fill()
        if self._tokens >= 1 and not self._waiting:
            self._tokens -= 1
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (int(priority), next(self._order), turn))
        self._serve()
        await turn

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now

    def _serve(self) -> None:
        """Hand out the tokens there are; come back when there will be another."""
        self._fill()
        while self._waiting and self._tokens >= 1:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():  # a waiter that was cancelled needs no token
                self._tokens -= 1
                turn.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            loop = asyncio.get_running_loop()
            missing = (1 - self._tokens) / self._qps
            self._timer = loop.call_later(max(missing, 0.001), self._serve)


class BindsInProgress:
    """Requests under way that others make way for."""

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
            for tell in self._on_none:
                tell()

    def on_none(self, tell: Callable[[], None]) -> None:
        """Call this each time that none is under way any more."""
        self._on_none.append(tell)
