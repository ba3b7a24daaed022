"""Who a pod has to do with, as far as that is a matter of rules and not of places.

The same for all pods of a class, as long as no rule comes or goes and no namespace changes.
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
)

Version = tuple[int, int]


class PodQuery(msgspec.Struct, frozen=True, eq=False):
    """Pods that are meant by all of some peers, to be counted by topology domain."""

    topology_key: str
    peers: tuple[Peers, ...]
    name: tuple[str, tuple[Peers, ...]]  # whoever asks the same shares the counter
    matches: Callable[[fw.Pod], bool]

    @classmethod
    def about(cls, plugin_name: str, topology_key: str, peers: tuple[Peers, ...]) -> "PodQuery":
        return cls(topology_key, peers, (plugin_name, peers), included_in_all(peers))


class PodCounts(msgspec.Struct, frozen=True, eq=False):
    """Pods to be counted: those that questions are about, then those that have certain rules."""

    queries: tuple[PodQuery, ...]
    rules: tuple[Rule, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nobody is asked for."""
        return not self.queries and not self.rules

    @property
    def topology_keys(self) -> list[str]:
        return [what.topology_key for what in (*self.queries, *self.rules)]

    def counts(
        self, nodes: fw.Nodes, rules_in: Callable[[fw.Nodes], Features]
    ) -> list[fw.IntArray]:
        """Such pods per label code. The arrays are kept current; in their place others may come."""
        found = [
            nodes.count_pods_by(one.topology_key, one.name, one.matches, one.peers[0].selector)
            for one in self.queries
        ]
        if self.rules:
            features = rules_in(nodes)
            found += [features.per_domain(rule, rule.topology_key) for rule in self.rules]
        return found


class MatchedTerms(msgspec.Struct, frozen=True, eq=False):
    """The rules of a pod, and the rules of others that mean it."""

    version: Version  # of all that these depend on
    terms: AffinityTerms
    namespace_labels: Mapping[str, str]
    affinity_terms: tuple[AffinityTerm, ...]  # namespaces listed by name, as in all that follows
    matches_own_affinity: bool  # whether all of these mean the pod itself
    affinity: tuple[PodQuery, ...]  # pods that are meant by all of these, by topology key
    anti_affinity: tuple[PodQuery, ...]  # who must not be there, one per term
    existing_anti_affinity: tuple[AffinityTerm, ...]  # of pods on nodes, against this one
    weights: tuple[int, ...]  # of all that gives points
    for_filter: PodCounts  # near, far and bans
    for_score: PodCounts  # all that gives points: for whom the pod has wishes, and who has for it

    @classmethod
    def of(
        cls,
        plugin_name: str,
        version: Version,
        pod: fw.Pod,
        terms: AffinityTerms,
        namespace_labels: Mapping[str, str],
        resolve: Callable[[Peers], Peers],
        about: Sequence[Rule],
        hard_pod_affinity_weight: int,
    ) -> "MatchedTerms":
        """`about` are the rules of pods on nodes that mean this one."""
        affinity_terms = tuple(
            AffinityTerm(resolve(term.peers), term.topology_key) for term in terms.affinity
        )
        together = tuple(term.peers for term in affinity_terms)
        affinity = tuple(
            PodQuery.about(plugin_name, key, together)
            for key in dict.fromkeys(term.topology_key for term in affinity_terms)
        )
        anti_affinity = tuple(
            PodQuery.about(plugin_name, term.topology_key, (resolve(term.peers),))
            for term in terms.anti_affinity
        )
        preferred = tuple(
            PodQuery.about(plugin_name, term.topology_key, (resolve(term.peers),))
            for term in terms.preferred
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
