"""What nodes let pods have, and what their pods take of it: columns by resource.

All amounts are milli-CPU for "cpu" and whole units for all else. What nearly every pod asks for is
in one block, pods, cpu and memory side by side: plugins look at them together, for every pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

from mooring.api import core
from mooring.api.meta import ResourceList
from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amount, is_counted
from mooring.cache.arrays import IntArray
from mooring.cache.columns import Block, Column, wrapped
from mooring.cache.pods import Pod

_USUAL: Final = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
_LINES: Final = (
    *(("allocatable", resource) for resource in _USUAL),
    *(("requested", resource) for resource in _USUAL),
    ("nonzero_requested", CPU),
    ("nonzero_requested", MEMORY),
)

_FEW: Final = 8  # pods that count alike, below which an array is dearer

ByResource = dict[str, Column[np.int64]]


@lru_cache(maxsize=4096)  # pods ask for few combinations, and each of them all the time
def run_of(kind: str, resources: tuple[str, ...]) -> slice | None:
    """Their lines, if they are in the block, one below the other and in this order."""
    wanted = tuple((kind, resource) for resource in resources)
    first = _LINES.index(wanted[0]) if wanted and wanted[0] in _LINES else 0
    run = slice(first, first + len(wanted))
    return run if wanted and _LINES[run] == wanted else None


class Resources:
    """The amounts of all rows. Only the table of nodes writes here."""

    def __init__(self) -> None:
        self.block: Block = Block(len(_LINES))
        self.allocatable: ByResource = self._in_block("allocatable")
        # The sum over the row's pods, each of which takes one of "pods".
        self.requested: ByResource = self._in_block("requested")
        # Likewise, with a default for containers that ask for none.
        self.nonzero_requested: ByResource = self._in_block("nonzero_requested")

        self._limits: dict[tuple[str, ...], tuple[int, int]] = {}  # of capacities

    def capacity_limits(self, resources: tuple[str, ...]) -> tuple[int, int]:
        """The least and the most that any node lets pods have of any of these; there is a node."""
        found = self._limits.get(resources)
        if found is None:
            columns = [self.allocatable.get(resource) for resource in resources]
            found = self._limits[resources] = (
                min([int(column.view.min()) if column is not None else 0 for column in columns]),
                max([int(column.view.max()) if column is not None else 0 for column in columns]),
            )
        return found

    def _in_block(self, kind: str) -> ByResource:
        lines = zip(_LINES, self.block.columns, strict=True)
        return {resource: column for (line_of, resource), column in lines if line_of == kind}

    def append_zeros(self, count: int = 1) -> None:
        self._limits.clear()
        self.block.append_zeros(count)
        for column in self._unusual():
            column.append_zeros(count)

    def remove(self, row: int) -> None:
        """Drop a row; the last row takes its place."""
        self._limits.clear()
        self.block.remove(row)
        for column in self._unusual():
            column.remove(row)

    def offer(self, row: int, node: core.Node) -> None:
        """Take over what a node lets pods have."""
        offered = node.status.allocatable
        for resource, column in self.allocatable.items():
            if resource not in offered:
                column.data[row] = 0
        for resource, quantity in offered.items():
            if is_counted(resource):
                column = self._column_of(self.allocatable, resource)
                column.data[row] = amount(resource, quantity)
        self.block.changed(row)
        self._limits.clear()

    def offer_all(self, first: int, nodes: Iterable[core.Node]) -> None:
        """As `offer` for nodes whose rows begin at `first` and hold zero; those alike at once."""
        alike: dict[int, tuple[ResourceList, list[int]]] = {}
        for row, node in enumerate(nodes, first):
            offered = node.status.allocatable
            alike.setdefault(id(offered), (offered, []))[1].append(row)
        for offered, rows in alike.values():
            at = rows if len(rows) > 1 else rows[0]
            for resource, quantity in offered.items():
                if is_counted(resource):
                    column = self._column_of(self.allocatable, resource)
                    column.data[at] = amount(resource, quantity)
        self.block.all_changed()
        self._limits.clear()

    def account(self, row: int, pod: Pod, sign: int) -> None:
        """A pod came (+1) or went (-1)."""
        requested = self.requested
        for resource, quantity in pod.usage.items():
            if quantity:
                column = requested.get(resource)
                if column is None:
                    column = self._column_of(requested, resource)
                _add(column.cells, row, sign * quantity)
        requested[PODS].cells[row] += sign
        cpu, memory = pod.nonzero_usage
        _add(self.nonzero_requested[CPU].cells, row, sign * cpu)
        _add(self.nonzero_requested[MEMORY].cells, row, sign * memory)
        self.block.changed(row)

    def account_all(self, located: Iterable[tuple[int, Pod]]) -> None:
        """Many pods came: as `account` for each of them, all those that count alike at once."""
        alike: dict[tuple[int, int], tuple[Pod, list[int]]] = {}
        for row, pod in located:
            amounts = id(pod.usage), id(pod.nonzero_usage)
            found = alike.get(amounts)
            if found is None:
                alike[amounts] = pod, [row]
            else:
                found[1].append(row)
        for pod, rows in alike.values():
            if len(rows) < _FEW:
                for row in rows:
                    self.account(row, pod, +1)
            else:
                self._account_at(np.array(rows, np.int64), pod)

    def _account_at(self, rows: IntArray, pod: Pod) -> None:
        cpu, memory = pod.nonzero_usage
        changes = [(self.nonzero_requested, CPU, cpu), (self.nonzero_requested, MEMORY, memory)]
        changes += [(self.requested, name, quantity) for name, quantity in pod.usage.items()]
        for columns, resource, change in (*changes, (self.requested, PODS, 1)):
            if change:
                np.add.at(self._column_of(columns, resource).data, rows, change)
        self.block.all_changed()

    def _column_of(self, columns: ByResource, resource: str) -> Column[np.int64]:
        """That of a resource; made if it was never heard of."""
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = Column(np.int64, len(self.block))
        return column

    def _unusual(self) -> list[Column[np.int64]]:
        everything = (*self.allocatable.values(), *self.requested.values())
        return [column for column in everything if column.line is None]


def _add(cells: memoryview, row: int, change: int) -> None:
    """Add and wrap: nonsense requests must not stop us, and come off again."""
    total = cells[row] + change
    cells[row] = total if INT64_MIN <= total <= INT64_MAX else wrapped(total)
