"""OpenAPI v3, as far as kubectl reads it.

kubectl looks up whether the server validates fields (the parameter `fieldValidation`) and how lists
are merged. `kubectl explain` finds fields, but no descriptions. For kinds that v3 does not have,
kubectl falls back to v2 in protobuf: that document is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha512
from typing import Final

import msgspec

from mooring.cluster.apiserver.customresources.openapi import (
    definition_name,
    definition_v2,
    definition_v3,
    list_definition,
)
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.discovery import GIT_VERSION, Served, groups, versions_of
from mooring.cluster.apiserver.requests import ApiResponse
from mooring.cluster.apiserver.resources import RESOURCES, Resource
from mooring.cluster.apiserver.schema import VALUE_TYPES, Schema, all_types, schema_of
from mooring.cluster.apiserver.store import Object

_ROOT: Final = "/openapi/v3"
_V2: Final = "/openapi/v2"
_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_REF: Final = "#/components/schemas/"
_V2_REF: Final = "#/definitions/"
_PACKAGES: Final = {
    "meta": "apimachinery.pkg.apis",
    "apiextensions": "apiextensions-apiserver.pkg.apis",
}
_QUERIES: Final = {
    "put": ("dryRun", "fieldManager", "fieldValidation"),
    "post": ("dryRun", "fieldManager", "fieldValidation"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "get": (),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
}


def openapi(path: str, accept: str, custom: Served = ()) -> ApiResponse | None:
    """The response to a path below /openapi; None if there is no such document."""
    path = path.rstrip("/")
    if path == _V2:
        return _v2_document(accept, custom)
    if path == _ROOT:
        return ApiResponse(body=_index(custom))
    place = path.removeprefix(f"{_ROOT}/")
    if place != path and place in _document_paths(custom):
        return ApiResponse(body=_document(place, custom))
    return None


def _v2_document(accept: str, custom: Served) -> ApiResponse:
    """Version 2, which has custom resources only; in protobuf it is empty."""
    info = {"title": "Kubernetes", "version": GIT_VERSION}
    if "protobuf" not in accept:
        definitions: Object = {}
        for resource in custom:
            if isinstance(resource, CustomResource):
                name = definition_name(resource)
                definitions[name] = definition_v2(resource, _V2_REF)
                definitions[f"{name}List"] = list_definition(resource, _V2_REF)
        if definitions:
            meta = Schema(form="struct", name="meta.v1.ObjectMeta")
            text = msgspec.json.encode(_types([meta.name], {})).replace(
                _REF.encode(), _V2_REF.encode()
            )
            definitions |= msgspec.json.decode(text)
        document = {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}
        return ApiResponse(body=msgspec.json.encode(document))
    about = _text_field(1, info["title"].encode()) + _text_field(2, info["version"].encode())
    body = _text_field(1, b"2.0") + _text_field(2, about)
    return ApiResponse(body=body, content_type=_V2_PROTOBUF)


def _text_field(number: int, content: bytes) -> bytes:
    """A short field of a protobuf message."""
    return bytes([number << 3 | 2, len(content)]) + content


def _document_paths(custom: Served) -> dict[str, tuple[str, str]]:
    """The group and the version of each document."""
    return {
        "api/v1": ("", "v1"),
        **{
            f"apis/{group}/{version}": (group, version)
            for group in groups(custom)
            for version in versions_of(group, custom)
        },
    }


@lru_cache(maxsize=16)
def _index(custom: Served) -> bytes:
    paths = {
        place: {"serverRelativeURL": _address(place, custom)} for place in _document_paths(custom)
    }
    return msgspec.json.encode({"paths": paths})


def _address(place: str, custom: Served) -> str:
    """With a hash, so that kubectl can cache the document."""
    digest = sha512(_document(place, custom)).hexdigest().upper()
    return f"{_ROOT}/{place}?hash={digest}"


def _document(place: str, custom: Served) -> bytes:
    at = _document_paths(custom)[place]
    resources = [one for one in (*RESOURCES, *custom) if (one.group, one.version) == at]
    return _described(place, tuple(resources))


@lru_cache(maxsize=256)
def _described(place: str, resources: Served) -> bytes:
    paths: Object = {}
    for resource in resources:
        paths.update(_paths(resource, f"/{place}"))
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "components": {"schemas": _schemas(resources)},
    }
    return msgspec.json.encode(document)


# --- paths ----------------------------------------------------------------------------------------


def _paths(resource: Resource, root: str) -> Iterator[tuple[str, Object]]:
    everywhere = f"{root}/{resource.name}"
    collection = everywhere
    if resource.namespaced:
        collection = f"{root}/namespaces/{{namespace}}/{resource.name}"
        yield everywhere, {"get": _operation(resource, "get", "list")}
    yield (
        collection,
        {
            "get": _operation(resource, "get", "list"),
            "post": _operation(resource, "post"),
            "delete": _operation(resource, "delete", "deletecollection"),
        },
    )
    one = {method: _operation(resource, method) for method in ("get", "put", "patch", "delete")}
    yield f"{collection}/{{name}}", one


def _operation(resource: Resource, method: str, action: str = "") -> Object:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    queries = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in _QUERIES[method]
    ]
    content: Object = {"application/json": {"schema": {"$ref": _REF + _name_of(resource)}}}
    return {
        "parameters": queries,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action or method,
        "x-kubernetes-group-version-kind": kind,
    }


# --- types ----------------------------------------------------------------------------------------


def _schemas(resources: Served) -> Object:
    kinds = {_type_of(one): one for one in resources if not one.is_custom}
    roots = list(kinds)
    found: Object = {}
    for resource in resources:
        if isinstance(resource, CustomResource):
            roots.append("meta.v1.ObjectMeta")
            name = definition_name(resource)
            found[name] = definition_v3(resource, _REF)
            found[f"{name}List"] = list_definition(resource, _REF)
    return found | _types(roots, kinds)


def _types(roots: list[str], kinds: dict[str, Resource]) -> Object:
    """These types and all that they use."""
    waiting, found = list(roots), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [
                inner for inner in map(_struct_in, all_types()[name].fields.values()) if inner
            ]
    return {_full(name): _type(name, kinds.get(name)) for name in sorted(found)}


def _type(name: str, resource: Resource | None) -> Object:
    known = all_types()[name]
    document: Object = {
        "type": "object",
        "properties": {field: _field(schema) for field, schema in known.fields.items()},
    }
    if known.is_atomic:
        document["x-kubernetes-map-type"] = "atomic"
    if resource is not None:
        kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
        document["x-kubernetes-group-version-kind"] = [kind]
    return document


def _field(schema: Schema) -> Object:
    document = _bare(schema)
    if schema.form == "list":
        relation = "atomic" if schema.is_atomic else "map" if schema.keys else "set"
        document["x-kubernetes-list-type"] = relation
        if schema.keys:
            document["x-kubernetes-list-map-keys"] = [key.name for key in schema.keys]
    elif schema.form == "map" and schema.is_atomic:
        document["x-kubernetes-map-type"] = "atomic"
    if schema.strategies:
        document["x-kubernetes-patch-strategy"] = ",".join(schema.strategies)
    if schema.merge_key:
        document["x-kubernetes-patch-merge-key"] = schema.merge_key
    return document


def _bare(schema: Schema) -> Object:
    if schema.form == "struct":
        return {"allOf": [{"$ref": _REF + _full(schema.name)}]}
    if schema.form == "list":
        return {"type": "array", "items": _element(schema.items)}
    if schema.form == "map":
        return {"type": "object", "additionalProperties": _element(schema.items)}
    return dict(VALUE_TYPES[schema.name].openapi) if schema.form == "value" else {"type": "object"}


def _element(schema: Schema) -> Object:
    return {"$ref": _REF + _full(schema.name)} if schema.form == "struct" else _bare(schema)


def _struct_in(schema: Schema) -> str:
    while schema.form in ("list", "map"):
        schema = schema.items
    return schema.name if schema.form == "struct" else ""


def _name_of(resource: Resource) -> str:
    if isinstance(resource, CustomResource):
        return definition_name(resource)
    return _full(_type_of(resource))


def _type_of(resource: Resource) -> str:
    schema = schema_of(resource.api_version, resource.kind)
    if schema is None:
        raise LookupError(f"schema.txt has no type for {resource.api_version} {resource.kind}")
    return schema.name


def _full(name: str) -> str:
    """The OpenAPI name of a type in schema.txt."""
    group = name.partition(".")[0]
    package = _PACKAGES.get(group, "api")
    return f"io.k8s.{package}.{name}"
