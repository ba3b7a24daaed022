"""What a plugin says about topology domains, followed from pod to pod.

The plugin gives its tables anew for every pod. Few entries differ from those before, and only nodes
in these domains have another answer: all of a zone, or the one node of a host name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.cache.arrays import IntArray
from mooring.cache.snapshot import Nodes
from mooring.runtime.layers import Unsure

_ONE_BY_ONE: Final = 16  # up to so many domains or nodes are looked at one by one
_NO_ROWS: Final[IntArray] = np.empty(0, dtype=np.int64)

S = TypeVar("S", np.bool_, np.int64)


class ByDomain(Generic[S]):
    """Tables of one plugin, and what follows from them for every node.

    Of a node's entries, one per table, the sum is taken; of truth values that is whether any holds.
    """

    def __init__(self, dtype: type[S], size: int) -> None:
        self.column: NDArray[S] = np.zeros(size, dtype=dtype)  # per row
        self._dtype: np.dtype[S] = np.dtype(dtype)
        self._tables: dict[str, NDArray[S]] = {}

    def follow(
        self, name: str, tables: Mapping[str, Any], moved: Iterable[int], nodes: Nodes
    ) -> tuple[IntArray, NDArray[S]]:
        """The rows with another answer, and that answer, which is not yet in the column.

        `moved` are the rows whose node changed: it may be in other domains than before.
        """
        before = self._tables
        self._tables = self._checked(name, tables, nodes)
        if not before and not self._tables:
            return _NO_ROWS, self.column[:0]
        found = [self._rows_that_differ(key, before, nodes) for key in {**before, **self._tables}]
        found = [rows for rows in found if len(rows)]
        also = {*moved}
        if also:
            found.append(np.fromiter(also, np.int64, len(also)))
        if not found:
            return _NO_ROWS, self.column[:0]
        rows = found[0] if len(found) == 1 else _joined(found, len(self.column))
        answers = self._answers(rows, nodes)
        if len(self._tables) == len(before) == 1 and not also:
            return rows, answers  # nothing else could have made up for the difference
        changed = (answers != self.column[rows]).nonzero()[0]
        return rows[changed], answers[changed]

    def _answers(self, rows: IntArray, nodes: Nodes) -> NDArray[S]:
        answers: NDArray[S] | None = None
        for key, table in self._tables.items():
            here = table[nodes.label_codes(key)[rows]]
            answers = here if answers is None else answers + here
        return np.zeros(len(rows), dtype=self._dtype) if answers is None else answers

    def _rows_that_differ(self, key: str, before: dict[str, NDArray[S]], nodes: Nodes) -> IntArray:
        """The rows in domains of which a table says something else now."""
        old, new = before.get(key), self._tables.get(key)
        if old is None or new is None:
            given = new if old is None else old
            assert given is not None
            differs = given != 0
        elif len(old) == len(new):
            differs = old != new
        else:  # nodes with codes that are new have changed themselves
            least = min(len(old), len(new))
            differs = old[:least] != new[:least]
        codes = differs.nonzero()[0]
        if not len(codes):
            return _NO_ROWS
        if len(codes) == 1:
            return nodes.rows_labelled(key, codes.item(0))
        if len(codes) <= _ONE_BY_ONE:
            return np.concatenate([nodes.rows_labelled(key, code) for code in codes.tolist()])
        if len(differs) < nodes.label_count(key):
            differs = np.concatenate((differs, np.zeros(nodes.label_count(key), dtype=np.bool_)))
        rows: IntArray = differs[nodes.label_codes(key)].nonzero()[0]
        return rows

    def _checked(self, name: str, tables: Any, nodes: Nodes) -> dict[str, NDArray[S]]:
        if not isinstance(tables, Mapping):
            raise Unsure(f"{name} gave no tables")
        for key, table in tables.items():
            fits = isinstance(table, np.ndarray) and table.dtype == self._dtype
            if not fits or table.shape != (nodes.label_count(key),):
                raise Unsure(f"{name} gave an odd table for {key}")
        return dict(tables)


def _joined(parts: list[IntArray], size: int) -> IntArray:
    """Rows that are in any of these, once each."""
    found = np.zeros(size, dtype=np.bool_)
    for rows in parts:
        found[rows] = True
    joined: IntArray = found.nonzero()[0]
    return joined
