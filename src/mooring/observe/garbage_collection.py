"""How often Python looks for garbage in cycles, in a process that keeps a cluster in memory."""

from __future__ import annotations

import gc
from typing import Final

# Objects between two looks. There is little to be found: to look after every 700, as Python does by
# itself, took 5 % of the time.
_LOOK_AFTER: Final = 50_000


def collect_rarely() -> None:
    gc.set_threshold(_LOOK_AFTER)


def freeze_existing_objects() -> None:
    """What was listed stays for long: nothing in it is worth another look."""
    gc.collect()
    gc.freeze()
