"""What a pod requires of its node: `nodeSelector` and required node affinity.

NodeAffinity filters nodes by it; PodTopologySpread leaves the nodes it excludes out of its counts.
VolumeBinding matches the requirements of volumes in the same way.
"""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api import core
from mooring.api.selectors import LabelRequirement, NodeMatcher, Selector, compile_node_selector


class RequiredNodeAffinity(msgspec.Struct, frozen=True):
    """What a pod requires of its node, parsed."""

    labels: Selector  # spec.nodeSelector
    terms: NodeMatcher | None  # spec.affinity.nodeAffinity.required…

    @classmethod
    def by(cls, pod: fw.Pod) -> "RequiredNodeAffinity":
        terms = required_of(affinity_of(pod))
        return cls(
            Selector.from_map(pod.spec.node_selector),
            compile_node_selector(terms) if terms is not None else None,
        )

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self.labels.matches(labels):
            return False
        return self.terms is None or self.terms.matches(labels, name)

    def matching(self, nodes: fw.Nodes) -> fw.BoolArray:
        found = meeting_all(nodes, self.labels.requirements)
        if self.terms is not None:
            found &= matching_any(nodes, self.terms)
        return found


def affinity_of(pod: fw.Pod) -> core.NodeAffinity | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity if affinity is not None else None


def required_of(affinity: core.NodeAffinity | None) -> core.NodeSelector | None:
    if affinity is None:
        return None
    return affinity.required_during_scheduling_ignored_during_execution


def meeting_all(nodes: fw.Nodes, requirements: Iterable[LabelRequirement]) -> fw.BoolArray:
    """The nodes whose labels satisfy every requirement."""
    found = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        found &= nodes.meeting(requirement)
    return found


def matching_any(nodes: fw.Nodes, matcher: NodeMatcher) -> fw.BoolArray:
    """The nodes that at least one term selects."""
    found = np.zeros(len(nodes), dtype=np.bool_)
    for term in matcher.terms:
        found |= nodes.matching(term)
    return found
