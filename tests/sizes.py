"""The size of random tests: small by default, MOORING_TEST_SIZE times as large on demand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

_FACTOR: Final = int(os.environ.get("MOORING_TEST_SIZE", "1"))


def sized(count: int) -> int:
    return count * _FACTOR


def seeds(*chosen: int) -> Sequence[int]:
    """These few, which show much for what they cost; on demand many, one after the other."""
    return chosen if _FACTOR == 1 else range(4 * len(chosen) * _FACTOR)
