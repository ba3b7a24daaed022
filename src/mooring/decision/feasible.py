"""The nodes that fit a pod, with their scores, and the best of them.

kube-scheduler takes the root of a heap built over the list of nodes. A node wins unless a node
below it in the heap has more, and of two branches with the best score the left one goes first: so
of all ties the winner is the first in the order of a walk that visits a place, then all below it on
the left, then all below it on the right. The rank of a place in that walk does not depend on how
many nodes there are, and is computed once.

Everything here is in listing order. As long as all nodes are feasible, the place of a node in the
heap is its place in the listing, and its tie-break rank stands in one number with its score. If
some are not, the places of only a few have to be known: on each level of the heap the leftmost of
the best comes before its neighbours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mooring.cache.arrays import frozen
from mooring.cache.internals import listed_label_codes, listing_of, on_rows_of, ranks_of
from mooring.framework import BoolArray, IntArray, Nodes
from mooring.framework._internal import ScoresByCode, ScoresByLabel

_DEPTH: Final = 24  # levels of the heap: enough for 16 million nodes
_LEVELS: Final = _DEPTH + 1
_BITS: Final = 29
SCALE: Final = 1 << _BITS  # more than any tie-break rank
MAX_TOTAL: Final = 2**33  # with more than that, score and rank do not fit into one number
_INFEASIBLE: Final = MAX_TOTAL * SCALE  # 2**62: puts a node behind all that are feasible
_LEAST: Final = -2 * _INFEASIBLE  # behind all
_FIRSTS: Final[IntArray] = frozen((1 << np.arange(32)) - 1)  # the first place of each level

_tie_break_ranks: IntArray = np.empty(0, dtype=np.int64)


def tie_break_ranks(size: int) -> IntArray:
    """For each of the first places of the heap a number that grows along the walk."""
    global _tie_break_ranks
    if size > len(_tie_break_ranks):
        numbers = np.arange(1, max(2 * len(_tie_break_ranks), size, 1024) + 1, dtype=np.int64)
        levels = np.frexp(numbers.astype(np.float64))[1].astype(np.int64) - 1
        # The way to a place from the root is in the bits of its number, one per level.
        ways = (numbers - (1 << levels)) << (_DEPTH - levels)
        _tie_break_ranks = frozen(ways * _LEVELS + levels)
    return _tie_break_ranks[:size]


def pick(totals: IntArray) -> int:
    """The place of the winner among feasible nodes that stand in listing order."""
    best = int(totals.argmax())
    if best == 0:
        return 0
    ties = np.flatnonzero(totals == totals[best])
    return int(ties[tie_break_ranks(len(totals))[ties].argmin()])


class ExtraScores:
    """Weighted scores for one choice only: by label or code, and of each feasible node."""

    def __init__(self) -> None:
        self.column: IntArray | None = None  # per feasible node, in row order
        self.tables: dict[str, IntArray] = {}  # label key -> per label code
        self.coded: list[tuple[IntArray, IntArray]] = []  # codes of all nodes by row, per code

    def add(self, scores: IntArray) -> None:
        self.column = scores if self.column is None else self.column + scores

    def add_by_label(self, key: str, points: IntArray) -> None:
        """By the code of a label."""
        before = self.tables.get(key)
        self.tables[key] = points if before is None else before + points

    def add_by_code(self, codes: IntArray, points: IntArray) -> None:
        """By a number of each node of the cluster."""
        self.coded.append((codes, points))

    def add_table(self, table: ScoresByLabel | ScoresByCode, weight: int) -> None:
        if isinstance(table, ScoresByLabel):
            self.add_by_label(table.key, table.points * weight)
        else:
            self.add_by_code(table.codes, table.points * weight)

    def on(self, nodes: Nodes) -> IntArray:
        """The sum, per feasible node."""
        total = np.zeros(len(nodes), dtype=np.int64) if self.column is None else self.column
        for key, table in self.tables.items():
            total = total + table.take(nodes.label_codes(key))
        for of_rows, table in self.coded:
            total = total + table.take(on_rows_of(nodes, of_rows))
        return total


class FeasibleNodes:
    """Which nodes are feasible, and the total score of every node.

    The arrays are in listing order; callers speak of rows. No row may occur twice where several
    are given.
    """

    def __init__(self, nodes: Nodes, feasible: BoolArray | None, totals: IntArray | None) -> None:
        """By row; None: all nodes are feasible, all totals are zero."""
        size = len(nodes)
        self._order = listing_of(nodes)  # place in the listing -> row
        self._ranks = ranks_of(nodes)  # row -> place in the listing
        self._ties = tie_break_ranks(size)
        # Total times SCALE, less the tie-break rank, less _INFEASIBLE where the node is not.
        self._ranked: IntArray = -self._ties
        if totals is not None:
            self._ranked += totals.take(self._order) * SCALE
        if feasible is None:
            self.count: int = size
            self._feasible: BoolArray = np.ones(size, dtype=np.bool_)
        else:
            self.count = int(np.count_nonzero(feasible))
            self._feasible = feasible.take(self._order)
            self._ranked[~self._feasible] -= _INFEASIBLE
        # Places and rows of the feasible nodes, while they stay so.
        self._listed: IntArray | None = None
        self._rows: IntArray | None = None
        # While nothing but the score of the first is written, one of these two is the best.
        self._first = -1
        self._second = -1  # -1: not known
        # The same memory, for one value at a time.
        self._rank_cells = self._ranks.data
        self._order_cells = self._order.data
        self._feasible_cells = self._feasible.data
        self._tie_cells = self._ties.data
        self._ranked_cells = self._ranked.data

    # --- reading -------------------------------------------------------------------------------

    def has(self, row: int) -> bool:
        return bool(self._feasible_cells[self._rank_cells[row]])

    def having(self, rows: IntArray) -> BoolArray:
        """Which of these rows are feasible."""
        return self._feasible.take(self._ranks.take(rows))

    @property
    def mask(self) -> BoolArray:
        """Whether each row is feasible."""
        return self._feasible.take(self._ranks)

    @property
    def rows(self) -> IntArray:
        """The feasible rows, ascending; the same array while they stay so."""
        if self._rows is None:
            self._rows = self.mask.nonzero()[0]
        return self._rows

    @property
    def first(self) -> int:
        """The feasible row that is listed first, if there is one."""
        return self._order.item(int(self._feasible.argmax()))

    def best(self) -> int:
        """The row of the winner."""
        second = self._second
        if second >= 0:
            first, cells = self._first, self._ranked_cells
            return self._order_cells[first if cells[first] > cells[second] else second]
        if self.count == len(self._order):
            return self._order_cells[self._ranked.argmax()]
        return self._best(None)

    def totals(self, rows: IntArray) -> IntArray:
        """Of these rows, all of them feasible."""
        places = self._ranks.take(rows)
        totals: IntArray = (self._ranked.take(places) + self._ties.take(places)) // SCALE
        return totals

    def best_with(self, extra: ExtraScores, nodes: Nodes) -> int:
        """The winner with more scores for the feasible rows."""
        return self._best(self._added(extra, nodes))

    def lead(self, row: int, extra: ExtraScores | None, nodes: Nodes) -> tuple[int, int]:
        """One of the best others of at least one, and how far it is behind a feasible row."""
        place = self._rank_cells[row]
        if extra is None and 4 * self.count >= len(self._order):
            cells = self._ranked_cells
            mine = cells[place]
            cells[place] = _LEAST
            second = int(self._ranked.argmax())
            cells[place] = mine
            if self.count == len(self._order):
                self._first, self._second = place, second
            # The tie-break rank is less than SCALE: rounded up, this is the total.
            return self._order_cells[second], (-cells[second] >> _BITS) - (-mine >> _BITS)
        added = None if extra is None else self._added(extra, nodes)
        places = self._listing() if self._are_few else np.arange(len(self._order))
        totals = self._ranked.take(places)
        if added is not None:
            totals += added
        at = places.searchsorted(place)
        mine = totals.item(at)
        totals[at] = _LEAST
        other = totals.argmax()
        behind = totals.item(other)
        return self._order_cells[places[other]], (-behind >> _BITS) - (-mine >> _BITS)

    def _added(self, extra: ExtraScores, nodes: Nodes) -> IntArray | None:
        """More scores, scaled: of every place, or of the listed ones if they are few."""
        listed = self._listing() if self._are_few else None
        added: IntArray | None = None
        for key, table in extra.tables.items():
            codes = listed_label_codes(nodes, key)
            here = (table * SCALE).take(codes if listed is None else codes.take(listed))
            added = here if added is None else added + here
        for of_rows, table in extra.coded:
            rows = self._order if listed is None else self._order.take(listed)
            here = (table * SCALE).take(of_rows.take(rows))
            added = here if added is None else added + here
        if extra.column is not None:
            here = self._by_place(extra.column * SCALE)
            here = here if listed is None else here.take(listed)
            added = here if added is None else added + here
        return added

    def _by_place(self, column: IntArray) -> IntArray:
        if self.count == len(self._order):
            return column.take(self._order)
        found = np.zeros(len(self._order), dtype=np.int64)
        found[self._ranks.take(self.rows)] = column
        return found

    @property
    def _are_few(self) -> bool:
        """Whether it is cheaper to look only at the feasible nodes."""
        return 4 * self.count < len(self._order)

    def _best(self, added: IntArray | None) -> int:
        """With scaled scores more for every place, or for the listed ones if they are few."""
        if 4 * self.count < len(self._order):  # `_are_few`, without a call
            listed = self._listing()
            totals = self._ranked.take(listed)
            totals += self._ties.take(listed)
            totals -= self._ties[: self.count]
            if added is not None:
                totals += added
            return self._order_cells[listed.item(int(totals.argmax()))]
        if added is None:
            totals = self._ranked
        else:
            totals = added
            totals += self._ranked
        if self.count == len(totals):
            return self._order_cells[totals.argmax()]
        return self._order_cells[self._first_of_the_best(totals)]

    def _first_of_the_best(self, totals: IntArray) -> int:
        """The place of the winner if some nodes are not feasible."""
        most = totals.item(int(totals.argmax()))
        is_best = (totals > (most - 1) // SCALE * SCALE).tobytes()  # whatever their ranks
        listed = self._listing()
        starts = listed.take(_FIRSTS[: self.count.bit_length()]).tolist()
        starts.append(len(is_best))
        found = []
        for level in range(len(starts) - 1):
            place = is_best.find(True, starts[level], starts[level + 1])
            if place >= 0:
                found.append(place)
                if place == starts[level]:
                    break  # the first of a level comes before all on the levels below
        if len(found) == 1:
            return found[0]
        places = listed.searchsorted(found)
        return found[int(self._ties.take(places).argmin())]

    def _listing(self) -> IntArray:
        if self._listed is None:
            self._listed = self._feasible.nonzero()[0]
        return self._listed

    # --- writing: one row ----------------------------------------------------------------------

    def set_total(self, row: int, total: int) -> None:
        """The total score of a row, feasible or not."""
        place = self._rank_cells[row]
        if place != self._first:
            self._second = -1
        ranked = total * SCALE - self._tie_cells[place]
        self._ranked_cells[place] = ranked if self._feasible_cells[place] else ranked - _INFEASIBLE

    def add_score(self, row: int, score: int) -> None:
        """More for a row, or less."""
        place = self._rank_cells[row]
        if place != self._first:
            self._second = -1
        self._ranked_cells[place] += score * SCALE

    def set_feasible(self, row: int, feasible: bool) -> bool:
        """Returns whether that is another answer than before."""
        place = self._rank_cells[row]
        if self._feasible_cells[place] is feasible:
            return False
        self._feasible_cells[place] = feasible
        self._ranked_cells[place] += _INFEASIBLE if feasible else -_INFEASIBLE
        self.count += 1 if feasible else -1
        self._second = -1
        self._listed = self._rows = None
        return True

    # --- writing: many rows --------------------------------------------------------------------

    def set_totals(self, rows: IntArray, totals: IntArray) -> None:
        places = self._ranks[rows]
        ranked = totals * SCALE
        ranked -= self._ties[places]
        if self.count < len(self._order):
            ranked -= np.where(self._feasible[places], 0, _INFEASIBLE)
        self._ranked[places] = ranked
        self._second = -1

    def add_scores(self, rows: IntArray, scores: IntArray) -> None:
        np.add.at(self._ranked, self._ranks.take(rows), scores * SCALE)
        self._second = -1

    def set_feasible_rows(self, rows: IntArray, feasible: BoolArray) -> BoolArray | None:
        """Returns for which rows that is another answer than before; None: for none."""
        places = self._ranks.take(rows)
        changed: BoolArray = self._feasible.take(places) != feasible
        count = int(np.count_nonzero(changed))
        if not count:
            return None
        if count < len(places):
            places, feasible = places[changed], feasible[changed]
        entered = int(np.count_nonzero(feasible))
        more: IntArray | int = _INFEASIBLE if entered else -_INFEASIBLE
        if 0 < entered < count:
            more = np.where(feasible, _INFEASIBLE, -_INFEASIBLE)
        np.add.at(self._ranked, places, more)  # in one go; faster than `+=`
        self._feasible[places] = feasible
        self.count += 2 * entered - count
        self._second = -1
        self._listed = self._rows = None
        return changed
