"""Topology spread constraints, parsed: which pods count, on which nodes, and the allowed skew.

A pod's own constraints have selectors; default constraints get theirs from `owners`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

import mooring.framework as fw
from mooring.api import core
from mooring.api.selectors import Selector
from mooring.api.taints import find_untolerated
from mooring.cache.internals import rows_labelled
from mooring.plugins._node_requirements import RequiredNodeAffinity, affinity_of, required_of

HONOR: Final = "Honor"


class PodMatcher(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods that count for a constraint; equal matchers share a counter."""

    namespace: str
    selector: Selector

    @property
    def matches_nothing(self) -> bool:
        """An empty selector counts no pod, though every pod matches it."""
        return self.selector.is_empty or self.selector.matches_nothing

    def __call__(self, pod: fw.Pod) -> bool:
        return not self.matches_nothing and not pod.is_terminating and self.matches(pod)

    def matches(self, pod: fw.Pod) -> bool:
        """As what-ifs count: terminating pods match too, and all pods match an empty selector."""
        return pod.namespace == self.namespace and self.selector.matches(pod.labels)


class Constraint(msgspec.Struct, frozen=True):
    """One constraint with its defaults filled in and its selector parsed."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool  # leave out nodes that the pod's node selector or affinity excludes
    honors_taints: bool  # leave out nodes with a taint that the pod does not tolerate
    selector: Selector

    @classmethod
    def by(cls, raw: core.TopologySpreadConstraint, selector: Selector) -> "Constraint":
        return cls(
            raw.topology_key,
            raw.max_skew,
            1 if raw.min_domains is None else raw.min_domains,
            raw.node_affinity_policy in (None, HONOR),
            raw.node_taints_policy == HONOR,
            selector,
        )

    def pods(self, pod: fw.Pod) -> PodMatcher:
        """The pods that count when this constraint of a pod is checked."""
        return PodMatcher(pod.namespace, self.selector)


Constraints = Sequence[Constraint]


def own_constraints(pod: fw.Pod, action: str) -> Constraints:
    """The pod's constraints of one kind; SelectorError if one of them is invalid."""
    return tuple(
        Constraint.by(raw, selector_of(raw, pod.labels))
        for raw in pod.spec.topology_spread_constraints
        if raw.when_unsatisfiable == action
    )


def selector_of(raw: core.TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector; `matchLabelKeys` narrow it to pods labelled as this one is."""
    selector = Selector.from_label_selector(raw.label_selector)
    shared = {key: labels[key] for key in raw.match_label_keys if key in labels}
    return selector.requiring(Selector.from_map(shared).requirements) if shared else selector


def has_all_keys(labels: Mapping[str, str], constraints: Constraints) -> bool:
    """Whether a node is in some domain of every constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)


def with_all_keys(nodes: fw.Nodes, constraints: Constraints) -> fw.BoolArray | None:
    """The nodes that are in some domain of every constraint; None if all are."""
    found: fw.BoolArray | None = None
    for constraint in constraints:
        key = constraint.topology_key
        if not len(rows_labelled(nodes, key, 0)):
            continue  # there is no node without it
        codes = nodes.label_codes(key)
        if not codes.all():
            present: fw.BoolArray = codes != 0
            found = both(found, present)
    return found


class NodeInclusion:
    """Which nodes count for a constraint, by the pod's node affinity and tolerations."""

    def __init__(self, pod: fw.Pod, *, compares_taints: bool) -> None:
        asks = bool(pod.spec.node_selector) or required_of(affinity_of(pod)) is not None
        self._required = RequiredNodeAffinity.by(pod) if asks else None
        self._tolerations = pod.spec.tolerations
        self._compares_taints = compares_taints

    def covers(self, node: fw.Node, constraint: Constraint) -> bool:
        required = self._required if constraint.honors_affinity else None
        if required is not None and not required.matches(node.labels, node.name):
            return False
        return not constraint.honors_taints or not self._is_repelled(node.taints)

    def covered(self, nodes: fw.Nodes, constraint: Constraint) -> fw.BoolArray | None:
        """As `covers`, for all these nodes; None if none is left out."""
        found: fw.BoolArray | None = None
        if constraint.honors_affinity and self._required is not None:
            found = self._required.matching(nodes)
        if constraint.honors_taints and nodes.has_taints:
            found = both(found, nodes.by_taints(self._is_repelled) == 0)
        return found

    def _is_repelled(self, taints: tuple[core.Taint, ...]) -> bool:
        compares = self._compares_taints
        return find_untolerated(taints, self._tolerations, compares=compares) is not None


def both(a: fw.BoolArray | None, b: fw.BoolArray | None) -> fw.BoolArray | None:
    """The nodes in both sets, where None stands for all."""
    if a is None or b is None:
        return b if a is None else a
    return a & b
