"""Coroutines that have nothing to wait for, run where nobody can wait."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from mooring.errors import InternalError

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that is known not to wait."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise InternalError(f"{work!r} has to wait for something")
