"""The rows that changed between two moments of the node columns."""

from __future__ import annotations

import numpy as np

from mooring.cache.arrays import IntArray
from mooring.cache.node import Node
from mooring.cache.snapshot import Mark, Nodes


class StaleColumns(Exception):
    """Rows came or went, or the columns are too old to tell what changed since: make them anew."""


class ChangedRows:
    """The rows that changed since a mark: `rows` for any reason, `nodes` where the node did."""

    __slots__ = ("_array", "nodes", "rows")

    def __init__(self, rows: set[int], nodes: set[int]) -> None:
        self.rows: set[int] = rows
        self.nodes: set[int] = nodes
        self._array: IntArray | None = None

    @property
    def array(self) -> IntArray:
        """All of them, ascending."""
        if self._array is None:
            self._array = sorted_rows(self.rows)
        return self._array


class Changes:
    """What changed until now, since any mark; results with equal marks share the answer."""

    __slots__ = ("_known", "_views", "nodes", "now")

    def __init__(self, nodes: Nodes) -> None:
        self.nodes: Nodes = nodes
        self.now: Mark = nodes.mark
        self._known: dict[Mark, ChangedRows] = {}
        self._views: dict[int, Node] = {}

    def since(self, mark: Mark) -> ChangedRows:
        """Raises StaleColumns."""
        found = self._known.get(mark)
        if found is None:
            changes = self.nodes.changed_since(mark)
            if changes is None:
                raise StaleColumns
            nodes = set(changes.nodes)
            found = self._known[mark] = ChangedRows(nodes.union(changes.pods), nodes)
        return found

    def node(self, row: int) -> Node:
        found = self._views.get(row)
        if found is None:
            found = self._views[row] = self.nodes[row]
        return found


def sorted_rows(rows: set[int]) -> IntArray:
    """These rows as an array, ascending."""
    found = np.fromiter(rows, np.int64, len(rows))
    found.sort()
    return found
