"""Tasks for the work that nobody waits for: bindings, status patches, evictions.

A task that is done with one piece of work takes the next. So a pod whose binding has nothing to
wait for costs no task of its own, and one that waits costs it only until there are enough of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final

Work = Coroutine[Any, Any, None]

MOST_IDLE: Final = 256  # tasks that are kept for later


class Workers:
    """Begins what it is given in that order, within two turns of the loop, all side by side.

    To be entered, as an `asyncio.TaskGroup` is: what breaks in one of the tasks ends them all. A
    task that is cancelled while the others go on costs only its own piece of work.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._owner = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Work] = deque()
        self._idle: list[asyncio.Future[None]] = []  # set to wake the worker behind it
        self._called = False  # somebody is on the way who will look for work
        self._dismissed = False
        self._has_failed = False  # an exception ends the group

    async def __aenter__(self) -> Workers:
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

    def give(self, work: Work) -> None:
        self._waiting.append(work)
        if not self._called:
            self._called = True
            self._call()
            self._loop.call_soon(self._relieve)

    @property
    def are_ending(self) -> bool:
        """Whether all tasks are being cancelled, rather than one of them."""
        return self._has_failed or (self._owner is not None and self._owner.cancelling() > 0)

    def dismiss(self) -> None:
        """No more is to come, except from what is under way: end when that is done."""
        self._dismissed = True
        for bell in self._idle:
            if not bell.done():
                bell.set_result(None)
        self._idle.clear()

    def _close(self) -> None:
        """Drop what was never begun."""
        while self._waiting:
            self._waiting.popleft().close()

    def _relieve(self) -> None:
        """Whoever was called has begun by now, and has to wait if anything is left to do.

        It may be like that with each piece, and none is to wait for another: so each gets a worker.
        """
        if self._called:  # the worker was cancelled before it began
            self._called = False
            if self.are_ending:
                return  # the group would wait for another worker
        for _ in range(len(self._waiting)):
            self._call()

    def _call(self) -> None:
        while self._idle:
            bell = self._idle.pop()
            if not bell.done():  # else somebody has cancelled its worker
                bell.set_result(None)
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
                    return  # a cancellation that was not heeded must not hit other work
            if self._dismissed or len(self._idle) >= MOST_IDLE:
                return
            bell = self._loop.create_future()
            self._idle.append(bell)
            await bell
