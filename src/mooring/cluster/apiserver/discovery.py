"""Discovery: the groups, versions and resources, and the version of the server.

`server.py` calls `discover` first. Clients ask once; kubectl caches the answer for hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from mooring.cluster.apiserver._auth import HEALTH
from mooring.cluster.apiserver.requests import ApiResponse
from mooring.cluster.apiserver.resources import RESOURCES, Resource
from mooring.cluster.apiserver.reviews import REVIEWS
from mooring.cluster.apiserver.store import Object

GIT_VERSION: Final = "v1.36.0+mooring"
VERSION: Final[Object] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_ALL_VERBS: Final = [
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
]  # fmt: skip
_CUSTOM_VERBS: Final = [
    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
]  # fmt: skip
_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_SUBRESOURCE_VERBS: Final = {
    "binding": ["create"],
    "eviction": ["create"],
    "finalize": ["update"],
    "token": ["create"],
}
# Group, version and kind of subresources that differ from their resource.
_SUBRESOURCE_KINDS: Final = {
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
# Resources that are created, answered and not stored.
_REVIEWS: Final = (
    Resource(name="bindings", kind="Binding"),
    *(
        Resource(
            group=group, name=f"{kind.lower()}s", kind=kind, namespaced=kind.startswith("Local")
        )
        for group, kinds in REVIEWS.items()
        for kind in kinds
    ),
)
# In the order of preference, for resources of the same name in two groups.
_GROUPS: Final = [
    "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
    "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io",
]  # fmt: skip


Served = tuple[Resource, ...]
"""The custom resources of a server; all other resources are the same on all of them."""


def discover(path: str, accept: str, custom: Served = ()) -> ApiResponse | None:
    """The response for a discovery path; None for any other path."""
    path = path.rstrip("/") or "/"
    if path in ("/api", "/apis") and wants_aggregated(accept):
        return ApiResponse(body=_aggregated(path == "/api", custom), content_type=AGGREGATED)
    body = _plain(path, custom)
    return None if body is None else ApiResponse(body=body)


def wants_aggregated(accept: str) -> bool:
    """Whether the client accepts aggregated discovery in the version served here."""
    wanted = {"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"}
    return any(wanted <= {part.strip() for part in media.split(";")} for media in accept.split(","))


def groups(custom: Served = ()) -> list[str]:
    """All groups but the core, in the order of preference."""
    return [*_GROUPS, *sorted({one.group for one in custom} - set(_GROUPS))]


def versions_of(group: str, custom: Served = ()) -> list[str]:
    """In the order of preference: stable versions first, then later ones."""
    found = {one.version for one in (*RESOURCES, *_REVIEWS, *custom) if one.group == group}
    return sorted(found, key=_preference)


def _preference(version: str) -> tuple[int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    stage = ("", "beta", "alpha").index(match[2] or "")
    return (stage, -int(match[1]), -int(match[3] or 0), version)


def resources_of(group: str, version: str = "v1", custom: Served = ()) -> list[Resource]:
    """Sorted by name."""
    found = [
        one
        for one in (*RESOURCES, *_REVIEWS, *custom)
        if (one.group, one.version) == (group, version)
    ]
    return sorted(found, key=lambda resource: resource.name)


def verbs_of(resource: Resource) -> list[str]:
    if resource.is_custom:
        return _CUSTOM_VERBS
    if resource in _REVIEWS:
        return ["create"]
    if resource.name == "namespaces":
        return [verb for verb in _ALL_VERBS if verb != "deletecollection"]
    return _ALL_VERBS


@lru_cache(maxsize=256)
def _plain(path: str, custom: Served) -> bytes | None:
    """Discovery one path at a time, without aggregation."""
    parts = path.strip("/").split("/")
    found: Object | None = None
    match parts:
        case ["version"]:
            found = VERSION
        case [""]:
            found = {"paths": sorted(_paths(custom))}
        case ["api"]:
            found = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["api", "v1"]:
            found = _resource_list("", "v1", custom)
        case ["apis"]:
            listed = [_group(group, custom) for group in groups(custom)]
            found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups(custom):
            found = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, custom)}
        case ["apis", group, version] if version in versions_of(group, custom):
            found = _resource_list(group, version, custom)
    return None if found is None else msgspec.json.encode(found)


def _paths(custom: Served) -> Iterable[str]:
    yield from ("/api", "/api/v1", "/apis", *HEALTH, "/openapi/v3", "/version")
    for group in groups(custom):
        yield f"/apis/{group}"
        yield from (f"/apis/{group}/{version}" for version in versions_of(group, custom))


def _group(group: str, custom: Served) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in versions_of(group, custom)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


# --- resources, one list per version --------------------------------------------------------------


def _resource_list(group: str, version: str, custom: Served) -> Object:
    resources: list[Object] = []
    for resource in resources_of(group, version, custom):
        resources.append(_resource_entry(resource))
        resources += [_subresource_entry(resource, part) for part in _parts(resource)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def _parts(resource: Resource) -> Iterable[str]:
    return resource.subresources if resource.is_custom else sorted(resource.subresources)


def _resource_entry(resource: Resource) -> Object:
    found: Object = {
        "name": resource.name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs_of(resource),
    }
    return found | _short_names(resource)


def _short_names(resource: Resource) -> Object:
    found = {"shortNames": resource.short, "categories": resource.categories}
    return {key: names for key, names in found.items() if names}


def _subresource_entry(resource: Resource, part: str) -> Object:
    group, version, kind = _SUBRESOURCE_KINDS.get(part, ("", "", resource.kind))
    found: Object = {
        "name": f"{resource.name}/{part}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if group:
        found |= {"group": group, "version": version}
    return found | {"kind": kind, "verbs": _subresource_verbs(part)}


def _subresource_verbs(part: str) -> list[str]:
    return _SUBRESOURCE_VERBS.get(part, ["get", "patch", "update"])


# --- aggregated discovery -------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _aggregated(is_core: bool, custom: Served) -> bytes:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        _described(resource) for resource in resources_of(group, version, custom)
                    ],
                    "freshness": "Current",
                }
                for version in versions_of(group, custom)
            ],
        }
        for group in (("",) if is_core else groups(custom))
    ]
    found = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }
    return msgspec.json.encode(found)


def _described(resource: Resource) -> Object:
    found: Object = {
        "resource": resource.name,
        "responseKind": _response_kind(*_described_kind(resource)),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": verbs_of(resource),
    }
    found |= _short_names(resource)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": part,
                "responseKind": _response_kind(
                    *_SUBRESOURCE_KINDS.get(part, _described_kind(resource))
                ),
                "verbs": _subresource_verbs(part),
            }
            for part in _parts(resource)
        ]
    return found


def _described_kind(resource: Resource) -> tuple[str, str, str]:
    """For custom resources with group and version; others leave out what their place says."""
    if resource.is_custom:
        return resource.group, resource.version, resource.kind
    return "", "", resource.kind


def _response_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}
