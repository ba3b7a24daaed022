"""Who a pod has to do with, as far as that is a matter of rules and not of places.

The same for all pods of a class, as long as no rule comes or goes and no namespace changes.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import msgspec

import mooring.framework as fw
from mooring.plugins.interpodaffinity.terms import (
    Peers,
    Term,
    Terms,
    Wish,
    meant_by_all,
    rules_about,
)

Version = tuple[int, ...]


class Question(msgspec.Struct, frozen=True, eq=False):
    """Pods that are meant by all of some peers, to be counted by topology domain."""

    key: tuple[str, tuple[Peers, ...]]  # whoever asks the same shares the counter
    peers: tuple[Peers, ...]
    matches: Callable[[fw.Pod], bool]

    @classmethod
    def about(cls, name: str, peers: tuple[Peers, ...]) -> "Question":
        return cls((name, peers), peers, meant_by_all(peers))

    def counted(self, nodes: fw.Nodes, topology_key: str) -> fw.IntArray:
        """Such pods, per label code."""
        return nodes.count_pods_by(topology_key, self.key, self.matches, self.peers[0].selector)


class Relations(msgspec.Struct, frozen=True, eq=False):
    """The rules of a pod, and the rules of others that mean it."""

    version: Version  # of all that these depend on
    terms: Terms
    namespace_labels: Mapping[str, str]
    near_terms: tuple[Term, ...]  # namespaces listed by name, as in all that follows
    near: Question | None  # pods that are meant by all of these
    near_keys: tuple[str, ...]
    far: tuple[tuple[str, Question], ...]  # topology key, who must not be there
    wishes: tuple[tuple[str, int, Question], ...]  # topology key, weight, for whom
    bans: tuple[Term, ...]  # of pods on nodes, against this one
    rules: tuple[Wish, ...]  # likewise, with points for or against it
    # By topology key, and question or rule: a domain where such a pod was. Mostly it still is.
    _seen: dict[tuple[str, Hashable], int] = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        version: Version,
        pod: fw.Pod,
        terms: Terms,
        namespace_labels: Mapping[str, str],
        listed: Callable[[Peers], Peers],
        bans: Callable[[object], Iterable[Any]],
        rules: Callable[[object], Iterable[Any]],
    ) -> "Relations":
        near = tuple(Term(listed(term.peers), term.topology_key) for term in terms.near)
        together = tuple(term.peers for term in near)
        return cls(
            version,
            terms,
            namespace_labels,
            near,
            Question.about(name, together) if near else None,
            tuple(dict.fromkeys(term.topology_key for term in near)),
            tuple(
                (term.topology_key, Question.about(name, (listed(term.peers),)))
                for term in terms.far
            ),
            tuple(
                (
                    wish.term.topology_key,
                    wish.weight or 0,
                    Question.about(name, (listed(wish.peers),)),
                )
                for wish in terms.wishes
            ),
            tuple(rules_about(pod, namespace_labels, bans)),
            tuple(rules_about(pod, namespace_labels, rules)),
        )

    def are_there(self, key: str, who: Question | Wish, pods: fw.IntArray) -> bool:
        """Whether there is a pod in any domain; they are given per label code."""
        seen = self._seen.get((key, who), 0)
        if not pods[seen] or not seen:
            seen = 1 + int(pods[1:].argmax()) if len(pods) > 1 else 0
            self._seen[key, who] = seen
        return seen > 0 and bool(pods[seen])
