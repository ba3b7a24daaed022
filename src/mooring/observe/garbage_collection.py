"""Settings of Python's cyclic garbage collector for a process that keeps a cluster in memory."""

from __future__ import annotations

import gc
from typing import Final

# Allocations between two collections. Python's default, 700, took 5 % of the time and found little.
_THRESHOLD: Final = 50_000


def collect_rarely() -> None:
    gc.set_threshold(_THRESHOLD)


def freeze_existing_objects() -> None:
    """Exclude everything that exists now, such as the listed objects, from later collections."""
    gc.collect()
    gc.freeze()
