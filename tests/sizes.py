"""The size of random tests: small by default, MOORING_TEST_SIZE times as large on demand."""

from __future__ import annotations

import os
from typing import Final

_FACTOR: Final = int(os.environ.get("MOORING_TEST_SIZE", "1"))


def sized(count: int) -> int:
    return count * _FACTOR
