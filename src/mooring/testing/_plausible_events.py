"""What could have happened: for an event that a plugin waits for, the ones that may come in.

Each comes with the objects a scheduler would hand to `hint`: pods as `Pod`, nodes and all else as
`mooring.api` values, nothing before an addition and nothing after a deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec import structs

from mooring.api import codec, core
from mooring.api.meta import Object, ObjectMeta
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
from mooring.testing._bench import Case

_POD_RESOURCES: Final = (POD, ASSIGNED_POD, UNSCHEDULABLE_POD)


class Happening(NamedTuple):
    """One incoming event with its objects."""

    event: ClusterEvent
    old: object | None
    new: object | None


def happenings(awaited: ClusterEvent, case: Case) -> Iterator[Happening]:
    """Everything that could have woken a pod whose refusing plugin waits for this event."""
    resources = [*_POD_RESOURCES, NODE] if awaited.resource == ANY_RESOURCE else [awaited.resource]
    if awaited.resource == POD:
        resources = list(_POD_RESOURCES)
    for resource in resources:
        for action in _actions(resource):
            incoming = ClusterEvent(resource, action)
            if awaited.matches(incoming):
                for old, new in _changes(resource, case):
                    yield Happening(
                        incoming,
                        None if action == Action.ADD else old,
                        None if action == Action.DELETE else new,
                    )


def _actions(resource: str) -> list[Action]:
    prefix = {NODE: "UPDATE_NODE_"} | dict.fromkeys(_POD_RESOURCES, "UPDATE_POD_")
    wanted = prefix.get(resource)
    updates = [bit for bit in Action if wanted and bit.name and bit.name.startswith(wanted)]
    return [Action.ADD, Action.DELETE, *(updates or [Action.UPDATE])]


def _changes(resource: str, case: Case) -> Iterator[tuple[Any, Any]]:
    """Pairs of an object before and after, both of one identity."""
    cluster = case.cluster
    if resource == NODE:
        nodes = cluster.nodes or (core.Node(metadata=ObjectMeta(name="node")),)
        yield from ((nodes[0], _disguised(other, nodes[0])) for other in nodes[:3])
    elif resource == UNSCHEDULABLE_POD:
        yield from _pod_changes((case.pod, *case.bystanders)[:3], is_assigned=False)
    elif resource in _POD_RESOURCES:
        yield from _pod_changes((*cluster.residents, case.pod)[:3], is_assigned=True)
    else:
        kind = next((k for k in codec.KINDS if resource.rpartition("/")[2] == k.KIND), None)
        if kind is not None:
            known = [value for value in cluster.objects if type(value) is kind]
            meta = ObjectMeta(name="some", namespace="default" if kind.NAMESPACED else "")
            objects: list[Object] = known or [kind(metadata=meta)]
            yield from ((objects[0], _disguised(other, objects[0])) for other in objects[:3])


def _pod_changes(pods: Sequence[Pod], *, is_assigned: bool) -> Iterator[tuple[Pod, Pod]]:
    first = pods[0]
    home = (first.node_name or "gone") if is_assigned else ""
    for other in pods:
        yield first.assumed_on(home), Pod(_disguised(other.api, first.api)).assumed_on(home)


def _disguised(value: Any, original: Any) -> Any:
    """A value under the name of another, as if it were that object's next version."""
    known = original.metadata
    metadata = structs.replace(
        value.metadata, name=known.name, namespace=known.namespace, uid=known.uid
    )
    return structs.replace(value, metadata=metadata)
