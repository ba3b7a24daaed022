"""Tasks for the work that nobody waits for: bindings, status patches, evictions.

A task that is done with one piece of work takes the next. So a pod whose binding has nothing to
wait for costs no task of its own, and one that waits costs it only until there are enough of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final

Work = Coroutine[Any, Any, None]

MOST_IDLE: Final = 256  # tasks that are kept for later


class Workers:
    """Begins what it is given in that order, in the next turn of the loop, all side by side.

    The tasks belong to `group`: what breaks in one of them ends the group.
    """

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._waiting: deque[Work] = deque()
        self._idle: list[asyncio.Future[None]] = []  # set to wake the worker behind it
        # Workers on their way that will look for work: one for each piece, for any of them may have
        # to wait, and the next is not to wait with it. To call one too many does no harm.
        self._called = 0
        self._dismissed = False

    def give(self, work: Work) -> None:
        self._waiting.append(work)
        if self._called < len(self._waiting):
            self._call()

    def dismiss(self) -> None:
        """No more is to come, except from what is under way: end when that is done."""
        self._dismissed = True
        for bell in self._idle:
            if not bell.done():
                bell.set_result(None)
        self._idle.clear()

    def close(self) -> None:
        """Drop what was never begun."""
        while self._waiting:
            self._waiting.popleft().close()

    def _call(self) -> None:
        self._called += 1
        while self._idle:
            bell = self._idle.pop()
            if not bell.done():  # else somebody has cancelled its worker
                bell.set_result(None)
                return
        self._group.create_task(self._serve())

    async def _serve(self) -> None:
        loop, ours = asyncio.get_running_loop(), asyncio.current_task()
        try:
            while True:
                self._called = max(self._called - 1, 0)
                while self._waiting:
                    await self._waiting.popleft()
                    if ours is not None and ours.cancelling():
                        return  # a cancellation that was not heeded must not hit other work
                if self._dismissed or len(self._idle) >= MOST_IDLE:
                    return
                bell = loop.create_future()
                self._idle.append(bell)
                await bell
        finally:
            self._called = 0  # whoever ends here may have been among them
