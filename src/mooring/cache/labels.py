"""Node labels as columns: for one key, a small number per node.

Code 0 means that the node lacks the key; other codes stand for values. A question about labels is
asked once per distinct value instead of once per node.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mooring.api.selectors import LabelRequirement
from mooring.cache.arrays import BoolArray, IntArray, frozen
from mooring.cache.columns import Column

ABSENT: Final = 0


class _Grouped(NamedTuple):
    """Rows by code."""

    epoch: int  # of the table
    rows: IntArray
    tally: IntArray  # rows, per code
    ends: IntArray  # where they end among all rows, per code


class LabelColumn:
    """The values of one label key over all node rows."""

    __slots__ = ("_code_of", "_grouped", "_listed", "codes", "key", "values")

    def __init__(self, key: str) -> None:
        self.key: str = key
        self.codes: Column[np.int64] = Column(np.int64)
        self.values: list[str | None] = [None]  # code -> value; code 0 is "absent"
        self._code_of: dict[str, int] = {}
        self._grouped: _Grouped | None = None
        self._listed: tuple[IntArray, IntArray] | None = None  # an order of rows, codes in it

    def intern(self, value: str | None) -> int:
        if value is None:
            return ABSENT
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code

    def code(self, value: str) -> int | None:
        """The code of a value, or None if no node ever had it."""
        return self._code_of.get(value)

    def put(self, row: int, code: int) -> None:
        """A node has another value."""
        self.codes.data[row] = code
        self._grouped = self._listed = None

    def rows_of(self, code: int, epoch: int) -> IntArray:
        """The rows with a code, ascending; the epoch is that of the table."""
        grouped = self._grouping(epoch)
        end = grouped.ends[code]
        return grouped.rows[end - grouped.tally[code] : end]

    def tally(self, epoch: int) -> IntArray:
        """How many rows there are with each code."""
        return self._grouping(epoch).tally

    def listed(self, order: IntArray) -> IntArray:
        """The codes of rows in some order, which is always the same array as long as it holds."""
        if self._listed is None or self._listed[0] is not order:
            self._listed = (order, frozen(self.codes.view.take(order)))
        return self._listed[1]

    def _grouping(self, epoch: int) -> _Grouped:
        grouped = self._grouped
        if grouped is None or grouped.epoch != epoch:
            codes = self.codes.view
            tally = np.bincount(codes, minlength=len(self.values))
            rows = codes.argsort(kind="stable")
            grouped = self._grouped = _Grouped(epoch, rows, frozen(tally), tally.cumsum())
        return grouped


def match(column: LabelColumn, codes: IntArray, requirement: LabelRequirement) -> BoolArray:
    """Which of the nodes with these codes satisfy one requirement."""
    if requirement.operator in ("In", "NotIn"):
        inside: BoolArray = np.zeros(codes.shape, dtype=np.bool_)
        for value in requirement.values:
            code = column.code(value)
            if code is not None:
                inside |= codes == code
        return inside if requirement.operator == "In" else ~inside
    if requirement.operator in ("Exists", "DoesNotExist"):
        present: BoolArray = codes != ABSENT
        return present if requirement.operator == "Exists" else ~present
    # Once for every distinct value; then the answers are looked up.
    answers = np.fromiter(map(requirement.matches_value, column.values), np.bool_)
    found: BoolArray = answers[codes]
    return found
