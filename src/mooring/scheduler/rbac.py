"""The permissions that a scheduler needs, derived from its plugins, each with its reason.

The running process checks this list against the cluster (`client.permissions`), and a ClusterRole
is written from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api import core
from mooring.client.paths import group_of
from mooring.client.permissions import Permission, binding_permissions, permissions_on
from mooring.framework._internal import InternalPlugin, Permissions
from mooring.framework.plugin import Base, PostFilter
from mooring.runtime.profile import ProfilePlan
from mooring.scheduler.watching import kinds_to_watch


def cluster_permissions(plans: Sequence[ProfilePlan], *, reviews: bool) -> list[Permission]:
    """Permissions in the whole cluster; `reviews` is for endpoints that authenticate callers."""
    more = permissions_on(core.Pod, "patch", subresource="status")
    if any(map(_evicts, plans)):
        more += permissions_on(core.Pod, "delete")
    written = {kind for plan in plans for plugin in plan.classes.values() for kind in plugin.writes}
    for kind in sorted(written, key=lambda kind: (group_of(kind), kind.KIND)):
        more += permissions_on(kind, "get", "patch")
    asked = [one for plan in plans for plugin in plan.classes.values() for one in _extra(plugin)]
    for one in asked:
        more += permissions_on(one.kind, *one.verbs, subresource=one.subresource)
    return binding_permissions(kinds_to_watch(plans), more, reviews=reviews)


def _extra(plugin: type[Base]) -> tuple[Permissions, ...]:
    return plugin.permissions if issubclass(plugin, InternalPlugin) else ()


def _evicts(plan: ProfilePlan) -> bool:
    asked = (plan.classes[name] for name in plan.points.get("postFilter", ()))
    return any(issubclass(plugin, PostFilter) and plugin.evicts for plugin in asked)
