"""What earlier searches found on a node, for preemptors that the filters can't tell apart.

Of the nodes that a hundred replicas try one after the other, hardly any changes between two of
them. A result is used again as long as everything is the same that it was found by: the node, its
pods, the pods nominated for it, and the disruption budgets of the pods.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.internals import AnyMark, any_mark_of, is_whole, touched_since
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework._internal import WhatIfBasis
from mooring.framework.results import Candidate
from mooring.framework.status import Status
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.ranks import RankedPods

MOST_KINDS: Final = 4
"""Kinds of preemptors that are remembered."""


class _Known:
    """A result, and what it was found by."""

    __slots__ = ("nominated", "result", "statuses", "updates")

    def __init__(
        self,
        result: Candidate | Status,
        nominated: Sequence[Pod],
        ranked: RankedPods,
        budgets: DisruptionBudgets,
    ) -> None:
        self.result = result
        self.nominated = nominated
        numbers = {number for some in ranked.matched(budgets) for number in some}
        self.statuses = {number: budgets.status(number) for number in numbers}
        self.updates = budgets.updates

    def holds(self, nominated: Sequence[Pod], budgets: DisruptionBudgets) -> bool:
        if self.nominated != nominated:
            return False
        if self.updates != budgets.updates:
            for number, status in self.statuses.items():
                if budgets.status(number) is not status:
                    return False
            self.updates = budgets.updates
        return True


class _Kind:
    """Preemptors that the filters can't tell apart."""

    def __init__(self) -> None:
        self.known: dict[int, _Known] = {}  # by row
        self.columns: IntArray | None = None  # what else the results of a row depend on

    def follow(self, columns: Sequence[IntArray | BoolArray]) -> None:
        """Forget rows for which a filter that looks further than the node sees another number."""
        if not columns:
            return
        now = np.array(columns, dtype=np.int64)
        before, self.columns = self.columns, now
        if before is not None and before.shape == now.shape:
            self.forget(np.flatnonzero((before != now).any(axis=0)).tolist())
        else:
            self.known.clear()

    def forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            self.known.pop(row, None)


class KnownVictims:
    """Results by kind of preemptor and row."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}
        self._mark: AnyMark | None = None

    def of(self, basis: WhatIfBasis | None, generation: int, nodes: Nodes) -> ResultsByRow | None:
        """The results for such preemptors and budgets; None if nothing is kept for them."""
        if basis is None or not is_whole(nodes):
            return None
        touched = None if self._mark is None else touched_since(nodes, self._mark)
        self._mark = any_mark_of(nodes)
        if touched is None:
            self._kinds.clear()
        else:
            rows = set(touched)
            for other in self._kinds.values():
                other.forget(rows)
        key = (basis.key, generation)
        kind = self._kinds.pop(key, None)
        if kind is None:
            kind = _Kind()
            if len(self._kinds) >= MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]  # that was used least recently
        self._kinds[key] = kind
        kind.follow(basis.columns)
        return ResultsByRow(kind.known)


class ResultsByRow:
    """The results for one kind of preemptor."""

    def __init__(self, known: dict[int, _Known]) -> None:
        self._known = known

    def get(
        self, row: int, nominated: Sequence[Pod], budgets: DisruptionBudgets
    ) -> Candidate | Status | None:
        """What was found there, if nothing has changed since."""
        found = self._known.get(row)
        if found is None or not found.holds(nominated, budgets):
            return None
        return found.result

    def put(
        self,
        row: int,
        nominated: Sequence[Pod],
        ranked: RankedPods,
        budgets: DisruptionBudgets,
        result: Candidate | Status,
    ) -> None:
        if not ranked.depends_on_time:
            self._known[row] = _Known(result, nominated, ranked, budgets)
