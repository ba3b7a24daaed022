"""Growable typed columns, one value per node row.

Rows are dense: removing a row moves the last one into its place, so that plugins never see holes.
Readers get read-only views; only the table that owns a column writes. Columns that are read
together are lines of one `Block`, so that some rows of all of them are fetched in one go.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.cache.arrays import FloatArray, IntArray, frozen

S = TypeVar("S", bound=np.generic)

_FIRST_CAPACITY = 16
_FEW = 64  # changed rows, above which all are converted to floats


def wrapped(value: int) -> int:
    """What int64 arithmetic makes of a value: it wraps, as Go does."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    return (value - INT64_MIN) % 2**64 + INT64_MIN


def _capacity(size: int) -> int:
    """Room for so many rows, and some more: the next power of two."""
    return 1 << (size - 1).bit_length()


class Column(Generic[S]):
    """A one-dimensional array that grows by doubling.

    `cells` is the same memory as `data`, for one value at a time: that is four times as fast.
    """

    __slots__ = ("_size", "_view", "cells", "data", "line")

    def __init__(self, dtype: type[S], size: int = 0, line: int | None = None) -> None:
        self.line: int | None = line  # in the block that it is a part of, if it is
        self.data: NDArray[S] = np.zeros(max(_FIRST_CAPACITY, size), dtype=dtype)
        self.cells: memoryview = self.data.data
        self._size = size
        self._view: NDArray[S] | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def view(self) -> NDArray[S]:
        """All rows, read-only, and current until a row is added or removed."""
        if self._view is None:
            self._view = frozen(self.data[: self._size])
        return self._view

    def append_zeros(self, count: int = 1) -> None:
        """Add rows that hold zero."""
        before, self._size = self._size, self._size + count
        if self._size > len(self.data):
            grown = np.zeros(_capacity(self._size), dtype=self.data.dtype)
            grown[:before] = self.data[:before]
            self.put_into(grown)
        self.data[before : self._size] = 0  # removed rows may have left their values here
        self._view = None

    def remove(self, row: int) -> None:
        """Drop a row; the last row takes its place."""
        self._size -= 1
        self.data[row] = self.data[self._size]
        self._view = None

    def put_into(self, data: NDArray[S]) -> None:
        """From now on it is kept here, where all its rows are already."""
        self.data = data
        self.cells = data.data
        self._view = None


class Block:
    """Columns of integers that grow together, and lie one below the other.

    The same numbers can be had as floats: scores are computed in floats, and converting thousands
    of integers takes longer than the computation. So floats are kept, and `changed` rows converted
    when they are asked for.
    """

    def __init__(self, lines: int) -> None:
        self._data: IntArray = np.zeros((lines, _FIRST_CAPACITY), dtype=np.int64)
        self._view: IntArray | None = None
        self._floats: FloatArray | None = None  # None: to be made anew
        self._changed: list[int] = []  # rows whose floats are out of date
        self.columns: list[Column[np.int64]] = [Column(np.int64, line=i) for i in range(lines)]
        self._share_out()

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def view(self) -> IntArray:
        """All rows of all lines, read-only, and current until a row is added or removed."""
        if self._view is None:
            self._view = frozen(self._data[:, : len(self)])
        return self._view

    @property
    def floats(self) -> FloatArray:
        """All rows of all lines as floats, read-only, and current until a row changes."""
        changed, view = self._changed, self.view
        if self._floats is None or len(changed) > _FEW:
            self._floats = view.astype(np.float64)
            changed.clear()
        if changed:
            self._floats[:, changed] = view[:, changed]
            changed.clear()
        return frozen(self._floats[:])

    def changed(self, row: int) -> None:
        """Some number of a row is another one."""
        if len(self._changed) <= _FEW:
            self._changed.append(row)

    def all_changed(self) -> None:
        """Any number of any row may be another one."""
        self._floats = None

    def take(self, rows: IntArray) -> IntArray:
        """A copy of these rows of all lines, read-only."""
        return frozen(self._data.take(rows, 1))

    def append_zeros(self, count: int = 1) -> None:
        before, size = len(self), len(self) + count
        lines, capacity = self._data.shape
        if size > capacity:
            grown = np.zeros((lines, _capacity(size)), dtype=np.int64)
            grown[:, :before] = self._data[:, :before]
            self._data = grown
            self._share_out()
        self._data[:, before:size] = 0  # removed rows may have left their values here
        for column in self.columns:
            column._size = size
            column._view = None
        self._view = self._floats = None

    def remove(self, row: int) -> None:
        """Drop a row; the last row takes its place."""
        for column in self.columns:
            column.remove(row)
        self._view = self._floats = None

    def _share_out(self) -> None:
        for column, line in zip(self.columns, self._data, strict=True):
            column.put_into(line)
