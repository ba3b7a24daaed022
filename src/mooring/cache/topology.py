"""How many pods of a kind there are per node and per domain, kept current and never recounted.

A counter is a question ("pods labelled app=web in namespace shop") asked of every pod once, when it
comes to a node and when it leaves. Domains are the values of a node label such as the zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from mooring.cache.arrays import IntArray
from mooring.cache.columns import Column
from mooring.cache.labels import LabelColumn
from mooring.cache.pods import Pod

Predicate = Callable[[Pod], bool]


class PodCounter:
    """Counts the pods that satisfy a predicate, per node row and per domain of any label key."""

    __slots__ = ("_domains", "matches", "per_row")

    def __init__(self, matches: Predicate, pods_of_rows: Iterable[Iterable[Pod]]) -> None:
        self.matches: Predicate = matches
        self.per_row: Column[np.int64] = Column(np.int64)
        self._domains: dict[str, _DomainSums] = {}
        for row, pods in enumerate(pods_of_rows):
            self.per_row.append_zero()
            self.per_row.data[row] = sum(1 for pod in pods if matches(pod))

    def per_domain(self, column: LabelColumn) -> IntArray:
        """Pods per label code of `column`; code 0 holds those on nodes without the label."""
        sums = self._domains.get(column.key)
        if sums is None:
            sums = self._domains[column.key] = _DomainSums(column, self.per_row.view)
        return sums.view()

    def count(self, row: int, pod: Pod, change: int) -> None:
        if self.matches(pod):
            self.per_row.data[row] += change
            for sums in self._domains.values():
                sums.add(sums.code_of(row), change)

    def relabel(self, row: int, key: str, old_code: int, new_code: int) -> None:
        sums = self._domains.get(key)
        if sums is not None:
            here = int(self.per_row.data[row])
            sums.add(old_code, -here)
            sums.add(new_code, here)

    def add_row(self) -> None:
        self.per_row.append_zero()

    def remove_row(self, row: int) -> None:
        """Called while the label columns still hold the row; its pods were taken away before."""
        self.per_row.remove(row)

    def forget_domains(self, key: str) -> None:
        """The codes of a label key were dealt anew."""
        self._domains.pop(key, None)


class _DomainSums:
    """Sums per code of one label column."""

    __slots__ = ("_column", "_sums")

    def __init__(self, column: LabelColumn, per_row: IntArray) -> None:
        self._column = column
        self._sums = np.bincount(
            column.codes.view, weights=per_row, minlength=len(column.values)
        ).astype(np.int64)

    def code_of(self, row: int) -> int:
        return int(self._column.codes.data[row])

    def add(self, code: int, change: int) -> None:
        if code >= len(self._sums):
            self._grow()
        self._sums[code] += change

    def view(self) -> IntArray:
        if len(self._sums) < len(self._column.values):
            self._grow()
        view = self._sums[: len(self._column.values)]
        view.flags.writeable = False
        return view

    def _grow(self) -> None:
        grown = np.zeros(2 * len(self._column.values), dtype=np.int64)
        grown[: len(self._sums)] = self._sums
        self._sums = grown
