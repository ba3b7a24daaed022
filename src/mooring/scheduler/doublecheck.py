"""Some decisions by class are made again in full, to see whether they are the same."""

from __future__ import annotations

import logging
import random

from mooring.cache.pods import Pod
from mooring.observe.metrics import Metrics

log = logging.getLogger(__name__)


class DoubleCheck:
    """Which decisions are checked, and what came of it."""

    def __init__(self, share: float, rng: random.Random, metrics: Metrics) -> None:
        self._share = share  # of decisions, 0 to 1
        self._random = rng
        self._equal = metrics.class_checks.labels("equal")
        self._different = metrics.class_checks.labels("different")

    def is_due(self) -> bool:
        return self._random.random() < self._share

    def report(
        self, pod: Pod, is_same: bool, by_class: tuple[str, int], in_full: tuple[str, int]
    ) -> None:
        """Take note of node, or reasons, and number of feasible nodes, as found both ways."""
        if is_same:
            self._equal.add()
            return
        self._different.add()
        extra = {"pod": pod.key, "byClass": by_class, "inFull": in_full}
        log.error("a decision by class is not that of a full evaluation", extra=extra)
