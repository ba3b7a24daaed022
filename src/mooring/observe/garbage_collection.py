"""Settings of Python's cyclic garbage collector for a process that keeps a cluster in memory.

Every command collects rarely, from its first imports on; see `mooring.cli.main`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Allocations between two collections. Python's default, 700, took 5 % of the time and found little.
_THRESHOLD: Final = 50_000


def collect_rarely() -> None:
    gc.set_threshold(_THRESHOLD)


def freeze_existing_objects() -> None:
    """Exclude everything that exists now, such as the listed objects, from later collections.

    Garbage is not looked for: at a start it is a few hundred objects, and the search would delay
    the first bind.
    """
    gc.freeze()


@contextmanager
def suspended() -> Iterator[None]:
    """For the reading of a cluster, which makes no cycles; what was read is frozen.

    What an earlier reading left is collected first.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
