"""What searches found on each node, for preemptors that the filters can't tell apart.

Of the nodes that a hundred replicas try one after the other, hardly any changes between two of
them. A result is used again as long as everything is the same that it was found by: the node, its
pods, the pods nominated for it, and the disruption budgets of the pods.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mooring.api.policy import PodDisruptionBudgetStatus
from mooring.cache.arrays import BoolArray, FloatArray, IntArray
from mooring.cache.internals import AnyMark, any_mark_of, is_whole, touched_since
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework._internal import InternalNominator, WhatIfBasis
from mooring.framework.results import Candidate
from mooring.framework.status import Status
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.harm import CRITERIA, harm_of
from mooring.preemption.ranks import RankedPods

MOST_KINDS: Final = 4
"""Kinds of preemptors that are remembered."""

Result = Candidate | Status


class SearchResults:
    """What was found for one kind of preemptor, in columns with a number for each node."""

    def __init__(self, count: int) -> None:
        self.is_known: BoolArray = np.zeros(count, dtype=np.bool_)
        self.is_candidate: BoolArray = np.zeros(count, dtype=np.bool_)
        self.harm: FloatArray = np.zeros((count, len(CRITERIA)))  # of candidates
        self._found: NDArray[Any] = np.empty(count, dtype=object)
        self._for_once: list[int] = []  # known for one search only
        self._columns: IntArray | None = None  # what else the results of a row depend on
        self._rows_of: dict[int, set[int]] = {}  # by the number of a budget that they depend on
        self._statuses: dict[int, PodDisruptionBudgetStatus] = {}  # of those budgets

    def candidates(self, rows: IntArray) -> tuple[Candidate, ...]:
        """What was found, in the order of the rows, all of which are candidates."""
        return tuple(self._found[rows].tolist())

    def failures(self, rows: IntArray) -> list[Status]:
        """What was found, in the order of the rows, none of which is a candidate."""
        found: list[Status] = self._found[rows].tolist()
        return found

    def put(self, rows: IntArray, found: Status) -> None:
        """The same for all of these rows, until they change."""
        self._found[rows] = found
        self.is_known[rows] = True

    def put_searched(
        self, row: int, ranked: RankedPods, budgets: DisruptionBudgets, found: Result
    ) -> None:
        """What was found by the pods of a node and their budgets."""
        self._found[row] = found
        self.is_known[row] = True
        if isinstance(found, Candidate):
            self.is_candidate[row] = True
            self.harm[row] = harm_of(found)
        if ranked.depends_on_time:
            self._for_once.append(row)
        for number in {number for some in ranked.matched(budgets) for number in some}:
            self._rows_of.setdefault(number, set()).add(row)
            self._statuses[number] = budgets.status(number)

    def forget(self, rows: Iterable[int]) -> None:
        gone = list(rows)
        self.is_known[gone] = False
        self.is_candidate[gone] = False

    def begin(
        self, own: int | None, columns: Sequence[IntArray | BoolArray], budgets: DisruptionBudgets
    ) -> None:
        """Forget what is not true for the next search.

        `own` is the row that the preemptor itself is nominated for: for others of its kind it is
        nominated there as well, and for itself it is not.
        """
        self.forget(self._for_once)
        self._for_once.clear()
        if own is not None:
            self.forget([own])
            self._for_once.append(own)
        self._follow_columns(columns)
        self._follow_budgets(budgets)

    def _follow_columns(self, columns: Sequence[IntArray | BoolArray]) -> None:
        """Forget rows for which a filter that looks further than the node sees another number."""
        if not columns:
            return
        now = np.array(columns, dtype=np.int64)
        before, self._columns = self._columns, now
        if before is not None and before.shape == now.shape:
            self.forget(np.flatnonzero((before != now).any(axis=0)).tolist())
        else:
            self.forget(range(len(self.is_known)))

    def _follow_budgets(self, budgets: DisruptionBudgets) -> None:
        for number, status in list(self._statuses.items()):
            if budgets.status(number) is not status:
                del self._statuses[number]
                self.forget(self._rows_of.pop(number))


class KnownVictims:
    """Results by kind of preemptor."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, SearchResults] = {}
        self._mark: AnyMark | None = None
        self._nominations = 0  # the position up to which they are known

    def of(
        self,
        basis: WhatIfBasis | None,
        pod: Pod,
        nodes: Nodes,
        budgets: DisruptionBudgets,
        nominator: InternalNominator,
    ) -> SearchResults:
        """What is known for preemptors like this pod; empty if nothing is kept for them."""
        if basis is None or not is_whole(nodes):
            return SearchResults(len(nodes))
        self._follow(nodes, nominator)
        key = (basis.key, budgets.generation)
        kind = self._kinds.pop(key, None)
        if kind is None:
            kind = SearchResults(len(nodes))
            if len(self._kinds) >= MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]  # that was used least recently
        self._kinds[key] = kind
        own = nominator.node_of(pod.uid)
        kind.begin(None if own is None else nodes.index_of(own), basis.columns, budgets)
        return kind

    def _follow(self, nodes: Nodes, nominator: InternalNominator) -> None:
        """Forget rows that changed, or whose nominated pods did."""
        touched = None if self._mark is None else touched_since(nodes, self._mark)
        nominated = nominator.changed_since(self._nominations)
        self._mark, self._nominations = any_mark_of(nodes), nominator.position
        if touched is None or nominated is None:
            self._kinds.clear()
            return
        found = map(nodes.index_of, nominated)
        rows = {*touched, *(row for row in found if row is not None)}
        for kind in self._kinds.values():
            kind.forget(rows)
