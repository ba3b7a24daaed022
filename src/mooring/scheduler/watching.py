"""The kinds to watch for the enabled plugins, and the informers that call the handlers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

from mooring.api import core
from mooring.api.codec import KINDS
from mooring.api.meta import Object
from mooring.api.resource import ResourceClaim
from mooring.client.client import ApiClient
from mooring.client.informer import Informer, Informers, NodeAndPodHandlers, nodes_and_pods
from mooring.client.paths import group_of
from mooring.extender.calling.caller import Documents
from mooring.runtime.profile import ProfilePlan


def event_name(kind: type[Object]) -> str:
    """The resource of events about a kind, as `wakes_on` names it."""
    return f"{group_of(kind)}/{kind.KIND}" if group_of(kind) else kind.KIND


_BY_EVENT_NAME: Final = {event_name(kind): kind for kind in KINDS}


class ChangeHandlers(NodeAndPodHandlers, Protocol):
    """What follows all kinds that a scheduler watches."""

    def put_nodes(self, listed: list[core.Node], /) -> None: ...

    def put_pods(self, listed: list[core.Pod], /) -> None: ...

    def put_object(self, value: Any, /) -> None: ...

    def remove_object(self, value: Any, /) -> None: ...


def kinds_to_watch(plans: Iterable[ProfilePlan]) -> list[type[Object]]:
    """The kinds that plugins have in `reads` or `wakes_on`, besides pods and nodes."""
    found: set[type[Object]] = set()
    for plan in plans:
        found |= plan.reads
        for plugin in plan.classes.values():
            names = (event.resource for event in plugin.wakes_on or ())
            found |= {_BY_EVENT_NAME[name] for name in names if name in _BY_EVENT_NAME}
    return sorted(found - {core.Pod, core.Node}, key=lambda kind: (group_of(kind), kind.KIND))


def add_informers(
    informers: Informers,
    client: ApiClient,
    handlers: ChangeHandlers,
    kinds: Iterable[type[Object]],
    node_selector: str = "",
    documents: Documents | None = None,
) -> None:
    """Add informers for nodes, pods and further kinds; `node_selector` is the scope of nodes.

    The raw JSON of pods and nodes that extenders need is kept in `documents`.
    """
    documents = documents or Documents()
    nodes, pods = nodes_and_pods(
        client,
        handlers,
        put_nodes=handlers.put_nodes,
        put_pods=handlers.put_pods,
        node_selector=node_selector,
        raw_nodes=documents.nodes,
        raw_pods=documents.pods,
    )
    others = [
        Informer(client, kind, on_put=handlers.put_object, on_remove=handlers.remove_object)
        for kind in kinds
    ]
    # A pod that comes before its claims is gated, and asks at every claim whether it may go on.
    pods.after = tuple(one for one in others if one.kind is ResourceClaim)
    informers.add(nodes, pods, *others)
