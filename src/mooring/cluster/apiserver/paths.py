"""The path of a request: resource, namespace, name and subresource."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from mooring.cluster.apiserver.resources import RESOURCES, Resource, by_path

Finder = Callable[[str, str, str], Resource | None]
"""The resource of a group, a version and a name in the plural."""

_OF_NAMESPACES: Final = (["status"], ["finalize"])
_GROUPS: Final = frozenset(found.group for found in RESOURCES)


class Target(msgspec.Struct, frozen=True):
    """What a request addresses; without a name all objects, without a namespace all namespaces."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def split_path(path: str) -> tuple[str, str, str, list[str]] | None:
    """Group, version, namespace and the parts from the resource on; None for other paths."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2:] not in _OF_NAMESPACES:
        # Here a namespace is the location, not the target.
        return group, version, rest[1], rest[2:]
    return group, version, "", rest


def parse_path(path: str, find: Finder = by_path) -> Target | None:
    """The target of a path; None if there is none."""
    place = split_path(path)
    if place is None:
        return None
    group, version, namespace, rest = place
    resource = find(group, version, rest[0])
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources and not resource.is_custom:
        return None
    if resource.namespaced and name and not namespace:
        return None
    return Target(resource, namespace, name, subresource)


def is_in_known_group(path: str) -> bool:
    """Whether an unknown path is at least within a known group."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        return len(parts) > 1
    return parts[0] == "apis" and len(parts) > 2 and parts[1] in _GROUPS
