"""The cluster events of a changed pod, for the queue and the event handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mooring.cache.pods import Pod
from mooring.framework.events import UNSCHEDULABLE_POD, Action, ClusterEvent


def pod_update_events(
    old: Pod, new: Pod, resource: str = UNSCHEDULABLE_POD
) -> tuple[ClusterEvent, ...]:
    """The events of a changed pod that plugins can wait for; Update for any other change.

    No event if only the status differs: that is mostly the scheduler's own report of a failed
    attempt, which would wake the pod itself. `resource` is AssignedPod for a pod with a node.
    """
    if new.has_same_footprint(old) and not _claims_generated(old, new):
        return ()  # only the status differs, as nearly always
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
    """Whether any request became smaller or was removed."""
    after = new.usage
    return any(amount > after.get(resource, -1) for resource, amount in old.usage.items())


def _claims_generated(old: Pod, new: Pod) -> bool:
    before, after = old.status, new.status
    return (
        before.resource_claim_statuses != after.resource_claim_statuses
        or before.extended_resource_claim_status != after.extended_resource_claim_status
    )


_CHANGES: Final[Mapping[Action, Callable[[Pod, Pod], bool]]] = {
    Action.UPDATE_POD_LABEL: lambda old, new: old.labels != new.labels,
    Action.UPDATE_POD_SCALE_DOWN: _scaled_down,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: (
        lambda old, new: bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates
    ),
    # Tolerations can only be added, so comparing the number is enough.
    Action.UPDATE_POD_TOLERATION: (
        lambda old, new: len(old.spec.tolerations) != len(new.spec.tolerations)
    ),
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: _claims_generated,
}
