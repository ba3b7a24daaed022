"""Rights as lists of permissions, and the RBAC rules that grant exactly those.

What a process asks the cluster about (`permissions.PermissionCheck`) and what its ClusterRole is
written from is one list, so the two can't drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.api.coordination import Lease
from mooring.api.meta import Object
from mooring.client.paths import group_of, resource_of
from mooring.client.permissions import Permission


def permissions_on(kind: type[Object], *verbs: str, subresource: str = "") -> list[Permission]:
    """Verbs on all objects of a kind."""
    resource, group = resource_of(kind), group_of(kind)
    return [Permission(verb, resource, group, subresource) for verb in verbs]


def lease_permissions(namespace: str, name: str) -> list[Permission]:
    """What leader election needs in the namespace of its lease."""
    resource, group = resource_of(Lease), group_of(Lease)
    make = Permission("create", resource, group, namespace=namespace)  # it has no name before
    named = [
        Permission(verb, resource, group, namespace=namespace, name=name)
        for verb in ("get", "update")
    ]
    return [make, *named]


def review_permissions() -> list[Permission]:
    """For endpoints that ask the cluster who asks, and whether they may."""
    return [
        Permission("create", "tokenreviews", "authentication.k8s.io"),
        Permission("create", "subjectaccessreviews", "authorization.k8s.io"),
    ]


def rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """RBAC rules that grant exactly these; verbs on one resource share a rule."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for wanted in permissions:
        tail = f"/{wanted.subresource}" if wanted.subresource else ""
        key = wanted.group, wanted.resource + tail, wanted.name
        known = verbs.setdefault(key, [])
        if wanted.verb not in known:
            known.append(wanted.verb)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": [name]} if name else {}),
            "verbs": sorted(allowed),
        }
        for (group, resource, name), allowed in verbs.items()
    ]
