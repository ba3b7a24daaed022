"""What a changed pod means as cluster events. Pure; used by the queue and by the event handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mooring.cache.pods import Pod
from mooring.framework.events import UNSCHEDULABLE_POD, Action, ClusterEvent


def pod_update_events(
    old: Pod, new: Pod, resource: str = UNSCHEDULABLE_POD
) -> tuple[ClusterEvent, ...]:
    """The changes plugins can wait for; the generic Update if it is some other change.

    No event if nothing but the status differs: that is mostly the scheduler's own report of a
    failed attempt, and would wake the very pod it is about. `resource` is what the pod is to the
    scheduler: AssignedPod once it has a node.
    """
    if new.has_same_footprint(old) and not _claims_generated(old, new):
        return ()  # nothing but the status, as nearly always
    actions = [action for action, changed in _CHANGES.items() if changed(old, new)]
    if not actions and not _is_only_status(old, new):
        actions = [Action.UPDATE]
    return tuple(ClusterEvent(resource, action) for action in actions)


def _is_only_status(old: Pod, new: Pod) -> bool:
    return (
        old.spec == new.spec
        and old.annotations == new.annotations
        and old.is_terminating == new.is_terminating
        and old.api.metadata.owner_references == new.api.metadata.owner_references
    )


def _scaled_down(old: Pod, new: Pod) -> bool:
    """Any request became smaller or went away."""
    after = new.usage
    return any(amount > after.get(resource, -1) for resource, amount in old.usage.items())


def _claims_generated(old: Pod, new: Pod) -> bool:
    return old.status.resource_claim_statuses != new.status.resource_claim_statuses


_CHANGES: Final[Mapping[Action, Callable[[Pod, Pod], bool]]] = {
    Action.UPDATE_POD_LABEL: lambda old, new: old.labels != new.labels,
    Action.UPDATE_POD_SCALE_DOWN: _scaled_down,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: (
        lambda old, new: bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates
    ),
    # Tolerations can only be added, so the number tells.
    Action.UPDATE_POD_TOLERATION: (
        lambda old, new: len(old.spec.tolerations) != len(new.spec.tolerations)
    ),
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: _claims_generated,
}
