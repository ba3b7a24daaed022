"""Waiting for something real to reach a state: by asking again, never longer than a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    claim: Callable[[], T], timeout: float = 60.0, *, what: str, every: float = 0.05
) -> T:
    """Ask until the answer is true, and return it; `TimeoutError` says what never came true."""
    deadline = time.monotonic() + timeout
    while True:
        answer = claim()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(f"waited {timeout:g} s in vain until {what}; last seen: {answer!r}")
        time.sleep(every)
