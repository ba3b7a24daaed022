"""The nodes that a pod can choose from, with their points, and the best of them.

Everything here is in listing order, by rank: of nodes with equal points the winner depends on their
places among those that can be chosen. As long as all can, the places are the ranks, and each node's
turn (see `picking`) stands in one number with its points. If most can, the places of only a few
have to be known: on each level of the heap the leftmost of the best comes before its neighbours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.snapshot import Nodes
from mooring.runtime.picking import SCALE, turns

_NONE: Final = -1  # less than any points


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
        self._turns = turns(size)
        self._ranked = -self._turns  # points times SCALE, less the turn if all can be chosen
        self._offers: IntArray = np.full(size, _NONE)  # points times SCALE of those that can be
        # Ranks of those that can be, and of those that can't, while they are the same.
        self._listing: IntArray | None = None
        self._refused: IntArray | None = None
        # The same memory, for one value at a time.
        self._rank_cells = self._ranks.data
        self._passed_cells = self._passed.data
        self._turn_cells = self._turns.data
        self._ranked_cells = self._ranked.data
        self._offer_cells = self._offers.data

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
        if 2 * self.count < len(self._order):
            listing = self._listed()
            totals = self._offers.take(listing)
            totals -= self._turns[: self.count]
            return self._order.item(listing.item(int(totals.argmax())))
        return self._order.item(self._best_of_most())

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
        totals += self._offers.take(listing)
        totals -= self._turns[: self.count]
        return self._order.item(listing.item(int(totals.argmax())))

    def _best_of_most(self) -> int:
        """The rank of the winner if some can't be chosen."""
        offers = self._offers
        most = offers.item(int(offers.argmax()))
        is_best = (offers == most).tobytes()
        if self._refused is None:
            self._refused = (~self._passed).nonzero()[0]
        refused = self._refused
        # A rank is a place and the number of those that can't be chosen before it.
        firsts = (1 << np.arange(self.count.bit_length())) - 1  # the first place of each level
        gaps = refused - np.arange(len(refused))
        starts = (firsts + gaps.searchsorted(firsts, side="right")).tolist()
        winner, least = -1, SCALE
        for start, end in zip(starts, [*starts[1:], len(is_best)], strict=True):
            rank = is_best.find(True, start, end)
            if rank >= 0:
                turn = self._turn_cells[rank - int(refused.searchsorted(rank))]
                if turn < least:
                    winner, least = rank, turn
                if rank == start:
                    break  # nobody on the levels below comes before the first of one
        return winner

    def _listed(self) -> IntArray:
        if self._listing is None:
            self._listing = self._passed.nonzero()[0]
        return self._listing

    # --- writing -------------------------------------------------------------------------------

    def put_one(self, row: int, points: int) -> None:
        """The points of a row, whether or not it can be chosen."""
        rank = self._rank_cells[row]
        scaled = points * SCALE
        self._ranked_cells[rank] = scaled - self._turn_cells[rank]
        if self._passed_cells[rank]:
            self._offer_cells[rank] = scaled

    def put(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        scaled = points * SCALE
        self._ranked[ranks] = scaled - self._turns[ranks]
        self._offers[ranks] = np.where(self._passed[ranks], scaled, _NONE)

    def add_one(self, row: int, points: int) -> None:
        """More points for a row, or fewer."""
        rank = self._rank_cells[row]
        self._ranked_cells[rank] += points * SCALE
        if self._passed_cells[rank]:
            self._offer_cells[rank] += points * SCALE

    def add(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        scaled = points * SCALE
        self._ranked[ranks] += scaled
        self._offers[ranks] += scaled * self._passed[ranks]

    def open_one(self, row: int, passes: bool) -> bool:
        """Whether a row can be chosen; returns whether that is news."""
        rank = self._rank_cells[row]
        if self._passed_cells[rank] is passes:
            return False
        self._passed_cells[rank] = passes
        self._offer_cells[rank] = (
            self._ranked_cells[rank] + self._turn_cells[rank] if passes else _NONE
        )
        self.count += 1 if passes else -1
        self._listing = self._refused = None
        return True

    def open(self, rows: IntArray, passes: BoolArray) -> BoolArray | None:
        """Likewise for many; returns of which it is news, None: of none."""
        ranks = self._ranks[rows]
        news: BoolArray = self._passed[ranks] != passes
        if not news.any():
            return None
        self._passed[ranks] = passes
        self._offers[ranks] = np.where(passes, self._ranked[ranks] + self._turns[ranks], _NONE)
        self.count = int(np.count_nonzero(self._passed))
        self._listing = self._refused = None
        return news
