"""Growable typed columns, one value per node row.

Rows are dense: removing a row moves the last one into its place, so that plugins never see holes.
Readers get read-only views; only the table that owns a column writes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.cache.arrays import frozen

S = TypeVar("S", bound=np.generic)

_FIRST_CAPACITY = 16


def wrapped(value: int) -> int:
    """What int64 arithmetic makes of a value: it wraps, as Go does."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    return (value - INT64_MIN) % 2**64 + INT64_MIN


class Column(Generic[S]):
    """A one-dimensional array that grows by doubling.

    `cells` is the same memory as `data`, for one value at a time: that is four times as fast.
    """

    __slots__ = ("_size", "_view", "cells", "data")

    def __init__(self, dtype: type[S], size: int = 0) -> None:
        capacity = max(_FIRST_CAPACITY, size)
        self.data: NDArray[S] = np.zeros(capacity, dtype=dtype)
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

    def append_zero(self) -> None:
        """Add a row that holds zero."""
        if self._size == len(self.data):
            grown = np.zeros(2 * len(self.data), dtype=self.data.dtype)
            grown[: self._size] = self.data
            self.data = grown
            self.cells = grown.data
        self.data[self._size] = 0  # a removed row may have left its value here
        self._size += 1
        self._view = None

    def remove(self, row: int) -> None:
        """Drop a row; the last row takes its place."""
        self._size -= 1
        self.data[row] = self.data[self._size]
        self._view = None
