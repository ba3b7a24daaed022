"""Requests that need running containers or a network: a clear refusal instead of a 404.

`docs/reference/cluster-limits.md` lists them, together with the kinds that are stored and have no
effect (`Kind.warning` in `registry.py`).
"""

from __future__ import annotations

from typing import Final

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.errors import not_found
from mooring.cluster.apiserver.paths import split_path
from mooring.cluster.apiserver.resources import NODES, PODS, SERVICES
from mooring.cluster.apiserver.store import Store

_NO_CONTAINERS: Final = "mooring simulates pods and runs no containers:"
_NO_NETWORK: Final = "mooring simulates no network:"
_REFUSALS: Final = {
    (PODS.key, "log"): f"{_NO_CONTAINERS} there are no logs",
    (PODS.key, "exec"): f"{_NO_CONTAINERS} no command can be executed, and nothing copied",
    (PODS.key, "attach"): f"{_NO_CONTAINERS} there is nothing to attach to",
    (PODS.key, "portforward"): f"{_NO_CONTAINERS} no port can be forwarded",
    (PODS.key, "proxy"): f"{_NO_CONTAINERS} requests can't be passed on to a pod",
    (SERVICES.key, "proxy"): f"{_NO_NETWORK} requests can't be passed on to a service",
    (NODES.key, "proxy"): f"{_NO_CONTAINERS} its kubelets have no API",
}
_RESOURCES: Final = {found.name: found for found in (PODS, SERVICES, NODES)}


def refuse_unsimulated(store: Store, path: str) -> None:
    """Raise if a path asks for something that is not simulated; 501 Not Implemented."""
    place = split_path(path)
    if place is None:
        return
    group, _, namespace, rest = place
    if group or len(rest) < 3 or rest[0] not in _RESOURCES:
        return
    resource, name = _RESOURCES[rest[0]], rest[1]
    message = _REFUSALS.get((resource.key, rest[2]))
    if message is None:
        return
    bare = name.split(":")[-2] if name.count(":") == 2 else name.partition(":")[0]
    if store.get(resource, namespace, bare) is None:
        raise not_found(resource, bare)
    raise StatusError(message, code=501, reason="NotImplemented")
