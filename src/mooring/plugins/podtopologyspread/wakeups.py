"""Which changes of pods and nodes may let a pod in that its hard constraints kept out."""

import mooring.framework as fw
from mooring.api import core
from mooring.plugins.podtopologyspread.constraints import Constraints, has_all_keys


def concerns(other: fw.Pod, pod: fw.Pod) -> bool:
    """Whether another pod can count for this one: it has a place, or is the pod itself."""
    if other.uid == pod.uid:
        return True
    has_a_place = bool(other.node_name or other.nominated_node_name)
    return has_a_place and other.namespace == pod.namespace


def pod_change_helps(
    constraints: Constraints, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None
) -> bool:
    """A pod counts now and did not before, or the other way round; or tolerates other taints."""
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
    """A node joins the domains, leaves them, or changes its own or its taints."""
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
