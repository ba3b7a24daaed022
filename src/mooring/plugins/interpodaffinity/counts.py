"""How many pods a pod's placement depends on, in each topology domain.

Domains are known by the code of their label value, so that a question about all nodes is one look
into an array. The arrays are kept current: pods of one class share what is made of them, as long as
they are the same. What-ifs count in a copy of their own, beside the arrays.
"""

import abc
import functools
import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np

import mooring.framework as fw
from mooring.framework._internal import DomainTable
from mooring.plugins.interpodaffinity.relations import Relations
from mooring.plugins.interpodaffinity.terms import Peers, Term, all_include, terms_of

Counts = Sequence[fw.IntArray]
"""Pods per label code, as a census counts them."""
Test = tuple[str, Callable[[fw.IntArray], fw.BoolArray]]
"""A topology key, and whether nodes with certain codes of it are refused."""


class Domains:
    """The number of certain pods in each domain of one topology key."""

    __slots__ = ("_changes", "_seen", "_sums", "key")

    def __init__(self, key: str, sums: fw.IntArray | None = None) -> None:
        self.key: str = key
        self._sums = sums  # per label code; code 0 is no domain, whatever stands there
        self._changes: dict[int, int] = {}  # label code -> pods added in thought
        self._seen = 0  # a domain where such a pod was; mostly it still is

    def are_empty(self) -> bool:
        """Whether there is no such pod in any domain."""
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
            found = np.logical_and(self._sums[codes], codes)  # whatever stands at code 0
        for code, change in self._changes.items():
            known = 0 if self._sums is None else self._sums[code]
            found[codes == code] = known + change > 0
        return found

    def have_none(self, codes: fw.IntArray) -> fw.BoolArray:
        return ~self.have_some(codes)

    def change(self, node: fw.Node, by: int) -> None:
        """More or fewer pods on a node."""
        code = node.label_code(self.key)
        if code:
            self._changes[code] = self._changes.get(code, 0) + by

    def clone(self) -> "Domains":
        other = Domains(self.key, self._sums)
        other._changes = dict(self._changes)
        return other


class Counted(abc.ABC):
    """Made of relations and counters, and good for all pods of a class as long as these are."""

    __slots__ = ("_counts", "_relations")

    def __init__(self, relations: Relations, counts: Counts | None) -> None:
        self._relations = relations
        self._counts = counts  # None: there is more to it, in thought

    def is_of(self, relations: Relations, counts: Counts) -> bool:
        """Whether this is what would be made of these."""
        if self._counts is None or self._relations is not relations:
            return False
        return all(map(operator.is_, self._counts, counts))

    @property
    @abc.abstractmethod
    def is_empty(self) -> bool:
        """Whether it makes no difference to any node."""


class Surroundings(Counted):
    """The pods that decide where one pod may be. Each question is asked of nodes or of domains.

    Three groups: pods that it requires to be near (they match all its affinity terms at once), pods
    that it keeps away from, and pods that keep away from it.
    """

    __slots__ = ("_tables", "banned", "far", "near")

    def __init__(
        self,
        relations: Relations,
        counts: Counts | None,
        near: tuple[Domains, ...],
        far: tuple[tuple[Peers, Domains], ...],
        banned: dict[Term, Domains],
    ) -> None:
        super().__init__(relations, counts)
        self.near: tuple[Domains, ...] = near  # one per topology key
        self.far: tuple[tuple[Peers, Domains], ...] = far  # one per term
        self.banned: dict[Term, Domains] = banned
        # What was said last, and whether the pod could come first then.
        self._tables: tuple[bool, dict[str, DomainTable[np.bool_]]] | None = None

    @classmethod
    def of(cls, relations: Relations, counts: Counts) -> "Surroundings":
        given = iter(counts)
        return cls(
            relations,
            counts,
            tuple(Domains(who.topology_key, next(given)) for who in relations.near),
            tuple((who.peers[0], Domains(who.topology_key, next(given))) for who in relations.far),
            {term: Domains(term.topology_key, next(given)) for term in relations.bans},
        )

    @property
    def is_empty(self) -> bool:
        return not self.near and not self.far and all(map(Domains.are_empty, self.banned.values()))

    def counting(self, pod: fw.Pod, other: fw.Pod, node: fw.Node, change: int) -> "Surroundings":
        """The same for `pod` with another pod that comes to a node in thought, or leaves it."""
        if self._counts is not None:
            return self._copy().counting(pod, other, node, change)
        if all_include(self._relations.near_terms, other):
            for domains in self.near:
                domains.change(node, change)
        for peers, domains in self.far:
            if peers.include(other):
                domains.change(node, change)
        for term in terms_of(other).far:
            if term.peers.include(pod, self._relations.namespace_labels):
                domains = self.banned.setdefault(term, Domains(term.topology_key))
                domains.change(node, change)
        self._tables = None
        return self

    @property
    def may_come_first(self) -> bool:
        """Whether nobody is there to be near to, and the pod is one that it wants to be near to.

        Otherwise the first of a group that wants to be together could never be placed.
        """
        return self._relations.is_own_company and all(map(Domains.are_empty, self.near))

    def lacks_company(self, node: fw.Node) -> bool:
        if not all(domains.key in node.labels for domains in self.near):
            return True
        return any(domains.at(node) <= 0 for domains in self.near) and not self.may_come_first

    def lacking_company(self) -> list[Test]:
        if self.may_come_first:
            return [(domains.key, _are_none) for domains in self.near]
        return [(domains.key, domains.have_none) for domains in self.near]

    def meets_others(self, node: fw.Node) -> bool:
        return any(domains.at(node) > 0 for _, domains in self.far)

    def meeting_others(self) -> list[Test]:
        return [(domains.key, domains.have_some) for _, domains in self.far]

    def is_banned(self, node: fw.Node) -> bool:
        return any(domains.at(node) > 0 for domains in self.banned.values())

    def banning(self) -> list[Test]:
        return [(domains.key, domains.have_some) for domains in self.banned.values()]

    def refusing(self) -> dict[str, DomainTable[np.bool_]]:
        """For any of these reasons."""
        is_first = self.may_come_first
        if self._tables is None or self._tables[0] != is_first:
            tests: dict[str, list[Test]] = {}
            for test in (*self.lacking_company(), *self.meeting_others(), *self.banning()):
                tests.setdefault(test[0], []).append(test)
            basis = (self._relations, is_first)
            tables = {
                key: DomainTable(basis, functools.partial(_any_of, [test for _, test in some]))
                for key, some in tests.items()
            }
            self._tables = (is_first, tables)
        return self._tables[1]

    def clone(self) -> "Surroundings":
        return self._copy() if self._counts is None else self

    def _copy(self) -> "Surroundings":
        """One that nobody else has, to be changed."""
        return Surroundings(
            self._relations,
            None,
            tuple(domains.clone() for domains in self.near),
            tuple((peers, domains.clone()) for peers, domains in self.far),
            {term: domains.clone() for term, domains in self.banned.items()},
        )


class Points(Counted):
    """What the pods of each domain make a node in it worth, by topology key."""

    __slots__ = ("_domains", "_tables")

    def __init__(self, relations: Relations, counts: Counts) -> None:
        super().__init__(relations, counts)
        keys = relations.judging.topology_keys
        self._domains = [Domains(key, pods) for key, pods in zip(keys, counts, strict=True)]
        by_key: dict[str, list[tuple[int, fw.IntArray]]] = {}  # weights, pods per label code
        for key, weight, pods in zip(keys, relations.weights, counts, strict=True):
            by_key.setdefault(key, []).append((weight, pods))
        self._tables: dict[str, DomainTable[np.int64]] = {
            key: DomainTable(relations, functools.partial(_worth, parts))
            for key, parts in by_key.items()
        }

    @property
    def is_empty(self) -> bool:
        # Whether no pod counts at all, not even for nothing.
        return all(map(Domains.are_empty, self._domains))

    def at(self, node: fw.Node) -> int:
        weighted = zip(self._relations.weights, self._domains, strict=True)
        return sum(weight * domains.at(node) for weight, domains in weighted)

    def on(self, nodes: fw.Nodes) -> fw.IntArray:
        points = np.zeros(len(nodes), dtype=np.int64)
        for key, table in self._tables.items():
            points += table.at(nodes.label_codes(key))
        return points

    def by_domain(self) -> dict[str, DomainTable[np.int64]]:
        return self._tables


def refused_on(nodes: fw.Nodes, tests: Iterable[Test]) -> fw.BoolArray:
    """What the tests say of each node."""
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
    """Whether these are codes of no domain."""
    is_none: fw.BoolArray = codes == 0
    return is_none


def _worth(parts: list[tuple[int, fw.IntArray]], codes: fw.IntArray) -> fw.IntArray:
    """The points in the domains with these codes."""
    points: fw.IntArray | None = None
    for weight, pods in parts:
        here = pods[codes] if weight == 1 else weight * pods[codes]
        points = here if points is None else points + here
    assert points is not None
    return points * codes.astype(np.bool_)  # code 0 is worth nothing
