"""Pruning and defaulting: a custom object as its structural schema wants it."""

from __future__ import annotations

import copy
from typing import Any

from mooring.cluster.apiserver.customresources.structural import OF_OBJECTS, Structural
from mooring.cluster.apiserver.schema import Schema
from mooring.cluster.apiserver.store import Object

_META = Schema(form="struct", name="meta.v1.ObjectMeta")


def prune(value: Object, schema: Structural) -> list[str]:
    """Remove the unknown fields of an object, in place; their paths, sorted."""
    found: list[str] = []
    _prune(value, schema, "", found, is_object=True)
    return sorted(found)


def prune_part(value: Any, schema: Structural) -> list[str]:
    """The same for a part of an object, such as a default."""
    found: list[str] = []
    _prune(value, schema, "", found, is_object=False)
    return found


def _prune(value: Any, schema: Structural, path: str, found: list[str], *, is_object: bool) -> None:
    if isinstance(value, list):
        for index, part in enumerate(value):
            _prune(part, schema.items, f"{path}[{index}]", found, is_object=False)
        return
    if not isinstance(value, dict):
        return
    is_object = is_object or schema.is_embedded
    for name in list(value):
        place = f"{path}.{name}" if path else name
        if is_object and name in OF_OBJECTS:
            if name == "metadata":
                _prune_metadata(value[name], place, found)
            continue
        within = schema.at(name)
        if within is not None:
            _prune(value[name], within, place, found, is_object=False)
        elif not schema.preserves:
            del value[name]
            found.append(place)


def _prune_metadata(meta: Any, path: str, found: list[str]) -> None:
    if isinstance(meta, dict):
        for name in meta.keys() - _META.fields.keys():
            del meta[name]
            found.append(f"{path}.{name}")


def set_defaults(value: Object, schema: Structural) -> None:
    """Fill in what is missing, in place, and remove nulls where no null is allowed."""
    _default(value, schema, is_object=True)


def _default(value: Any, schema: Structural, *, is_object: bool = False) -> None:
    if isinstance(value, list):
        for part in value:
            _default(part, schema.items)
        return
    if not isinstance(value, dict):
        return
    is_object = is_object or schema.is_embedded
    for name, within in schema.properties.items():
        if is_object and name in OF_OBJECTS:
            continue
        if within.has_default and _is_missing(value, name, within):
            value[name] = copy.deepcopy(within.default)
    for name in list(value):
        if is_object and name in OF_OBJECTS:
            continue
        found = schema.at(name)
        if found is None:
            continue
        if value[name] is None and not found.is_nullable:
            del value[name]
        else:
            _default(value[name], found)


def _is_missing(value: Object, name: str, schema: Structural) -> bool:
    return name not in value or (value[name] is None and not schema.is_nullable)
