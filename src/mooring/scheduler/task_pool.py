"""Tasks for background work: bindings, status patches, evictions.

A task that has finished one piece of work takes the next. So a binding that never waits needs no
new task, and a binding that waits needs one only until the pool is large enough.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final

Work = Coroutine[Any, Any, None]

MOST_IDLE: Final = 256  # tasks that are kept for later


class TaskPool:
    """Starts submitted work in order, within two turns of the event loop, and runs it concurrently.

    Used as an `asyncio.TaskGroup` is: an exception in one task ends all of them. A task that is
    cancelled while the others go on costs only its own piece of work.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._owner = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Work] = deque()
        self._idle: list[asyncio.Future[None]] = []  # set to wake the task that waits for it
        self._called = False  # a task was woken or started and has not looked for work yet
        self._is_draining = False
        self._has_failed = False  # an exception ends the group

    async def __aenter__(self) -> TaskPool:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._has_failed |= error is not None
        try:
            await self._group.__aexit__(kind, error, trace)
        finally:
            self._close()

    def create_task(self, work: Work) -> asyncio.Task[None]:
        """A task of its own in the same group."""
        return self._group.create_task(work)

    def submit(self, work: Work) -> None:
        self._waiting.append(work)
        if not self._called:
            self._called = True
            self._call()
            self._loop.call_soon(self._grow)

    @property
    def are_ending(self) -> bool:
        """Whether all tasks are being cancelled, rather than one of them."""
        return self._has_failed or (self._owner is not None and self._owner.cancelling() > 0)

    def drain(self) -> None:
        """Accept no more work, except from work in progress; end when that is done."""
        self._is_draining = True
        for wakeup in self._idle:
            if not wakeup.done():
                wakeup.set_result(None)
        self._idle.clear()

    def _close(self) -> None:
        """Drop work that was not started."""
        while self._waiting:
            self._waiting.popleft().close()

    def _grow(self) -> None:
        """Start a task for each remaining piece of work; the task woken before is waiting."""
        if self._called:  # the task was cancelled before it began
            self._called = False
            if self.are_ending:
                return  # the group would wait for another task
        for _ in range(len(self._waiting)):
            self._call()

    def _call(self) -> None:
        while self._idle:
            wakeup = self._idle.pop()
            if not wakeup.done():  # else its task was cancelled
                wakeup.set_result(None)
                return
        self._group.create_task(self._serve())

    async def _serve(self) -> None:
        ours = asyncio.current_task()
        while True:
            self._called = False
            while self._waiting:
                try:
                    await self._waiting.popleft()
                except Exception:
                    self._has_failed = True
                    raise
                if ours is not None and ours.cancelling():
                    return  # a cancellation that was ignored must not hit other work
            if self._is_draining or len(self._idle) >= MOST_IDLE:
                return
            wakeup = self._loop.create_future()
            self._idle.append(wakeup)
            await wakeup
