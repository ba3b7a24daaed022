"""What clients learn about the server: groups, resources, its version, the types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.controlplane.admin import AdminApi, Object
from tests.controlplane.cluster import ControlPlane

from mooring.cluster.apiserver.discovery import AGGREGATED, discover, groups, versions_of
from mooring.cluster.apiserver.openapi import openapi
from mooring.cluster.apiserver.resources import RESOURCES

GROUPS = ["", *groups()]
# Of those the real server has and ours does not.
_MISSING_PARTS = ("attach", "exec", "log", "portforward", "proxy")


def asked(path: str, accept: str = "application/json") -> Object:
    reply = discover(path, accept)
    assert reply is not None
    assert reply.status == 200
    found: Object = json.loads(reply.body)
    return found


def root(group: str) -> str:
    return f"/apis/{group}/{versions_of(group)[0]}" if group else "/api/v1"


# --- beside the real server -----------------------------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_describes_resources_as_the_real_server_does(group: str, real_server: ControlPlane) -> None:
    ours = asked(root(group))
    theirs = real_server.admin.request("GET", root(group))
    assert {**ours, "resources": []} == {**theirs, "apiVersion": "v1", "resources": []}
    known = {one["name"]: one for one in theirs["resources"]}
    for one in known.values():
        one.pop("storageVersionHash", None)
    for one in ours["resources"]:
        assert one == known[one["name"]]


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_describes_everything_at_once_as_the_real_server_does(
    path: str, real_server: ControlPlane
) -> None:
    admin = real_server.api_for()
    admin._headers["Accept"] = AGGREGATED
    theirs = admin.request("GET", path)
    ours = asked(path, AGGREGATED)
    assert {**ours, "items": []} == {**theirs, "items": []}
    named = {item["metadata"].get("name"): item for item in theirs["items"]}
    for item in ours["items"]:
        [version] = item["versions"]
        real = next(
            one
            for one in named[item["metadata"].get("name")]["versions"]
            if one["version"] == version["version"]
        )
        assert {**version, "resources": []} == {**real, "resources": []}
        known = {one["resource"]: one for one in real["resources"]}
        for one in version["resources"]:
            assert one == _without_missing_parts(known[one["resource"]])
    order = [item["metadata"].get("name") for item in ours["items"]]
    assert order == [name for name in named if name in order]


def _without_missing_parts(resource: Object) -> Object:
    parts = resource.pop("subresources", ())
    left = [part for part in parts if part["subresource"] not in _MISSING_PARTS]
    return {**resource, "subresources": left} if left else resource


def test_lists_groups_as_the_real_server_does(real_server: ControlPlane) -> None:
    theirs = real_server.admin.request("GET", "/apis")
    ours = asked("/apis")
    known = {group["name"]: group for group in theirs["groups"]}
    for group in ours["groups"]:
        real = known[group["name"]]
        assert group["preferredVersion"] == real["preferredVersion"]
        assert group["versions"] == real["versions"][:1]
        assert group.keys() == real.keys()
    assert {**ours, "groups": []} == {**theirs, "groups": []}
    assert asked("/apis/apps") == real_server.admin.request("GET", "/apis/apps")


def test_says_its_version_in_the_same_terms(real_server: ControlPlane) -> None:
    theirs, ours = real_server.admin.request("GET", "/version"), asked("/version")
    assert ours.keys() == theirs.keys()
    assert (ours["major"], ours["minor"]) == (theirs["major"], theirs["minor"])
    assert ours["gitVersion"] == "v1.36.0+mooring"


@pytest.mark.parametrize("group", GROUPS)
def test_describes_types_so_that_patches_are_made_alike(
    group: str, real_server: ControlPlane
) -> None:
    theirs = _document(real_server.admin, group)
    reply = openapi(f"/openapi/v3{root(group)}", "application/json")
    assert reply is not None
    ours = json.loads(reply.body)
    known = theirs["components"]["schemas"]
    for name, schema in ours["components"]["schemas"].items():
        assert schema["properties"].keys() == known[name].get("properties", {}).keys()
        for field, value in schema["properties"].items():
            assert _merging(value) == _merging(known[name]["properties"][field]), (name, field)
    for path in ours["paths"]:
        assert path in theirs["paths"]


def _document(admin: AdminApi, group: str) -> Object:
    index = admin.request("GET", "/openapi/v3")["paths"]
    return admin.request("GET", index[root(group).strip("/")]["serverRelativeURL"])


def _merging(schema: Any) -> Object:
    """What kubectl reads when it compares two objects; a list that says nothing is atomic."""
    keys = ("x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-list-type")
    found = {key: schema[key] for key in keys if key in schema}
    if schema.get("type") == "array":
        found.setdefault("x-kubernetes-list-type", "atomic")
    return found


# --- alone ----------------------------------------------------------------------------------------


def test_prefers_core_events_to_the_newer_ones() -> None:
    assert groups().index("apps") < groups().index("events.k8s.io")
    assert any(one["name"] == "events" for one in asked("/api/v1")["resources"])


def test_gives_everything_at_once_only_to_who_asks_for_it() -> None:
    accept = f"{AGGREGATED},application/json;q=0.9"
    assert asked("/apis", accept)["kind"] == "APIGroupDiscoveryList"
    older = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    assert asked("/apis", f"{older},application/json")["kind"] == "APIGroupList"
    assert asked("/apis/apps/v1", accept)["kind"] == "APIResourceList"


@pytest.mark.parametrize(
    "path", ["/apis/nope", "/apis/apps/v2", "/api/v2", "/metrics", "/apis/apps/v1/deployments"]
)
def test_has_no_answer_for_other_paths(path: str) -> None:
    assert discover(path, "application/json") is None


def test_names_all_its_paths() -> None:
    assert {"/api", "/apis/apps/v1", "/version"} <= set(asked("/")["paths"])


def test_finds_documents_under_the_addresses_it_gives() -> None:
    reply = openapi("/openapi/v3", "application/json")
    assert reply is not None
    for place, entry in json.loads(reply.body)["paths"].items():
        path, _, version = entry["serverRelativeURL"].partition("?hash=")
        assert path == f"/openapi/v3/{place}"
        assert version
        assert openapi(path, "application/json") is not None
    assert openapi("/openapi/v3/apis/nope/v1", "application/json") is None


def test_has_an_empty_document_of_the_old_version() -> None:
    reply = openapi("/openapi/v2", "application/json")
    assert reply is not None
    assert json.loads(reply.body)["swagger"] == "2.0"
    reply = openapi("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert reply is not None
    assert reply.body.startswith(b"\x0a\x032.0")


def test_says_that_it_checks_fields_itself() -> None:
    for resource in RESOURCES:
        reply = openapi(f"/openapi/v3{root(resource.group)}", "application/json")
        assert reply is not None
        place = "namespaces/{namespace}/" if resource.namespaced else ""
        path = f"{root(resource.group)}/{place}{resource.name}/{{name}}"
        patch = json.loads(reply.body)["paths"][path]["patch"]
        assert "fieldValidation" in [one["name"] for one in patch["parameters"]]
        assert patch["x-kubernetes-group-version-kind"]["kind"] == resource.kind
