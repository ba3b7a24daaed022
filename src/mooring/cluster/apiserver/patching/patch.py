"""The patch of one object, by media type.

The write handlers call `patched` with the current object, and write the result as if it had been
sent in full: defaulting, validation, `managed_fields.tracked` and the check of name and namespace
come after.
"""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from mooring.client.errors import StatusError
from mooring.cluster.apiserver._gotext import go_kind, json_error
from mooring.cluster.apiserver.customresources.decoding import PATCHES, refuse_media
from mooring.cluster.apiserver.errors import bad_request, invalid_kind, not_found, required
from mooring.cluster.apiserver.patching.apply import applied
from mooring.cluster.apiserver.patching.jsonpatch import apply_operations
from mooring.cluster.apiserver.patching.strategic import merge_strategically
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.schema import ANY, Schema, schema_of
from mooring.cluster.apiserver.store import Object

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

_ZEROS: Final = {"string": "", "quantity": "0"}  # what null is in a map


def patched(
    resource: Resource,
    current: Object | None,
    body: bytes,
    content_type: str,
    *,
    manager: str = "",
    force: bool = False,
    subresource: str = "",
    now: str = "",
    name: str = "",
) -> Object:
    """The object after a patch; `current` must not be used any more.

    Only an apply creates a missing object (`current` is None); it needs `manager` (the query's
    fieldManager), returns the object with its managedFields, and stamps them with `now`.
    """
    media = content_type.partition(";")[0].strip()
    if resource.is_custom and media not in PATCHES:
        raise refuse_media(PATCHES)
    if media == APPLY_PATCH:
        if not manager:
            problem = required("fieldManager", "is required for apply patch")
            raise invalid_kind("PatchOptions", "meta.k8s.io", "", [problem])
        now = now or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        result = applied(
            resource, current, body, manager=manager, force=force, subresource=subresource, now=now
        )
    else:
        if media not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
            raise StatusError(
                "415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={}
            )
        if current is None:
            raise not_found(resource, name)
        result = _changed(current, body, media)
    # A patch can't remove apiVersion and kind.
    for key, value in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if subresource != "scale" and result.get(key) is None:
            result[key] = value
    if resource.is_custom:
        return result
    tidy: Object = tidied(result, _schema(result, resource))
    return tidy


def _changed(current: Object, body: bytes, media: str) -> Object:
    prefix = "" if media == STRATEGIC_PATCH else "error decoding patch: "
    try:
        patch = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_request(prefix + json_error(body)) from None
    if media == JSON_PATCH:
        result: Object = apply_operations(current, patch)
        return result
    if patch is None:
        if media == STRATEGIC_PATCH:
            return current
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise bad_request(
            f"{prefix}json: cannot unmarshal {go_kind(patch)} into Go value of type "
            "map[string]interface {}"
        )
    if media == MERGE_PATCH:
        return _merged(current, patch)
    schema = schema_of(current.get("apiVersion", ""), current.get("kind", "")) or ANY
    return merge_strategically(current, patch, schema)


def _merged(target: Object, patch: Object) -> Object:
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            here = target.get(key)
            target[key] = _merged(here if isinstance(here, dict) else {}, value)
        else:
            target[key] = value
    return target


def tidied(value: Any, schema: Schema = ANY) -> Any:
    """As a server that decodes into structs writes it: without nulls, empty lists and empty maps.

    Empty structs stay: `emptyDir: {}` has a meaning. Unknown fields stay too, for the warnings
    about them; unused patch directives do not.
    """
    if isinstance(value, list):
        return [tidied(inner, schema.items) for inner in value]
    if not isinstance(value, dict):
        return value
    kept: Object = {}
    for name, inner in value.items():
        within = schema.at(name)
        if within is None:
            if not name.startswith("$"):
                kept[name] = inner
        elif inner is None:
            if schema.form == "map" and within.name in _ZEROS:
                kept[name] = _ZEROS[within.name]
        else:
            tidy = tidied(inner, within)
            if tidy or within.form not in ("list", "map"):
                kept[name] = tidy
    return kept


def _schema(value: Object, resource: Resource) -> Schema:
    said = (value.get("apiVersion"), value.get("kind"))
    named = schema_of(*map(str, said)) if all(isinstance(word, str) for word in said) else None
    return named or schema_of(resource.api_version, resource.kind) or ANY
