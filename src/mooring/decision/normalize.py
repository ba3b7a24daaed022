"""Normalized scores of the feasible nodes, brought up to date for each choice.

Many nodes have the same raw score, and with a declared normalizer the normalized score depends only
on the raw score and on the lowest and highest one. So rows are grouped by raw score, and only the
few different numbers are normalized. With a `normalize_score` of the plugin's own, or with too many
different scores, the scores of all rows are normalized for each choice.

`counted[row]` is the part of a row's total in `FeasibleNodes` that comes from this plugin; it is
zero for infeasible rows. `_groups` are the feasible rows by raw score; None: not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from mooring.decision.feasible import FeasibleNodes
from mooring.framework import IntArray, Score
from mooring.runtime import overrides_normalize_score

_MOST_GROUPS: Final = 64
_FEW: Final = 64  # up to so many rows of a group are listed
_MOST_NEW: Final = 256

Normalize = Callable[[IntArray, IntArray], IntArray]
"""Weighted scores of rows, from their raw scores, normalized over these rows alone."""


class _Group:
    """The feasible rows with the same raw score."""

    __slots__ = ("count", "rows")

    def __init__(self, count: int, rows: set[int] | None) -> None:
        self.count = count
        self.rows = rows  # None: too many, or not listed


class NormalizedScores:
    """The raw scores of one plugin by row, and their weighted part in the totals."""

    def __init__(self, plugin: Score, feasible: FeasibleNodes, raw: IntArray) -> None:
        self.plugin: Score = plugin
        self.raw: IntArray = raw  # as the plugin gives them
        self.counted: IntArray = np.zeros(len(raw), dtype=np.int64)  # weighted, in the totals
        # The same memory, for one value at a time.
        self._raw_cells = self.raw.data
        self.counted_cells: memoryview = self.counted.data
        self._feasible = feasible
        self._can_group = not overrides_normalize_score(plugin)
        self._groups: dict[int, _Group] | None = None  # by raw score; None: not known
        self._weighted: dict[int, int] = {}  # raw -> weighted score, as counted
        self._counts_nothing = True  # `counted` is zero everywhere
        self._new: list[int] = []  # rows that became feasible, or have another score
        self._many_new: list[IntArray] = []
        self._is_unsettled = True  # too many changes: the groups are not known

    # --- changes -------------------------------------------------------------------------------

    def entered(self, row: int) -> None:
        """A row became feasible; its score is not in the totals yet."""
        self._join(row, self._raw_cells[row])

    def left(self, row: int) -> None:
        self._count_one(row, 0)
        self._part(row, self._raw_cells[row])

    def many_entered(self, rows: IntArray, score: int | None = None) -> None:
        """Rows became feasible or got another raw score: `score`, if it is the same for all."""
        if len(self._many_new) > _MOST_NEW:
            self._forget_groups()
        self._many_new.append(rows)
        if score is None or self._groups is None:
            score = self._shared_by(rows)
        if self._groups is not None and score is not None:
            group = self._groups.setdefault(score, _Group(0, None))
            group.count += len(rows)
            group.rows = None

    def many_left(self, rows: IntArray) -> None:
        if not self._counts_nothing:
            self._count(rows, 0)
        self._many_parted(rows)

    def change(self, rows: IntArray, scores: IntArray | np.int64) -> None:
        """These rows have other raw scores; a single number is for all of them."""
        if len(rows) <= _FEW:
            given = scores.tolist() if isinstance(scores, np.ndarray) else [int(scores)] * len(rows)
            for row, new in zip(rows.tolist(), given, strict=True):
                if self._feasible.has(row):
                    self._part(row, self._raw_cells[row])
                    self._join(row, new)
                self._raw_cells[row] = new
        else:
            inside = rows[self._feasible.having(rows)]
            if len(inside):
                self._many_parted(inside)
            self.raw[rows] = scores
            if len(inside):
                self.many_entered(inside, None if isinstance(scores, np.ndarray) else int(scores))

    def _join(self, row: int, score: int) -> None:
        if len(self._new) > _MOST_NEW:  # no choice was made for long
            self._forget_groups()
        self._new.append(row)
        groups = self._groups
        if groups is not None:
            group = groups.get(score)
            if group is None:
                groups[score] = _Group(1, {row})
            else:
                group.count += 1
                if group.rows is not None:
                    group.rows.add(row)
                    if len(group.rows) > _FEW:
                        group.rows = None

    def _part(self, row: int, score: int) -> None:
        groups = self._groups
        if groups is not None:
            group = groups[score]
            group.count -= 1
            if not group.count:
                del groups[score]
            elif group.rows is not None:
                group.rows.remove(row)

    def _many_parted(self, rows: IntArray) -> None:
        score: int | None
        if self._groups is not None and len(self._groups) == 1:
            [score] = self._groups  # all feasible rows have this score
        else:
            score = self._shared_by(rows)
        if self._groups is not None and score is not None:
            group = self._groups[score]
            group.count -= len(rows)
            group.rows = None
            if not group.count:
                del self._groups[score]

    def _forget_groups(self) -> None:
        """Drop the groups, so that all feasible rows are normalized again."""
        self._groups = None
        self._weighted = {}
        self._new.clear()
        self._many_new.clear()

    def _shared_by(self, rows: IntArray) -> int | None:
        """The common raw score of these rows; if scores differ, the groups are dropped."""
        if self._groups is None:
            self._is_unsettled = True
            return None
        scores = self.raw[rows]
        least = scores.item(scores.argmin())
        if least == scores.item(scores.argmax()):
            return least
        self._groups = None
        self._is_unsettled = True
        return None

    # --- before a choice -----------------------------------------------------------------------

    def refresh(self, normalize: Normalize) -> None:
        """Bring the totals up to date."""
        if self._groups is None and self._can_group:
            self._groups = self._find_groups()
        groups = self._groups
        if groups is not None and len(groups) > _MOST_GROUPS:
            groups = self._groups = None
            self._can_group = False  # grouping is not tried again
        if groups is None:
            self._refresh_all(normalize)
        else:
            if groups.keys() != self._weighted.keys():
                self._refresh_groups(groups, normalize)
            if not self._counts_nothing:
                self._refresh_new()
        self._new.clear()
        self._many_new.clear()
        self._is_unsettled = False

    def _find_groups(self) -> dict[int, _Group] | None:
        """The groups, if they are cheap to find or likely to last."""
        scores = self.raw[self._feasible.rows]
        least, most = scores.item(scores.argmin()), scores.item(scores.argmax())
        if least == most:
            return {least: _Group(len(scores), None)}
        if self._is_unsettled:
            return None
        found, counts = np.unique(scores, return_counts=True)
        pairs = zip(found.tolist(), counts.tolist(), strict=True)
        return {score: _Group(count, None) for score, count in pairs}

    def _refresh_groups(self, groups: dict[int, _Group], normalize: Normalize) -> None:
        values = sorted(groups)
        if len(values) == 1:
            weighted = {values[0]: 0}  # a score that all nodes have decides nothing
        else:
            found = normalize(np.arange(len(values)), np.array(values))
            weighted = dict(zip(values, found.tolist(), strict=True))
        before, self._weighted = self._weighted, weighted
        for score, counts in weighted.items():
            if counts != before.get(score, 0 if self._counts_nothing else None):
                self._count_group(groups[score], score, counts)

    def _count_group(self, group: _Group, score: int, counts: int) -> None:
        if group.rows is None:
            rows = (self.raw == score).nonzero()[0]
            rows = rows[self._feasible.having(rows)]
            if len(rows) <= _FEW:
                group.rows = set(rows.tolist())
            self._count(rows, counts)
        else:
            for row in group.rows:
                self._count_one(row, counts)

    def _refresh_new(self) -> None:
        weighted = self._weighted
        for row in self._new:
            if self._feasible.has(row):
                self._count_one(row, weighted[self._raw_cells[row]])
        for many in self._many_new:
            rows = many[self._feasible.having(many)]
            scores = self.raw[rows]
            for value, counts in weighted.items():
                self._count(rows[scores == value], counts)

    def _refresh_all(self, normalize: Normalize) -> None:
        rows = self._feasible.rows
        self._count(rows, normalize(rows, self.raw[rows]))
        self._weighted = {}
        self._counts_nothing = False

    def _count_one(self, row: int, counts: int) -> None:
        more = counts - self.counted_cells[row]
        if more:
            self._feasible.add_score(row, more)
            self.counted_cells[row] = counts
            self._counts_nothing = False

    def _count(self, rows: IntArray, counts: IntArray | int) -> None:
        more = counts - self.counted[rows]
        if more.any():
            self._feasible.add_scores(rows, more)
            self.counted[rows] = counts
            self._counts_nothing = False
