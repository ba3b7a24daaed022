"""What to watch for the enabled plugins, and the informers that feed the handlers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.api import core
from mooring.api.codec import KINDS
from mooring.api.meta import Object
from mooring.client.client import ApiClient
from mooring.client.informer import UNFINISHED_PODS, Informer, Informers
from mooring.client.paths import group_of
from mooring.extender.calling.caller import Documents
from mooring.runtime.profile import ProfilePlan
from mooring.scheduler.handlers import Handlers

_BY_EVENT_NAME: Final = {
    (f"{group_of(kind)}/{kind.KIND}" if group_of(kind) else kind.KIND): kind for kind in KINDS
}


def kinds_to_watch(plans: Iterable[ProfilePlan]) -> list[type[Object]]:
    """What plugins look up, or wait for by name in `wakes_on`; besides pods and nodes."""
    found: set[type[Object]] = set()
    for plan in plans:
        found |= plan.reads
        for plugin in plan.classes.values():
            names = (event.resource for event in plugin.wakes_on or ())
            found |= {_BY_EVENT_NAME[name] for name in names if name in _BY_EVENT_NAME}
    return sorted(found - {core.Pod, core.Node}, key=lambda kind: (group_of(kind), kind.KIND))


def informers_for(
    handlers: Handlers,
    kinds: Iterable[type[Object]],
    client: ApiClient,
    node_selector: str = "",
    documents: Documents | None = None,
) -> Informers:
    """Informers for pods, nodes and further kinds; `node_selector` is the scope of nodes.

    A node that loses the labels of the scope is deleted as far as this scheduler can see. What
    extenders are to be sent of pods and nodes is kept in `documents`.
    """
    documents = documents or Documents()
    informers = Informers(client)
    informers.add(
        Informer(
            client,
            core.Node,
            on_put=handlers.put_node,
            on_remove=handlers.remove_node,
            labels=node_selector,
            raw_objects=documents.nodes,
        )
    )
    informers.add(
        Informer(
            client,
            core.Pod,
            on_put=handlers.put_pod,
            on_remove=handlers.remove_pod,
            fields=UNFINISHED_PODS,
            raw_objects=documents.pods,
        )
    )
    for kind in kinds:
        informers.add(
            Informer(client, kind, on_put=handlers.put_object, on_remove=handlers.remove_object)
        )
    return informers
