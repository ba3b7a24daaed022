"""Affinity between pods by plain loops: what the plugin must amount to, computed the slow way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mooring.api import core
from mooring.api.meta import LabelSelector
from mooring.framework import Pod

Labels = Mapping[str, str]
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class Cluster(NamedTuple):
    nodes: Mapping[str, Labels]
    pods: tuple[Pod, ...]  # on these nodes
    namespaces: Mapping[str, Labels]

    def located(self) -> Iterable[tuple[Pod, Labels]]:
        return ((pod, self.nodes[pod.node_name]) for pod in self.pods)


def selects(selector: LabelSelector | None, labels: Labels) -> bool:
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    for test in selector.match_expressions:
        value_or_none = labels.get(test.key)
        holds = {
            "In": value_or_none in test.values,
            "NotIn": value_or_none not in test.values,
            "Exists": value_or_none is not None,
            "DoesNotExist": value_or_none is None,
        }
        if not holds[test.operator]:
            return False
    return True


def means(term: core.PodAffinityTerm, owner: Pod, other: Pod, namespace: Labels) -> bool:
    """A term of a pod on a node, about the pod to be placed."""
    named = set(term.namespaces)
    if not named and term.namespace_selector is None:
        named = {owner.namespace}
    if other.namespace not in named and not selects(term.namespace_selector, namespace):
        return False
    return selects(term.label_selector, other.labels)


def own_means(term: core.PodAffinityTerm, owner: Pod, other: Pod, cluster: Cluster) -> bool:
    """A term of the pod to be placed, about a pod on a node."""
    known = cluster.namespaces.get(other.namespace)
    listed = known is not None and selects(term.namespace_selector, known)
    if listed and selects(term.label_selector, other.labels):
        return True
    return means(term, owner, other, {})  # a selector without a positive test means everywhere


def affinity_terms(pod: Pod) -> tuple[core.PodAffinityTerm, ...]:
    affinity = pod.spec.affinity and pod.spec.affinity.pod_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def anti_affinity_terms(pod: Pod) -> tuple[core.PodAffinityTerm, ...]:
    affinity = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def preferred(pod: Pod) -> list[tuple[int, core.PodAffinityTerm]]:
    """Preferred terms with their weights; those of anti-affinity below zero."""
    affinity = pod.spec.affinity or core.Affinity()
    attract = affinity.pod_affinity or core.PodAffinity()
    repel = affinity.pod_anti_affinity or core.PodAntiAffinity()
    return [
        (sign * weighted.weight, weighted.pod_affinity_term)
        for sign, kind in ((1, attract), (-1, repel))
        for weighted in kind.preferred_during_scheduling_ignored_during_execution
    ]


def refusal(pod: Pod, node: Labels, cluster: Cluster) -> str:
    """Why a node is refused; empty if it is not."""
    own = affinity_terms(pod)
    matching: set[tuple[str, str]] = set()
    for other, labels in cluster.located():
        if all(own_means(term, pod, other, cluster) for term in own):
            matching |= {
                (term.topology_key, labels[term.topology_key])
                for term in own
                if term.topology_key in labels
            }
    if any(term.topology_key not in node for term in own):
        return AFFINITY
    if any((term.topology_key, node[term.topology_key]) not in matching for term in own):
        is_first = not matching and all(own_means(term, pod, pod, cluster) for term in own)
        if not is_first:
            return AFFINITY
    for term in anti_affinity_terms(pod):
        for other, labels in cluster.located():
            if own_means(term, pod, other, cluster) and _together(term.topology_key, node, labels):
                return ANTI_AFFINITY
    for other, labels in cluster.located():
        for term in anti_affinity_terms(other):
            meant = means(term, other, pod, cluster.namespaces.get(pod.namespace, {}))
            if meant and _together(term.topology_key, node, labels):
                return EXISTING
    return ""


def scores(pod: Pod, cluster: Cluster, hard_weight: int, ignore: bool) -> dict[str, int] | None:
    """Raw points per node; None if the plugin has nothing to say."""
    if ignore and not preferred(pod):
        return None
    worth: dict[tuple[str, str], int] = {}

    def add(key: str, labels: Labels, weight: int) -> None:
        if key in labels:
            worth[key, labels[key]] = worth.get((key, labels[key]), 0) + weight

    namespace = cluster.namespaces.get(pod.namespace, {})
    for other, labels in cluster.located():
        for weight, term in preferred(pod):
            if own_means(term, pod, other, cluster):
                add(term.topology_key, labels, weight)
        for weight, term in preferred(other):
            if means(term, other, pod, namespace):
                add(term.topology_key, labels, weight)
        for term in affinity_terms(other) if hard_weight else ():
            if means(term, other, pod, namespace):
                add(term.topology_key, labels, hard_weight)
    if not worth:
        return None
    return {
        name: sum(worth.get(label, 0) for label in labels.items())
        for name, labels in cluster.nodes.items()
    }


def _together(key: str, node: Labels, other: Labels) -> bool:
    return key in node and node[key] == other.get(key)
