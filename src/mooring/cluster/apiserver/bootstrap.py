"""The objects that every cluster starts with.

Always namespaces, the system priority classes and the Service `default/kubernetes`. Once the
cluster is served over a socket, also where that is, the CA that authenticates its clients, and the
roles that people edit and bind.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from mooring.client.errors import NotFound
from mooring.cluster.apiserver.admission import PRIORITY_CLASSES
from mooring.cluster.apiserver.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    NAMESPACES,
    SERVICES,
    Resource,
    by_kind,
)
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.verbs import Verbs

ROLES_FILE: Final = Path(__file__).with_name("roles.json")
"""ClusterRoles and the like of kube-apiserver 1.36; tests/cluster/apiserver/make_roles.py."""
CLIENT_CA: Final = "extension-apiserver-authentication"
"""The ConfigMap in kube-system that holds the CA of client certificates."""
CLIENT_CA_FILE: Final = "client-ca-file"
"""Its key."""

_RBAC: Final = "rbac.authorization.k8s.io/v1"
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
_SERVICE: Final = ("default", "kubernetes")
_SERVICE_IP: Final = "10.96.0.1"
_PORT: Final = 6443  # until it is served over a socket


def bootstrap(verbs: Verbs) -> None:
    """Create what is missing."""
    for name in _NAMESPACES:
        if verbs.store.get(NAMESPACES, "", name) is None:
            verbs.create(NAMESPACES, {"metadata": {"name": name}})
    for name, value, description in _PRIORITIES:
        if verbs.store.get(PRIORITY_CLASSES, "", name) is None:
            priority = {"metadata": {"name": name}, "value": value, "description": description}
            verbs.create(PRIORITY_CLASSES, priority)
    if verbs.store.get(SERVICES, *_SERVICE) is None:
        labels = {"component": "apiserver", "provider": "kubernetes"}
        spec = {"clusterIP": _SERVICE_IP, "ports": _service_ports(_PORT)}
        meta = {"name": _SERVICE[1], "labels": labels}
        verbs.create(SERVICES, {"metadata": meta, "spec": spec}, namespace=_SERVICE[0])


def _service_ports(port: int) -> list[Object]:
    return [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]


def publish_authority(verbs: Verbs, certificate: bytes) -> None:
    """Publish the client CA (PEM), as schedulers and aggregated servers expect it."""
    data = {CLIENT_CA_FILE: certificate.decode()}
    _put(verbs, CONFIG_MAPS, "kube-system", CLIENT_CA, {"data": data})


def publish_address(verbs: Verbs, url: str) -> None:
    """Let the Service `kubernetes` point to this server."""
    namespace, name = _SERVICE
    place = urlsplit(url)
    address, port = place.hostname or "", place.port or _PORT
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    subsets = [{"addresses": [{"ip": address}], "ports": ports}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    _put(verbs, ENDPOINTS, namespace, name, {"subsets": subsets}, labels)
    endpoint = {"addresses": [address], "conditions": {"ready": True}}
    content = {
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [endpoint],
        "ports": ports,
    }
    _put(verbs, ENDPOINT_SLICES, namespace, name, content, {"kubernetes.io/service-name": name})

    def change(service: Object) -> None:
        service["spec"]["ports"] = _service_ports(port)

    with contextlib.suppress(NotFound):  # deleted before a restart
        verbs.modify(SERVICES, namespace, name, change)


def _put(
    verbs: Verbs,
    of: Resource,
    namespace: str,
    name: str,
    content: dict[str, Any],
    labels: dict[str, str] | None = None,
) -> None:
    if verbs.store.get(of, namespace, name) is None:
        meta: Object = {"name": name, "labels": labels} if labels else {"name": name}
        verbs.create(of, {"metadata": meta, **content}, namespace=namespace)
    else:  # a restored store has that of an earlier process
        verbs.modify(of, namespace, name, lambda value: {**value, **content})


def create_roles(verbs: Verbs) -> None:
    """Create the roles and role bindings that are missing."""
    for value in msgspec.json.decode(ROLES_FILE.read_bytes()):
        of, meta = by_kind(_RBAC, value["kind"]), value["metadata"]
        if of is not None and verbs.store.get(of, meta.get("namespace", ""), meta["name"]) is None:
            verbs.create(of, value, namespace=meta.get("namespace", ""))
