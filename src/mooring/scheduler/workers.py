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
        # Whether a worker is on its way that will look for work. As long as some is waiting, there
        # is one: a second would find nothing. To call one too many does no harm.
        self._called = False
        self._dismissed = False

    def give(self, work: Work) -> None:
        self._waiting.append(work)
        if not self._called:
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
        self._called = True
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
                self._called = False
                while self._waiting:
                    work = self._waiting.popleft()
                    if self._waiting and not self._called:
                        self._call()  # for this work may have to wait, and the next need not
                    await work
                    if ours is not None and ours.cancelling():
                        return  # a cancellation that was not heeded must not hit other work
                if self._dismissed or len(self._idle) >= MOST_IDLE:
                    return
                bell = loop.create_future()
                self._idle.append(bell)
                await bell
        finally:
            self._called = False
