"""Nodes as if the pods that are nominated for them were there, kept from one attempt to the next.

While preemption makes room for hundreds of pods, each attempt is filtered with all of them; between
two attempts hardly any nomination changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from mooring.cache.hypothetical import Amounts, HypotheticalNodes
from mooring.cache.internals import epoch_of, is_whole
from mooring.framework import IntArray, Node, Nodes, Pod
from mooring.framework._internal import InternalNominator

MOST_PRIORITIES: Final = 8  # of pods, for which nominations are kept
MOST_SUMS: Final = 64  # columns of one of them


class Nominations:
    """The nominated pods that pods of each priority have to respect."""

    def __init__(self, nominator: InternalNominator) -> None:
        self._nominator = nominator
        self._by_priority: dict[int, NominatedColumns] = {}

    def nodes(self, nodes: Nodes, pod: Pod) -> NodesWithNominated | None:
        """The nodes with nominated pods, but for the one that this pod is nominated for itself.

        None if there are no such nodes, or `nodes` are not all nodes.
        """
        if not is_whole(nodes):
            return None
        found = self._by_priority.get(pod.priority)
        if found is None:
            if len(self._by_priority) >= MOST_PRIORITIES:
                self._by_priority.clear()
            found = NominatedColumns(self._nominator, pod.priority)
            self._by_priority[pod.priority] = found
        found.follow(nodes)
        return found.nodes(nodes, self._nominator.node_of(pod.uid))


class NominatedColumns:
    """The nominated pods of at least one priority, by node; and what they amount to, by column."""

    def __init__(self, nominator: InternalNominator, priority: int) -> None:
        self._nominator = nominator
        self._priority = priority
        self._position = 0  # of the nominator
        self._epoch = -1  # of the rows
        # All of these have the same nodes in the same order.
        self._rows: dict[str, int] = {}
        self._pods: dict[str, tuple[Pod, ...]] = {}
        self._sums: dict[Hashable, tuple[Amounts, dict[str, int]]] = {}

    def follow(self, nodes: Nodes) -> None:
        """Take over what changed since the last time."""
        nominator, epoch = self._nominator, epoch_of(nodes)
        changed = nominator.changed_since(self._position) if self._epoch == epoch else None
        if changed is None:
            for column in (self._rows, self._pods, self._sums):
                column.clear()
            changed = nominator.nominated_nodes()
        self._position, self._epoch = nominator.position, epoch
        for name in changed:
            pods = tuple(it for it in nominator.nominated_on(name) if it.priority >= self._priority)
            row = nodes.index_of(name) if pods else None
            if row is None:
                self._remove(name)
            else:
                self._put(name, row, pods)

    def nodes(self, nodes: Nodes, left_out: str | None) -> NodesWithNominated | None:
        """The nodes, but for one."""
        rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))
        places = np.arange(len(rows))
        if left_out in self._rows:
            places = np.delete(places, list(self._rows).index(left_out))
        return NodesWithNominated(nodes, self, places, rows[places]) if len(places) else None

    def sums(self, key: Hashable, amounts: Amounts) -> IntArray:
        """What the pods of each node amount to in a column."""
        known = self._sums.get(key)
        if known is None:
            if len(self._sums) >= MOST_SUMS:
                self._sums.clear()
            sums = {name: sum(amounts(pods)) for name, pods in self._pods.items()}
            known = self._sums[key] = (amounts, sums)
        return np.fromiter(known[1].values(), np.int64, len(known[1]))

    @property
    def pods(self) -> list[tuple[Pod, ...]]:
        return list(self._pods.values())

    def _put(self, name: str, row: int, pods: tuple[Pod, ...]) -> None:
        self._rows[name] = row
        self._pods[name] = pods
        for amounts, sums in self._sums.values():
            sums[name] = sum(amounts(pods))

    def _remove(self, name: str) -> None:
        if name in self._rows:
            del self._rows[name], self._pods[name]
            for _, sums in self._sums.values():
                del sums[name]


class NodesWithNominated(HypotheticalNodes):
    """Nodes with the pods that are nominated for them; true until nominations or nodes change."""

    __slots__ = ("_nominated", "_places", "_real")

    def __init__(
        self, nodes: Nodes, nominated: NominatedColumns, places: IntArray, rows: IntArray
    ) -> None:
        super().__init__(nodes, rows)
        self._real = nodes
        self._nominated = nominated
        self._places = places  # of these nodes among all with nominated pods

    @property
    def pods(self) -> Sequence[tuple[Pod, ...]]:
        """Of each of these nodes."""
        pods = self._nominated.pods
        return [pods[place] for place in self._places.tolist()]

    @property
    def overlaps(self) -> bool:
        """Whether any of them is there after all: it would be replaced, and not come as well."""
        homes = map(self._table.pods.__getitem__, self.rows.tolist())
        pairs = zip(homes, self.pods, strict=True)
        return any(pod.uid in here for here, pods in pairs for pod in pods)

    def moving_pods(self) -> Iterator[Pod]:
        return chain.from_iterable(self.pods)

    def _change(self, key: Hashable, amounts: Amounts) -> IntArray:
        return self._nominated.sums(key, amounts)[self._places]

    def _nodes(self) -> Sequence[Node]:
        nodes = []
        for node, pods in zip(super(HypotheticalNodes, self).__iter__(), self.pods, strict=True):
            for pod in pods:
                node = node.with_pod(pod)
            nodes.append(node)
        return nodes
