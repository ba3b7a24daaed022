"""The nodes that a pod can choose from, with their points, and the best of them.

Everything here is in listing order, by rank: of nodes with equal points the winner depends on their
places among those that can be chosen (see `picking`). On a level of the heap the leftmost one comes
first, so there is one candidate per level, however many nodes have the same points.

From one choice to the next few nodes differ, so in a large cluster nothing is looked for among all
of them: the best are marked, and for when they run out, the most points in each block of ranks are
known.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from typing import Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.snapshot import Nodes
from mooring.runtime.picking import SCALE, turns, way

SMALL = 1_024  # up to so many nodes it is cheapest to look at all of them for each choice
_BLOCK: Final = 128  # ranks: about as many as there are blocks in a large cluster
_FEW: Final = 32  # up to so many ranks are brought up to date one by one
_FEW_BLOCKS: Final = 8  # likewise
_NONE: Final = -1  # less than any points
_UNKNOWN: Final = 2**63 - 1  # more than any points
_NOBODY: Final = -1  # no rank

_Candidate = tuple[int, int, int]  # the way to its place, level, rank: the least comes first
_WAY: Final = 0
_RANK: Final = 2


class Field:
    """Who can be chosen, and the points of everybody.

    No row may occur twice where many are given.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._size = len(nodes)
        self.count: int = 0  # of those that can be chosen
        self._order = nodes.listing  # rank -> row
        self._ranks = nodes.ranks  # row -> rank
        blocks = self._size // _BLOCK + 1
        whole = blocks * _BLOCK  # ranks from the size on are nobody's
        self._passed_cells = bytearray(whole)
        self._passed: BoolArray = np.frombuffer(self._passed_cells, dtype=np.bool_)
        self._scaled: IntArray = np.zeros(whole, dtype=np.int64)  # points times SCALE
        # The first rank on each level of the heap, and where there is none, the size.
        self._starts: list[int] | None = None  # None: not known
        self._many_did = False  # change since the last choice
        # What follows is brought up to date before a choice.
        self._changed: list[int] = []  # ranks with other points, or that can be chosen or not now
        self._is_stale = True  # too many ranks are for anything of the following to be known
        self._offers: IntArray = np.full(whole, _NONE)  # points of those that can be chosen
        self._by_block = self._offers.reshape(blocks, _BLOCK)
        self._peaks: IntArray = np.full(blocks, _NONE)  # the most in each block
        self._loose: set[int] = set()  # blocks where the most may be less by now
        self._most = _NONE  # that anybody offers, but for a leader
        # A node often gets ahead of all others for a while: so they need not be looked for again.
        self._leader = _NOBODY  # the rank of the only one that offers more
        self._tie_cells = bytearray(whole)  # by rank, whether it offers the most
        self._ties: BoolArray = np.frombuffer(self._tie_cells, dtype=np.bool_)
        self._ties_by_block = self._ties.reshape(blocks, _BLOCK)
        self._tie_count = 0
        # Of each level, the first of the best; None: to be looked for.
        self._candidates: list[_Candidate] | None = None
        # The same memory, for one value at a time.
        self._rank_cells = self._ranks.data
        self._scaled_cells = self._scaled.data
        self._offer_cells = self._offers.data
        self._peak_cells = self._peaks.data

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
        return self._order.item(self._passed_cells.find(1))

    def best(self) -> int:
        """The row of the winner."""
        if self._many_did or self._size <= SMALL:
            # It may be like that for the next choice as well, so nothing is made ready for it.
            self._many_did = False
            self._forget()
            return self._order.item(self._best_of_all())
        self._catch_up()
        if self._leader != _NOBODY:
            return self._order.item(self._leader)
        candidates = self._candidates
        while candidates is None or not self._tie_cells[candidates[0][_RANK]]:
            if candidates is None or candidates[0][_WAY] == 0:
                candidates = self._candidates = self._find_candidates()
            else:
                self._find_next(candidates)
        return self._order.item(candidates[0][_RANK])

    def best_with(self, rows: IntArray | None, extra: IntArray) -> int:
        """The winner with so many points more for each of the rows; None: all, and all pass."""
        if rows is None:
            by_rank = extra.take(self._order)
        else:
            by_rank = np.empty(self._size, dtype=np.int64)  # only of those that pass
            by_rank[self._ranks[rows]] = extra
        return self._order.item(self._best_of_all(by_rank))

    def _best_of_all(self, extra: IntArray | None = None) -> int:
        """The rank of the winner, with so many points more for each rank."""
        if self.count == self._size:
            totals = self._scaled[: self._size] - turns(self._size)
            if extra is not None:
                totals += extra * SCALE
            return int(totals.argmax())
        listing = self._passed.nonzero()[0]
        totals = self._scaled.take(listing)
        totals -= turns(self.count)
        if extra is not None:
            totals += extra.take(listing) * SCALE
        return listing.item(int(totals.argmax()))

    # --- writing -------------------------------------------------------------------------------

    def put_one(self, row: int, points: int) -> None:
        """The points of a row, whether or not it can be chosen."""
        rank = self._rank_cells[row]
        self._scaled_cells[rank] = points * SCALE
        self._changed.append(rank)
        if len(self._changed) > _BLOCK:  # long since a choice was made
            self._forget()

    def put(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        self._scaled[ranks] = points * SCALE
        self._many_changed(ranks)

    def add_one(self, row: int, points: int) -> None:
        """More points for a row, or fewer."""
        rank = self._rank_cells[row]
        self._scaled_cells[rank] += points * SCALE
        self._changed.append(rank)

    def add(self, rows: IntArray, points: IntArray) -> None:
        ranks = self._ranks[rows]
        self._scaled[ranks] += points * SCALE
        self._many_changed(ranks)

    def open_one(self, row: int, passes: bool) -> bool:
        """Whether a row can be chosen; returns whether that is news."""
        rank = self._rank_cells[row]
        if self._passed_cells[rank] == passes:
            return False
        self._passed_cells[rank] = passes
        self.count += 1 if passes else -1
        self._changed.append(rank)
        self._candidates = None
        if self._starts is not None:
            self._move_starts(self._starts, rank, passes)
        return True

    def open(self, rows: IntArray, passes: BoolArray) -> BoolArray | None:
        """Likewise for many; returns of which it is news, None: of none."""
        ranks = self._ranks[rows]
        news: BoolArray = self._passed[ranks] != passes
        if not news.any():
            return None
        self._passed[ranks] = passes
        self.count = int(np.count_nonzero(self._passed))
        self._starts = self._candidates = None
        self._many_changed(ranks)
        return news

    def _many_changed(self, ranks: IntArray) -> None:
        if len(ranks) > _FEW:
            self._many_did = True
        else:
            self._changed += ranks.tolist()

    def _forget(self) -> None:
        self._is_stale = True
        self._changed.clear()

    # --- the levels of the heap ----------------------------------------------------------------

    def _find_starts(self) -> list[int]:
        listing = self._passed.nonzero()[0]
        starts = [self._size] * (self._size.bit_length() + 1)
        for level in range(self.count.bit_length()):
            starts[level] = listing.item(2**level - 1)
        return starts

    def _move_starts(self, starts: list[int], rank: int, passes: bool) -> None:
        """One more or one less in front of whoever is behind that rank."""
        passed, size = self._passed_cells, self._size
        most = self.count if passes else self.count + 1
        for level in range(bisect_left(starts, rank), most.bit_length()):
            if passes:
                starts[level] = passed.rfind(1, 0, starts[level])
            else:
                later = passed.find(1, starts[level] + 1)
                starts[level] = later if later >= 0 else size

    def _find_candidates(self) -> list[_Candidate]:
        """Those that have to be known, as a heap: if the first has no way to go, not all."""
        if self._starts is None:
            self._starts = self._find_starts()
        starts, found = self._starts, []
        for level in range(self.count.bit_length()):
            start = starts[level]
            rank = self._tie_cells.find(1, start, starts[level + 1])
            if rank >= 0:
                found.append((way(level, self._between(start, rank)), level, rank))
            if rank == start:
                break  # nobody comes before this one
        heapq.heapify(found)
        return found

    def _find_next(self, candidates: list[_Candidate]) -> None:
        """The first is no longer one of the best: is there another on its level?"""
        assert self._starts is not None
        turn, level, rank = candidates[0]
        later = self._tie_cells.find(1, rank + 1, self._starts[level + 1])
        if later < 0:
            heapq.heappop(candidates)
        else:
            turn += way(level, self._between(rank, later))
            heapq.heapreplace(candidates, (turn, level, later))

    def _between(self, start: int, rank: int) -> int:
        """How many can be chosen from one rank up to another."""
        if self.count == self._size:
            return rank - start
        return int(np.count_nonzero(self._passed[start:rank]))

    # --- the most points -----------------------------------------------------------------------

    def _catch_up(self) -> None:
        if self._is_stale or len(self._changed) > _FEW:
            self._is_stale = False
            np.copyto(self._offers, _NONE)
            np.copyto(self._offers, self._scaled, where=self._passed)
            self._find_peaks()
            self._find_ties()
        else:
            for rank in self._changed:
                new = self._scaled_cells[rank] if self._passed_cells[rank] else _NONE
                old = self._offer_cells[rank]
                if new != old:
                    self._offer_cells[rank] = new
                    self._follow(rank, old, new)
            if not self._tie_count and self._leader == _NOBODY:
                self._find_ties()
        self._changed.clear()

    def _follow(self, rank: int, old: int, new: int) -> None:
        """Another offer."""
        block = rank // _BLOCK
        if new > self._peak_cells[block]:
            self._peak_cells[block] = new
            self._loose.discard(block)
        elif old == self._peak_cells[block]:
            self._loose.add(block)
        if old == self._most:
            self._tie_cells[rank] = False
            self._tie_count -= 1
        if new > self._most:
            if self._leader in (_NOBODY, rank):
                self._leader = rank
            else:
                self._leader = _NOBODY
                self._most = _UNKNOWN
                self._tie_count = 0
            return
        if rank == self._leader:
            self._leader = _NOBODY
        if new == self._most:
            self._tie_cells[rank] = True
            self._tie_count += 1
            self._candidates = None

    def _find_peaks(self) -> None:
        self._by_block.max(axis=1, out=self._peaks)
        self._loose.clear()

    def _find_ties(self) -> None:
        if len(self._loose) > _FEW_BLOCKS:
            self._find_peaks()
        block = int(self._peaks.argmax())
        while block in self._loose:
            here = self._by_block[block]
            self._peak_cells[block] = here.item(int(here.argmax()))
            self._loose.remove(block)
            block = int(self._peaks.argmax())
        self._most = self._peak_cells[block]
        if np.count_nonzero(self._peaks == self._most) == 1:
            self._ties.fill(False)
            np.equal(self._by_block[block], self._most, out=self._ties_by_block[block])
        else:
            np.equal(self._offers, self._most, out=self._ties)
        self._tie_count = int(np.count_nonzero(self._ties))
        self._leader = _NOBODY
        self._candidates = None
