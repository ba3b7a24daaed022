"""The objects that every cluster starts with: namespaces and the system priority classes.

And, once it is served, the authority by which clients are authenticated.
"""

from __future__ import annotations

from typing import Final

from mooring.cluster.apiserver.admission import PRIORITY_CLASSES
from mooring.cluster.apiserver.resources import NAMESPACES, known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.verbs import Verbs

CLIENT_CA: Final = "extension-apiserver-authentication"
"""The ConfigMap in kube-system where others find the authority of client certificates."""

_MAPS: Final = known("configmaps")
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


def publish_authority(verbs: Verbs, certificate: bytes) -> None:
    """Publish the client CA (PEM), as schedulers and aggregated servers expect it."""
    namespace, data = "kube-system", {"client-ca-file": certificate.decode()}
    if verbs.store.get(_MAPS, namespace, CLIENT_CA) is None:
        verbs.create(_MAPS, {"metadata": {"name": CLIENT_CA}, "data": data}, namespace=namespace)
    else:  # in a store that was kept; its authority was another
        verbs.modify(_MAPS, namespace, CLIENT_CA, lambda value: {**value, "data": data})
