"""Queueing hints: the changes of pods and nodes that may satisfy hard constraints."""

import mooring.framework as fw
from mooring.api import core
from mooring.framework._internal import is_assigned_or_nominated
from mooring.plugins.podtopologyspread.constraints import Constraints, has_all_keys


def concerns(other: fw.Pod, pod: fw.Pod) -> bool:
    """Whether another pod can count for this one: assigned or nominated, or the pod itself."""
    if other.uid == pod.uid:
        return True
    return is_assigned_or_nominated(other) and other.namespace == pod.namespace


def pod_change_helps(
    constraints: Constraints, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None
) -> bool:
    """Whether a pod starts or stops to count, or the pod itself tolerates other taints."""
    if old is None or new is None:
        changed = new if old is None else old
        return changed is not None and any(c.selector.matches(changed.labels) for c in constraints)
    is_retolerating = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if is_retolerating and any(constraint.honors_taints for constraint in constraints):
        return True
    return any(
        c.selector.matches(old.labels) != c.selector.matches(new.labels) for c in constraints
    )


def node_change_helps(
    constraints: Constraints, old: core.Node | None, new: core.Node | None
) -> bool:
    """Whether a node joins, leaves or changes its domains, or has other taints."""
    was_in = old is not None and has_all_keys(old.metadata.labels, constraints)
    is_in = new is not None and has_all_keys(new.metadata.labels, constraints)
    if old is None or new is None or was_in != is_in:
        return was_in or is_in
    return is_in and (
        old.spec.taints != new.spec.taints
        or any(
            old.metadata.labels[c.topology_key] != new.metadata.labels[c.topology_key]
            for c in constraints
        )
    )
