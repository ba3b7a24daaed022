"""Verdicts: the Filter results of all nodes, from the vectorised form."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray, any_of, frozen
from mooring.framework.status import OK, Status

_FEW: Final = 3  # up to so many numbers, a scan is faster


class Verdicts:
    """One status per node, stored as small numbers.

    Row i passes when `index` is None or `index[i] == 0`; otherwise its answer is
    `statuses[index[i] - 1]`. The first rejection of a row stays: later `reject` calls do not
    overwrite it, as a node that a filter refuses is not passed to further filters.
    """

    __slots__ = ("index", "size", "statuses")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.index: IntArray | None = None  # (size,), lazily made: most plugins refuse no node
        self.statuses: list[Status] = []

    @classmethod
    def passing(cls, nodes: Sized) -> Verdicts:
        """No node is refused so far."""
        return cls(len(nodes))

    @classmethod
    def of(cls, statuses: Iterable[Status]) -> Verdicts:
        """From one status per node, in order."""
        answers = list(statuses)
        verdicts = cls(len(answers))
        for row, status in enumerate(answers):
            if not status.ok:
                verdicts.set(row, status)
        return verdicts

    @classmethod
    def coded(cls, index: IntArray, statuses: Iterable[Status]) -> Verdicts:
        """From numbers: row i passes where `index[i]` is 0, else gets `statuses[index[i] - 1]`."""
        verdicts = cls(len(index))
        verdicts.index = index
        verdicts.statuses = list(statuses)
        return verdicts

    def reject(self, refused: BoolArray, status: Status) -> Verdicts:
        """Give `status` to the rows that still pass and where `refused` is true."""
        if status.ok:
            raise ValueError("a rejection needs a status that is not OK")
        if self.index is None:
            if not refused.any():
                return self
            self.index = np.zeros(self.size, dtype=np.int64)
        index = self._own(self.index)
        index[refused & (index == 0)] = self._number(status)
        return self

    def reject_all(self, status: Status) -> Verdicts:
        """Give `status` to every row that still passes."""
        return self.reject(np.ones(self.size, dtype=np.bool_), status)

    def set(self, row: int, status: Status) -> None:
        """Set the status of one row."""
        if self.index is None:
            if status.ok:
                return
            self.index = np.zeros(self.size, dtype=np.int64)
        self._own(self.index)[row] = 0 if status.ok else self._number(status)

    def add(self, answers: Verdicts) -> BoolArray | None:
        """Add the refusals of rows that still pass; returns these rows, None if there are none."""
        if answers.index is None:
            return None
        index = answers.index.astype(np.int64)  # a copy
        fresh: BoolArray = index > 0
        if self.index is None:
            if not any_of(fresh):
                return None
            self.statuses = list(answers.statuses)
            self.index = index
            return fresh
        fresh &= self.index == 0
        if not any_of(fresh):
            return None
        index += len(self.statuses)
        self.statuses = self.statuses + answers.statuses
        np.copyto(self._own(self.index), index, where=fresh)
        return fresh

    def replace(self, rows: IntArray, answers: Verdicts) -> None:
        """Set the statuses of these rows; `answers` has one for each."""
        if answers.index is None:
            if self.index is not None:
                self._own(self.index)[rows] = 0
            return
        if self.index is None:
            self.index = np.zeros(self.size, dtype=np.int64)
        used = zip(answers.statuses, answers.counts(), strict=True)
        numbers = [self._number(status) if count else 0 for status, count in used]
        self._own(self.index)[rows] = np.array([0, *numbers], dtype=np.int64).take(answers.index)

    def drop_unused(self) -> None:
        """Drop statuses that no row has any more; the index array is renumbered in place."""
        if self.index is None:
            return
        used = [number for number, count in enumerate(self.counts(), 1) if count]
        numbers = np.zeros(len(self.statuses) + 1, dtype=np.int64)
        numbers[used] = np.arange(1, len(used) + 1)
        self.statuses = [self.statuses[number - 1] for number in used]
        self.index[:] = numbers.take(self.index)

    def copy(self) -> Verdicts:
        """An independent copy."""
        other = Verdicts(self.size)
        other.index = None if self.index is None else self.index.copy()
        other.statuses = list(self.statuses)
        return other

    def to_read(self) -> Verdicts:
        """A view that shares the index; a change of the view copies it first."""
        other = Verdicts(self.size)
        other.index = None if self.index is None else frozen(self.index[:])
        other.statuses = list(self.statuses)
        return other

    def _own(self, index: IntArray) -> IntArray:
        """The index as an array of its own, which may be changed."""
        if not index.flags.writeable:
            self.index = index = index.copy()
        return index

    @property
    def is_well_formed(self) -> bool:
        """Whether every row has a valid status; a plugin may have set the fields itself."""
        index, statuses = self.index, self.statuses
        if not isinstance(statuses, list) or not all(isinstance(s, Status) for s in statuses):
            return False
        if index is None or self.size == 0:
            return True
        return (
            isinstance(index, np.ndarray)
            and index.shape == (self.size,)
            and index.dtype.kind in "iu"
            and bool(index.min() >= 0)
            and bool(index.max() <= len(statuses))
        )

    def counts(self) -> list[int]:
        """How many rows have each of the statuses."""
        if self.index is None:
            return [0] * len(self.statuses)
        return tally(self.index, len(self.statuses))

    @property
    def passed(self) -> BoolArray:
        if self.index is None:
            return np.ones(self.size, dtype=np.bool_)
        passed: BoolArray = self.index == 0
        return passed

    def each(self) -> list[Status]:
        """The status of every row, in order."""
        if self.index is None:
            return [OK] * self.size
        known = [OK, *self.statuses]
        return [known[number] for number in self.index.tolist()]

    def status(self, row: int) -> Status:
        number = 0 if self.index is None else int(self.index[row])
        return self.statuses[number - 1] if number else OK

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Verdicts):
            return NotImplemented
        return self.size == other.size and self.each() == other.each()

    def __repr__(self) -> str:
        return f"Verdicts({self.each()!r})"

    def _number(self, status: Status) -> int:
        # A plugin has a handful of distinct answers; reuse keeps the list short in loops.
        statuses = self.statuses
        for number in range(len(statuses) - 1, max(-1, len(statuses) - 9), -1):
            if statuses[number] is status or statuses[number] == status:
                return number + 1
        statuses.append(status)
        return len(statuses)


def tally(index: IntArray, most: int) -> list[int]:
    """How often each number from 1 to the most occurs."""
    if most <= _FEW:
        return [int(np.count_nonzero(index == number)) for number in range(1, most + 1)]
    found: list[int] = np.bincount(index, minlength=most + 1)[1:].tolist()
    return found
