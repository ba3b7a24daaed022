"""The rights a scheduler needs, derived from its plugins: no more, and every one with its reason.

The same list is what the running process asks the cluster about (`client.permissions`) and what a
ClusterRole is written from, so the two can't drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mooring.api import core
from mooring.api.coordination import Lease
from mooring.api.events import Event
from mooring.api.meta import Object
from mooring.client.paths import group_of, resource_of
from mooring.client.permissions import Permission
from mooring.framework.plugin import PostFilter
from mooring.runtime.profile import ProfilePlan
from mooring.scheduler.watching import kinds_to_watch


def cluster_permissions(plans: Sequence[ProfilePlan], *, reviews: bool) -> list[Permission]:
    """What must be allowed in the whole cluster; `reviews` is for endpoints that ask who asks."""
    found = [*_of(core.Pod, "get", "list", "watch"), *_of(core.Node, "list", "watch")]
    for kind in kinds_to_watch(plans):
        found += _of(kind, "list", "watch")
    found += _of(core.Pod, "create", subresource="binding")
    found += _of(core.Pod, "patch", subresource="status")
    if any(map(_evicts, plans)):
        found += _of(core.Pod, "delete")
    for kind in _written(plans):
        found += _of(kind, "get", "patch")
    found += _of(Event, "create", "patch")
    if reviews:
        tokens = Permission("create", "tokenreviews", "authentication.k8s.io")
        rights = Permission("create", "subjectaccessreviews", "authorization.k8s.io")
        found += [tokens, rights]
    return found


def lease_permissions(namespace: str, name: str) -> list[Permission]:
    """What must be allowed in the namespace of the lease."""
    resource, group = resource_of(Lease), group_of(Lease)
    make = Permission("create", resource, group, namespace=namespace)  # it has no name before
    named = [
        Permission(verb, resource, group, namespace=namespace, name=name)
        for verb in ("get", "update")
    ]
    return [make, *named]


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


def _of(kind: type[Object], *verbs: str, subresource: str = "") -> list[Permission]:
    resource, group = resource_of(kind), group_of(kind)
    return [Permission(verb, resource, group, subresource) for verb in verbs]


def _evicts(plan: ProfilePlan) -> bool:
    asked = (plan.classes[name] for name in plan.points.get("postFilter", ()))
    return any(issubclass(plugin, PostFilter) and plugin.evicts for plugin in asked)


def _written(plans: Iterable[ProfilePlan]) -> Iterator[type[Object]]:
    found = {kind for plan in plans for plugin in plan.classes.values() for kind in plugin.writes}
    return iter(sorted(found, key=lambda kind: (group_of(kind), kind.KIND)))
