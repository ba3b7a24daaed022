"""Nodes: the read-only view of the cluster handed to one cycle.

`Nodes` answers for all nodes with arrays, `Node` for one with numbers, and they share their words.
The views read the live columns: they are true during the call they were given to, not to be kept.
What only the engine and our own plugins read of them is in `internals`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.api import core
from mooring.api.requests import PODS, HostPort
from mooring.api.selectors import LabelRequirement, NodeTerm, Selector
from mooring.cache import labels as label_columns
from mooring.cache.arrays import BoolArray, FloatArray, IntArray, frozen
from mooring.cache.columns import Column
from mooring.cache.indexes import ips_conflict
from mooring.cache.node import Node
from mooring.cache.nodes import NodeTable
from mooring.cache.pods import Pod
from mooring.cache.resources import run_of
from mooring.cache.topology import Extract, FeatureIndex, Parts

S = TypeVar("S", bound=np.generic)


class Mark(NamedTuple):
    """Positions in the journals of pods and nodes."""

    pods: int
    nodes: int


class RowChanges(NamedTuple):
    """Rows, some perhaps more than once."""

    pods: list[int]  # whose pods changed
    nodes: list[int]  # whose node did


class Nodes(Sequence[Node]):
    """A set of nodes as columns, in row order; all of them or a selection."""

    __slots__ = ("_cache", "_float_lines", "_lines", "_names", "_rows", "_table")

    def __init__(self, table: NodeTable, rows: IntArray | None = None) -> None:
        self._table = table
        self._rows = rows  # None: every row
        self._cache: dict[Hashable, Any] = {}  # columns derived during this cycle
        self._lines: IntArray | None = None  # of the selection: see _usual()
        self._float_lines: FloatArray | None = None
        self._names: tuple[str, ...] | None = None

    # --- as a sequence ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._table.names) if self._rows is None else len(self._rows)

    def __getitem__(self, index: int) -> Node:  # type: ignore[override]  # slices: see take()
        row = index if self._rows is None else int(self._rows[index])
        if not 0 <= row < len(self._table.names):
            row = range(len(self._table.names))[row]
        return Node(self._table, row)

    def __iter__(self) -> Iterator[Node]:
        table = self._table
        rows = range(len(table.names)) if self._rows is None else self._rows.tolist()
        return (Node(table, row) for row in rows)

    def __repr__(self) -> str:
        return f"Nodes({len(self)} of {len(self._table.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        if self._names is None:
            names = self._table.all_names()
            rows = self._rows
            self._names = names if rows is None else tuple(names[row] for row in rows.tolist())
        return self._names

    def get(self, name: str) -> Node | None:
        """The node of that name, if it is one of these."""
        row = self._table.row_of.get(name)
        if row is None or (self._rows is not None and row not in self._rows):
            return None
        return Node(self._table, row)

    def index_of(self, name: str) -> int | None:
        """Where a node stands in these columns."""
        row = self._table.row_of.get(name)
        if row is None or self._rows is None:
            return row
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None

    def take(self, chosen: BoolArray | IntArray) -> Nodes:
        """The nodes at these places (a mask, or places in ascending order)."""
        places: IntArray = (
            chosen.nonzero()[0] if chosen.dtype.kind == "b" else chosen.astype(np.int64, copy=False)
        )
        rows = places if self._rows is None else self._rows[places]
        return Nodes(self._table, rows)

    # --- resources: milli-CPU for "cpu", whole units for all else; shape (n_nodes,) --------------

    def allocatable(self, resource: str) -> IntArray:
        return self._resource(self._table.resources.allocatable.get(resource))

    def requested(self, resource: str) -> IntArray:
        """What the pods of each node occupy; of "pods", their number."""
        return self._resource(self._table.resources.requested.get(resource))

    def spare(self, resource: str) -> IntArray:
        """Allocatable less requested; negative on an overcommitted node."""
        key = ("spare", resource)
        found: IntArray | None = self._cache.get(key)
        if found is None:
            found = frozen(self.allocatable(resource) - self.requested(resource))
            self._cache[key] = found
        return found

    def nonzero_requested(self, resource: str) -> IntArray:
        """As `requested`; for cpu and memory, containers that ask for none count with a default."""
        column = self._table.resources.nonzero_requested.get(resource)
        return self.requested(resource) if column is None else self._values(column)

    @property
    def pod_counts(self) -> IntArray:
        return self.requested(PODS)

    # --- what nodes are --------------------------------------------------------------------------

    @property
    def unschedulable(self) -> BoolArray:
        return self._values(self._table.unschedulable)

    @property
    def has_taints(self) -> bool:
        """Whether any of these nodes has a taint at all."""
        return len(self._table.taint_sets) > 1 and bool(self._taint_codes.any())

    def by_taints(self, ask: Callable[[tuple[core.Taint, ...]], int]) -> IntArray:
        """Ask once per distinct set of taints; the answers per node."""
        answers = np.fromiter(
            (ask(taints) for taints in self._table.taint_sets),
            dtype=np.int64,
            count=len(self._table.taint_sets),
        )
        found: IntArray = answers[self._taint_codes]
        return found

    def label_codes(self, key: str) -> IntArray:
        """A small number per node for the value of a label: equal if the values are; 0: absent."""
        return self._values(self._table.label(key).codes)

    def label_count(self, key: str) -> int:
        """How many label codes there are, 0 included; some perhaps of no node any more."""
        return len(self._table.label(key).values)

    def label_values(self, key: str) -> Sequence[str | None]:
        """The value behind each label code."""
        return tuple(self._table.label(key).values)

    def meeting(self, requirement: LabelRequirement) -> BoolArray:
        """The nodes whose labels satisfy one requirement."""
        codes = self.label_codes(requirement.key)
        return label_columns.match(self._table.label(requirement.key), codes, requirement)

    def matching(self, term: NodeTerm) -> BoolArray:
        """The nodes that a node selector term selects."""
        if term.errors or term.is_empty:
            return np.zeros(len(self), dtype=np.bool_)
        result = np.ones(len(self), dtype=np.bool_)
        for requirement in term.requirements:
            result &= self.meeting(requirement)
        for name in term.names_in:
            result &= self._named(name)
        for name in term.names_not_in:
            result &= ~self._named(name)
        return result

    def with_image(self, name: str) -> tuple[int, BoolArray] | None:
        """The size of an image and which of these nodes have it; None if no node at all has it."""
        state = self._table.images.get(name)
        if state is None:
            return None
        present = np.zeros(len(self._table.names), dtype=np.bool_)
        present[state.rows_array] = True
        return state.size, present if self._rows is None else present[self._rows]

    def image_spread(self, name: str) -> int:
        """On how many nodes of the whole cluster an image lies."""
        state = self._table.images.get(name)
        return len(state.rows) if state is not None else 0

    def port_taken(self, port: HostPort) -> BoolArray:
        """The nodes where a pod already holds this host port."""
        taken = np.zeros(len(self._table.names), dtype=np.bool_)
        for row, ips in self._table.ports.holders(port).items():
            taken[row] = any(ips_conflict(ip, port.ip) for ip in ips)
        return taken if self._rows is None else taken[self._rows]

    # --- counting pods ---------------------------------------------------------------------------

    def count_pods(
        self, key: Hashable, matches: Callable[[Pod], bool], selector: Selector | None = None
    ) -> IntArray:
        """Pods per node for which `matches` holds; equal keys share a counter.

        The first time all pods are looked at; from then on the count is kept current. With a
        `selector`, which all those pods must satisfy, only pods with the labels it names are.
        """
        return self._values(self._table.counter(key, matches, selector).per_row)

    def count_pods_by(
        self,
        topology_key: str,
        key: Hashable,
        matches: Callable[[Pod], bool],
        selector: Selector | None = None,
    ) -> IntArray:
        """As `count_pods`, summed over the whole cluster per label code of `topology_key`."""
        counter = self._table.counter(key, matches, selector)
        return counter.per_domain(self._table.label(topology_key))

    # --- inside ----------------------------------------------------------------------------------

    def _features(self, key: Hashable, extract: Extract, parts: Parts | None) -> Features:
        return Features(self._table, self._rows, self._table.features(key, extract, parts))

    def _named(self, name: str) -> BoolArray:
        found = np.zeros(len(self), dtype=np.bool_)
        place = self.index_of(name)
        if place is not None:
            found[place] = True
        return found

    @property
    def _taint_codes(self) -> IntArray:
        return self._values(self._table.taint_code)

    def _resource(self, column: Column[np.int64] | None) -> IntArray:
        if column is None:  # no node has it, and no pod asks for it
            return frozen(np.zeros(len(self), dtype=np.int64))
        return self._values(column)

    def _stacked(self, kind: str, resources: tuple[str, ...]) -> IntArray:
        """The columns of a kind ("allocatable", …) of resources, one below the other."""
        run = run_of(kind, resources)
        if run is not None:
            return self._usual()[run]
        key = (kind, resources)
        found: IntArray | None = self._cache.get(key)
        if found is None:
            found = self._cache[key] = stacked(self, kind, resources)
        return found

    def _stacked_floats(self, kind: str, resources: tuple[str, ...]) -> FloatArray:
        run = run_of(kind, resources)
        if run is None:
            return self._stacked(kind, resources).astype(np.float64)
        if self._rows is None:
            return self._table.resources.block.floats[run]
        if self._float_lines is None:
            self._float_lines = frozen(self._usual().astype(np.float64))
        return self._float_lines[run]

    def _usual(self) -> IntArray:
        """The amounts of the usual resources."""
        if self._rows is None:
            return self._table.resources.block.view
        if self._lines is None:
            self._lines = self._table.resources.block.take(self._rows)
        return self._lines

    def _values(self, column: Column[S]) -> NDArray[S]:
        if self._rows is None:
            return column.view
        found: NDArray[S] | None = self._cache.get(column)
        if found is None:
            if column.line is None:
                found = frozen(column.view[self._rows])
            else:
                found = self._usual()[column.line]
            self._cache[column] = found
        return found


def stacked(nodes: Nodes, kind: str, resources: Sequence[str]) -> IntArray:
    """The columns of resources that are not in one block, copied."""
    column = getattr(nodes, kind)
    found = np.empty((len(resources), len(nodes)), dtype=np.int64)
    for place, resource in enumerate(resources):
        found[place] = column(resource)
    return frozen(found)


class Features:
    """What pods bring along, such as rules about others: every distinct feature with its pods."""

    __slots__ = ("_index", "_rows", "_table")

    def __init__(self, table: NodeTable, rows: IntArray | None, index: FeatureIndex) -> None:
        self._table = table
        self._rows = rows  # None: every row
        self._index = index

    @property
    def distinct(self) -> tuple[Any, ...]:
        """Every feature that some pod has."""
        return self._index.distinct

    def having(self, part: Hashable) -> Iterable[Any]:
        """Those of them with this part."""
        return self._index.having(part)

    def per_node(self, feature: Hashable) -> IntArray:
        """Pods per node that have this feature."""
        counts = self._index.per_row(feature, len(self._table.names))
        return frozen(counts if self._rows is None else counts[self._rows])

    def per_domain(self, feature: Hashable, topology_key: str) -> IntArray:
        """Likewise, summed over the whole cluster per label code of `topology_key`."""
        return self._index.per_domain(feature, self._table.label(topology_key))
