"""The terms that matter for a pod to be placed: its own, and those of existing pods that select it.

They are the same for all pods of a class until a rule or a namespace changes.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

import mooring.framework as fw
from mooring.cache.snapshot import Features
from mooring.plugins.interpodaffinity.terms import (
    AffinityTerm,
    AffinityTerms,
    Peers,
    PreferredTerm,
    Rule,
    all_include,
    included_in_all,
    terms_of,
)

Version = tuple[int, int]


class PodQuery(msgspec.Struct, frozen=True, eq=False):
    """Pods that are among all of these peers, to be counted by topology domain."""

    topology_key: str
    peers: tuple[Peers, ...]
    name: tuple[str, tuple[Peers, ...]]  # of the counter, which equal queries share
    matches: Callable[[fw.Pod], bool]

    @classmethod
    def of(cls, topology_key: str, *peers: Peers) -> "PodQuery":
        return cls(topology_key, peers, ("InterPodAffinity", peers), included_in_all(peers))


class PodCounts(msgspec.Struct, frozen=True, eq=False):
    """Pods to be counted: those that match the queries, then those that have the rules."""

    queries: tuple[PodQuery, ...]
    rules: tuple[Rule, ...]

    @property
    def is_empty(self) -> bool:
        return not self.queries and not self.rules

    @property
    def topology_keys(self) -> list[str]:
        return [what.topology_key for what in (*self.queries, *self.rules)]

    def counts(
        self, nodes: fw.Nodes, rules_in: Callable[[fw.Nodes], Features]
    ) -> list[fw.IntArray]:
        """These pods per label code. The cache keeps the arrays current, or replaces them."""
        found = [
            nodes.count_pods_by(one.topology_key, one.name, one.matches, one.peers[0].selector)
            for one in self.queries
        ]
        if self.rules:
            features = rules_in(nodes)
            found += [features.per_domain(rule, rule.topology_key) for rule in self.rules]
        return found


class MatchedTerms(msgspec.Struct, frozen=True, eq=False):
    """The terms of a pod, and the rules of existing pods that select it."""

    version: Version  # of the rules and namespaces
    terms: AffinityTerms
    namespace_labels: Mapping[str, str]
    affinity_terms: tuple[AffinityTerm, ...]  # namespaces by name, as in all that follows
    matches_own_affinity: bool  # whether they all select the pod itself
    affinity: tuple[PodQuery, ...]  # one per topology key: pods that match all terms
    anti_affinity: tuple[PodQuery, ...]  # one per term
    existing_anti_affinity: tuple[AffinityTerm, ...]  # that selects this pod
    weights: tuple[int, ...]  # of what `for_score` counts
    for_filter: PodCounts  # the three kinds above
    for_score: PodCounts  # preferred terms, and rules with a score

    @classmethod
    def of(
        cls,
        version: Version,
        pod: fw.Pod,
        namespace_labels: Mapping[str, str],
        resolve: Callable[[Peers], Peers],
        about: Sequence[Rule],
        hard_pod_affinity_weight: int,
    ) -> "MatchedTerms":
        """`about` are the rules of existing pods that select this one."""
        terms = terms_of(pod)
        affinity_terms = tuple(
            AffinityTerm(resolve(term.peers), term.topology_key) for term in terms.affinity
        )
        peers = [term.peers for term in affinity_terms]
        keys = dict.fromkeys(term.topology_key for term in affinity_terms)
        affinity = tuple(PodQuery.of(key, *peers) for key in keys)
        anti_affinity, preferred = (
            tuple(PodQuery.of(term.topology_key, resolve(term.peers)) for term in kind)
            for kind in (terms.anti_affinity, terms.preferred)
        )
        existing_anti_affinity = tuple(rule for rule in about if isinstance(rule, AffinityTerm))
        rules = {
            rule: hard_pod_affinity_weight if rule.weight is None else rule.weight
            for rule in about
            if isinstance(rule, PreferredTerm)
            and (hard_pod_affinity_weight or rule.weight is not None)
        }
        return cls(
            version,
            terms,
            namespace_labels,
            affinity_terms,
            all_include(affinity_terms, pod),
            affinity,
            anti_affinity,
            existing_anti_affinity,
            (*(term.weight or 0 for term in terms.preferred), *rules.values()),
            PodCounts((*affinity, *anti_affinity), existing_anti_affinity),
            PodCounts(preferred, tuple(rules)),
        )
