"""How many pods a pod's placement depends on, in each topology domain.

Domains are known by the code of their label value, so that a question about all nodes is one look
into an array. What-ifs keep their changes beside the array: clones share it.
"""

from collections.abc import Iterable, Mapping

import numpy as np

import mooring.framework as fw
from mooring.plugins.interpodaffinity.terms import Peers, Term, all_include, far_of

Refusals = dict[str, fw.BoolArray]
"""By topology key and label code: whether nodes in that domain are refused."""


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

    def have_some(self, nodes: fw.Nodes) -> fw.BoolArray:
        """Whether there is such a pod, per label code."""
        if self._sums is None:
            found = np.zeros(nodes.label_count(self.key), dtype=np.bool_)
        else:
            found = self._sums > 0
        for code, change in self._changes.items():
            found[code] = (0 if self._sums is None else self._sums[code]) + change > 0
        found[0] = False
        return found

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

    __slots__ = ("_near_terms", "_pod", "banned", "far", "namespace_labels", "near")

    def __init__(
        self,
        pod: fw.Pod,
        namespace_labels: Mapping[str, str],
        near_terms: tuple[Term, ...],
        near: tuple[Domains, ...],
        far: tuple[tuple[Peers, Domains], ...],
        banned: Mapping[str, Domains],
    ) -> None:
        self._pod = pod
        self._near_terms = near_terms
        self.namespace_labels = namespace_labels
        self.near: tuple[Domains, ...] = near  # one per topology key
        self.far: tuple[tuple[Peers, Domains], ...] = far  # one per term
        self.banned: dict[str, Domains] = dict(banned)  # by topology key

    def count(self, other: fw.Pod, node: fw.Node, change: int) -> None:
        """A pod comes to a node in thought, or leaves it."""
        if all_include(self._near_terms, other):
            for domains in self.near:
                domains.change(node, change)
        for peers, domains in self.far:
            if peers.include(other):
                domains.change(node, change)
        for term in far_of(other):
            if term.peers.include(self._pod, self.namespace_labels):
                key = term.topology_key
                self.banned.setdefault(key, Domains(key)).change(node, change)

    @property
    def may_come_first(self) -> bool:
        """Whether nobody is there to be near to, and the pod is one that it wants to be near to.

        Otherwise the first of a group that wants to be together could never be placed.
        """
        if not all(domains.is_empty for domains in self.near):
            return False
        return all_include(self._near_terms, self._pod)

    def lacks_company(self, node: fw.Node) -> bool:
        if not all(domains.key in node.labels for domains in self.near):
            return True
        return any(domains.at(node) <= 0 for domains in self.near) and not self.may_come_first

    def lacking_company(self, nodes: fw.Nodes) -> Refusals:
        is_first = bool(self.near) and self.may_come_first
        refused: Refusals = {}
        for domains in self.near:
            if is_first:
                table = np.zeros(nodes.label_count(domains.key), dtype=np.bool_)
                table[0] = True
            else:
                table = ~domains.have_some(nodes)
            refused[domains.key] = table
        return refused

    def meets_others(self, node: fw.Node) -> bool:
        return any(domains.at(node) > 0 for _, domains in self.far)

    def meeting_others(self, nodes: fw.Nodes) -> Refusals:
        return _where_some_are((domains for _, domains in self.far), nodes)

    def is_banned(self, node: fw.Node) -> bool:
        return any(domains.at(node) > 0 for domains in self.banned.values())

    def banning(self, nodes: fw.Nodes) -> Refusals:
        return _where_some_are(self.banned.values(), nodes)

    def refusing(self, nodes: fw.Nodes) -> Refusals:
        """For any of these reasons."""
        refused = self.lacking_company(nodes)
        join(refused, self.meeting_others(nodes))
        join(refused, self.banning(nodes))
        return refused

    def clone(self) -> "Surroundings":
        return Surroundings(
            self._pod,
            self.namespace_labels,
            self._near_terms,
            tuple(domains.clone() for domains in self.near),
            tuple((peers, domains.clone()) for peers, domains in self.far),
            {key: domains.clone() for key, domains in self.banned.items()},
        )


class Points:
    """What the pods of each domain make a node in it worth, by topology key."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[str, fw.IntArray] = {}  # per label code; code 0 is worth nothing

    @property
    def is_empty(self) -> bool:
        """Whether no pod counted at all, not even for nothing."""
        return not self.by_key

    def add(self, key: str, weight: int, pods: fw.IntArray) -> None:
        """So many points for each of these pods, given per label code."""
        if not pods[1:].any():
            return
        known = self.by_key.get(key)
        if known is None:
            known = self.by_key[key] = weight * pods
        elif weight == 1:
            known += pods
        else:
            known += weight * pods
        known[0] = 0

    def at(self, node: fw.Node) -> int:
        return sum(int(worth[node.label_code(key)]) for key, worth in self.by_key.items())

    def on(self, nodes: fw.Nodes) -> fw.IntArray:
        points = np.zeros(len(nodes), dtype=np.int64)
        for key, worth in self.by_key.items():
            points += worth[nodes.label_codes(key)]
        return points


def refused_on(nodes: fw.Nodes, tables: Refusals) -> fw.BoolArray:
    """What the tables say of each node."""
    found = np.zeros(len(nodes), dtype=np.bool_)
    for key, table in tables.items():
        found |= table[nodes.label_codes(key)]
    return found


def join(refusals: Refusals, others: Refusals) -> None:
    """Refuse what the others refuse as well."""
    for key, table in others.items():
        if key in refusals:
            refusals[key] |= table
        else:
            refusals[key] = table


def _where_some_are(groups: Iterable[Domains], nodes: fw.Nodes) -> Refusals:
    refused: Refusals = {}
    for domains in groups:
        join(refused, {domains.key: domains.have_some(nodes)})
    return refused
