"""How many pods of a kind there are per node and per domain, kept current and never recounted.

A counter is a question ("pods labelled app=web in namespace shop") asked of every pod once, when it
comes to a node and when it leaves; one that names a label is asked only of pods that have it. A
feature index turns that round: it asks every pod what it brings along ("keeps away from app=web on
its host") and counts the pods of each answer. Domains are the values of a node label such as the
zone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from mooring.api.selectors import Selector
from mooring.cache.arrays import IntArray, frozen
from mooring.cache.columns import Column
from mooring.cache.labels import LabelColumn
from mooring.cache.pods import Pod

Predicate = Callable[[Pod], bool]
Extract = Callable[[Pod], Iterable[Hashable]]
Parts = Callable[[Any], Iterable[Hashable]]
Label = tuple[str, str]

MAX_LABEL_KEYS: Final = 64  # by which pods can be found
_versions = itertools.count(1)  # of all indexes: one made anew is never taken for its predecessor


def required_labels(selector: Selector | None) -> tuple[Label, ...] | None:
    """Labels of which whatever a selector selects has one; None if it names none."""
    if selector is None:
        return None
    if selector.matches_nothing:
        return ()
    test = next((test for test in selector.requirements if test.operator == "In"), None)
    return tuple((test.key, value) for value in test.values) if test is not None else None


class PodCounter:
    """Counts the pods that satisfy a predicate, per node row and per domain of any label key."""

    __slots__ = ("_domains", "labels", "matches", "per_row")

    def __init__(
        self,
        matches: Predicate,
        labels: tuple[Label, ...] | None,
        rows: int,
        located: Iterable[tuple[int, Pod]],
    ) -> None:
        self.matches: Predicate = matches
        self.labels: tuple[Label, ...] | None = labels  # None: any pod may match
        self.per_row: Column[np.int64] = Column(np.int64, rows)
        self._domains: dict[str, _DomainSums] = {}
        for row, pod in located:
            if matches(pod):
                self.per_row.data[row] += 1

    def per_domain(self, column: LabelColumn) -> IntArray:
        """Pods per label code of `column`; code 0 holds those on nodes without the label."""
        sums = self._domains.get(column.key)
        if sums is None:
            codes = column.codes.view
            sums = self._domains[column.key] = _DomainSums(column, codes, self.per_row.view)
        return sums.view()

    def count(self, row: int, pod: Pod, change: int) -> None:
        if self.matches(pod):
            self.per_row.cells[row] += change
            for sums in self._domains.values():
                sums.add_on(row, change)

    def relabel(self, row: int, key: str, old_code: int, new_code: int) -> None:
        sums = self._domains.get(key)
        if sums is not None:
            sums.move(int(self.per_row.data[row]), old_code, new_code)

    def forget_domains(self, key: str) -> None:
        self._domains.pop(key, None)


class PodLabels:
    """Which pods have a label, and which counters have to count a pod.

    Pods are found by the label keys that counters have named so far.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, dict[str, Pod]]] = {}  # key -> value -> uid -> pod
        self._counters: dict[Label, dict[int, PodCounter]] = {}
        self._for_all: dict[int, PodCounter] = {}

    def knows(self, labels: tuple[Label, ...], all_pods: Iterator[Pod]) -> bool:
        """Whether pods can be found by these labels, from now on."""
        for key in {key for key, _ in labels} - self._pods.keys():
            if len(self._pods) >= MAX_LABEL_KEYS:
                return False
            values: dict[str, dict[str, Pod]] = {}
            for pod in all_pods:
                if key in pod.labels:
                    values.setdefault(pod.labels[key], {})[pod.uid] = pod
            self._pods[key] = values
        return True

    def having(self, labels: tuple[Label, ...]) -> Iterator[Pod]:
        """The pods that have one of these labels, all of one key."""
        for key, value in labels:
            yield from self._pods[key].get(value, {}).values()

    def count(self, pod: Pod, change: int) -> None:
        labels = pod.labels
        for key, values in self._pods.items():
            value = labels.get(key)
            if value is None:
                continue
            if change > 0:
                values.setdefault(value, {})[pod.uid] = pod
            else:
                pods = values[value]
                del pods[pod.uid]
                if not pods:
                    del values[value]

    def replace(self, pod: Pod) -> None:
        """Another state of a pod, with the same labels."""
        for key, values in self._pods.items():
            value = pod.labels.get(key)
            if value is not None:
                values[value][pod.uid] = pod

    def add_counter(self, counter: PodCounter) -> None:
        """Call this counter for pods from now on."""
        if counter.labels is None:
            self._for_all[id(counter)] = counter
            return
        for label in counter.labels:
            self._counters.setdefault(label, {})[id(counter)] = counter

    def remove_counter(self, counter: PodCounter) -> None:
        self._for_all.pop(id(counter), None)
        for label in counter.labels or ():
            counters = self._counters[label]
            del counters[id(counter)]
            if not counters:
                del self._counters[label]

    def counters_for(self, pod: Pod) -> Iterator[PodCounter]:
        yield from self._for_all.values()
        if self._counters:
            for label in pod.labels.items():
                counters = self._counters.get(label)
                if counters is not None:
                    yield from counters.values()


class FeatureIndex:
    """Counts the pods that have each feature, per node row and per domain of any label key.

    A feature is kept as long as some pod has it, and by the rows where it occurs: there may be many
    features, each on a few nodes. It can be found by the parts that `parts` sees in it.
    """

    __slots__ = ("_by_part", "_tallies", "extract", "parts", "version")

    def __init__(
        self, extract: Extract, parts: Parts | None, pods_of_rows: Iterable[Iterable[Pod]]
    ) -> None:
        self.extract: Extract = extract
        self.parts: Parts | None = parts
        self.version: int = next(_versions)  # another one as soon as there are other features
        self._tallies: dict[Hashable, _Tally] = {}
        self._by_part: dict[Hashable, dict[Hashable, None]] = {}
        for row, pods in enumerate(pods_of_rows):
            for pod in pods:
                self.count(row, pod, +1)

    @property
    def distinct(self) -> tuple[Hashable, ...]:
        return tuple(self._tallies)

    def having(self, part: Hashable) -> Iterable[Hashable]:
        return self._by_part.get(part, ())

    def per_row(self, feature: Hashable, size: int) -> IntArray:
        """Pods with a feature, for so many rows."""
        counts = np.zeros(size, dtype=np.int64)
        tally = self._tallies.get(feature)
        if tally is not None:
            rows, numbers = tally.occurrences()
            counts[rows] = numbers
        return counts

    def per_domain(self, feature: Hashable, column: LabelColumn) -> IntArray:
        """Pods with a feature per label code of `column`; code 0: on nodes without the label."""
        tally = self._tallies.get(feature)
        if tally is None:
            return frozen(np.zeros(len(column.values), dtype=np.int64))
        return tally.per_domain(column)

    def count(self, row: int, pod: Pod, change: int) -> bool:
        """Returns whether there are other features now."""
        version = self.version
        for feature in self.extract(pod):
            tally = self._tallies.get(feature)
            if tally is None:
                tally = self._tallies[feature] = _Tally()
                self.version = next(_versions)
                for part in self.parts(feature) if self.parts is not None else ():
                    self._by_part.setdefault(part, {})[feature] = None
            tally.add(row, change)
            if not tally.rows:
                self._forget(feature)
        return self.version != version

    def relabel(self, row: int, key: str, old_code: int, new_code: int) -> None:
        for tally in self._tallies.values():
            tally.relabel(row, key, old_code, new_code)

    def move_row(self, old_row: int, new_row: int) -> None:
        """A node has another row from now on, and the same labels as ever."""
        for tally in self._tallies.values():
            if old_row in tally.rows:
                tally.rows[new_row] = tally.rows.pop(old_row)

    def forget_domains(self, key: str) -> None:
        for tally in self._tallies.values():
            tally.domains.pop(key, None)

    def _forget(self, feature: Hashable) -> None:
        del self._tallies[feature]
        self.version = next(_versions)
        for part in self.parts(feature) if self.parts is not None else ():
            features = self._by_part[part]
            del features[feature]
            if not features:
                del self._by_part[part]


class _Tally:
    """The pods that have one feature."""

    __slots__ = ("domains", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}  # row -> pods, where there are any
        self.domains: dict[str, _DomainSums] = {}  # by label key, made at the first question

    def occurrences(self) -> tuple[IntArray, IntArray]:
        """The rows with such pods, and how many there are."""
        size = len(self.rows)
        return (
            np.fromiter(self.rows.keys(), np.int64, size),
            np.fromiter(self.rows.values(), np.int64, size),
        )

    def per_domain(self, column: LabelColumn) -> IntArray:
        sums = self.domains.get(column.key)
        if sums is None:
            rows, numbers = self.occurrences()
            sums = _DomainSums(column, column.codes.view[rows], numbers)
            self.domains[column.key] = sums
        return sums.view()

    def add(self, row: int, change: int) -> None:
        left = self.rows.get(row, 0) + change
        if left:
            self.rows[row] = left
        else:
            del self.rows[row]
        for sums in self.domains.values():
            sums.add_on(row, change)

    def relabel(self, row: int, key: str, old_code: int, new_code: int) -> None:
        here, sums = self.rows.get(row), self.domains.get(key)
        if here is not None and sums is not None:
            sums.move(here, old_code, new_code)


class _DomainSums:
    """Sums per code of one label column."""

    __slots__ = ("_cells", "_column", "_sums", "_view")

    def __init__(self, column: LabelColumn, codes: IntArray, counts: IntArray) -> None:
        self._column = column
        self._sums: IntArray = np.bincount(
            codes, weights=counts, minlength=len(column.values)
        ).astype(np.int64)
        self._cells = self._sums.data  # the same memory, for one value at a time
        self._view = frozen(self._sums[:])

    def add_on(self, row: int, change: int) -> None:
        """More or fewer on a node, in whichever domain it is."""
        self.add(self._column.codes.cells[row], change)

    def add(self, code: int, change: int) -> None:
        if code >= len(self._sums):
            self._grow()
        self._cells[code] += change

    def move(self, count: int, old_code: int, new_code: int) -> None:
        self.add(old_code, -count)
        self.add(new_code, count)

    def view(self) -> IntArray:
        """The sums, kept current: the same array again unless there are new codes."""
        size = len(self._column.values)
        if len(self._view) != size:
            if len(self._sums) < size:
                self._grow()
            self._view = frozen(self._sums[:size])
        return self._view

    def _grow(self) -> None:
        grown = np.zeros(2 * len(self._column.values), dtype=np.int64)
        grown[: len(self._sums)] = self._sums
        self._sums = grown
        self._cells = grown.data
