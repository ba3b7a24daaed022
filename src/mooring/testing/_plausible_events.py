"""Plausible events: for an event that a plugin registered for, the events that may come in.

Each has the objects that a scheduler would pass to `hint`: pods as `Pod`, nodes and all else as
values of `mooring.api`, None before an addition and after a deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mooring.api import codec
from mooring.api.meta import ObjectMeta
from mooring.cache.pods import Pod
from mooring.framework.events import (
    ANY_RESOURCE,
    ASSIGNED_POD,
    NODE,
    POD,
    UNSCHEDULABLE_POD,
    Action,
    ClusterEvent,
)
from mooring.testing._bench import Case, named_like

_VERSIONS: Final = 3  # of an object, for every event
_INCLUDES: Final[Mapping[str, Sequence[str]]] = {
    POD: (ASSIGNED_POD, UNSCHEDULABLE_POD),
    ANY_RESOURCE: (ASSIGNED_POD, UNSCHEDULABLE_POD, NODE),
}


class PlausibleEvent(NamedTuple):
    """One incoming event with its objects."""

    event: ClusterEvent
    old: object | None
    new: object | None


def plausible_events(awaited: ClusterEvent, case: Case) -> Iterator[PlausibleEvent]:
    """The events that may wake a pod whose refusing plugin registered for this event."""
    for resource in _INCLUDES.get(awaited.resource, (awaited.resource,)):
        versions = _versions(resource, case)
        for event in (ClusterEvent(resource, action) for action in _actions(resource)):
            for new in versions if awaited.matches(event) else ():
                yield PlausibleEvent(
                    event,
                    None if event.action == Action.ADD else versions[0],
                    None if event.action == Action.DELETE else new,
                )


def _actions(resource: str) -> list[Action]:
    prefix = f"UPDATE_{'NODE' if resource == NODE else 'POD'}_"
    updates = [bit for bit in Action if bit.name is not None and bit.name.startswith(prefix)]
    is_known = resource in _INCLUDES[ANY_RESOURCE]
    return [Action.ADD, Action.DELETE, *(updates if is_known else [Action.UPDATE])]


def _versions(resource: str, case: Case) -> Sequence[Any]:
    """Some states of one object."""
    cluster = case.cluster
    if resource == UNSCHEDULABLE_POD:
        return _states_of_pod([case.pod, *case.bystanders], "")
    if resource == ASSIGNED_POD:
        pods = [*cluster.residents, case.pod]
        return _states_of_pod(pods, pods[0].node_name or "gone")
    kind = next((kind for kind in codec.KINDS if resource.rpartition("/")[2] == kind.KIND), None)
    if kind is None:
        return ()
    meta = ObjectMeta(name="some", namespace="default" if kind.NAMESPACED else "")
    known = [value for value in (*cluster.nodes, *cluster.objects) if type(value) is kind]
    found = known or [kind(metadata=meta)]
    return [named_like(value, found[0]) for value in found[:_VERSIONS]]


def _states_of_pod(pods: Sequence[Pod], on: str) -> list[Pod]:
    return [Pod(named_like(pod.api, pods[0].api)).assumed_on(on) for pod in pods[:_VERSIONS]]
