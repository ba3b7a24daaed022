"""What InterPodAffinity says of its refusals: which pods repel by which term, and what would help.

Pods are found by the counters that the filter reads: only on nodes that have some.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.cache.snapshot import Features
from mooring.framework.explaining import MOST_ENDING, listed
from mooring.plugins.interpodaffinity.matched_terms import MatchedTerms
from mooring.plugins.interpodaffinity.terms import AffinityTerm, Peers, rules_of

_MOST_PODS: Final = 10  # that are named
_WEIGHT: Final = 100  # of a term that was required before

Repelling = tuple[AffinityTerm, list[fw.Pod]]
"""A term, and the pods that it keeps apart."""


class Repulsion:
    """The pods behind one refusal, and the terms that keep them apart."""

    def __init__(
        self,
        matched: MatchedTerms,
        nodes: fw.Nodes,
        rules: Callable[[fw.Nodes], Features],
    ) -> None:
        self._matched = matched
        self._nodes = nodes  # of the cluster
        self._rules = rules

    def by_own_terms(self, among: fw.Nodes | fw.Node, most: int) -> Iterator[Repelling]:
        """Pods that the terms of the pod itself exclude."""
        for query in self._matched.anti_affinity:
            per_node = self._nodes.count_pods(query.name, query.matches, query.peers[0].selector)
            pods = self._found(per_node, query.topology_key, among, query.matches, most)
            if pods:
                yield AffinityTerm(query.peers[0], query.topology_key), pods

    def by_existing_terms(self, among: fw.Nodes | fw.Node, most: int) -> Iterator[Repelling]:
        """Pods whose terms exclude the pod."""
        for term in self._matched.existing_anti_affinity:
            per_node = self._rules(self._nodes).per_node(term)
            pods = self._found(per_node, term.topology_key, among, _having(term), most)
            if pods:
                yield term, pods

    def _found(
        self,
        per_node: fw.IntArray,
        key: str,
        among: fw.Nodes | fw.Node,
        matches: Callable[[fw.Pod], bool],
        most: int,
    ) -> list[fw.Pod]:
        """Such pods in the domains of some nodes."""
        if isinstance(among, fw.Node):
            wanted = np.array([among.label_code(key)])
        else:
            wanted = np.unique(among.label_codes(key))
        codes = self._nodes.label_codes(key)
        inside = np.isin(codes, wanted[wanted != 0]) & (per_node > 0)
        found: list[fw.Pod] = []
        for row in np.flatnonzero(inside).tolist():
            found += filter(matches, self._nodes[row].pods)
            if len(found) >= most:
                break
        return sorted(found, key=lambda pod: pod.key)[:most]


def facts_of(
    repulsion: Repulsion, matched: MatchedTerms, nodes: fw.Nodes, *, is_affinity: bool
) -> Iterator[fw.Fact]:
    if is_affinity:
        for query in matched.affinity:
            text = f"needs a pod with {_peers_text(query.peers)} in the same {query.topology_key}"
            yield fw.Fact(text=text, waits_for="others")
        return
    for term, pods in repulsion.by_own_terms(nodes, _MOST_PODS):
        text = f"its anti-affinity to {_term_text(term)}: {_names(pods)}"
        yield fw.Fact(text=text, pods=tuple(pod.key for pod in pods))
    for term, pods in repulsion.by_existing_terms(nodes, _MOST_PODS):
        text = f"{_names(pods)}: their anti-affinity to {_term_text(term)}"
        yield fw.Fact(text=text, pods=tuple(pod.key for pod in pods))


def affinity_edits() -> Iterator[fw.Edit]:
    """Prefer what was required."""
    text = "prefer its affinity to pods, not require it"
    yield fw.Edit.of_pod(text, partial(_prefer, "pod_affinity"), family="pod affinity", cost=1)


def anti_affinity_edits(repulsion: Repulsion, node: fw.Node, *, is_own: bool) -> Iterator[fw.Edit]:
    """Prefer the pod's own term, or the pods that are in the way end."""
    most = MOST_ENDING + 1
    found = repulsion.by_own_terms if is_own else repulsion.by_existing_terms
    pods = {pod.uid: pod for _, some in found(node, most) for pod in some}
    if is_own:
        text = "prefer its anti-affinity, not require it"
        to = partial(_prefer, "pod_anti_affinity")
        yield fw.Edit.of_pod(text, to, family="pod anti-affinity", cost=1)
    if pods and len(pods) < most:
        ends = "ends" if len(pods) == 1 else "end"
        text = f"{listed(pod.key for pod in pods.values())} {ends} or moves away"
        text = text if ends == "ends" else text.replace("moves", "move")
        yield fw.Edit.end_pods(text, pods.values(), family="anti-affinity")


def _prefer(field: str, pod: core.Pod) -> core.Pod:
    """The pod with all terms of one kind preferred."""
    affinity = pod.spec.affinity
    terms = getattr(affinity, field, None)
    if affinity is None or terms is None:
        return pod
    softer = type(terms)(preferred_during_scheduling_ignored_during_execution=_preferred(terms))
    spec = structs.replace(pod.spec, affinity=structs.replace(affinity, **{field: softer}))
    return structs.replace(pod, spec=spec)


def _preferred(
    kind: core.PodAffinity | core.PodAntiAffinity,
) -> tuple[core.WeightedPodAffinityTerm, ...]:
    return (
        *kind.preferred_during_scheduling_ignored_during_execution,
        *(
            core.WeightedPodAffinityTerm(weight=_WEIGHT, pod_affinity_term=term)
            for term in kind.required_during_scheduling_ignored_during_execution
        ),
    )


def _having(term: AffinityTerm) -> Callable[[fw.Pod], bool]:
    return lambda pod: term in rules_of(pod)


def _names(pods: Iterable[fw.Pod]) -> str:
    return listed((pod.key for pod in pods), 3)


def _term_text(term: AffinityTerm) -> str:
    return f"{_peers_text((term.peers,))} by {term.topology_key}"


def _peers_text(peers: Iterable[Peers]) -> str:
    return " and ".join(str(one.selector) or "any label" for one in peers)
