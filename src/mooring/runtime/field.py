"""The nodes that a pod can choose from, with their points, and the best of them.

Everything here is in listing order, by rank: of nodes with equal points the winner depends on their
places among those that can be chosen. As long as all can, the places are the ranks, and each node's
turn (see `picking`) stands in one number with its points.
"""

from __future__ import annotations

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.snapshot import Nodes
from mooring.runtime.picking import SCALE, turns


class Field:
    """Who can be chosen, and the points of everybody.

    No row may occur twice where many are given.
    """

    def __init__(self, nodes: Nodes) -> None:
        size = len(nodes)
        self.count: int = 0  # of those that can be chosen
        self._order = nodes.listing  # rank -> row
        self._ranks = nodes.ranks  # row -> rank
        self._passed: BoolArray = np.zeros(size, dtype=np.bool_)
        self._scaled: IntArray = np.zeros(size, dtype=np.int64)  # points times SCALE
        self._turns = turns(size)
        self._ranked = -self._turns  # scaled points and turns, if all can be chosen
        self._listing: IntArray | None = None  # ranks of those that can be, while they are the same
        # The same memory, for one value at a time.
        self._rank_cells = self._ranks.data
        self._passed_cells = self._passed.data
        self._scaled_cells = self._scaled.data
        self._turn_cells = self._turns.data
        self._ranked_cells = self._ranked.data

    # --- reading -------------------------------------------------------------------------------

    def passes(self, row: int) -> bool:
        return bool(self._passed_cells[self._rank_cells[row]])

    def passing(self, rows: IntArray) -> BoolArray:
        """Which of these rows can be chosen."""
        return self._passed[self._ranks[rows]]

    @property
    def rows(self) -> IntArray:
        """The rows that can be chosen, ascending."""
        found: IntArray = self._passed[self._ranks].nonzero()[0]
        return found

    @property
    def any_row(self) -> int:
        """The first, if there is one."""
        return self._order.item(int(self._passed.argmax()))

    def best(self) -> int:
        """The row of the winner."""
        if self.count == len(self._order):
            return self._order.item(int(self._ranked.argmax()))
        listing = self._listed()
        totals = self._scaled.take(listing)
        totals -= self._turns[: self.count]
        return self._order.item(listing.item(int(totals.argmax())))

    def best_with(self, rows: IntArray | None, extra: IntArray) -> int:
        """The winner with so many points more for each of the rows; None: all, and all pass."""
        if rows is None:
            totals = extra.take(self._order)
            totals *= SCALE
            totals += self._ranked
            return self._order.item(int(totals.argmax()))
        listing = self._listed()
        added = np.empty(len(self._order), dtype=np.int64)  # by rank, only of those that pass
        added[self._ranks[rows]] = extra
        totals = added.take(listing)
        totals *= SCALE
        totals += self._scaled.take(listing)
        totals -= self._turns[: self.count]
        return self._order.item(listing.item(int(totals.argmax())))

    # --- writing -------------------------------------------------------------------------------

    def put_one(self, row: int, points: int) -> None:
        """The points of a row, whether or not it can be chosen."""
        rank = self._rank_cells[row]
        scaled = points * SCALE
        self._scaled_cells[rank] = scaled
        self._ranked_cells[rank] = scaled - self._turn_cells[rank]

    def put(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        scaled = points * SCALE
        self._scaled[ranks] = scaled
        self._ranked[ranks] = scaled - self._turns[ranks]

    def add_one(self, row: int, points: int) -> None:
        """More points for a row, or fewer."""
        rank = self._rank_cells[row]
        self._scaled_cells[rank] += points * SCALE
        self._ranked_cells[rank] += points * SCALE

    def add(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        scaled = points * SCALE
        self._scaled[ranks] += scaled
        self._ranked[ranks] += scaled

    def open_one(self, row: int, passes: bool) -> bool:
        """Whether a row can be chosen; returns whether that is news."""
        rank = self._rank_cells[row]
        if self._passed_cells[rank] is passes:
            return False
        self._passed_cells[rank] = passes
        self.count += 1 if passes else -1
        self._listing = None
        return True

    def open(self, rows: IntArray, passes: BoolArray) -> BoolArray | None:
        """Likewise for many; returns of which it is news, None: of none."""
        ranks = self._ranks[rows]
        news: BoolArray = self._passed[ranks] != passes
        if not news.any():
            return None
        self._passed[ranks] = passes
        self.count = int(np.count_nonzero(self._passed))
        self._listing = None
        return news

    def _listed(self) -> IntArray:
        if self._listing is None:
            self._listing = self._passed.nonzero()[0]
        return self._listing
