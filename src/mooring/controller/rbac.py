"""The permissions that a pod controller needs, in the form of `scheduler.rbac`."""

from __future__ import annotations

from mooring.api import core
from mooring.api.events import Event
from mooring.client.permissions import (
    Permission,
    lease_permissions,
    permissions_on,
    review_permissions,
    rules,
)

__all__ = ["cluster_permissions", "lease_permissions", "rules"]


def cluster_permissions(*, reviews: bool) -> list[Permission]:
    """Permissions in the whole cluster; `reviews` is for endpoints that authenticate callers."""
    found = permissions_on(core.Pod, "get", "list", "watch")  # get: to look up a lost answer
    found += permissions_on(core.Node, "list", "watch")
    found += permissions_on(core.Pod, "create", subresource="binding")
    found += permissions_on(Event, "create", "patch")
    if reviews:
        found += review_permissions()
    return found
