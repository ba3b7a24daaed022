"""Bytes to custom objects: any fields, of which the unknown ones are reported."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mooring.api import yaml
from mooring.api.unreadable import NOT_YAML, why_unreadable
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.customresources.pruning import prune
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.errors import bad_request, invalid_kind, invalid_value
from mooring.cluster.apiserver.field_types import explain_type_error, type_of, without_nulls
from mooring.cluster.apiserver.requests import MAX_NODES
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.schema import Schema
from mooring.cluster.apiserver.store import Object

PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_BODIES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_META: Final = Schema(form="struct", name="meta.v1.ObjectMeta")


def refuse_media(accepted: tuple[str, ...] = _BODIES) -> StatusError:
    """415: the body can't be read, or a patch is of a type that custom objects do not have."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return StatusError(message, code=415, reason="UnsupportedMediaType")


def refuse_protobuf(resource: Resource) -> StatusError:
    """415: custom objects have no protobuf form."""
    message = (
        f"{resource.kind} is a custom resource, which has no protobuf form - accepted media types "
        "include: application/json, application/yaml"
    )
    return StatusError(message, code=415, reason="UnsupportedMediaType")


def decode_custom(
    resource: CustomResource, body: bytes, whole: Any, *, is_yaml: bool
) -> tuple[Object, list[str]]:
    """An object of this kind, and what is strange about its fields; `whole` is the parsed body."""
    if not isinstance(whole, dict) or not whole.get("kind"):
        text = body.decode(errors="replace")
        shown = text if len(text) <= 30 else f"{text[:30]} ..."
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object "
            f"'Kind' is missing in '{text}' ({shown})"
        )
    said = whole.get("apiVersion", "")
    if said != resource.api_version:
        raise bad_request(
            f"the API version in the data ({said}) does not match the expected API version "
            f"({resource.api_version})"
        )
    twice = list(yaml.repeated_keys(body)) if is_yaml else list(_twice(body))
    value = with_metadata(resource, whole)
    check_kind(resource, value)
    return value, [*twice, *strange_fields(resource, value)]


def strange_fields(resource: CustomResource, value: Object) -> list[str]:
    """Prune an object in place; a sentence about each field that the kind does not have."""
    return [f'unknown field "{path}"' for path in prune(value, resource.served.structural)]


def check_kind(resource: CustomResource, value: Object) -> None:
    """Refuse an object of another kind or version."""
    kind, version = value.get("kind"), value.get("apiVersion")
    name = str((value.get("metadata") or {}).get("name", ""))
    problems = []
    if kind != resource.kind:
        problems.append(invalid_value("kind", kind, f"must be {resource.kind}"))
    if version != resource.api_version:
        problems.append(invalid_value("apiVersion", version, f"must be {resource.api_version}"))
    if problems:
        raise invalid_kind(str(kind), resource.group, name, problems)


def with_metadata(resource: CustomResource, whole: Object) -> Object:
    """The object with metadata of the right types; nulls in it mean nothing."""
    meta = whole.get("metadata")
    if meta is None:
        return {**whole, "metadata": {}}
    if isinstance(meta, dict):
        meta = without_nulls(meta, _META)
    try:
        msgspec.convert(meta, type_of(_META))
    except msgspec.ValidationError as error:
        kind = resource.kind
        why = explain_type_error(error, meta, _META).replace(
            "Go struct field . of type v1.ObjectMeta", "Go value of type v1.ObjectMeta"
        )
        raise bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
        ) from error
    return {**whole, "metadata": meta}


def parse_yaml(body: bytes, kind: str) -> Any:
    try:
        return yaml.load(body, max_nodes=MAX_NODES)
    except NOT_YAML as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): {why_unreadable(error)}"
        ) from error


# --- fields that are there twice ------------------------------------------------------------------


class _Pairs(dict[str, Any]):
    """An object of JSON that remembers the keys that it had more than once."""

    twice: tuple[str, ...] = ()


def _pairs(found: list[tuple[str, Any]]) -> _Pairs:
    made = _Pairs(found)
    if len(made) < len(found):
        counts = Counter(name for name, _ in found)
        made.twice = tuple(name for name, count in counts.items() if count > 1)
    return made


def _twice(body: bytes) -> Iterator[str]:
    yield from _twice_in(json.loads(body, object_pairs_hook=_pairs), "")


def _twice_in(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from _twice_in(part, f"{path}[{index}]")
    elif isinstance(value, _Pairs):
        for name in value.twice:
            yield f'duplicate field "{path}{"." if path else ""}{name}"'
        for name, part in value.items():
            yield from _twice_in(part, f"{path}.{name}" if path else name)
