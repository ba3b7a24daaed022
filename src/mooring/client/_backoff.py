"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import math
import random
from typing import Final

SHORTEST: Final = 0.8  # seconds; up to half as much is added by chance
LONGEST: Final = 20.0
HEALTHY: Final = 120.0  # seconds without trouble after which the waits begin anew


class Backoff:
    """Waits that double, from 0.8 to 30 seconds, and begin anew after two minutes without one."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._step = SHORTEST
        self._until = -math.inf

    def reset(self) -> None:
        """Begin anew."""
        self._step = SHORTEST

    def next(self, now: float, longest: float = LONGEST) -> float:
        """Seconds to wait, this time."""
        if now - self._until >= HEALTHY:
            self.reset()
        pause = min(self._step, longest) * self._rng.uniform(1.0, 1.5)
        self._step = min(self._step * 2, LONGEST)
        self._until = now + pause
        return pause
