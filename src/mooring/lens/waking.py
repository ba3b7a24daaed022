"""Cluster events in words: after which of them a refused pod is tried again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mooring.framework.events import Action, ClusterEvent

_UPDATES: Final = {
    Action.UPDATE_NODE_ALLOCATABLE: "the allocatable of a node changes",
    Action.UPDATE_NODE_LABEL: "labels of a node change",
    Action.UPDATE_NODE_TAINT: "taints of a node change",
    Action.UPDATE_NODE_CONDITION: "conditions of a node change",
    Action.UPDATE_NODE_ANNOTATION: "annotations of a node change",
    Action.UPDATE_NODE_DECLARED_FEATURE: "features of a node change",
    Action.UPDATE_POD_LABEL: "labels of a pod change",
    Action.UPDATE_POD_SCALE_DOWN: "a pod is scaled down",
    Action.UPDATE_POD_TOLERATION: "its tolerations change",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "its gates are removed",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "a resource claim is made for it",
}
_NAMES: Final = {"*": "anything", "Node": "a node", "Pod": "a pod"}


def in_words(events: Iterable[ClusterEvent]) -> tuple[str, ...]:
    """Each event as a clause, without repetition: "a node is added"."""
    return tuple(dict.fromkeys(word for event in events for word in _words(event)))


@lru_cache(maxsize=256)
def _words(event: ClusterEvent) -> tuple[str, ...]:
    return tuple(_clauses(event))


def _clauses(event: ClusterEvent) -> Iterable[str]:
    kind = event.resource.rpartition("/")[2]
    name = _NAMES.get(kind, f"a {kind}")
    is_any_update = event.action & Action.UPDATE == Action.UPDATE
    if event.action & Action.ADD:
        yield f"{name} is added or changes" if is_any_update else f"{name} is added"
    elif is_any_update:
        yield f"{name} changes"
    if not is_any_update:
        for action, words in _UPDATES.items():
            if event.action & action:
                yield words
    if event.action & Action.DELETE:
        yield "a pod ends" if kind == "Pod" else f"{name} is removed"
