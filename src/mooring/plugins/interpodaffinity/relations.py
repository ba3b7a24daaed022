"""Who a pod has to do with, as far as that is a matter of rules and not of places.

The same for all pods of a class, as long as no rule comes or goes and no namespace changes.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

import mooring.framework as fw
from mooring.cache.snapshot import Features
from mooring.plugins.interpodaffinity.terms import (
    Peers,
    Rule,
    Term,
    Terms,
    Wish,
    all_include,
    meant_by_all,
)

Version = tuple[int, int]


class Question(msgspec.Struct, frozen=True, eq=False):
    """Pods that are meant by all of some peers, to be counted by topology domain."""

    topology_key: str
    peers: tuple[Peers, ...]
    name: tuple[str, tuple[Peers, ...]]  # whoever asks the same shares the counter
    matches: Callable[[fw.Pod], bool]

    @classmethod
    def about(cls, asker: str, topology_key: str, peers: tuple[Peers, ...]) -> "Question":
        return cls(topology_key, peers, (asker, peers), meant_by_all(peers))


class Census(msgspec.Struct, frozen=True, eq=False):
    """Pods to be counted: those that questions are about, then those that have certain rules."""

    questions: tuple[Question, ...]
    rules: tuple[Rule, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nobody is asked for."""
        return not self.questions and not self.rules

    @property
    def topology_keys(self) -> list[str]:
        return [what.topology_key for what in (*self.questions, *self.rules)]

    def counts(
        self, nodes: fw.Nodes, rules_in: Callable[[fw.Nodes], Features]
    ) -> list[fw.IntArray]:
        """Such pods per label code. The arrays are kept current; in their place others may come."""
        found = [
            nodes.count_pods_by(one.topology_key, one.name, one.matches, one.peers[0].selector)
            for one in self.questions
        ]
        if self.rules:
            features = rules_in(nodes)
            found += [features.per_domain(rule, rule.topology_key) for rule in self.rules]
        return found


class Relations(msgspec.Struct, frozen=True, eq=False):
    """The rules of a pod, and the rules of others that mean it."""

    version: Version  # of all that these depend on
    terms: Terms
    namespace_labels: Mapping[str, str]
    near_terms: tuple[Term, ...]  # namespaces listed by name, as in all that follows
    is_own_company: bool  # whether all of these mean the pod itself
    near: tuple[Question, ...]  # pods that are meant by all of these, by topology key
    far: tuple[Question, ...]  # who must not be there, one per term
    bans: tuple[Term, ...]  # of pods on nodes, against this one
    weights: tuple[int, ...]  # of all that gives points
    around: Census  # near, far and bans
    judging: Census  # all that gives points: for whom the pod has wishes, and who has for it

    @classmethod
    def of(
        cls,
        asker: str,
        version: Version,
        pod: fw.Pod,
        terms: Terms,
        namespace_labels: Mapping[str, str],
        listed: Callable[[Peers], Peers],
        about: Sequence[Rule],
        hard_weight: int,
    ) -> "Relations":
        """`about` are the rules of pods on nodes that mean this one."""
        near_terms = tuple(Term(listed(term.peers), term.topology_key) for term in terms.near)
        together = tuple(term.peers for term in near_terms)
        near = tuple(
            Question.about(asker, key, together)
            for key in dict.fromkeys(term.topology_key for term in near_terms)
        )
        far = tuple(
            Question.about(asker, term.topology_key, (listed(term.peers),)) for term in terms.far
        )
        wishes = tuple(
            Question.about(asker, wish.topology_key, (listed(wish.peers),)) for wish in terms.wishes
        )
        bans = tuple(rule for rule in about if isinstance(rule, Term))
        rules = {
            rule: hard_weight if rule.weight is None else rule.weight
            for rule in about
            if isinstance(rule, Wish) and (hard_weight or rule.weight is not None)
        }
        return cls(
            version,
            terms,
            namespace_labels,
            near_terms,
            all_include(near_terms, pod),
            near,
            far,
            bans,
            (*(wish.weight or 0 for wish in terms.wishes), *rules.values()),
            Census((*near, *far), bans),
            Census(wishes, tuple(rules)),
        )
