"""What every cluster has from the start: a few namespaces, and the priorities of the system."""

from __future__ import annotations

from typing import Final

from mooring.apiserver.admission import PRIORITY_CLASSES
from mooring.apiserver.namespaces import NAMESPACES
from mooring.apiserver.store import Object
from mooring.apiserver.verbs import Verbs

_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES: Final[tuple[Object, ...]] = (
    {
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": (
            "Used for system critical pods that must not be moved from their current node."
        ),
    },
    {
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": (
            "Used for system critical pods that must run in the cluster, but can be moved to "
            "another node if necessary."
        ),
    },
)


def bootstrap(verbs: Verbs) -> None:
    """Create what is missing."""
    for name in _NAMESPACES:
        if verbs.store.get(NAMESPACES, "", name) is None:
            verbs.create(NAMESPACES, {"metadata": {"name": name}})
    for priority in _PRIORITIES:
        meta = priority["metadata"]
        if verbs.store.get(PRIORITY_CLASSES, "", meta["name"]) is None:
            verbs.create(PRIORITY_CLASSES, {**priority, "metadata": dict(meta)})
