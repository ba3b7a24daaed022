"""PodTopologySpread by hand: loops over nodes and pods, values instead of codes, no columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mooring.api import core
from mooring.api.taints import find_untolerated
from mooring.framework import Node, Pod
from mooring.testing.builders import HOSTNAME

Raw = core.TopologySpreadConstraint


def of_kind(pod: Pod, action: str) -> list[Raw]:
    return [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == action]


def selects(constraint: Raw, pod: Pod, other: Pod) -> bool:
    """For selectors that are plain labels."""
    if constraint.label_selector is None:
        return False
    shared = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    wanted = (constraint.label_selector.match_labels, shared)
    return all(labels.items() <= other.labels.items() for labels in wanted)


def count(constraint: Raw, pod: Pod, node: Node) -> int:
    shared = [key for key in constraint.match_label_keys if key in pod.labels]
    selector = constraint.label_selector
    if selector is None or not (selector.match_labels or shared):
        return 0
    return sum(
        selects(constraint, pod, other)
        and other.namespace == pod.namespace
        and not other.is_terminating
        for other in node.pods
    )


def counts_at(constraint: Raw, pod: Pod, node: Node) -> bool:
    """Whether a node takes part; for pods without node affinity."""
    is_wanted = pod.spec.node_selector.items() <= node.labels.items()
    if constraint.node_affinity_policy != "Ignore" and not is_wanted:
        return False
    if constraint.node_taints_policy == "Honor":
        return find_untolerated(node.taints, pod.spec.tolerations) is None
    return True


def has_keys(node: Node, constraints: Sequence[Raw]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)


def verdict(pod: Pod, node: Node, everywhere: Sequence[Node]) -> str:
    """ "", "missing" or "crowded"."""
    constraints = of_kind(pod, "DoNotSchedule")
    for constraint in constraints:
        key = constraint.topology_key
        if key not in node.labels:
            return "missing"
        domains: Counter[str] = Counter()
        for other in everywhere:
            if has_keys(other, constraints) and counts_at(constraint, pod, other):
                domains[other.labels[key]] += count(constraint, pod, other)
        enough = len(domains) >= (constraint.min_domains or 1)
        least = min(domains.values()) if enough else 0
        self_match = int(selects(constraint, pod, pod))
        if domains[node.labels[key]] + self_match - least > constraint.max_skew:
            return "crowded"
    return ""


def scores(pod: Pod, feasible: Sequence[Node], everywhere: Sequence[Node]) -> list[int]:
    """Normalised; for pods with constraints of their own."""
    constraints = of_kind(pod, "ScheduleAnyway")
    scored = [node for node in feasible if has_keys(node, constraints)]
    raw = {node.name: _raw(pod, node, constraints, scored, everywhere) for node in scored}
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    result = []
    for node in feasible:
        if node.name not in raw:
            result.append(0)
        elif most == 0:
            result.append(100)
        else:
            result.append(100 * (most + least - raw[node.name]) // most)
    return result


def _raw(
    pod: Pod,
    node: Node,
    constraints: Sequence[Raw],
    scored: Sequence[Node],
    everywhere: Sequence[Node],
) -> int:
    total = 0.0
    for constraint in constraints:
        key = constraint.topology_key
        if key == HOSTNAME:
            size, found = len(scored), count(constraint, pod, node)
        else:
            size = len({other.labels[key] for other in scored})
            found = sum(
                count(constraint, pod, other)
                for other in everywhere
                if has_keys(other, constraints)
                and counts_at(constraint, pod, other)
                and other.labels[key] == node.labels[key]
            )
        total += found * math.log(size + 2) + (constraint.max_skew - 1)
    return math.floor(total + 0.5)
