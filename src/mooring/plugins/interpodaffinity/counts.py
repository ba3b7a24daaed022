"""How many pods a pod's placement depends on, in each topology domain.

Domains are known by the code of their label value, so that a question about all nodes is one look
into an array. What-ifs keep their changes beside the array: clones share it.
"""

import functools
from collections.abc import Callable, Iterable, Mapping

import numpy as np

import mooring.framework as fw
from mooring.plugins.interpodaffinity.relations import Relations
from mooring.plugins.interpodaffinity.terms import Peers, all_include, far_of

Test = tuple[str, Callable[[fw.IntArray], fw.BoolArray]]
"""A topology key, and whether nodes with certain codes of it are refused."""


class Domains:
    """The number of certain pods in each domain of one topology key."""

    __slots__ = ("_changes", "_sums", "key")

    def __init__(self, key: str, sums: fw.IntArray | None = None) -> None:
        self.key: str = key
        self._sums = sums  # per label code; code 0 is no domain, whatever stands there
        self._changes: dict[int, int] = {}  # label code -> pods added in thought

    @property
    def is_empty(self) -> bool:
        """Whether there is no such pod in any domain."""
        if self._sums is None or not self._changes:
            known = 0 if self._sums is None else int(self._sums[1:].any())
        else:
            known = int(self._sums[1:].sum())
        return known + sum(self._changes.values()) == 0

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
            found = self._sums[codes] * codes > 0  # whatever stands at code 0
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


class Surroundings:
    """The pods that decide where one pod may be. Each question is asked of nodes or of domains.

    Three groups: pods that it requires to be near (they match all its affinity terms at once), pods
    that it keeps away from, and pods that keep away from it.
    """

    __slots__ = ("_pod", "_relations", "banned", "far", "near")

    def __init__(
        self,
        pod: fw.Pod,
        relations: Relations,
        near: tuple[Domains, ...],
        far: tuple[tuple[Peers, Domains], ...],
        banned: Mapping[str, Domains],
    ) -> None:
        self._pod = pod
        self._relations = relations
        self.near: tuple[Domains, ...] = near  # one per topology key
        self.far: tuple[tuple[Peers, Domains], ...] = far  # one per term
        self.banned: dict[str, Domains] = dict(banned)  # by topology key

    def count(self, other: fw.Pod, node: fw.Node, change: int) -> None:
        """A pod comes to a node in thought, or leaves it."""
        if all_include(self._relations.near_terms, other):
            for domains in self.near:
                domains.change(node, change)
        for peers, domains in self.far:
            if peers.include(other):
                domains.change(node, change)
        for term in far_of(other):
            if term.peers.include(self._pod, self._relations.namespace_labels):
                key = term.topology_key
                self.banned.setdefault(key, Domains(key)).change(node, change)

    @property
    def may_come_first(self) -> bool:
        """Whether nobody is there to be near to, and the pod is one that it wants to be near to.

        Otherwise the first of a group that wants to be together could never be placed.
        """
        if not all(domains.is_empty for domains in self.near):
            return False
        return all_include(self._relations.near_terms, self._pod)

    def lacks_company(self, node: fw.Node) -> bool:
        if not all(domains.key in node.labels for domains in self.near):
            return True
        return any(domains.at(node) <= 0 for domains in self.near) and not self.may_come_first

    def lacking_company(self) -> list[Test]:
        if self.near and self.may_come_first:
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

    def refusing(self) -> dict[str, fw.LocalTable[np.bool_]]:
        """For any of these reasons."""
        lacking = self.lacking_company()
        basis = (self._relations, bool(lacking) and lacking[0][1] is _are_none)
        tests: dict[str, list[Test]] = {}
        for test in (*lacking, *self.meeting_others(), *self.banning()):
            tests.setdefault(test[0], []).append(test)
        return {
            key: fw.LocalTable(basis, functools.partial(_any_of, some))
            for key, some in tests.items()
        }

    def clone(self) -> "Surroundings":
        return Surroundings(
            self._pod,
            self._relations,
            tuple(domains.clone() for domains in self.near),
            tuple((peers, domains.clone()) for peers, domains in self.far),
            {key: domains.clone() for key, domains in self.banned.items()},
        )


class Points:
    """What the pods of each domain make a node in it worth, by topology key."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[str, list[tuple[int, fw.IntArray]]] = {}  # weights, pods per label code

    @property
    def is_empty(self) -> bool:
        """Whether no pod counted at all, not even for nothing."""
        return not self._by_key

    def add(self, key: str, weight: int, pods: fw.IntArray) -> None:
        """So many points for each of these pods, given per label code."""
        self._by_key.setdefault(key, []).append((weight, pods))

    def at(self, node: fw.Node) -> int:
        total = 0
        for key, parts in self._by_key.items():
            code = node.label_code(key)
            if code:
                total += sum(weight * int(pods[code]) for weight, pods in parts)
        return total

    def on(self, nodes: fw.Nodes) -> fw.IntArray:
        points = np.zeros(len(nodes), dtype=np.int64)
        for key, parts in self._by_key.items():
            points += _worth(parts, nodes.label_codes(key))
        return points

    def by_domain(self, basis: Relations) -> dict[str, fw.LocalTable[np.int64]]:
        return {
            key: fw.LocalTable(basis, functools.partial(_worth, parts))
            for key, parts in self._by_key.items()
        }


def refused_on(nodes: fw.Nodes, tests: Iterable[Test]) -> fw.BoolArray:
    """What the tests say of each node."""
    found = np.zeros(len(nodes), dtype=np.bool_)
    for key, test in tests:
        found |= test(nodes.label_codes(key))
    return found


def _any_of(tests: list[Test], codes: fw.IntArray) -> fw.BoolArray:
    found = [test(codes) for _, test in tests]
    return functools.reduce(np.logical_or, found)


def _are_none(codes: fw.IntArray) -> fw.BoolArray:
    """Whether these are codes of no domain."""
    is_none: fw.BoolArray = codes == 0
    return is_none


def _worth(parts: list[tuple[int, fw.IntArray]], codes: fw.IntArray) -> fw.IntArray:
    """The points in the domains with these codes; code 0 is worth nothing."""
    points: fw.IntArray | None = None
    for weight, pods in parts:
        here = pods[codes] if weight == 1 else weight * pods[codes]
        points = here if points is None else points + here
    assert points is not None
    points[codes == 0] = 0
    return points
