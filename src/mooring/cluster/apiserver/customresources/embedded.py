"""The rules for lists with keys, for sets, and for objects within objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.cluster.apiserver.customresources.structural import (
    LIST_TYPE,
    MAP_KEYS,
    Structural,
)
from mooring.cluster.apiserver.errors import ErrorList, FieldError, duplicate, invalid_value
from mooring.cluster.apiserver.metadata import validate_template_meta


def validate_lists(value: Any, schema: Structural, field: str = "") -> ErrorList:
    """Elements of a set, and keys of a list with keys, are there once."""
    return list(_lists(value, schema, field))


def _lists(value: Any, schema: Structural, field: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        for name, part in value.items():
            within = schema.at(name)
            if within is not None:
                yield from _lists(part, within, f"{field}.{name}" if field else name)
    elif isinstance(value, list):
        kind = schema.document.get(LIST_TYPE)
        if kind in ("set", "map"):
            yield from _duplicates(value, schema, field, is_map=kind == "map")
        for index, part in enumerate(value):
            yield from _lists(part, schema.items, f"{field}[{index}]")


def _duplicates(
    value: list[Any], schema: Structural, field: str, *, is_map: bool
) -> Iterator[FieldError]:
    keys = schema.document.get(MAP_KEYS) or ()
    seen: set[bytes] = set()
    for index, part in enumerate(value):
        named = part
        if is_map:
            if not isinstance(part, dict):
                continue
            named = {key: part[key] for key in keys if key in part}
        text = msgspec.json.encode(named, order="sorted")
        if text in seen:
            yield duplicate(f"{field}[{index}]", named)
        seen.add(text)


def validate_embedded(value: Any, schema: Structural) -> ErrorList:
    """Embedded objects have a kind, an apiVersion and metadata in good order."""
    return list(_embedded(value, schema, ""))


def _embedded(value: Any, schema: Structural, field: str) -> Iterator[FieldError]:
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from _embedded(part, schema.items, f"{field}[{index}]")
    elif isinstance(value, dict):
        if schema.is_embedded:
            yield from _object(value, field)
        for name, part in value.items():
            within = schema.at(name)
            if within is not None:
                yield from _embedded(part, within, f"{field}.{name}" if field else name)


def _object(value: dict[str, Any], field: str) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        if value.get(name) == "":
            yield invalid_value(f"{field}.{name}", "", "must not be empty")
    meta = value.get("metadata")
    if isinstance(meta, dict):
        yield from validate_template_meta(meta, f"{field}.metadata")
