"""Points that are rescaled over the nodes to choose from, brought up to date for each choice.

Many nodes have the same points, and with `by_extremes` what becomes of them does not depend on how
many or which: so nodes are grouped by points, and only the few different numbers are rescaled. Who
says nothing of the kind, or gives too many different points, has all of them rescaled each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from mooring.cache.arrays import IntArray
from mooring.framework import plugin as contract
from mooring.runtime.field import Field

_MOST_GROUPS: Final = 64
_FEW: Final = 64  # up to so many rows of a group are listed
_MOST_FRESH: Final = 256

Rescale = Callable[[IntArray, IntArray], IntArray]
"""From rows and their points to weighted points; see `by_extremes` for which rows it can be."""


class _Group:
    """The rows in the field with the same points."""

    __slots__ = ("count", "rows")

    def __init__(self, count: int, rows: set[int] | None) -> None:
        self.count = count
        self.rows = rows  # None: many, or not looked for


class Rescaled:
    """The points of one scorer, by row, and how they count in the field."""

    def __init__(self, plugin: contract.Score, field: Field, size: int) -> None:
        self.plugin: contract.Score = plugin
        self.points: IntArray = np.zeros(size, dtype=np.int64)  # as the scorer gives them
        self.counted: IntArray = np.zeros(size, dtype=np.int64)  # in the field, where that holds it
        # The same memory, for one value at a time.
        self._cells = self.points.data
        self.counted_cells: memoryview = self.counted.data
        self._field = field
        self._can_group = not isinstance(plugin, contract.NormalizeScore) or plugin.by_extremes
        self._groups: dict[int, _Group] | None = None  # by points; None: not known
        self._worth: dict[int, int] = {}  # points -> weighted points, as counted
        self._counts_nothing = True  # `counted` is zero everywhere
        self._fresh: list[int] = []  # rows that came into the field, or have other points
        self._many_fresh: list[IntArray] = []
        self._is_stirred = True  # too much changed for the groups to be known

    # --- what happens in the field -------------------------------------------------------------

    def entered(self, row: int) -> None:
        """A row can be chosen now; nothing is counted for it yet."""
        self._join(row, self._cells[row])

    def left(self, row: int) -> None:
        self._count_one(row, 0)
        self._part(row, self._cells[row])

    def many_entered(self, rows: IntArray) -> None:
        self._many_joined(rows)

    def many_left(self, rows: IntArray) -> None:
        if not self._counts_nothing:
            self._count(rows, 0)
        self._many_parted(rows)

    def change(self, rows: IntArray, points: IntArray | np.int64) -> None:
        """The scorer gives these rows other points; one number is for all of them."""
        if len(rows) <= _FEW:
            given = points.tolist() if isinstance(points, np.ndarray) else [int(points)] * len(rows)
            for row, new in zip(rows.tolist(), given, strict=True):
                if self._field.passes(row):
                    self._part(row, self._cells[row])
                    self._join(row, new)
                self._cells[row] = new
        else:
            inside = rows[self._field.passing(rows)]
            if len(inside):
                self._many_parted(inside)
            self.points[rows] = points
            if len(inside):
                self._many_joined(inside, None if isinstance(points, np.ndarray) else int(points))

    def _join(self, row: int, points: int) -> None:
        if len(self._fresh) > _MOST_FRESH:  # long since a choice was made
            self._groups = None
            self._fresh.clear()
        self._fresh.append(row)
        groups = self._groups
        if groups is not None:
            group = groups.get(points)
            if group is None:
                groups[points] = _Group(1, {row})
            else:
                group.count += 1
                if group.rows is not None:
                    group.rows.add(row)
                    if len(group.rows) > _FEW:
                        group.rows = None

    def _part(self, row: int, points: int) -> None:
        groups = self._groups
        if groups is not None:
            group = groups[points]
            group.count -= 1
            if not group.count:
                del groups[points]
            elif group.rows is not None:
                group.rows.remove(row)

    def _many_joined(self, rows: IntArray, points: int | None = None) -> None:
        """With these points, if they are known to be the same for all."""
        if len(self._many_fresh) > _MOST_FRESH:
            self._groups = None
            self._many_fresh.clear()
        self._many_fresh.append(rows)
        if points is None or self._groups is None:
            points = self._shared_by(rows)
        if self._groups is not None and points is not None:
            group = self._groups.setdefault(points, _Group(0, None))
            group.count += len(rows)
            group.rows = None

    def _many_parted(self, rows: IntArray) -> None:
        points: int | None
        if self._groups is not None and len(self._groups) == 1:
            [points] = self._groups  # as everybody in the field
        else:
            points = self._shared_by(rows)
        if self._groups is not None and points is not None:
            group = self._groups[points]
            group.count -= len(rows)
            group.rows = None
            if not group.count:
                del self._groups[points]

    def _shared_by(self, rows: IntArray) -> int | None:
        """The points of all these rows; if they differ, groups are no longer known."""
        if self._groups is None:
            self._is_stirred = True
            return None
        points = self.points[rows]
        least = points.item(points.argmin())
        if least == points.item(points.argmax()):
            return least
        self._groups = None
        self._is_stirred = True
        return None

    # --- before a choice -----------------------------------------------------------------------

    def settle(self, rescale: Rescale) -> None:
        """Let the points count as they are."""
        if self._groups is None and self._can_group:
            self._groups = self._find_groups()
        groups = self._groups
        if groups is not None and len(groups) > _MOST_GROUPS:
            groups = self._groups = None
            self._can_group = False  # not worth looking for them again
        if groups is None:
            self._settle_all(rescale)
        else:
            if groups.keys() != self._worth.keys():
                self._settle_groups(groups, rescale)
            if not self._counts_nothing:
                self._settle_fresh()
        self._fresh.clear()
        self._many_fresh.clear()
        self._is_stirred = False

    def _find_groups(self) -> dict[int, _Group] | None:
        """The groups, if they are easily found or there is hope that they last."""
        points = self.points[self._field.rows]
        least, most = points.item(points.argmin()), points.item(points.argmax())
        if least == most:
            return {least: _Group(len(points), None)}
        if self._is_stirred:
            return None
        found, counts = np.unique(points, return_counts=True)
        pairs = zip(found.tolist(), counts.tolist(), strict=True)
        return {points: _Group(count, None) for points, count in pairs}

    def _settle_groups(self, groups: dict[int, _Group], rescale: Rescale) -> None:
        values = sorted(groups)
        if len(values) == 1:
            worth = {values[0]: 0}  # what all have changes nothing
        else:
            found = rescale(np.arange(len(values)), np.array(values))
            worth = dict(zip(values, found.tolist(), strict=True))
        before, self._worth = self._worth, worth
        for points, counts in worth.items():
            if counts != before.get(points, 0 if self._counts_nothing else None):
                self._count_group(groups[points], points, counts)

    def _count_group(self, group: _Group, points: int, counts: int) -> None:
        if group.rows is None:
            rows = (self.points == points).nonzero()[0]
            rows = rows[self._field.passing(rows)]
            if len(rows) <= _FEW:
                group.rows = set(rows.tolist())
            self._count(rows, counts)
        else:
            for row in group.rows:
                self._count_one(row, counts)

    def _settle_fresh(self) -> None:
        worth = self._worth
        for row in self._fresh:
            if self._field.passes(row):
                self._count_one(row, worth[self._cells[row]])
        for many in self._many_fresh:
            rows = many[self._field.passing(many)]
            points = self.points[rows]
            for value, counts in worth.items():
                self._count(rows[points == value], counts)

    def _settle_all(self, rescale: Rescale) -> None:
        rows = self._field.rows
        self._count(rows, rescale(rows, self.points[rows]))
        self._worth = {}
        self._counts_nothing = False

    def _count_one(self, row: int, counts: int) -> None:
        more = counts - self.counted_cells[row]
        if more:
            self._field.add_one(row, more)
            self.counted_cells[row] = counts
            self._counts_nothing = False

    def _count(self, rows: IntArray, counts: IntArray | int) -> None:
        more = counts - self.counted[rows]
        if more.any():
            self._field.add(rows, more)
            self.counted[rows] = counts
            self._counts_nothing = False
