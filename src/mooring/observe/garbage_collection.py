"""Settings of Python's cyclic garbage collector for a process that keeps a cluster in memory.

Every command collects rarely, from its first imports on; see `mooring.cli.main`. One that reads a
cluster at its start begins with that when the cluster is read: objects of lists make no cycles,
and a collection would go through all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Allocations between two collections. Python's default, 700, took 5 % of the time and found little.
_THRESHOLD: Final = 50_000
# The same until the first lists are read; not without end, for a server may never answer.
_THRESHOLD_OF_A_START: Final = 5_000_000


def collect_rarely() -> None:
    gc.set_threshold(_THRESHOLD)


def read_a_cluster_first() -> None:
    """Collect nothing until `freeze_existing_objects`, or until that takes very long."""
    gc.set_threshold(_THRESHOLD_OF_A_START)


def freeze_existing_objects() -> None:
    """Exclude everything that exists now, such as the listed objects, from later collections.

    Garbage is not looked for: at a start it is a few hundred objects, and the search would delay
    the first bind.
    """
    gc.freeze()
    collect_rarely()


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
