"""Cluster events: what may make a refused pod schedulable again.

A plugin that can refuse a pod lists the events that may help such a pod in `wakes_on`. On an event,
the queue considers only pods that were refused by a plugin registered for it, and calls its `hint`.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class Action(enum.IntFlag):
    """What happened to an object. The order of the bits is part of the matching rule."""

    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
    UPDATE_NODE_LABEL = enum.auto()
    UPDATE_NODE_TAINT = enum.auto()
    UPDATE_NODE_CONDITION = enum.auto()
    UPDATE_NODE_ANNOTATION = enum.auto()
    UPDATE_NODE_DECLARED_FEATURE = enum.auto()
    UPDATE_POD_LABEL = enum.auto()
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = enum.auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = enum.auto()

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )
    ALL = ADD | DELETE | UPDATE

    @property
    def label(self) -> str:
        """The action as event labels in metrics spell it, e.g. UpdateNodeTaint."""
        if self == Action.ALL:
            return "All"
        if self == Action.UPDATE:
            return "Update"
        return "".join(
            "".join(word.capitalize() for word in bit.name.split("_"))
            for bit in Action
            if self & bit and bit.name is not None
        )


ANY_RESOURCE: Final = "*"
POD: Final = "Pod"
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"


_EVERY_ACTION: Final = Action.ALL  # looking a member up in its enum is slow


class ClusterEvent(msgspec.Struct, frozen=True):
    """An event that happened, or that a plugin waits for."""

    resource: str
    action: Action
    tag: str = ""  # overrides the label of events that are not about one object

    @property
    def label(self) -> str:
        return self.tag or self.resource + self.action.label

    @property
    def is_wildcard(self) -> bool:
        return self.resource == ANY_RESOURCE and self.action == _EVERY_ACTION

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether `incoming` is one of the events that a plugin registered for with this one."""
        if self.is_wildcard:
            return True
        same_resource = self.resource in (incoming.resource, ANY_RESOURCE) or (
            self.resource == POD and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
        )
        return (
            same_resource and bool(self.action & incoming.action) and incoming.action <= self.action
        )


def _every(resource: str) -> ClusterEvent:
    return ClusterEvent(resource, Action.ALL)


class Event:
    """The events a plugin may wait for, by name."""

    NODE_ADDED = ClusterEvent(NODE, Action.ADD)
    NODE_DELETED = ClusterEvent(NODE, Action.DELETE)
    NODE_ALLOCATABLE_CHANGED = ClusterEvent(NODE, Action.UPDATE_NODE_ALLOCATABLE)
    NODE_LABELS_CHANGED = ClusterEvent(NODE, Action.UPDATE_NODE_LABEL)
    NODE_TAINTS_CHANGED = ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)
    NODE_CONDITIONS_CHANGED = ClusterEvent(NODE, Action.UPDATE_NODE_CONDITION)
    NODE_ANNOTATIONS_CHANGED = ClusterEvent(NODE, Action.UPDATE_NODE_ANNOTATION)
    NODE_FEATURES_CHANGED = ClusterEvent(NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
    NODE_CHANGED = ClusterEvent(NODE, Action.ALL)

    POD_ADDED = ClusterEvent(POD, Action.ADD)
    POD_DELETED = ClusterEvent(POD, Action.DELETE)
    POD_LABELS_CHANGED = ClusterEvent(POD, Action.UPDATE_POD_LABEL)
    POD_SCALED_DOWN = ClusterEvent(POD, Action.UPDATE_POD_SCALE_DOWN)
    POD_TOLERATIONS_CHANGED = ClusterEvent(POD, Action.UPDATE_POD_TOLERATION)
    POD_GATES_REMOVED = ClusterEvent(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    POD_CHANGED = ClusterEvent(POD, Action.ALL)

    PERSISTENT_VOLUME_CHANGED = _every("PersistentVolume")
    PERSISTENT_VOLUME_CLAIM_CHANGED = _every("PersistentVolumeClaim")
    STORAGE_CLASS_CHANGED = _every("storage.k8s.io/StorageClass")
    CSI_NODE_CHANGED = _every("storage.k8s.io/CSINode")
    CSI_DRIVER_CHANGED = _every("storage.k8s.io/CSIDriver")
    CSI_STORAGE_CAPACITY_CHANGED = _every("storage.k8s.io/CSIStorageCapacity")

    ANYTHING = ClusterEvent(ANY_RESOURCE, Action.ALL)


DEFAULT_WAKES_ON: Final[tuple[ClusterEvent, ...]] = (
    Event.POD_CHANGED,
    Event.NODE_CHANGED,
    Event.PERSISTENT_VOLUME_CHANGED,
    Event.PERSISTENT_VOLUME_CLAIM_CHANGED,
    Event.CSI_NODE_CHANGED,
    Event.CSI_DRIVER_CHANGED,
    Event.CSI_STORAGE_CAPACITY_CHANGED,
    Event.STORAGE_CLASS_CHANGED,
    _every("resource.k8s.io/ResourceClaim"),
    _every("resource.k8s.io/DeviceClass"),
)
"""The events of a plugin without `wakes_on`: any change that a scheduler sees."""
