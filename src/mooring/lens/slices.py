"""Long work on the loop of a scheduler, a few milliseconds at a time.

Such work is a generator that yields often; decisions are made in between. Before a step that takes
milliseconds by itself it yields `LONG_STEP`, so that the step has a slice of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

T = TypeVar("T")


class Busy(Exception):
    """Too many ask at the same time, or it is not the time to ask."""


STANDING_BY: Final = "answered by a replica that stands by: the leader decides"
SLICE: Final = 0.002  # seconds; and one step
LONG_STEP: Final = True


async def in_slices(work: Generator[Any, None, T], seconds: float = SLICE) -> T:
    """Run the generator to its end; what it returns."""
    while True:
        await asyncio.sleep(0)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            try:
                if next(work) is LONG_STEP:
                    break
            except StopIteration as end:
                result: T = end.value
                return result
