"""The affinity terms of a pod, parsed once and matched often.

`matchLabelKeys` and `mismatchLabelKeys` are not read: the API server merges them into the label
selector before a scheduler sees the pod.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

import mooring.framework as fw
from mooring.api import core
from mooring.api.frozen import EMPTY
from mooring.api.selectors import Selector, SelectorError
from mooring.cache.topology import required_labels


class Peers(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods that a term selects: in certain namespaces, with certain labels."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def include(self, pod: fw.Pod, namespace_labels: Mapping[str, str] = EMPTY) -> bool:
        """Whether a pod is selected, if its namespace has these labels.

        The namespace labels of pods on nodes are not known here; see `in_namespaces`.
        """
        if pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(pod.labels)
        return False

    @property
    def selects_namespaces(self) -> bool:
        return bool(self.namespace_selector.requirements)

    def in_namespaces(self, known: Iterable[core.Namespace]) -> "Peers":
        """The same peers, with the namespaces that the selector matches listed by name.

        The selector stays, as in kube-scheduler since 1.34, and is later matched against empty
        labels: a selector that only excludes labels then matches every namespace.
        """
        selector = self.namespace_selector
        matching = {space.name for space in known if selector.matches(space.metadata.labels)}
        return Peers(self.namespaces | matching, selector, self.selector)


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods, and the label by whose value nodes form topology domains."""

    peers: Peers
    topology_key: str


class PreferredTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """A term and the score of each matching pod in the domain.

    Without a weight it is a required term of an existing pod, with `hardPodAffinityWeight`.
    """

    term: AffinityTerm
    weight: int | None

    @property
    def peers(self) -> Peers:
        return self.term.peers

    @property
    def topology_key(self) -> str:
        return self.term.topology_key


Rule = AffinityTerm | PreferredTerm
"""A term of an existing pod that applies to others: required anti-affinity, or a score."""


class AffinityTerms(msgspec.Struct, frozen=True):
    """All terms of one pod. If one term of a kind is invalid, that kind counts as empty."""

    affinity: tuple[AffinityTerm, ...] = ()  # required
    anti_affinity: tuple[AffinityTerm, ...] = ()  # required
    preferred: tuple[PreferredTerm, ...] = ()  # preferred; anti-affinity has weights below zero
    # What applies to other pods once this one is on a node: required anti-affinity works both ways,
    # required affinity counts as a preferred term.
    rules: tuple[Rule, ...] = ()
    problem: str = ""  # why terms could not be parsed


NO_TERMS: Final = AffinityTerms()
MOST_KNOWN: Final = 4_096  # affinities whose terms are kept


# By the id of an affinity that is kept here, and so has that id: to hash it would take longer.
_known: Final[dict[int, tuple[core.Affinity, str, AffinityTerms]]] = {}


def terms_of(pod: fw.Pod) -> AffinityTerms:
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    known = _known.get(id(affinity))
    if known is not None and known[1] == pod.namespace:
        return known[2]
    terms = _parse(pod.namespace, affinity.pod_affinity, affinity.pod_anti_affinity)
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[id(affinity)] = (affinity, pod.namespace, terms)
    return terms


def rules_of(pod: fw.Pod) -> tuple[Rule, ...]:
    return terms_of(pod).rules


def labels_of(rule: Rule) -> Iterable[tuple[str, str] | None]:
    """The labels under which a rule is indexed; None stands for no label."""
    labels = required_labels(rule.peers.selector)
    return (None,) if labels is None else labels


def rules_about(
    pod: fw.Pod, namespace_labels: Mapping[str, str], found_by: Callable[[object], Iterable[Rule]]
) -> list[Rule]:
    """The rules that select this pod. There may be thousands, so they are indexed by label."""
    found = list(found_by(None))
    for label in pod.labels.items():
        found += found_by(label)
    return [rule for rule in found if rule.peers.include(pod, namespace_labels)]


def has_preferred_terms(pod: fw.Pod) -> bool:
    """Whether a pod has preferred terms, valid or not."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    return any(
        kind is not None and kind.preferred_during_scheduling_ignored_during_execution
        for kind in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )


def all_include(terms: Iterable[AffinityTerm], pod: fw.Pod) -> bool:
    """Whether there are terms and all of them select this pod, its namespace taken by name."""
    found = False
    for term in terms:
        if not term.peers.include(pod):
            return False
        found = True
    return found


def included_in_all(peers: tuple[Peers, ...]) -> Callable[[fw.Pod], bool]:
    """A predicate: whether a pod is among all of these peers."""
    if len(peers) == 1:
        return peers[0].include
    return lambda pod: all(each.include(pod) for each in peers)


# Pods of one controller have the same terms.
@functools.lru_cache(maxsize=MOST_KNOWN)
def _parse(
    namespace: str, affinity: core.PodAffinity | None, anti_affinity: core.PodAntiAffinity | None
) -> AffinityTerms:
    affinity = affinity or core.PodAffinity()
    anti_affinity = anti_affinity or core.PodAntiAffinity()
    problems: list[str] = []

    def parse(kind: str, raw: Iterable[core.PodAffinityTerm]) -> tuple[AffinityTerm, ...]:
        try:
            return tuple(_term(namespace, term) for term in raw)
        except SelectorError as error:
            problems.append(f"{kind}: {error}")
            return ()

    def parse_preferred(
        kind: str, raw: tuple[core.WeightedPodAffinityTerm, ...], sign: int
    ) -> tuple[PreferredTerm, ...]:
        terms = parse(kind, (weighted.pod_affinity_term for weighted in raw))
        return tuple(
            PreferredTerm(term, sign * weighted.weight)
            for term, weighted in zip(terms, raw, strict=False)
        )

    required = parse(
        "requiredAffinityTerms", affinity.required_during_scheduling_ignored_during_execution
    )
    required_anti = parse(
        "requiredAntiAffinityTerms",
        anti_affinity.required_during_scheduling_ignored_during_execution,
    )
    attract = affinity.preferred_during_scheduling_ignored_during_execution
    repel = anti_affinity.preferred_during_scheduling_ignored_during_execution
    preferred = (
        *parse_preferred("preferredAffinityTerms", attract, +1),
        *parse_preferred("preferredAntiAffinityTerms", repel, -1),
    )
    problem = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    rules: tuple[Rule, ...] = (
        *required_anti,
        *(PreferredTerm(term, None) for term in required),
        *preferred,
    )
    return AffinityTerms(required, required_anti, preferred, rules, problem if problems else "")


def _term(namespace: str, raw: core.PodAffinityTerm) -> AffinityTerm:
    own_only = not raw.namespaces and raw.namespace_selector is None
    peers = Peers(
        frozenset((namespace,) if own_only else raw.namespaces),
        Selector.from_label_selector(raw.namespace_selector),
        Selector.from_label_selector(raw.label_selector),
    )
    return AffinityTerm(peers, raw.topology_key)
