"""The nodes as columns: what the cache writes and the snapshot reads.

One row per node that exists. Pods are known to their node's row, and every number that depends on
them (requested resources, ports, counters) is changed with them, so that reading is free.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from mooring.api import core
from mooring.api.selectors import Selector
from mooring.cache.arrays import IntArray
from mooring.cache.columns import Column
from mooring.cache.indexes import ImageIndex, PortIndex
from mooring.cache.journal import Journal
from mooring.cache.labels import LabelColumn
from mooring.cache.order import NodeOrder
from mooring.cache.pods import Pod
from mooring.cache.resources import Resources
from mooring.cache.topology import (
    Extract,
    FeatureIndex,
    Label,
    Parts,
    PodCounter,
    PodLabels,
    Predicate,
    required_labels,
)

MAX_COUNTERS: Final = 512
MAX_FEATURE_INDEXES: Final = 64
_SPARE_CODES: Final = 1_024  # dead codes tolerated before codes are assigned anew


def _count_alike(one: core.Node, other: core.Node) -> bool:
    """Whether two states of a node are the same in all columns."""
    return (
        one.status.allocatable == other.status.allocatable
        and one.metadata.labels == other.metadata.labels
        and (one.spec is other.spec or one.spec == other.spec)
    )


class NodeTable:
    """All node rows. Only `cache.Cache` writes here."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.api: list[core.Node] = []
        self.pods: list[dict[str, Pod]] = []  # per row, by pod uid
        self.resources: Resources = Resources()
        self.unschedulable: Column[np.bool_] = Column(np.bool_)
        self.taint_code: Column[np.int64] = Column(np.int64)  # index into taint_sets
        self.taint_sets: list[tuple[core.Taint, ...]] = [()]
        self.images: ImageIndex = ImageIndex()
        self.ports: PortIndex = PortIndex()
        self.order: NodeOrder = NodeOrder()
        self.pod_journal: Journal = Journal()  # rows whose pods changed
        self.status_journal: Journal = Journal()  # rows with pods that changed in nothing to count
        self.node_journal: Journal = Journal()  # rows whose node changed
        self.epoch: int = 0  # changes whenever rows come, go or move
        self._labels: dict[str, LabelColumn] = {}
        self._taint_code_of: dict[tuple[tuple[str, str, str], ...], int] = {(): 0}
        self._counters: OrderedDict[Hashable, PodCounter] = OrderedDict()
        self._pod_labels = PodLabels()
        self._features: OrderedDict[Hashable, FeatureIndex] = OrderedDict()
        self.feature_changes: int = 0  # how often a pod brought a new feature, or took the last
        self._ranks: tuple[int, IntArray, IntArray] | None = None  # epoch, rows, rank of each row
        self._names: tuple[int, tuple[str, ...]] | None = None  # epoch, names

    def __len__(self) -> int:
        return len(self.names)

    # --- nodes -----------------------------------------------------------------------------------

    def add_all(self, nodes: Sequence[core.Node]) -> None:
        """Add nodes with names that are not known yet."""
        if not nodes:
            return  # the structure stays as it is
        first = len(self.names)
        for column in self._columns():
            column.append_zeros(len(nodes))
        for counter in self._counters.values():
            counter.per_row.append_zeros(len(nodes))
        self.names += [node.metadata.name for node in nodes]
        self.row_of.update(zip(self.names[first:], range(first, len(self.names)), strict=True))
        self.api += nodes
        self.pods += [{} for _ in nodes]
        self._restructured()
        self.resources.offer_all(first, nodes)
        for row, node in enumerate(nodes, first):
            self.images.add(row, node.status.images)
            self._write(row, node)

    def replace(self, row: int, node: core.Node) -> None:
        """Take over the new state of a node."""
        old = self.api[row]
        if old.status.images != node.status.images:
            self.images.remove(row, old.status.images)
            self.images.add(row, node.status.images)
        self.api[row] = node
        self.node_journal.changed(row)
        if not _count_alike(old, node):  # more than a heartbeat
            self.resources.offer(row, node)
            self._write(row, node)

    def remove(self, name: str) -> list[Pod]:
        """Drop a node; returns the pods that were on it."""
        row = self.row_of[name]
        pods = list(self.pods[row].values())
        for pod in pods:
            self.remove_pod(row, pod)
        self.images.remove(row, self.api[row].status.images)
        self.order.remove(name)
        for counter in self._counters.values():
            counter.per_row.remove(row)
        last = len(self.names) - 1
        if row != last:
            self._move(last, row)
        self.names.pop()
        self.api.pop()
        self.pods.pop()
        del self.row_of[name]
        for column in self._columns():
            column.remove(row)
        self._restructured()
        return pods

    # --- pods ------------------------------------------------------------------------------------

    def add_pod(self, row: int, pod: Pod) -> None:
        self.pods[row][pod.uid] = pod
        self._account(row, pod, +1)

    def add_pods(self, located: list[tuple[int, Pod]]) -> None:
        """Many at once: the same as `add_pod` for each."""
        if self._counters or self._features:
            for row, pod in located:
                self.add_pod(row, pod)
            return
        self.resources.account_all(located)
        for row, pod in located:
            self.pods[row][pod.uid] = pod
            if pod.host_ports:
                self.ports.count(row, pod.host_ports, +1)
            self._pod_labels.count(pod, +1)
        for row in {row for row, _ in located}:
            self.pod_journal.changed(row)

    def remove_pod(self, row: int, pod: Pod) -> None:
        known = self.pods[row].pop(pod.uid)
        self._account(row, known, -1)

    def replace_pod(self, row: int, pod: Pod) -> None:
        """Another state of a pod with the same footprint."""
        self.pods[row][pod.uid] = pod
        self._pod_labels.replace(pod)
        self.status_journal.changed(row)

    def _account(self, row: int, pod: Pod, sign: int) -> None:
        self.resources.account(row, pod, sign)
        if pod.host_ports:
            self.ports.count(row, pod.host_ports, sign)
        self._pod_labels.count(pod, sign)
        for counter in self._pod_labels.counters_for(pod):
            counter.count(row, pod, sign)
        for index in self._features.values():
            if index.count(row, pod, sign):
                self.feature_changes += 1
        self.pod_journal.changed(row)

    # --- columns made on demand ------------------------------------------------------------------

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, made at the first question about it."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(key)
            for row, node in enumerate(self.api):
                column.codes.append_zeros()
                column.codes.data[row] = column.intern(node.metadata.labels.get(key))
        return column

    def counter(
        self, key: Hashable, matches: Predicate, selector: Selector | None = None
    ) -> PodCounter:
        """The counter known by `key`; the least recently asked one makes room."""
        counter = self._counters.get(key)
        if counter is None:
            labels = required_labels(selector)
            all_pods = (pod for pods in self.pods for pod in pods.values())
            if labels is not None and not self._pod_labels.knows(labels, all_pods):
                labels = None
            located = self._located(labels)
            counter = PodCounter(matches, labels, len(self.names), located)
            self._counters[key] = counter
            self._pod_labels.add_counter(counter)
            if len(self._counters) > MAX_COUNTERS:
                self._pod_labels.remove_counter(self._counters.popitem(last=False)[1])
        self._counters.move_to_end(key)
        return counter

    def features(self, key: Hashable, extract: Extract, parts: Parts | None) -> FeatureIndex:
        """The feature index known by `key`; the least recently asked one makes room."""
        index = self._features.get(key)
        if index is None:
            index = FeatureIndex(extract, parts, (pods.values() for pods in self.pods))
            self._features[key] = index
            if len(self._features) > MAX_FEATURE_INDEXES:
                self._features.popitem(last=False)
                self.feature_changes += 1  # later changes would not be reported
        self._features.move_to_end(key)
        return index

    def features_version(self, key: Hashable) -> int:
        """That of the feature index known by `key`; 0 if there is none."""
        index = self._features.get(key)
        return 0 if index is None else index.version

    def all_names(self) -> tuple[str, ...]:
        if self._names is None or self._names[0] != self.epoch:
            self._names = (self.epoch, tuple(self.names))
        return self._names[1]

    def ordered(self) -> tuple[IntArray, IntArray]:
        """Rows in kube's listing order, and each row's rank in that order."""
        if self._ranks is None or self._ranks[0] != self.epoch:
            names = self.order.names()
            rows = np.fromiter((self.row_of[name] for name in names), np.int64, len(names))
            ranks = np.empty_like(rows)
            ranks[rows] = np.arange(len(rows))
            # Not frozen: `take` copies indices that cannot be written to.
            self._ranks = (self.epoch, rows, ranks)
        return self._ranks[1], self._ranks[2]

    # --- upkeep ----------------------------------------------------------------------------------

    def _located(self, labels: tuple[Label, ...] | None) -> Iterator[tuple[int, Pod]]:
        """Pods with one of these labels, or all, and their rows."""
        if labels is None:
            return ((row, pod) for row, pods in enumerate(self.pods) for pod in pods.values())
        return ((self.row_of[pod.node_name], pod) for pod in self._pod_labels.having(labels))

    def _columns(self) -> list[Resources | Column[np.int64] | Column[np.bool_]]:
        labels = (column.codes for column in self._labels.values())
        return [self.resources, self.unschedulable, self.taint_code, *labels]

    def _write(self, row: int, node: core.Node) -> None:
        """Write what is not counted by resource."""
        self.order.put(node.metadata.name, node.metadata.labels)
        self.unschedulable.cells[row] = node.spec.unschedulable
        self.taint_code.cells[row] = self._intern_taints(node.spec.taints)
        for column in list(self._labels.values()):
            self._write_label(column, row, node)

    def _move(self, old_row: int, new_row: int) -> None:
        """Everything kept by row rather than in a column follows the row that fills the hole."""
        name = self.names[old_row]
        self.names[new_row] = name
        self.row_of[name] = new_row
        images = self.api[old_row].status.images
        self.images.add(new_row, images)
        self.images.remove(old_row, images)
        self.api[new_row] = self.api[old_row]
        self.pods[new_row] = self.pods[old_row]
        for pod in self.pods[new_row].values():
            if pod.host_ports:
                self.ports.count(old_row, pod.host_ports, -1)
                self.ports.count(new_row, pod.host_ports, +1)
        for index in self._features.values():
            index.move_row(old_row, new_row)

    def _restructured(self) -> None:
        self.epoch += 1
        self._void_positions()

    def _void_positions(self) -> None:
        self.pod_journal.restructured()
        self.status_journal.restructured()
        self.node_journal.restructured()

    def _write_label(self, column: LabelColumn, row: int, node: core.Node) -> None:
        old = int(column.codes.data[row])
        new = column.intern(node.metadata.labels.get(column.key))
        if new != old:
            column.put(row, new)
            for counter in self._counters.values():
                counter.relabel(row, column.key, old, new)
            if self.pods[row]:  # a new node has none
                for index in self._features.values():
                    index.relabel(row, column.key, old, new)
            if self._is_mostly_dead(len(column.values)):
                self._reassign_label_codes(column.key)

    def _is_mostly_dead(self, codes: int) -> bool:
        return codes > 2 * len(self.names) + _SPARE_CODES

    def _reassign_label_codes(self, key: str) -> None:
        """Forget the values that no node has any more."""
        del self._labels[key]
        for counter in self._counters.values():
            counter.forget_domains(key)
        for index in self._features.values():
            index.forget_domains(key)
        self.label(key)
        self._void_positions()

    def _intern_taints(self, taints: tuple[core.Taint, ...]) -> int:
        if not taints:
            return 0
        if self._is_mostly_dead(len(self.taint_sets)):
            self._reassign_taint_codes()
        key = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        code = self._taint_code_of.get(key)
        if code is None:
            code = self._taint_code_of[key] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return code

    def _reassign_taint_codes(self) -> None:
        """Forget the taint sets that no node has any more."""
        self.taint_sets = [()]
        self._taint_code_of = {(): 0}
        for row, node in enumerate(self.api):
            self.taint_code.data[row] = self._intern_taints(node.spec.taints)
        self._void_positions()
