"""`--check-decisions`: some decisions are evaluated again without the memory and compared."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from mooring.decision.evaluation import Evaluation
from mooring.observe.metrics import Metrics

log = logging.getLogger(__name__)


class DoubleCheck:
    """Selects the decisions to check, and counts the results."""

    def __init__(self, share: float, rng: random.Random, metrics: Metrics) -> None:
        self._share = share  # of decisions, 0 to 1
        self._random = rng
        self._equal = metrics.class_checks.labels("equal")
        self._different = metrics.class_checks.labels("different")

    def is_due(self) -> bool:
        return self._random.random() < self._share

    def compare(
        self,
        by_class: Evaluation,
        evaluate_in_full: Callable[[], Evaluation],
        limit: int | None,
        start: int,
    ) -> None:
        """Compare feasible nodes, reasons, scores and the best node.

        A difference must occur twice to be reported: in a process that was stopped for a while, a
        plugin may have taken too long in one of the two evaluations.
        """
        difference = _difference(by_class, evaluate_in_full(), limit, start)
        if difference:
            difference = _difference(by_class, evaluate_in_full(), limit, start)
        if not difference:
            self._equal.add()
            return
        self._different.add()
        extra = {"pod": by_class.pod.key, "difference": difference}
        log.error("a decision by class is not that of a full evaluation", extra=extra)


def _difference(by_class: Evaluation, in_full: Evaluation, limit: int | None, start: int) -> str:
    if not in_full.outcome.status.ok:
        return f"PreFilter in full: {in_full.outcome.status.message}"
    in_full.filter(limit, start)
    if _has_failed(by_class, in_full):
        return _other_failure(by_class, in_full)
    if by_class.count != in_full.count:
        return f"feasible nodes: {by_class.count} by class, {in_full.count} in full"
    for name, mine, full in zip(
        by_class.nodes.names,
        by_class.verdicts().each(),
        in_full.verdicts().each(),
        strict=True,
    ):
        if mine != full:
            return f"node {name}: {mine} by class, {full} in full"
    if by_class.count < 2:
        return ""
    by_class.choose()
    in_full.choose()
    if _has_failed(by_class, in_full):
        return _other_failure(by_class, in_full)
    if by_class.row != in_full.row:
        names = by_class.nodes.names
        return f"node: {names[by_class.row]} by class, {names[in_full.row]} in full"
    mine_scores, full_scores = by_class.scores(), in_full.scores()
    if mine_scores is None or full_scores is None:
        return "" if mine_scores is full_scores else "scores: only one way has some"
    for mine_table, full_table in zip(mine_scores.plugins, full_scores.plugins, strict=True):
        for kind in ("raw", "scores"):
            mine_column = getattr(mine_table, kind).tolist()
            full_column = getattr(full_table, kind).tolist()
            if mine_column != full_column:
                plugin = mine_table.plugin
                return f"{kind} of {plugin}: {mine_column} by class, {full_column} in full"
    return ""


def _has_failed(by_class: Evaluation, in_full: Evaluation) -> bool:
    return not (by_class.status.ok and in_full.status.ok)


def _other_failure(by_class: Evaluation, in_full: Evaluation) -> str:
    """Empty if both evaluations failed in the same way."""
    mine, full = by_class.status.message, in_full.status.message
    return "" if mine == full else f"{mine or 'OK'} by class, {full or 'OK'} in full"
