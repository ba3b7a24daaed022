"""The nodes that a pod can choose from, with their points, and the best of them.

Everything here is in listing order, by rank: of nodes with equal points the winner depends on their
places among those that can be chosen. As long as all can, the places are the ranks, and each node's
turn (see `picking`) stands in one number with its points. If many can, the places of only a few
have to be known: on each level of the heap the leftmost of the best comes before its neighbours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray, frozen
from mooring.cache.snapshot import Nodes
from mooring.framework.results import LabelScores
from mooring.runtime.picking import MAX_POINTS, SCALE, turns

_SHUT: Final = MAX_POINTS * SCALE  # 2**62: who has so much less is behind all that can be chosen
_FIRSTS: Final[IntArray] = frozen((1 << np.arange(32)) - 1)  # the first place of each level


class Extra:
    """Weighted points for one choice only: by label, and of each node that can be chosen."""

    __slots__ = ("column", "tables")

    def __init__(self) -> None:
        self.column: IntArray | None = None  # per node, in row order
        self.tables: dict[str, IntArray] = {}  # label key -> per label code

    def add(self, points: IntArray) -> None:
        self.column = points if self.column is None else self.column + points

    def add_by_label(self, points: LabelScores) -> None:
        before = self.tables.get(points.key)
        self.tables[points.key] = points.points if before is None else before + points.points

    def on(self, nodes: Nodes) -> IntArray:
        """All of it, per node that can be chosen."""
        total = np.zeros(len(nodes), dtype=np.int64) if self.column is None else self.column
        for key, table in self.tables.items():
            total = total + table.take(nodes.label_codes(key))
        return total


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
        # Points times SCALE, less the turn if all could be chosen, less _SHUT for those that can't.
        self._ranked: IntArray = -_SHUT - self._turns
        self._listing: IntArray | None = None  # ranks of those that can be, while they are the same
        # The same memory, for one value at a time.
        self._rank_cells = self._ranks.data
        self._passed_cells = self._passed.data
        self._turn_cells = self._turns.data
        self._ranked_cells = self._ranked.data

    # --- reading -------------------------------------------------------------------------------

    def passes(self, row: int) -> bool:
        return bool(self._passed_cells[self._rank_cells[row]])

    def passing(self, rows: IntArray) -> BoolArray:
        """Which of these rows can be chosen."""
        return self._passed.take(self._ranks.take(rows))

    @property
    def rows(self) -> IntArray:
        """The rows that can be chosen, ascending."""
        found: IntArray = self._passed.take(self._ranks).nonzero()[0]
        return found

    @property
    def any_row(self) -> int:
        """The first, if there is one."""
        return self._order.item(int(self._passed.argmax()))

    def best(self) -> int:
        """The row of the winner."""
        return self._best(None)

    def best_with(self, extra: Extra, nodes: Nodes, rows: IntArray | None) -> int:
        """The winner with more points for those that can be chosen: for these rows; None: all."""
        listing = self._listed() if self._are_few else None
        added: IntArray | None = None
        for key, table in extra.tables.items():
            codes = nodes.listed_label_codes(key)
            here = (table * SCALE).take(codes if listing is None else codes.take(listing))
            added = here if added is None else added + here
        if extra.column is not None:
            here = self._by_rank(extra.column * SCALE, rows)
            here = here if listing is None else here.take(listing)
            added = here if added is None else added + here
        return self._best(added)

    def _by_rank(self, column: IntArray, rows: IntArray | None) -> IntArray:
        if rows is None:
            return column.take(self._order)
        found = np.zeros(len(self._order), dtype=np.int64)
        found[self._ranks.take(rows)] = column
        return found

    @property
    def _are_few(self) -> bool:
        """Whether it is better to look only at those that can be chosen."""
        return 4 * self.count < len(self._order)

    def _best(self, added: IntArray | None) -> int:
        """With scaled points more for everybody, or for those in the listing if they are few."""
        if self._are_few:
            listing = self._listed()
            totals = self._ranked.take(listing)
            totals += self._turns.take(listing)
            totals -= self._turns[: self.count]
            if added is not None:
                totals += added
            return self._order.item(listing.item(int(totals.argmax())))
        if added is None:
            totals = self._ranked
        else:
            totals = added
            totals += self._ranked
        if self.count == len(totals):
            return self._order.item(int(totals.argmax()))
        return self._order.item(self._first_of_the_best(totals))

    def _first_of_the_best(self, totals: IntArray) -> int:
        """The rank of the winner if some can't be chosen."""
        most = totals.item(int(totals.argmax()))
        is_best = (totals > (most - 1) // SCALE * SCALE).tobytes()  # whatever their turns
        listing = self._listed()
        starts = listing.take(_FIRSTS[: self.count.bit_length()]).tolist()
        starts.append(len(is_best))
        found = []
        for level in range(len(starts) - 1):
            rank = is_best.find(True, starts[level], starts[level + 1])
            if rank >= 0:
                found.append(rank)
                if rank == starts[level]:
                    break  # nobody on the levels below comes before the first of one
        if len(found) == 1:
            return found[0]
        places = listing.searchsorted(found)
        return found[int(self._turns.take(places).argmin())]

    def _listed(self) -> IntArray:
        if self._listing is None:
            self._listing = self._passed.nonzero()[0]
        return self._listing

    # --- writing -------------------------------------------------------------------------------

    def put_one(self, row: int, points: int) -> None:
        """The points of a row, whether or not it can be chosen."""
        rank = self._rank_cells[row]
        ranked = points * SCALE - self._turn_cells[rank]
        self._ranked_cells[rank] = ranked if self._passed_cells[rank] else ranked - _SHUT

    def put(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        ranked = points * SCALE
        ranked -= self._turns[ranks]
        if self.count < len(self._order):
            ranked -= np.where(self._passed[ranks], 0, _SHUT)
        self._ranked[ranks] = ranked

    def add_one(self, row: int, points: int) -> None:
        """More points for a row, or fewer."""
        self._ranked_cells[self._rank_cells[row]] += points * SCALE

    def add(self, rows: IntArray, points: IntArray) -> None:
        np.add.at(self._ranked, self._ranks.take(rows), points * SCALE)

    def open_one(self, row: int, passes: bool) -> bool:
        """Whether a row can be chosen; returns whether that is news."""
        rank = self._rank_cells[row]
        if self._passed_cells[rank] is passes:
            return False
        self._passed_cells[rank] = passes
        self._ranked_cells[rank] += _SHUT if passes else -_SHUT
        self.count += 1 if passes else -1
        self._listing = None
        return True

    def open(self, rows: IntArray, passes: BoolArray) -> BoolArray | None:
        """Likewise for many; returns of which it is news, None: of none."""
        ranks = self._ranks.take(rows)
        passed = self._passed.take(ranks)
        news: BoolArray = passed != passes
        changed = int(np.count_nonzero(news))
        if not changed:
            return None
        if changed < len(ranks):
            ranks, passes = ranks[news], passes[news]
        opened = int(np.count_nonzero(passes))
        more: IntArray | int = _SHUT if opened else -_SHUT
        if 0 < opened < changed:
            more = np.where(passes, _SHUT, -_SHUT)
        np.add.at(self._ranked, ranks, more)  # in one go; faster than `+=`
        self._passed[ranks] = passes
        self.count += 2 * opened - changed
        self._listing = None
        return news
