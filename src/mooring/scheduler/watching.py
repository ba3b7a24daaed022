"""The kinds to watch for the enabled plugins, and the informers that call the handlers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.api import core
from mooring.api.codec import KINDS
from mooring.api.meta import Object
from mooring.client.client import ApiClient
from mooring.client.informer import Informer, Informers, nodes_and_pods
from mooring.client.paths import group_of
from mooring.extender.calling.caller import Documents
from mooring.runtime.profile import ProfilePlan
from mooring.scheduler.handlers import Handlers

_BY_EVENT_NAME: Final = {
    (f"{group_of(kind)}/{kind.KIND}" if group_of(kind) else kind.KIND): kind for kind in KINDS
}


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
    handlers: Handlers,
    kinds: Iterable[type[Object]],
    node_selector: str = "",
    documents: Documents | None = None,
) -> None:
    """Add informers for nodes, pods and further kinds; `node_selector` is the scope of nodes.

    The raw JSON of pods and nodes that extenders need is kept in `documents`.
    """
    documents = documents or Documents()
    informers.add(
        *nodes_and_pods(
            client,
            handlers,
            put_pods=handlers.put_pods,
            node_selector=node_selector,
            raw_nodes=documents.nodes,
            raw_pods=documents.pods,
        ),
        *(
            Informer(client, kind, on_put=handlers.put_object, on_remove=handlers.remove_object)
            for kind in kinds
        ),
    )
