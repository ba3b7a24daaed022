"""Node labels as columns: for one key, a small number per node.

Code 0 means that the node lacks the key; other codes stand for values. A question about labels is
asked once per distinct value instead of once per node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from mooring.api.selectors import LabelRequirement
from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.columns import Column

ABSENT: Final = 0


class LabelColumn:
    """The values of one label key over all node rows."""

    __slots__ = ("_code_of", "_grouped", "codes", "key", "values")

    def __init__(self, key: str) -> None:
        self.key: str = key
        self.codes: Column[np.int64] = Column(np.int64)
        self.values: list[str | None] = [None]  # code -> value; code 0 is "absent"
        self._code_of: dict[str, int] = {}
        self._grouped: tuple[int, IntArray, IntArray] | None = None  # epoch, rows, where codes end

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
        self._grouped = None

    def rows_of(self, code: int, epoch: int) -> IntArray:
        """The rows with a code, ascending; the epoch is that of the table."""
        grouped = self._grouped
        if grouped is None or grouped[0] != epoch:
            codes = self.codes.view
            rows = codes.argsort(kind="stable")
            ends = np.bincount(codes, minlength=len(self.values)).cumsum()
            grouped = self._grouped = (epoch, rows, ends)
        _, rows, ends = grouped
        if code >= len(ends):
            return rows[:0]
        return rows[ends[code - 1] if code else 0 : ends[code]]


def match(column: LabelColumn, codes: IntArray, requirement: LabelRequirement) -> BoolArray:
    """Which of the nodes with these codes satisfy one requirement."""
    if requirement.operator in ("In", "NotIn"):
        known = (column.code(value) for value in requirement.values)
        inside = is_any_of(codes, (code for code in known if code is not None))
        return inside if requirement.operator == "In" else ~inside
    if requirement.operator in ("Exists", "DoesNotExist"):
        present: BoolArray = codes != ABSENT
        return present if requirement.operator == "Exists" else ~present
    return where(column, codes, requirement.matches_value)


def is_any_of(codes: IntArray, wanted: Iterable[int]) -> BoolArray:
    result: BoolArray = np.zeros(codes.shape, dtype=np.bool_)
    for code in wanted:
        result |= codes == code
    return result


def where(
    column: LabelColumn, codes: IntArray, predicate: Callable[[str | None], bool]
) -> BoolArray:
    """Ask about every distinct value once, then look the answers up."""
    answers = np.fromiter(
        (predicate(value) for value in column.values), dtype=np.bool_, count=len(column.values)
    )
    found: BoolArray = answers[codes]
    return found
