"""Pods per domain: the hard constraints filter by them, the soft ones score by them.

Domains are identified by the label code of their value (`Nodes.label_codes`); code 0 is no domain.
"""

import math
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.wellknown import HOSTNAME
from mooring.cache.arrays import FloatArray
from mooring.cache.hypothetical import HypotheticalNodes
from mooring.cache.internals import label_tally, mark_of, on_rows_of, rows_labelled, rows_of
from mooring.cache.snapshot import Mark
from mooring.framework._internal import ScoresByCode, ScoresByLabel
from mooring.plugins.podtopologyspread.constraints import (
    Constraint,
    Constraints,
    NodeInclusion,
    PodMatcher,
    both,
    has_all_keys,
    with_all_keys,
)

_NO_MINIMUM: Final = 2**31 - 1  # of no domains at all, as in kube-scheduler
_MANY_CODES: Final = 1_000  # it takes longer to score so many than some nodes


class ConstraintScope(msgspec.Struct, frozen=True, eq=False):
    """What a hard constraint counts and where, apart from the counts: shared by a class of pods."""

    constraint: Constraint
    pods: PodMatcher
    self_match: int  # 1 if the pod to be placed matches its own constraint
    counted: fw.BoolArray | None  # the nodes that count; None: all do
    domain_codes: fw.IntArray  # label codes of the domains, each with a node that counts

    @classmethod
    def of(
        cls, pod: fw.Pod, constraint: Constraint, counted: fw.BoolArray | None, nodes: fw.Nodes
    ) -> "ConstraintScope":
        codes = nodes.label_codes(constraint.topology_key)
        seen = np.bincount(codes if counted is None else codes[counted])
        return cls(
            constraint,
            constraint.pods(pod),
            int(constraint.selector.matches(pod.labels)),
            counted,
            np.flatnonzero(seen),
        )

    def counts(self, nodes: fw.Nodes) -> fw.IntArray:
        return count_by_domain(nodes, self.constraint.topology_key, self.pods, self.counted)


class ConstraintDomains(msgspec.Struct, frozen=True, eq=False):
    """The domains of one hard constraint and the matching pods in each."""

    scope: ConstraintScope
    counts: fw.IntArray  # pods, per label code; 0 where there is no domain
    minimum: int  # pods in the emptiest domain; 0 with fewer domains than minDomains

    @classmethod
    def by(cls, scope: ConstraintScope, counts: fw.IntArray) -> "ConstraintDomains":
        if len(scope.domain_codes) < scope.constraint.min_domains:
            minimum = 0
        else:
            there = counts.take(scope.domain_codes)
            minimum = int(np.minimum.reduce(there)) if len(there) else _NO_MINIMUM
        return cls(scope, counts, minimum)

    @property
    def constraint(self) -> Constraint:
        return self.scope.constraint

    @property
    def room(self) -> int:
        """The most matching pods in a domain that can still take this pod."""
        return self.constraint.max_skew + self.minimum - self.scope.self_match

    def refused_domains(self) -> fw.BoolArray:
        """Per label code; nodes without the label are refused."""
        refused: fw.BoolArray = self.counts > self.room
        refused[0] = True
        return refused

    def on(self, codes: fw.IntArray) -> tuple[fw.IntArray, fw.IntArray]:
        """For each node: the pods in its domain, and the least in any other that counts."""
        domain_codes = self.scope.domain_codes
        others = np.full(len(self.counts), self.minimum)
        if len(domain_codes) and len(domain_codes) >= self.constraint.min_domains:
            there = self.counts[domain_codes]
            emptiest = int(there.argmin())
            rest = np.delete(there, emptiest)
            others[domain_codes[emptiest]] = rest.min() if len(rest) else _NO_MINIMUM
        return self.counts[codes], others[codes]

    def refused_if(self, change: fw.IntArray, codes: fw.IntArray) -> fw.BoolArray:
        """Whether each node is refused if it had so many more pods that match, it alone."""
        here, others = self.on(codes)
        here = here + change
        # A domain that would be the emptiest is not refused, whether or not it counts.
        room = self.constraint.max_skew + np.minimum(others, here) - self.scope.self_match
        refused: fw.BoolArray = here > room
        return refused

    def changed(self, code: int, by: int) -> "ConstraintDomains":
        """As if one domain had this many pods more."""
        counts = self.counts.copy()
        counts[code] += by
        return ConstraintDomains.by(self.scope, counts)


class HardSpread(msgspec.Struct, frozen=True, eq=False):
    """All hard constraints of a pod; `count` changes the counts, `clone` keeps what-ifs apart."""

    inclusion: NodeInclusion
    as_of: Mark
    domains: list[ConstraintDomains]

    @classmethod
    def of(
        cls, pod: fw.Pod, constraints: Constraints, inclusion: NodeInclusion, nodes: fw.Nodes
    ) -> "HardSpread":
        labelled = with_all_keys(nodes, constraints)
        scopes = [
            ConstraintScope.of(
                pod, constraint, both(labelled, inclusion.covered(nodes, constraint)), nodes
            )
            for constraint in constraints
        ]
        domains = [ConstraintDomains.by(scope, scope.counts(nodes)) for scope in scopes]
        return cls(inclusion, mark_of(nodes), domains)

    def recounted(self, nodes: fw.Nodes) -> "HardSpread | None":
        """For another pod of the class; None if not only pods have changed since, but nodes."""
        mark = mark_of(nodes)
        if mark.nodes != self.as_of.nodes:
            return None
        scopes = [domains.scope for domains in self.domains]
        domains = [ConstraintDomains.by(scope, scope.counts(nodes)) for scope in scopes]
        return HardSpread(self.inclusion, mark, domains)

    def clone(self) -> "HardSpread":
        return HardSpread(self.inclusion, self.as_of, list(self.domains))

    def count(self, pod: fw.Pod, other: fw.Pod, node: fw.Node, change: int) -> None:
        """Hypothetically add another pod to a node, or remove it.

        As in kube-scheduler, a terminating pod counts here, though it was not counted before.
        """
        if not has_all_keys(node.labels, [domains.constraint for domains in self.domains]):
            return
        for place, domains in enumerate(self.domains):
            constraint = domains.constraint
            if domains.scope.pods.matches(other) and self.inclusion.covers(node, constraint):
                code = node.label_code(constraint.topology_key)
                self.domains[place] = domains.changed(code, change)

    def change(self, nodes: HypotheticalNodes, domains: ConstraintDomains) -> fw.IntArray:
        """As `count` for each of these nodes: how many pods more match one of the constraints."""
        pods, constraint = domains.scope.pods, domains.constraint
        change = nodes.change(("PodTopologySpread", pods), pods.matches)
        counted = both(
            with_all_keys(nodes, [each.constraint for each in self.domains]),
            self.inclusion.covered(nodes, constraint),
        )
        return change if counted is None else np.where(counted, change, 0)


class TopologyScore(msgspec.Struct, frozen=True, eq=False):
    """What one soft constraint adds to a node's score, which grows with the pods in its domain."""

    constraint: Constraint
    pods: PodMatcher
    weight: float  # grows with the number of domains, so that constraints are comparable
    counts: fw.IntArray | None  # pods, per label code; None: count those on the node itself

    @property
    def _skew(self) -> int:
        return self.constraint.max_skew - 1

    def of(self, count: int) -> float:
        return count * self.weight + self._skew

    def at(self, node: fw.Node) -> float:
        """The score of a node that is in one of the domains."""
        if self.counts is None:
            return self.of(sum(1 for pod in node.pods if self.pods(pod)))
        return self.of(int(self.counts[node.label_code(self.constraint.topology_key)]))

    def at_all(self, nodes: fw.Nodes) -> FloatArray:
        """As `at`; 0 for nodes that are in none of the domains."""
        codes = nodes.label_codes(self.constraint.topology_key)
        if self.counts is None:
            found: FloatArray = np.where(codes != 0, self.of_counts(self.on(nodes)), 0.0)
            return found
        return self.by_domain(self.counts)[codes]

    def of_counts(self, counts: fw.IntArray) -> FloatArray:
        found: FloatArray = counts * np.float64(self.weight) + self._skew
        return found

    def by_domain(self, counts: fw.IntArray) -> FloatArray:
        found = self.of_counts(counts)
        found[0] = 0.0
        return found

    def on(self, nodes: fw.Nodes) -> fw.IntArray:
        """The pods on each of these nodes that count."""
        if self.pods.matches_nothing:
            return np.zeros(len(nodes), dtype=np.int64)
        return nodes.count_pods(self.pods, self.pods, self.pods.selector)


ConstraintPods = tuple[tuple[Constraint, PodMatcher], ...]
"""Constraints, and the pods that count for each."""


class SoftSpread(msgspec.Struct, frozen=True, eq=False):
    """All soft constraints of a pod, and whether a node must be in a domain of each of them."""

    constraint_pods: ConstraintPods
    topology_scores: tuple[TopologyScore, ...]
    needs_all_keys: bool
    as_of: Mark
    feasible_rows: fw.IntArray | None  # None: all

    @classmethod
    def of(
        cls,
        pod: fw.Pod,
        constraint_pods: ConstraintPods,
        inclusion: NodeInclusion,
        feasible: fw.Nodes,
        everywhere: fw.Nodes,
        *,
        needs_all_keys: bool,
    ) -> "SoftSpread":
        """Count on all nodes; how many domains there are depends on the feasible ones."""
        constraints = [constraint for constraint, _ in constraint_pods]
        labelled = with_all_keys(everywhere, constraints) if needs_all_keys else None
        scored = with_all_keys(feasible, constraints) if needs_all_keys else None
        topology_scores = []
        for constraint, pods in constraint_pods:
            key = constraint.topology_key
            counts = None
            if key == HOSTNAME:
                size = len(feasible) if scored is None else int(np.count_nonzero(scored))
            else:
                counted = both(labelled, inclusion.covered(everywhere, constraint))
                counts = count_by_domain(everywhere, key, pods, counted)
                if scored is None:
                    seen = label_tally(feasible, key) > 0
                else:
                    seen = np.bincount(feasible.label_codes(key)[scored]) > 0
                size = int(np.count_nonzero(seen))
                if not needs_all_keys:
                    counts, merged_domains = merge_unlabelled_domain(feasible, key, counts, seen)
                    size -= merged_domains
            topology_scores.append(TopologyScore(constraint, pods, math.log(size + 2), counts))
        return cls(
            constraint_pods,
            tuple(topology_scores),
            needs_all_keys,
            mark_of(everywhere),
            rows_of(feasible),
        )

    def is_current(self, feasible: fw.Nodes, everywhere: fw.Nodes) -> bool:
        """Whether another pod of the class has the same: not if nodes changed, or others fit.

        The counts of a table are kept current, unless it was made of some of the nodes.
        """
        if mark_of(everywhere).nodes != self.as_of.nodes:
            return False
        if rows_of(feasible) is not self.feasible_rows:
            return False
        return all(
            one.counts is None
            or one.counts is count_by_domain(everywhere, one.constraint.topology_key, one.pods)
            for one in self.topology_scores
        )

    @property
    def constraints(self) -> Constraints:
        return [constraint for constraint, _ in self.constraint_pods]

    def ignores(self, node: fw.Node) -> bool:
        return self.needs_all_keys and not has_all_keys(node.labels, self.constraints)

    def scored(self, nodes: fw.Nodes) -> fw.BoolArray | None:
        """The nodes that are not ignored; None if none is."""
        return with_all_keys(nodes, self.constraints) if self.needs_all_keys else None

    def on(self, nodes: fw.Nodes) -> fw.IntArray:
        """The score of each node, 0 for those that are ignored."""
        by_domain = self._by_domain()
        if by_domain is not None:
            key, scores = by_domain
            return scores.take(nodes.label_codes(key))
        total = np.zeros(len(nodes), dtype=np.float64)
        for topology_score in self.topology_scores:
            total += topology_score.at_all(nodes)
        scored = self.scored(nodes)
        return rounded(total) if scored is None else np.where(scored, rounded(total), 0)

    def final(self, nodes: fw.Nodes, everywhere: fw.Nodes) -> ScoresByLabel | ScoresByCode | None:
        """The normalized scores of these nodes, if they depend on one domain and the host only."""
        by_domain = self._by_domain()
        if by_domain is None:
            by_code = self._by_host_and_domain(everywhere)
            if by_code is None:
                return None
            codes, scores = by_code
            is_there = np.zeros(len(scores), dtype=np.bool_)
            is_there[on_rows_of(nodes, codes)] = True
            return ScoresByCode(codes, normalized(scores, is_there))
        key, scores = by_domain
        counting = label_tally(nodes, key) > 0
        if self.needs_all_keys:
            counting[0] = False
        return ScoresByLabel(key, normalized(scores, counting))

    def _by_domain(self) -> tuple[str, fw.IntArray] | None:
        """A label key, and the score per label code; None if scores depend on more than that."""
        only = self.topology_scores[0]
        if len(self.topology_scores) > 1 or only.counts is None:
            return None
        return only.constraint.topology_key, rounded(only.by_domain(only.counts))

    def _by_host_and_domain(self, everywhere: fw.Nodes) -> tuple[fw.IntArray, fw.IntArray] | None:
        """A code of each node for its domain and the pods on it, and the score per code.

        None if scores depend on more than that, nodes are ignored, or there would be many codes.
        """
        hosts = [one for one in self.topology_scores if one.counts is None]
        domains = [one for one in self.topology_scores if one.counts is not None]
        if len(hosts) != 1 or len(domains) > 1 or self.scored(everywhere) is not None:
            return None
        if len(rows_labelled(everywhere, HOSTNAME, 0)):
            return None
        codes = hosts[0].on(everywhere)
        size = int(np.maximum.reduce(codes)) + 1
        total = np.zeros((1, size))
        for one in self.topology_scores:
            if one.counts is None:
                total = total + one.of_counts(np.arange(size))
            elif len(one.counts) * size > max(len(everywhere), _MANY_CODES):
                return None
            else:
                total = total + one.by_domain(one.counts)[:, np.newaxis]
                codes = everywhere.label_codes(one.constraint.topology_key) * size + codes
        return codes, rounded(total.ravel())


def normalized(scores: fw.IntArray, counting: fw.BoolArray | None) -> fw.IntArray:
    """The lowest score becomes 100. Scores that do not count become 0; None: all count."""
    there = scores if counting is None else scores[counting]
    if not len(there):
        return np.zeros_like(scores)
    most, least = int(np.maximum.reduce(there)), int(np.minimum.reduce(there))
    if most == 0:
        points = np.full_like(scores, fw.MAX_SCORE)
    elif counting is None and most - least < len(scores):
        # Looking a quotient up takes a tenth of the time of a division.
        quotients = fw.MAX_SCORE * (most + least - np.arange(least, most + 1)) // most
        points = quotients[scores - least]
    else:
        points = fw.MAX_SCORE * (most + least - scores) // most
    return points if counting is None else np.where(counting, points, 0)


def rounded(total: FloatArray) -> fw.IntArray:
    """To the nearest whole number, halves up; none of them is negative."""
    whole = np.floor(total)
    found: fw.IntArray = whole.astype(np.int64) + (total - whole >= 0.5)
    return found


def count_by_domain(
    nodes: fw.Nodes, key: str, pods: PodMatcher, counted: fw.BoolArray | None = None
) -> fw.IntArray:
    """Pods per label code, of those on the nodes that count; None: all nodes do."""
    if pods.matches_nothing:
        return np.zeros(nodes.label_count(key), dtype=np.int64)
    if counted is None:
        return nodes.count_pods_by(key, pods, pods, pods.selector)
    size = nodes.label_count(key)
    here = np.where(counted, nodes.count_pods(pods, pods, pods.selector), 0)
    return np.bincount(nodes.label_codes(key), weights=here, minlength=size).astype(np.int64)


def merge_unlabelled_domain(
    nodes: fw.Nodes, key: str, counts: fw.IntArray, seen: fw.BoolArray
) -> tuple[fw.IntArray, int]:
    """Put nodes without the label in one domain with those where it is empty, as in kube-scheduler.

    Returns the counts, and how many domains there are fewer.
    """
    values = nodes.label_values(key)
    if "" not in values:
        return counts, 0
    empty = values.index("")
    if empty >= len(counts):
        return counts, 0
    merged = counts.copy()
    merged[empty] += counts[0]
    return merged, int(empty < len(seen) and seen[empty] and seen[0])
