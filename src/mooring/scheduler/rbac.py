"""The rights a scheduler needs, derived from its plugins: no more, and every one with its reason.

The same list is what the running process asks the cluster about (`client.permissions`) and what a
ClusterRole is written from, so the two can't drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.api import core
from mooring.api.events import Event
from mooring.api.meta import Object
from mooring.client.paths import group_of
from mooring.client.permissions import (
    Permission,
    lease_permissions,
    permissions_on,
    review_permissions,
    rules,
)
from mooring.framework.plugin import PostFilter
from mooring.runtime.profile import ProfilePlan
from mooring.scheduler.watching import kinds_to_watch

__all__ = ["cluster_permissions", "lease_permissions", "rules"]


def cluster_permissions(plans: Sequence[ProfilePlan], *, reviews: bool) -> list[Permission]:
    """What must be allowed in the whole cluster; `reviews` is for endpoints that ask who asks."""
    found = permissions_on(core.Pod, "get", "list", "watch")
    found += permissions_on(core.Node, "list", "watch")
    for kind in kinds_to_watch(plans):
        found += permissions_on(kind, "list", "watch")
    found += permissions_on(core.Pod, "create", subresource="binding")
    found += permissions_on(core.Pod, "patch", subresource="status")
    if any(map(_evicts, plans)):
        found += permissions_on(core.Pod, "delete")
    for kind in _written(plans):
        found += permissions_on(kind, "get", "patch")
    found += permissions_on(Event, "create", "patch")
    if reviews:
        found += review_permissions()
    return found


def _evicts(plan: ProfilePlan) -> bool:
    asked = (plan.classes[name] for name in plan.points.get("postFilter", ()))
    return any(issubclass(plugin, PostFilter) and plugin.evicts for plugin in asked)


def _written(plans: Iterable[ProfilePlan]) -> Iterator[type[Object]]:
    found = {kind for plan in plans for plugin in plan.classes.values() for kind in plugin.writes}
    return iter(sorted(found, key=lambda kind: (group_of(kind), kind.KIND)))
