"""What a bad network does to requests, and the dice that choose which of them it hits."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass


@dataclass
class Faults:
    """Set any of these while the proxy runs; shares are between 0 and 1, times in seconds."""

    cut_bind_replies: float = 0.0  # share of binds that are carried out but never answered
    cut_claim_replies: float = 0.0  # likewise, of writes to resource claims
    fail_binds: float = 0.0  # share of binds answered with 500 and not carried out
    throttle: float = 0.0  # share of other requests answered with 429
    retry_after: int = 1  # what a 429 says
    delay: float = 0.0  # before each request goes on
    bind_delay: float = 0.0  # likewise for binds, on top
    watch_lag: float = 0.0  # how late each piece of a watch arrives
    cut_watches_every: float = 0.0  # all watches at once; 0 is never


class Dice:
    """Chooses which requests a fault hits.

    It depends on the seed, the request and how often that was asked, not on the order in which
    different requests arrive: a seed hits the same pods however busy the machine is.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: Counter[tuple[str, str]] = Counter()

    def hits(self, share: float, fault: str, request: str) -> bool:
        if share <= 0.0:
            return False
        self._asked[fault, request] += 1
        times = self._asked[fault, request]
        return random.Random(f"{self._seed}/{fault}/{request}/{times}").random() < share
