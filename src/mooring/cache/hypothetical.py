"""Hypothetical nodes: what-ifs in columns.

`NodesWithoutPods` does for many nodes what `Node.without_pod` and `Node.with_pod` do for one, so
that vectorised filters answer for all of them in one call.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from mooring.api.requests import CPU, MEMORY, HostPort
from mooring.api.selectors import Selector
from mooring.cache.arrays import BoolArray, FloatArray, IntArray, frozen
from mooring.cache.columns import wrapped
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Features, Nodes, stacked
from mooring.cache.topology import Extract, FeatureIndex, Parts

T = TypeVar("T")

Amounts = Callable[[Iterable[Pod]], list[int]]
"""What each of these pods adds to a column."""

PodLists = Sequence[Sequence[Pod]]
"""Some pods of each node."""


class HypotheticalNodes(Nodes, abc.ABC):
    """Nodes that differ in their pods from those that are there.

    All columns are those of the hypothetical nodes; counts over the whole cluster are refused.
    """

    __slots__ = ("rows",)

    def __init__(self, nodes: Nodes, places: IntArray) -> None:
        self.rows: IntArray = places if nodes._rows is None else nodes._rows[places]
        super().__init__(nodes._table, self.rows)

    @abc.abstractmethod
    def _change(self, key: Hashable, amounts: Amounts) -> IntArray:
        """What is different in a column."""

    @abc.abstractmethod
    def _nodes(self) -> Sequence[Node]:
        """Each of them alone, for per-node filters."""

    @abc.abstractmethod
    def moving_pods(self) -> Iterator[Pod]:
        """The pods by which these nodes may differ from those that are there."""

    def change(self, key: Hashable, amount: Callable[[Pod], int]) -> IntArray:
        """What the pods that came, less those that are gone, amount to; equal keys share it.

        For filters that count over more than one node: the counts of the whole cluster are those of
        the nodes as they are, and this is what is different on each of these nodes.
        """
        return self._change(("change", key), lambda pods: [amount(pod) for pod in pods])

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is computed once for these nodes, whichever of the pods are there at the moment."""
        key = ("kept", key)
        if key not in self._cache:
            self._cache[key] = make()
        found: T = self._cache[key]
        return found

    def take(self, chosen: BoolArray | IntArray) -> HypotheticalNodes:
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return NodesWithMorePods(self, dict.fromkeys(places.tolist(), ()))

    # --- as a sequence ---------------------------------------------------------------------------

    def __getitem__(self, index: int) -> Node:  # type: ignore[override]  # slices: see take()
        return self._nodes()[index]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes())

    def get(self, name: str) -> Node | None:
        place = self.index_of(name)
        return None if place is None else self[place]

    # --- what depends on pods --------------------------------------------------------------------

    def requested(self, resource: str) -> IntArray:
        change = self._change(
            ("usage", resource), lambda pods: [pod.usage_of(resource) for pod in pods]
        )
        return frozen(super().requested(resource) + change)

    def spare(self, resource: str) -> IntArray:
        return frozen(self.allocatable(resource) - self.requested(resource))

    def _stacked(self, kind: str, resources: tuple[str, ...]) -> IntArray:
        return stacked(self, kind, resources)  # of the hypothetical nodes, and not to be kept

    def _stacked_floats(self, kind: str, resources: tuple[str, ...]) -> FloatArray:
        return self._stacked(kind, resources).astype(np.float64)

    def nonzero_requested(self, resource: str) -> IntArray:
        if resource not in (CPU, MEMORY):
            return self.requested(resource)
        which = 0 if resource == CPU else 1
        change = self._change(
            ("nonzero usage", resource),
            lambda pods: [wrapped(pod.nonzero_usage[which]) for pod in pods],
        )
        return frozen(super().nonzero_requested(resource) + change)

    def port_taken(self, port: HostPort) -> BoolArray:
        return np.fromiter((node.port_taken(port) for node in self), np.bool_, len(self))

    def count_pods(
        self, key: Hashable, matches: Callable[[Pod], bool], selector: Selector | None = None
    ) -> IntArray:
        change = self._change(("count", key), lambda pods: [int(matches(pod)) for pod in pods])
        return frozen(super().count_pods(key, matches, selector) + change)

    def _features(self, key: Hashable, extract: Extract, parts: Parts | None) -> Features:
        return _Features(self, FeatureIndex(extract, parts, (node.pods for node in self)))

    def count_pods_by(self, topology_key: str, *args: Any, **options: Any) -> NoReturn:
        raise _too_much(f"pods by {topology_key}")


class _Change(NamedTuple):
    """What is different in one column."""

    amounts_of_pods: IntArray  # (n_nodes, most pods of a node), of the pods that may come back
    total: IntArray  # (n_nodes,), at present


class _Move(NamedTuple):
    """On each of these places, the pod of that number comes or goes."""

    comes: bool
    places: IntArray
    number: int


class NodesWithoutPods(HypotheticalNodes):
    """A selection of nodes without some of their pods, which may be put back one by one.

    A pod is known by its number: its place in the list of those that a node is without. `nominated`
    are pods that are nominated for a node, by place: `with_nominated` is those nodes with them.
    """

    __slots__ = ("_away", "_changes", "_moves", "_numbers", "_scalar", "_without", "with_nominated")

    def __init__(
        self,
        nodes: Nodes,
        places: IntArray,
        without: PodLists,
        nominated: Mapping[int, Sequence[Pod]] | None = None,
    ) -> None:
        super().__init__(nodes, places)
        self._without = without
        self._numbers: BoolArray = _numbered(without)  # which there are
        self._away: BoolArray = self._numbers.copy()  # which are removed at present
        self._changes: dict[Hashable, _Change] = {}  # of the columns that were asked for
        self._moves: list[_Move] = []  # that `_scalar` does not know of
        self._scalar: list[Node] | None = None
        self.with_nominated: NodesWithMorePods | None = (
            NodesWithMorePods(self, nominated) if nominated else None
        )

    def moving_pods(self) -> Iterator[Pod]:
        return chain.from_iterable(self._without)

    def put_back(self, places: IntArray, number: int) -> None:
        """On each of these places, the pod of that number is there again."""
        self._move(_Move(True, places, number))

    def take_away(self, places: IntArray, number: int) -> None:
        """And is gone again."""
        self._move(_Move(False, places, number))

    def _move(self, move: _Move) -> None:
        places, number = move.places, move.number
        self._moves.append(move)
        self._away[places, number] = not move.comes
        for change in self._changes.values():
            amounts_of_pods = change.amounts_of_pods[places, number]
            change.total[places] += amounts_of_pods if move.comes else -amounts_of_pods

    def _change(self, key: Hashable, amounts: Amounts) -> IntArray:
        known = self._changes.get(key)
        if known is not None:
            return known.total
        amounts_of_pods = np.zeros(self._away.shape, dtype=np.int64)
        amounts_of_pods[self._numbers] = amounts(chain.from_iterable(self._without))
        total: IntArray = -np.sum(amounts_of_pods, axis=1, where=self._away)
        self._changes[key] = _Change(amounts_of_pods, total)
        return total

    def _nodes(self) -> Sequence[Node]:
        if self._scalar is None:
            real = super(HypotheticalNodes, self).__iter__()
            self._scalar = [
                _without(node, gone) for node, gone in zip(real, self._without, strict=True)
            ]
        nodes = self._scalar
        for comes, places, number in self._moves:
            for place in places.tolist():
                node, pod = nodes[place], self._without[place][number]
                nodes[place] = node.with_pod(pod) if comes else node.without_pod(pod)
        self._moves.clear()
        return nodes


class NodesWithMorePods(HypotheticalNodes):
    """Some hypothetical nodes with additional pods; follows the changes of those nodes."""

    __slots__ = ("_homes", "_more", "_origin", "_overlaps", "_sums", "places")

    def __init__(self, origin: HypotheticalNodes, more: Mapping[int, Sequence[Pod]]) -> None:
        self.places: IntArray = np.array(list(more), dtype=np.int64)  # at the origin
        super().__init__(origin, self.places)
        self._origin = origin
        self._more: PodLists = list(more.values())
        # The place here of each of them, one after the other.
        self._homes: IntArray = np.repeat(np.arange(len(more)), _counts(self._more))
        self._sums: dict[Hashable, IntArray] = {}  # what more pods add, by column
        self._overlaps: bool | None = None

    def moving_pods(self) -> Iterator[Pod]:
        return chain(self._origin.moving_pods(), chain.from_iterable(self._more))

    @property
    def overlaps(self) -> bool:
        """Whether any of them is there after all: it would be replaced, and not come as well."""
        if self._overlaps is None:
            homes = map(self._table.pods.__getitem__, self.rows.tolist())
            guests = zip(homes, self._more, strict=True)
            self._overlaps = any(pod.uid in here for here, pods in guests for pod in pods)
        return self._overlaps

    def _change(self, key: Hashable, amounts: Amounts) -> IntArray:
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = np.zeros(len(self), dtype=np.int64)
            more = np.array(amounts(chain.from_iterable(self._more)), dtype=np.int64)
            np.add.at(sums, self._homes, more)
        there: IntArray = self._origin._change(key, amounts)[self.places] + sums
        return there

    def _nodes(self) -> Sequence[Node]:
        origin = self._origin._nodes()
        nodes = []
        for place, pods in zip(self.places.tolist(), self._more, strict=True):
            node = origin[place]
            for pod in pods:
                node = node.with_pod(pod)
            nodes.append(node)
        return nodes


class _Features(Features):
    """Features of the pods that are on hypothetical nodes."""

    __slots__ = ()

    def __init__(self, nodes: HypotheticalNodes, index: FeatureIndex) -> None:
        # To the index, the place of a hypothetical node is its row.
        super().__init__(nodes._table, np.arange(len(nodes)), index)

    def per_domain(self, feature: Hashable, topology_key: str) -> NoReturn:
        raise _too_much(f"features by {topology_key}")


def _without(node: Node, gone: Sequence[Pod]) -> Node:
    for pod in gone:
        node = node.without_pod(pod)
    return node


def _numbered(pods: PodLists) -> BoolArray:
    """Which numbers the pods of each place have: (n_places, most pods of a place)."""
    counts = _counts(pods)
    found: BoolArray = np.arange(counts.max(initial=0)) < counts[:, np.newaxis]
    return found


def _counts(pods: PodLists) -> IntArray:
    return np.fromiter(map(len, pods), np.int64, len(pods))


def _too_much(what: str) -> TypeError:
    return TypeError(
        f"expected questions about single nodes, for these are hypothetical: cannot count {what};"
        " a plugin that does must not declare depends_on"
    )
