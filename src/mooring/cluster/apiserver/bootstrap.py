"""The objects that every cluster starts with: namespaces and the system priority classes.

Once the cluster is served over HTTPS, also the CA that authenticates its clients.
"""

from __future__ import annotations

from typing import Final

from mooring.cluster.apiserver.admission import PRIORITY_CLASSES
from mooring.cluster.apiserver.resources import NAMESPACES, known
from mooring.cluster.apiserver.verbs import Verbs

CLIENT_CA: Final = "extension-apiserver-authentication"
"""The ConfigMap in kube-system that holds the CA of client certificates."""

_MAPS: Final = known("configmaps")
_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary.",
    ),
)


def bootstrap(verbs: Verbs) -> None:
    """Create what is missing."""
    for name in _NAMESPACES:
        if verbs.store.get(NAMESPACES, "", name) is None:
            verbs.create(NAMESPACES, {"metadata": {"name": name}})
    for name, value, description in _PRIORITIES:
        if verbs.store.get(PRIORITY_CLASSES, "", name) is None:
            priority = {"metadata": {"name": name}, "value": value, "description": description}
            verbs.create(PRIORITY_CLASSES, priority)


def publish_authority(verbs: Verbs, certificate: bytes) -> None:
    """Publish the client CA (PEM), as schedulers and aggregated servers expect it."""
    namespace, data = "kube-system", {"client-ca-file": certificate.decode()}
    if verbs.store.get(_MAPS, namespace, CLIENT_CA) is None:
        verbs.create(_MAPS, {"metadata": {"name": CLIENT_CA}, "data": data}, namespace=namespace)
    else:  # a restored store has the CA of an earlier process
        verbs.modify(_MAPS, namespace, CLIENT_CA, lambda value: {**value, "data": data})
