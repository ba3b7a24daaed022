"""What a pod says about the pods around it, parsed once and asked often.

`matchLabelKeys` and `mismatchLabelKeys` are left alone: the API server has merged them into the
label selector by the time a scheduler sees the pod.
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
    """The pods that a term is about: in certain namespaces, with certain labels."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def include(self, pod: fw.Pod, namespace_labels: Mapping[str, str] = EMPTY) -> bool:
        """Whether a pod is meant, in a namespace with these labels.

        Nothing is known of the namespaces of pods on nodes; see `in_namespaces`.
        """
        if pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(pod.labels)
        return False

    @property
    def selects_namespaces(self) -> bool:
        """Whether it takes their labels to know which namespaces are meant."""
        return bool(self.namespace_selector.requirements)

    def in_namespaces(self, known: Iterable[core.Namespace]) -> "Peers":
        """The same, with the namespaces that the selector means listed by name.

        The selector stays, as in kube-scheduler since 1.34, and later meets namespaces of which no
        labels are given: one that only excludes labels means every namespace.
        """
        selector = self.namespace_selector
        meant = {space.name for space in known if selector.matches(space.metadata.labels)}
        return Peers(self.namespaces | meant, selector, self.selector)


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods, and the label whose value says which nodes are near each other."""

    peers: Peers
    topology_key: str


class PreferredTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """A term and the points it gives to each peer in the domain.

    No weight of its own: it is required by a pod on a node, and the arguments say what that counts.
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
"""What a pod on a node says about others: where they must not be, or what places are worth."""


class AffinityTerms(msgspec.Struct, frozen=True):
    """All that one pod says. A kind of terms of which one makes no sense counts as empty."""

    affinity: tuple[AffinityTerm, ...] = ()  # required
    anti_affinity: tuple[AffinityTerm, ...] = ()  # required
    preferred: tuple[PreferredTerm, ...] = ()  # preferred; anti-affinity has weights below zero
    # What the pod is to others once it is on a node. What it keeps away from, it keeps away; what
    # it requires to be near counts as a wish as well.
    rules: tuple[Rule, ...] = ()
    problem: str = ""  # what was wrong with the terms that could not be parsed


NO_TERMS: Final = AffinityTerms()


def terms_of(pod: fw.Pod) -> AffinityTerms:
    """What this pod says."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    return _parse(pod.namespace, affinity.pod_affinity, affinity.pod_anti_affinity)


def rules_of(pod: fw.Pod) -> tuple[Rule, ...]:
    """The rules that a pod has for others once it is on a node."""
    return terms_of(pod).rules


def labels_of(rule: Rule) -> Iterable[tuple[str, str] | None]:
    """The labels by which the pods are known that a rule is about; None if by no label."""
    labels = required_labels(rule.peers.selector)
    return (None,) if labels is None else labels


def rules_about(
    pod: fw.Pod, namespace_labels: Mapping[str, str], found_by: Callable[[object], Iterable[Rule]]
) -> list[Rule]:
    """The rules that mean this pod. There are thousands, so they are found by its labels."""
    found = list(found_by(None))
    for label in pod.labels.items():
        found += found_by(label)
    return [rule for rule in found if rule.peers.include(pod, namespace_labels)]


def has_preferred_terms(pod: fw.Pod) -> bool:
    """Whether a pod prefers anything, even if it makes no sense."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    return any(
        kind is not None and kind.preferred_during_scheduling_ignored_during_execution
        for kind in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )


def all_include(terms: Iterable[AffinityTerm], pod: fw.Pod) -> bool:
    """Whether there are terms and all of them mean this pod, its namespace taken by name."""
    asked = False
    for term in terms:
        if not term.peers.include(pod):
            return False
        asked = True
    return asked


def included_in_all(peers: tuple[Peers, ...]) -> Callable[[fw.Pod], bool]:
    """The question whether a pod is meant by each of these."""
    if len(peers) == 1:
        return peers[0].include
    return lambda pod: all(each.include(pod) for each in peers)


# Pods of one controller say the same, each time they come, go or are tried again.
@functools.lru_cache(maxsize=4_096)
def _parse(
    namespace: str, affinity: core.PodAffinity | None, anti_affinity: core.PodAntiAffinity | None
) -> AffinityTerms:
    affinity, anti_affinity = (
        affinity or core.PodAffinity(),
        anti_affinity or core.PodAntiAffinity(),
    )
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
