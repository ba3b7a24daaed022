"""OpenAPI v3, as far as kubectl reads it.

kubectl looks up whether the server validates fields (the parameter `fieldValidation`) and how lists
are merged. `kubectl explain` finds fields, but no descriptions. For kinds that v3 does not have,
kubectl falls back to v2 in protobuf: that document is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha512
from typing import Final

import msgspec

from mooring.cluster.apiserver.discovery import GIT_VERSION, groups
from mooring.cluster.apiserver.requests import ApiResponse
from mooring.cluster.apiserver.resources import RESOURCES, Resource
from mooring.cluster.apiserver.schema import VALUE_TYPES, Schema, all_types, schema_of
from mooring.cluster.apiserver.store import Object

_ROOT: Final = "/openapi/v3"
_V2: Final = "/openapi/v2"
_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_REF: Final = "#/components/schemas/"
_QUERIES: Final = {
    "put": ("dryRun", "fieldManager", "fieldValidation"),
    "post": ("dryRun", "fieldManager", "fieldValidation"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "get": (),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
}


def openapi(path: str, accept: str) -> ApiResponse | None:
    """The response to a path below /openapi; None if there is no such document."""
    path = path.rstrip("/")
    if path == _V2:
        return _v2_document(accept)
    if path == _ROOT:
        return ApiResponse(body=_index())
    place = path.removeprefix(f"{_ROOT}/")
    if place != path and place in _document_paths():
        return ApiResponse(body=_document(place))
    return None


def _v2_document(accept: str) -> ApiResponse:
    """Version 2, which is empty."""
    info = {"title": "Kubernetes", "version": GIT_VERSION}
    if "protobuf" not in accept:
        document = {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}
        return ApiResponse(body=msgspec.json.encode(document))
    about = _text_field(1, info["title"].encode()) + _text_field(2, info["version"].encode())
    body = _text_field(1, b"2.0") + _text_field(2, about)
    return ApiResponse(body=body, content_type=_V2_PROTOBUF)


def _text_field(number: int, content: bytes) -> bytes:
    """A short field of a protobuf message."""
    return bytes([number << 3 | 2, len(content)]) + content


def _document_paths() -> dict[str, str]:
    return {"api/v1": "", **{f"apis/{group}/v1": group for group in groups()}}


@cache
def _index() -> bytes:
    paths = {place: {"serverRelativeURL": _address(place)} for place in _document_paths()}
    return msgspec.json.encode({"paths": paths})


def _address(place: str) -> str:
    """With a hash, so that kubectl can cache the document."""
    return f"{_ROOT}/{place}?hash={sha512(_document(place)).hexdigest().upper()}"


@cache
def _document(place: str) -> bytes:
    resources = [one for one in RESOURCES if one.group == _document_paths()[place]]
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
    content: Object = {"application/json": {"schema": {"$ref": _REF + _full(_type_of(resource))}}}
    return {
        "parameters": queries,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action or method,
        "x-kubernetes-group-version-kind": kind,
    }


# --- types ----------------------------------------------------------------------------------------


def _schemas(resources: list[Resource]) -> Object:
    kinds = {_type_of(resource): resource for resource in resources}
    waiting, found = list(kinds), set[str]()
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


def _type_of(resource: Resource) -> str:
    schema = schema_of(resource.api_version, resource.kind)
    if schema is None:
        raise LookupError(f"schema.txt has no type for {resource.api_version} {resource.kind}")
    return schema.name


def _full(name: str) -> str:
    """The OpenAPI name of a type in schema.txt."""
    package = "apimachinery.pkg.apis" if name.startswith("meta.") else "api"
    return f"io.k8s.{package}.{name}"
