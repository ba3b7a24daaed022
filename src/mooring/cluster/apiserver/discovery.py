"""Discovery: the groups, versions and resources, and the version of the server.

`server.py` calls `discover` first. Clients ask once; kubectl caches the answer for hours.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
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
    "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "batch", "policy",
    "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "coordination.k8s.io",
    "node.k8s.io", "resource.k8s.io",
]  # fmt: skip


def discover(path: str, accept: str) -> ApiResponse | None:
    """The response for a discovery path; None for any other path."""
    path = path.rstrip("/") or "/"
    if path in ("/api", "/apis") and wants_aggregated(accept):
        return ApiResponse(body=_aggregated(path == "/api"), content_type=AGGREGATED)
    body = _plain(path)
    return None if body is None else ApiResponse(body=body)


def wants_aggregated(accept: str) -> bool:
    """Whether the client accepts aggregated discovery in the version served here."""
    wanted = {"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"}
    return any(wanted <= {part.strip() for part in media.split(";")} for media in accept.split(","))


def groups() -> list[str]:
    """All groups but the core, in the order of preference."""
    return _GROUPS


def resources_of(group: str) -> list[Resource]:
    """Sorted by name."""
    found = [one for one in (*RESOURCES, *_REVIEWS) if one.group == group]
    return sorted(found, key=lambda resource: resource.name)


def verbs_of(resource: Resource) -> list[str]:
    if resource in _REVIEWS:
        return ["create"]
    if resource.name == "namespaces":
        return [verb for verb in _ALL_VERBS if verb != "deletecollection"]
    return _ALL_VERBS


@cache
def _plain(path: str) -> bytes | None:
    """Discovery one path at a time, without aggregation."""
    parts = path.strip("/").split("/")
    found: Object | None = None
    match parts:
        case ["version"]:
            found = VERSION
        case [""]:
            found = {"paths": sorted(_paths())}
        case ["api"]:
            found = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["api", "v1"]:
            found = _resource_list("")
        case ["apis"]:
            listed = [_group(group) for group in groups()]
            found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups():
            found = {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        case ["apis", group, "v1"] if group in groups():
            found = _resource_list(group)
    return None if found is None else msgspec.json.encode(found)


def _paths() -> Iterable[str]:
    yield from ("/api", "/api/v1", "/apis", *HEALTH, "/openapi/v3", "/version")
    for group in groups():
        yield from (f"/apis/{group}", f"/apis/{group}/v1")


def _group(group: str) -> Object:
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    return {"name": group, "versions": [version], "preferredVersion": version}


# --- resources, one list per version --------------------------------------------------------------


def _resource_list(group: str) -> Object:
    resources: list[Object] = []
    for resource in resources_of(group):
        resources.append(_resource_entry(resource))
        resources += [_subresource_entry(resource, part) for part in sorted(resource.subresources)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/v1" if group else "v1",
        "resources": resources,
    }


def _resource_entry(resource: Resource) -> Object:
    found: Object = {
        "name": resource.name,
        "singularName": resource.kind.lower(),
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


@cache
def _aggregated(is_core: bool) -> bytes:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": "v1",
                    "resources": [_described(resource) for resource in resources_of(group)],
                    "freshness": "Current",
                }
            ],
        }
        for group in (("",) if is_core else groups())
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
        "responseKind": _response_kind("", "", resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        "verbs": verbs_of(resource),
    }
    found |= _short_names(resource)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": part,
                "responseKind": _response_kind(
                    *_SUBRESOURCE_KINDS.get(part, ("", "", resource.kind))
                ),
                "verbs": _subresource_verbs(part),
            }
            for part in sorted(resource.subresources)
        ]
    return found


def _response_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}
