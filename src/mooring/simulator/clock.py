"""Virtual time: an event loop whose clock moves only by `advance`.

`settle` runs everything that is ready; `advance` jumps from timer to timer. No test sleeps, and an
hour of backoff takes milliseconds.
"""

from __future__ import annotations

import asyncio
import selectors

EPOCH = 1_700_000_000.0  # seconds; a round moment in 2023 where virtual time begins


class _IdleSelector(selectors.DefaultSelector):
    """Calls `idle` of the loop instead of waiting."""

    loop: VirtualLoop | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and timeout != 0 and self.loop is not None:
            self.loop.idle(timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own. It starts at zero, like a monotonic clock."""

    def __init__(self) -> None:
        selector = _IdleSelector()
        self._virtual_now = 0.0
        self._next_timer: float | None = None
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self._virtual_now

    def idle(self, timeout: float | None) -> None:
        """Called when nothing is ready; `timeout` is the time until the next timer, if any."""
        self._next_timer = None if timeout is None else self._virtual_now + timeout
        self.stop()

    def settle(self) -> None:
        """Run everything that needs no time to pass."""
        self.run_forever()

    def advance(self, seconds: float) -> None:
        """Let time pass, stopping at every timer on the way."""
        target = self._virtual_now + seconds
        self.settle()
        while self._next_timer is not None and self._next_timer <= target:
            self._virtual_now = self._next_timer
            self.settle()
        self._virtual_now = target
        self.settle()


class VirtualClock:
    """A `framework.Clock` on a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return EPOCH + self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
