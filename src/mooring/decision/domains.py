"""What a plugin says about topology domains, followed from pod to pod.

The plugin gives its tables anew for every pod. Few entries differ from those before, and only nodes
in these domains have another answer: all of a zone, or the one node of a host name. In a table that
is local, entries can differ only where pods came or went, so that others are not even looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.cache.internals import rows_labelled
from mooring.framework import BoolArray, IntArray, Nodes
from mooring.framework._internal import DomainTable

_ONE_BY_ONE: Final = 16  # up to so many domains or nodes are looked at one by one
_NO_ROWS: Final[IntArray] = np.empty(0, dtype=np.int64)

_NOT_LOCAL: Final = object()  # the basis of a table that has none

S = TypeVar("S", np.bool_, np.int64)
CallPlugin = Callable[[Callable[[IntArray], Any], IntArray], Any]
"""To call a function of the plugin's."""
Rows = Collection[int]


class _Kept(NamedTuple, Generic[S]):
    """What a table said last."""

    entries: NDArray[S]  # by label code
    basis: Hashable


class DomainAnswers(Generic[S]):
    """Tables of one plugin, and what follows from them for every node.

    Of a node's entries, one per table, the sum is taken; of truth values that is whether any holds.
    """

    def __init__(self, name: str, ask: CallPlugin, column: NDArray[S]) -> None:
        self.column: NDArray[S] = column  # per row; written by the caller of `follow`
        self._name = name
        self._ask = ask
        self._tables: dict[str, _Kept[S]] = {}  # by label key

    def follow(
        self, tables: Any, changed: Rows, changed_nodes: Rows, nodes: Nodes
    ) -> tuple[IntArray, NDArray[S] | S]:
        """The rows with another answer, and that answer, which is not yet in the column.

        If it is the same for all these rows, it may be given once. `changed` are the rows that
        changed since the last time, `changed_nodes` those of them whose node did: it may be in
        other domains than before.
        """
        if not isinstance(tables, Mapping):
            raise TypeError(f"{self._name} gave no tables")
        before = self._tables
        if not before and not tables:
            return _NO_ROWS, self.column[:0]
        if len(before) == len(tables) == 1 and not changed_nodes:
            [(key, table)] = tables.items()
            if key in before:
                return self._follow_one(key, table, changed, nodes)
        found = []
        for key in before.keys() - tables:
            codes = before.pop(key).entries.nonzero()[0]
            found.append(_rows_labelled(key, codes, nodes))
        for key, table in tables.items():
            codes = self._codes_that_differ(key, table, changed, changed_nodes, nodes)
            if len(codes):
                found.append(_rows_labelled(key, codes, nodes))
        if changed_nodes:
            found.append(_as_array({*changed_nodes}))
        if not found:
            return _NO_ROWS, self.column[:0]
        rows = found[0] if len(found) == 1 else _joined(found, len(self.column))
        answers = self._answers(rows, nodes)
        differs = (answers != self.column[rows]).nonzero()[0]
        return rows[differs], answers[differs]

    def _follow_one(
        self, key: str, table: Any, changed: Rows, nodes: Nodes
    ) -> tuple[IntArray, NDArray[S] | S]:
        """Likewise if there is one table, as before: nothing else makes up for a difference."""
        codes = self._codes_that_differ(key, table, changed, (), nodes)
        if not len(codes):
            return _NO_ROWS, self.column[:0]
        entries = self._tables[key].entries
        rows = _rows_labelled(key, codes, nodes)
        if len(codes) == 1:
            one: S = entries[codes.item(0)]
            return rows, one
        return rows, entries[nodes.label_codes(key)[rows]]

    def _answers(self, rows: IntArray, nodes: Nodes) -> NDArray[S]:
        answers: NDArray[S] | None = None
        for key, table in self._tables.items():
            here = table.entries.take(nodes.label_codes(key).take(rows))
            answers = here if answers is None else answers + here
        return np.zeros(len(rows), dtype=self.column.dtype) if answers is None else answers

    def _codes_that_differ(
        self, key: str, table: Any, changed: Rows, changed_nodes: Rows, nodes: Nodes
    ) -> IntArray:
        """The domains of which a table says something else now, which is kept."""
        kept, size = self._tables.get(key), nodes.label_count(key)
        basis: Hashable = _NOT_LOCAL
        if isinstance(table, DomainTable):
            basis = table.basis
            is_known = kept is not None and kept.basis == basis and len(kept.entries) == size
            if kept is not None and is_known and not changed_nodes:
                if not changed:
                    return _NO_ROWS
                codes = nodes.label_codes(key)[_as_array(changed)]
                return self._look_again(key, table, codes, kept.entries)
            entries = self._entries(key, table, np.arange(size)).copy()  # to be written to
        else:
            entries = self._checked(key, table, size)
        self._tables[key] = _Kept(entries, basis)
        if kept is None:
            codes = entries.nonzero()[0]
        else:
            # Nodes with codes that are new have changed themselves.
            least = min(len(kept.entries), size)
            codes = (kept.entries[:least] != entries[:least]).nonzero()[0]
        return codes

    def _look_again(
        self, key: str, table: DomainTable[S], codes: IntArray, kept: NDArray[S]
    ) -> IntArray:
        """Likewise if only these can differ; some may be given twice."""
        entries, before = self._entries(key, table, codes), kept[codes]
        if entries.tolist() == before.tolist():  # mostly of one node
            return _NO_ROWS
        if len(codes) > 1:
            differs = (entries != before).nonzero()[0]
            codes, entries = codes[differs], entries[differs]
        kept[codes] = entries
        return codes if len(codes) == 1 else _as_array({*codes.tolist()})

    def _entries(self, key: str, table: DomainTable[S], codes: IntArray) -> NDArray[S]:
        return self._checked(key, self._ask(table.at, codes), len(codes))

    def _checked(self, key: str, entries: Any, size: int) -> NDArray[S]:
        fits = isinstance(entries, np.ndarray) and entries.dtype == self.column.dtype
        if not fits or entries.shape != (size,):
            raise TypeError(f"{self._name} gave an odd table for {key}")
        found: NDArray[S] = entries
        return found


def _rows_labelled(key: str, codes: IntArray, nodes: Nodes) -> IntArray:
    """The rows in these domains, which must be different ones."""
    if len(codes) == 1:
        return rows_labelled(nodes, key, codes.item(0))
    if len(codes) <= _ONE_BY_ONE:
        rows = [rows_labelled(nodes, key, code) for code in codes.tolist()]
        return np.concatenate(rows) if rows else _NO_ROWS
    is_meant: BoolArray = np.zeros(nodes.label_count(key), dtype=np.bool_)
    is_meant[codes] = True
    found: IntArray = is_meant[nodes.label_codes(key)].nonzero()[0]
    return found


def _as_array(rows: Rows) -> IntArray:
    return np.fromiter(rows, np.int64, len(rows))


def _joined(parts: list[IntArray], size: int) -> IntArray:
    """Rows that are in any of these, once each."""
    found = np.zeros(size, dtype=np.bool_)
    for rows in parts:
        found[rows] = True
    joined: IntArray = found.nonzero()[0]
    return joined
