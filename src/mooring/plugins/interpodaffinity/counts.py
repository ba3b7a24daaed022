"""The number of pods in each topology domain that match a pod's terms.

Domains are identified by the code of their label value, so that a test of all nodes is one array
lookup. The cache keeps the arrays current; pods of one class share what is built from them as long
as they are the same arrays. The what-if of one node counts in a copy of its own, beside the arrays;
those of many nodes are in `hypothetical`.
"""

import abc
import functools
import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np

import mooring.framework as fw
from mooring.framework._internal import DomainTable
from mooring.plugins.interpodaffinity.matched_terms import MatchedTerms
from mooring.plugins.interpodaffinity.terms import AffinityTerm, Peers, all_include, terms_of

Counts = Sequence[fw.IntArray]
"""Pods per label code, from `PodCounts.counts`."""
DomainTest = tuple[str, Callable[[fw.IntArray], fw.BoolArray]]
"""A topology key, and whether nodes with certain codes of it are refused."""


class DomainCounts:
    """The number of certain pods in each domain of one topology key."""

    def __init__(self, key: str, sums: fw.IntArray | None = None) -> None:
        self.key = key
        self._sums = sums  # per label code; code 0 is no domain, its entry is ignored
        self._changes: dict[int, int] = {}  # label code -> hypothetical pods
        self._seen = 0  # a domain that had such a pod, looked at first

    def are_empty(self) -> bool:
        sums = self._sums
        if self._changes:
            known = 0 if sums is None else int(sums[1:].sum())
            return known + sum(self._changes.values()) == 0
        if sums is None or len(sums) < 2:
            return True
        if not self._seen or not sums.item(self._seen):
            self._seen = 1 + int(sums[1:].argmax())
        return not sums.item(self._seen)

    def at(self, node: fw.Node) -> int:
        """Pods in the domain of a node; 0 if it is in none."""
        code = node.label_code(self.key)
        if not code:
            return 0
        known = 0 if self._sums is None else int(self._sums[code])
        return known + self._changes.get(code, 0)

    def have_some(self, codes: fw.IntArray) -> fw.BoolArray:
        """Whether there is such a pod in the domains with these label codes."""
        if self._sums is None:
            found: fw.BoolArray = np.zeros(len(codes), dtype=np.bool_)
        else:
            found = np.logical_and(self._sums[codes], codes)  # code 0 is no domain
        for code, change in self._changes.items():
            known = 0 if self._sums is None else self._sums[code]
            found[codes == code] = known + change > 0
        return found

    def changed_by(self, codes: fw.IntArray, change: fw.IntArray) -> fw.IntArray:
        """The pods in the domain of each node, if the node itself had so many more; 0: in none."""
        known = change if self._sums is None else self._sums[codes] + change
        found: fw.IntArray = np.where(codes, known, 0)
        return found

    def total(self) -> int:
        """The pods in all domains."""
        return 0 if self._sums is None else int(self._sums[1:].sum())

    def have_none(self, codes: fw.IntArray) -> fw.BoolArray:
        return ~self.have_some(codes)

    def change(self, node: fw.Node, by: int) -> None:
        code = node.label_code(self.key)
        if code:
            self._changes[code] = self._changes.get(code, 0) + by

    def clone(self) -> "DomainCounts":
        other = DomainCounts(self.key, self._sums)
        other._changes = dict(self._changes)
        return other


class Counted(abc.ABC):
    """Built from matched terms and counters; pods of a class share it while these are the same."""

    def __init__(self, matched: MatchedTerms, counts: Counts | None) -> None:
        self._matched = matched
        self._counts = counts  # None: with hypothetical pods

    def is_made_of(self, matched: MatchedTerms, counts: Counts) -> bool:
        """Whether it would be built from these again."""
        if self._counts is None or self._matched is not matched:
            return False
        return all(map(operator.is_, self._counts, counts))

    @property
    @abc.abstractmethod
    def is_empty(self) -> bool:
        """Whether it affects no node."""


class AffinityCounts(Counted):
    """The pods by which nodes are filtered; each test exists for a node and for domains.

    Three groups: pods that match all required affinity terms at once, pods that match a required
    anti-affinity term, and existing pods with a required anti-affinity term that selects this pod.
    """

    def __init__(
        self,
        matched: MatchedTerms,
        counts: Counts | None,
        affinity: tuple[DomainCounts, ...],
        anti_affinity: tuple[tuple[Peers, DomainCounts], ...],
        existing_anti_affinity: dict[AffinityTerm, DomainCounts],
    ) -> None:
        super().__init__(matched, counts)
        self.affinity = affinity  # one per topology key
        self.anti_affinity = anti_affinity  # one per term
        self.existing_anti_affinity = existing_anti_affinity
        # The latest tables, and `is_first_in_series` at that time.
        self._tables: tuple[bool, dict[str, DomainTable[np.bool_]]] | None = None

    @classmethod
    def of(cls, matched: MatchedTerms, counts: Counts) -> "AffinityCounts":
        given = iter(counts)
        return cls(
            matched,
            counts,
            tuple(DomainCounts(query.topology_key, next(given)) for query in matched.affinity),
            tuple(
                (query.peers[0], DomainCounts(query.topology_key, next(given)))
                for query in matched.anti_affinity
            ),
            {
                it: DomainCounts(it.topology_key, next(given))
                for it in matched.existing_anti_affinity
            },
        )

    @property
    def matched(self) -> MatchedTerms:
        return self._matched

    @property
    def is_empty(self) -> bool:
        existing = map(DomainCounts.are_empty, self.existing_anti_affinity.values())
        return not self.affinity and not self.anti_affinity and all(existing)

    def counting(self, pod: fw.Pod, other: fw.Pod, node: fw.Node, change: int) -> "AffinityCounts":
        """The same for `pod` with another pod hypothetically added to a node, or removed."""
        if self._counts is not None:
            return self._copy().counting(pod, other, node, change)
        if all_include(self._matched.affinity_terms, other):
            for domains in self.affinity:
                domains.change(node, change)
        for peers, domains in self.anti_affinity:
            if peers.include(other):
                domains.change(node, change)
        for term in terms_of(other).anti_affinity:
            if term.peers.include(pod, self._matched.namespace_labels):
                existing = self.existing_anti_affinity
                existing.setdefault(term, DomainCounts(term.topology_key)).change(node, change)
        self._tables = None
        return self

    @property
    def is_first_in_series(self) -> bool:
        """Whether no pod matches the affinity terms, but this pod itself does.

        Otherwise the first pod of a series with affinity to itself could never be placed.
        """
        are_empty = map(DomainCounts.are_empty, self.affinity)
        return self._matched.matches_own_affinity and all(are_empty)

    def violates_affinity(self, node: fw.Node) -> bool:
        if not all(domains.key in node.labels for domains in self.affinity):
            return True
        is_unmatched = any(domains.at(node) <= 0 for domains in self.affinity)
        return is_unmatched and not self.is_first_in_series

    def affinity_tests(self) -> list[DomainTest]:
        if self.is_first_in_series:
            return [(domains.key, _are_none) for domains in self.affinity]
        return [(domains.key, domains.have_none) for domains in self.affinity]

    def violates_anti_affinity(self, node: fw.Node) -> bool:
        return any(domains.at(node) > 0 for _, domains in self.anti_affinity)

    def anti_affinity_tests(self) -> list[DomainTest]:
        return [(domains.key, domains.have_some) for _, domains in self.anti_affinity]

    def violates_existing_anti_affinity(self, node: fw.Node) -> bool:
        return any(domains.at(node) > 0 for domains in self.existing_anti_affinity.values())

    def existing_anti_affinity_tests(self) -> list[DomainTest]:
        return [(it.key, it.have_some) for it in self.existing_anti_affinity.values()]

    def on(self, nodes: fw.Nodes) -> list[fw.IntArray | fw.BoolArray]:
        """All that the tests look at, for each node."""
        anti_affinity = [domains for _, domains in self.anti_affinity]
        tested = (*self.affinity, *anti_affinity, *self.existing_anti_affinity.values())
        nothing = np.zeros(len(nodes), dtype=np.int64)
        pods = [it.changed_by(nodes.label_codes(it.key), nothing) for it in tested]
        # With matching pods elsewhere, the pod can't be the first in a series.
        pairs = zip(self.affinity, pods, strict=False)
        return [*pods, *(column == domains.total() for domains, column in pairs)]

    def refused_domains(self) -> dict[str, DomainTable[np.bool_]]:
        """For any of the three reasons, by topology key."""
        is_first = self.is_first_in_series
        if self._tables is None or self._tables[0] != is_first:
            tests = [*self.affinity_tests(), *self.anti_affinity_tests()]
            by_key: dict[str, list[Callable[[fw.IntArray], fw.BoolArray]]] = {}
            for key, test in (*tests, *self.existing_anti_affinity_tests()):
                by_key.setdefault(key, []).append(test)
            basis = (self._matched, is_first)
            tables = {
                key: DomainTable(basis, functools.partial(_any_of, tests))
                for key, tests in by_key.items()
            }
            self._tables = (is_first, tables)
        return self._tables[1]

    def clone(self) -> "AffinityCounts":
        return self._copy() if self._counts is None else self

    def _copy(self) -> "AffinityCounts":
        return AffinityCounts(
            self._matched,
            None,
            tuple(domains.clone() for domains in self.affinity),
            tuple((peers, domains.clone()) for peers, domains in self.anti_affinity),
            {term: domains.clone() for term, domains in self.existing_anti_affinity.items()},
        )


class TopologyScores(Counted):
    """The score of a node by the pods in its domains."""

    def __init__(self, matched: MatchedTerms, counts: Counts) -> None:
        super().__init__(matched, counts)
        keys = matched.for_score.topology_keys
        self._domains = [DomainCounts(key, pods) for key, pods in zip(keys, counts, strict=True)]
        by_key: dict[str, list[tuple[int, fw.IntArray]]] = {}  # weights, pods per label code
        for key, weight, pods in zip(keys, matched.weights, counts, strict=True):
            by_key.setdefault(key, []).append((weight, pods))
        self._tables: dict[str, DomainTable[np.int64]] = {
            key: DomainTable(matched, functools.partial(_score_domains, parts))
            for key, parts in by_key.items()
        }

    @property
    def is_empty(self) -> bool:
        # Whether no pod is counted, not even with a weight of 0.
        return all(map(DomainCounts.are_empty, self._domains))

    def at(self, node: fw.Node) -> int:
        weighted = zip(self._matched.weights, self._domains, strict=True)
        return sum(weight * domains.at(node) for weight, domains in weighted)

    def on(self, nodes: fw.Nodes) -> fw.IntArray:
        points = np.zeros(len(nodes), dtype=np.int64)
        for key, table in self._tables.items():
            points += table.at(nodes.label_codes(key))
        return points

    def by_domain(self) -> dict[str, DomainTable[np.int64]]:
        return self._tables


def refused_on(nodes: fw.Nodes, tests: Iterable[DomainTest]) -> fw.BoolArray:
    """Whether any of the tests refuses a node."""
    found = np.zeros(len(nodes), dtype=np.bool_)
    for key, test in tests:
        found |= test(nodes.label_codes(key))
    return found


def _any_of(tests: list[Callable[[fw.IntArray], fw.BoolArray]], codes: fw.IntArray) -> fw.BoolArray:
    found = tests[0](codes)
    for test in tests[1:]:
        found |= test(codes)
    return found


def _are_none(codes: fw.IntArray) -> fw.BoolArray:
    is_none: fw.BoolArray = codes == 0
    return is_none


def _score_domains(parts: list[tuple[int, fw.IntArray]], codes: fw.IntArray) -> fw.IntArray:
    points: fw.IntArray | None = None
    for weight, pods in parts:
        here = pods[codes] if weight == 1 else weight * pods[codes]
        points = here if points is None else points + here
    assert points is not None
    return points * codes.astype(np.bool_)  # code 0 is no domain
