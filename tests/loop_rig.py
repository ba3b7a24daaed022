"""A virtual loop for tests; all tasks are cancelled at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

from mooring.simulator.clock import VirtualLoop

T = TypeVar("T")


class LoopRig:
    """Calls are made from within the loop, as informers and workers make them."""

    def __init__(self) -> None:
        self.loop: VirtualLoop = VirtualLoop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()

    def call(self, act: Callable[..., T], *args: Any, **options: Any) -> T:
        """The result of a plain function that needs a running loop."""

        async def calling() -> T:
            return act(*args, **options)

        task = self.loop.create_task(calling())
        self.loop.settle()
        return task.result()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin, and go as far as possible without time passing."""
        task = self.loop.create_task(work)
        self.loop.settle()
        return task

    def settle(self) -> None:
        self.loop.settle()

    def advance(self, seconds: float) -> None:
        self.loop.advance(seconds)
