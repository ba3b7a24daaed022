"""Bytes to objects: only known fields, each with a value of its type.

A kube-apiserver decodes into structs: values of other types are refused, unknown fields are
dropped, null means absent. Here `schema.py` has the types, and msgspec checks them while it
decodes. The result is plain dictionaries that defaulting and validation can rely on.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from mooring.api import yaml
from mooring.api.unreadable import NOT_JSON, NOT_YAML, why_unreadable
from mooring.client.errors import StatusError
from mooring.cluster.apiserver._gotext import go_kind, json_error
from mooring.cluster.apiserver.customresources import decoding as custom
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.errors import bad_request, invalid_kind, invalid_value
from mooring.cluster.apiserver.field_types import (
    explain_type_error,
    fitted,
    is_recursive,
    type_of,
    without_nulls,
)
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.requests import MAX_NODES, ApiRequest
from mooring.cluster.apiserver.resources import Resource, by_kind
from mooring.cluster.apiserver.schema import ANY, Schema, schema_of
from mooring.cluster.apiserver.store import Object

YAML: Final = "application/yaml"
_READABLE: Final = ("application/json", "", YAML)
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # or the rest of the text
_SHOWN: Final = 30  # bytes of an unreadable body in messages


def decode_object(resource: Resource, body: bytes, content_type: str) -> tuple[Object, list[str]]:
    """An object of this kind, and the fields in it that do not exist."""
    if isinstance(resource, CustomResource):
        return _decode_custom(resource, body, content_type)
    if content_type.startswith(YAML):
        found, strangers = decode_object(resource, _from_yaml(body, resource.kind), "")
        return found, [*yaml.repeated_keys(body), *strangers]
    head = _head(body, resource.kind)
    check_kind(resource, head.api_version, head.kind)
    kind, schema = resource.kind, _schema(resource)
    try:
        value, whole = _decoded(body, schema)
        # As many keys as there are values, unless one is there twice; strings count alike.
        if body.count(b'":') != msgspec.json.encode(whole).count(b'":'):
            pairs = json.loads(body, object_pairs_hook=_Pairs)
            return value, list(_strange_fields(pairs, schema, ""))
        return value, [] if value == whole else list(unknown_fields(whole, schema))
    except (ValueError, RecursionError) as error:
        why = why_unreadable(error)
        raise bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
        ) from error


def _decode_custom(
    resource: CustomResource, body: bytes, content_type: str
) -> tuple[Object, list[str]]:
    if content_type.startswith(YAML):
        whole = custom.parse_yaml(body, resource.kind)
        return custom.decode_custom(resource, body, whole, is_yaml=True)
    _head(body, resource.kind)
    return custom.decode_custom(resource, body, msgspec.json.decode(body), is_yaml=False)


def decode_unstored(api_version: str, kind: str, body: bytes) -> Object:
    """An object that is never stored: a Binding, an Eviction, a Scale, a review."""
    head = _head(body, kind)
    version = api_version.rpartition("/")[2]
    start = f'{head.kind or kind} in version "{version}" cannot be handled as a {kind}'
    if head.kind not in ("", kind):
        internal = api_version.rpartition("/")[0].partition(".")[0] or "core"
        source = head.api_version.rpartition("/")[2] or version
        raise bad_request(
            f"{start}: converting ({source}.{head.kind}) to ({internal}.{kind}): unknown conversion"
        )
    try:
        return _decoded(body, schema_of(api_version, kind) or ANY)[0]
    except (ValueError, RecursionError) as error:
        raise bad_request(f"{start}: {why_unreadable(error)}") from error


def fit_unstored(api_version: str, kind: str, value: Object) -> Object:
    """The same for the result of a patch."""
    try:
        return _fit(value, schema_of(api_version, kind) or ANY)
    except ValueError as error:
        raise bad_request(str(error)) from error


def _decoded(body: bytes, schema: Schema) -> tuple[Object, Any]:
    """The known fields of a body, and all of it; ValueError if a type does not match."""
    whole = msgspec.json.decode(body)
    if is_recursive(schema):
        whole = without_nulls(whole, schema)
        return fitted(whole, schema), whole
    try:
        value: Object = _decoder(schema.name).decode(body)
    except msgspec.ValidationError as error:
        if b"null" not in body:
            raise ValueError(explain_type_error(error, whole, schema)) from error
        whole = without_nulls(whole, schema)
        return _fit(whole, schema), whole
    if b"null" in body:
        return without_nulls(value, schema), without_nulls(whole, schema)
    return value, whole


def fit(resource: Resource, value: Object) -> Object:
    """The known fields of a decoded object; ValueError if a type does not match."""
    if isinstance(resource, CustomResource):
        resource.fit(value)
        return value
    schema = _schema(resource)
    if is_recursive(schema):
        found: Object = fitted(without_nulls(value, schema), schema)
        return found
    try:
        fitting: Object = msgspec.convert(value, type_of(schema))
    except msgspec.ValidationError:
        return _fit(without_nulls(value, schema), schema)
    return fitting


def _fit(value: Object, schema: Schema) -> Object:
    try:
        fitting: Object = msgspec.convert(value, type_of(schema))
    except msgspec.ValidationError as error:
        raise ValueError(explain_type_error(error, value, schema)) from error
    return fitting


def unknown_fields(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """The paths of fields that the kind does not have."""
    schema = schema.of(value)
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from unknown_fields(inner, schema.items, f"{path}[{index}]")
    elif isinstance(value, dict) and schema.form in ("struct", "map"):
        for name, inner in value.items():
            place = f"{path}.{name}" if path else name
            within = schema.at(name)
            if within is None:
                yield f'unknown field "{place}"'
            else:
                yield from unknown_fields(inner, within, place)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON as it was written: a key may be there twice."""


def _strange_fields(value: Any, schema: Schema, path: str) -> Iterator[str]:
    """The fields that the kind does not have, or that are there twice, as they are written."""
    if isinstance(value, _Pairs):
        if schema.form not in ("struct", "map"):
            return
        seen: Counter[str] = Counter()
        for name, inner in value:
            place = f"{path}.{name}" if path else name
            within = schema.at(name)
            seen[name] += 1
            if seen[name] == 2:
                yield f'duplicate field "{place}"'
            elif within is None:
                yield f'unknown field "{place}"'
            else:
                yield from _strange_fields(inner, within, place)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strange_fields(inner, schema.items, f"{path}[{index}]")


def check_kind(resource: Resource, api_version: str, kind: str) -> None:
    """Refuse an object that says it is of another kind; an empty kind is accepted."""
    kind, wanted = kind or resource.kind, resource.kind
    api_version = api_version or resource.api_version
    if (api_version, kind) == (resource.api_version, wanted):
        return
    group, _, version = api_version.rpartition("/")
    if group.count("/"):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {wanted}): unexpected "
            f"GroupVersion string: {api_version}"
        )
    start = f'{kind} in version "{version}" cannot be handled as a {wanted}'
    if (group, kind) == (resource.group, wanted) and version.startswith("v1"):
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if by_kind(api_version, kind) is None:
        raise bad_request(
            f'{start}: no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    internal = resource.group.partition(".")[0] or "core"
    raise bad_request(
        f"{start}: converting ({version}.{kind}) to ({internal}.{wanted}): unknown conversion"
    )


# --- requests ----------------------------------------------------------------------------------


def check_size(body: bytes) -> None:
    """Refuse JSON with more than about `MAX_NODES` keys and values, without making them."""
    if _marks(body) < MAX_NODES or not body.lstrip().startswith((b"{", b"[")):
        return  # anything else is YAML, whose loader has the same limit
    if _marks(_STRING.sub(b"", body)) >= MAX_NODES:
        raise bad_request(f"the body has too many keys and values: the limit is {MAX_NODES}")


def _marks(body: bytes) -> int:
    """Each key is followed by one of these characters, and each value comes after one."""
    return sum(map(body.count, (b",", b":", b"[", b"{")))


def media_of(request: ApiRequest) -> str:
    """The media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip()


def decode_body(
    resource: Resource, request: ApiRequest, options: WriteOptions
) -> tuple[Object, list[str]]:
    """An object of this kind, and the warnings about it."""
    media = media_of(request)
    if resource.is_custom and media not in _READABLE:
        raise custom.refuse_media()
    if media not in _READABLE:
        raise StatusError(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml",
            code=415,
            reason="UnsupportedMediaType",
        )
    value, strangers = decode_object(resource, request.body, media)
    if strangers and options.validation == "Strict":
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {_strict_error(strangers)}"
        )
    return value, strangers if options.validation == "Warn" else []


def check_applied(body: bytes, options: WriteOptions) -> list[str]:
    """The warnings about keys that an applied configuration has more than once."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        msgspec.json.decode(body)
        return []  # kubectl sends JSON
    repeated = [] if options.validation == "Ignore" else list(yaml.repeated_keys(body))
    if repeated and options.validation == "Strict":
        raise bad_request(
            f"error strict decoding YAML: error converting YAML to JSON: {_in_yaml(repeated)}"
        )
    return repeated


def _strict_error(strangers: list[str]) -> str:
    repeated = [one for one in strangers if one.startswith("line ")]
    others = [one for one in strangers if one not in repeated]
    parts = [_in_yaml(repeated), *others] if repeated else others
    return f"strict decoding error: {', '.join(parts)}"


def _in_yaml(repeated: list[str]) -> str:
    return "\n  ".join(["yaml: unmarshal errors:", *repeated])


def check_patched(
    resource: Resource, value: Object, options: WriteOptions, patch: bytes
) -> tuple[Object, list[str]]:
    """The result of a patch, if it is still valid, and the warnings about it."""
    if isinstance(resource, CustomResource):
        return _check_patched_custom(resource, value, options)
    shown = patch.decode(errors="replace")
    said = (value.get("apiVersion", ""), value.get("kind", ""))
    if all(isinstance(word, str) for word in said):  # if not, it does not fit anyway
        check_kind(resource, *said)
    try:
        fitting = fit(resource, value)
    except ValueError as error:
        raise invalid_kind("", "", "", [invalid_value("patch", shown, str(error))]) from error
    if fitting == value:
        return value, []
    strangers = list(unknown_fields(value, _schema(resource)))
    if strangers and options.validation == "Strict":
        why = _strict_error(strangers)
        raise invalid_kind("", "", "", [invalid_value("patch", shown, why)])
    return fitting, strangers if options.validation == "Warn" else []


def _check_patched_custom(
    resource: CustomResource, value: Object, options: WriteOptions
) -> tuple[Object, list[str]]:
    value = custom.with_metadata(resource, value)
    custom.check_kind(resource, value)
    shown = msgspec.json.encode(value, order="sorted").decode()
    strangers = custom.strange_fields(resource, value)
    if strangers and options.validation == "Strict":
        why = _strict_error(strangers)
        raise invalid_kind("", "", "", [invalid_value("patch", shown, why)])
    return value, strangers if options.validation == "Warn" else []


def check_name(value: Object, name: str) -> None:
    """Refuse an object whose name differs from the one in the path."""
    own = (value.get("metadata") or {}).get("name", "")
    if not own:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if own != name:
        raise bad_request(
            f"the name of the object ({own}) does not match the name on the URL ({name})"
        )


def warning_headers(warnings: list[str]) -> Mapping[str, str]:
    """All warnings in one header: a response has each header once."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return {"Warning": ", ".join(f'299 - "{text}"' for text in quoted)} if warnings else {}


# --- reading -----------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


_read_head: Final = msgspec.json.Decoder(_Head).decode


def _head(body: bytes, kind: str) -> _Head:
    try:
        return _read_head(body)
    except NOT_JSON as error:
        why = _parse_problem(body, error)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get "
            f"version/kind; json parse error: {why} ({_summary(body)})"
        ) from error


def _parse_problem(body: bytes, error: Exception) -> str:
    if not isinstance(error, msgspec.ValidationError):
        return json_error(body)
    try:
        value = msgspec.json.decode(body)
    except NOT_JSON:  # invalid after apiVersion and kind
        return json_error(body)
    if isinstance(value, dict):
        # If both are strings, a key was there twice, and only its last value is known here.
        field = next(
            (key for key in ("apiVersion", "kind") if not isinstance(value.get(key, ""), str)),
            "kind",
        )
        kind = go_kind(value.get(field))
        return f"json: cannot unmarshal {kind} into Go struct field .{field} of type string"
    return (
        f"json: cannot unmarshal {go_kind(value)} into Go value of type struct {{ APIVersion "
        'string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    )


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown = body[:_SHOWN]
    text = shown.decode(errors="replace") if body.startswith(b"{") else shown.hex()
    return f"{text} ..." if len(body) > _SHOWN else text


def _from_yaml(body: bytes, kind: str) -> bytes:
    try:
        return msgspec.json.encode(yaml.load(body, max_nodes=MAX_NODES))
    except NOT_YAML as error:
        why = why_unreadable(error)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): {why}"
        ) from error


@cache
def _schema(resource: Resource) -> Schema:
    return schema_of(resource.api_version, resource.kind) or ANY


@cache
def _decoder(name: str) -> msgspec.json.Decoder[Any]:
    schema = Schema(form="struct", name=name) if name else ANY
    return msgspec.json.Decoder(type_of(schema))
