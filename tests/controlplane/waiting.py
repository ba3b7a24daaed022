"""Waiting for something real to reach a state: by asking again, never longer than a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_SLOWER, _SLOWEST = 1.2, 0.2  # each question has its price, and what takes long is not urgent


def wait_until(
    claim: Callable[[], T], timeout: float = 60.0, *, what: str, every: float = 0.05
) -> T:
    """Ask until the answer is true, and return it; `TimeoutError` says what never came true.

    The pauses between two questions, `every` at first, get longer.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = claim()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(f"waited {timeout:g} s in vain until {what}; last seen: {answer!r}")
        time.sleep(every)
        every = max(every, min(every * _SLOWER, _SLOWEST))
