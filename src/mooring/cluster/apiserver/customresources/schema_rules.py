"""The rules for the schema of a version: it must be structural, and its defaults must fit it.

A schema is structural if every field has a type, outside of `allOf`, `anyOf`, `oneOf` and `not`,
which may only say more about the values.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from mooring.cluster.apiserver.customresources import object_rules
from mooring.cluster.apiserver.customresources.pruning import prune_part
from mooring.cluster.apiserver.customresources.regular_expressions import pattern_fault
from mooring.cluster.apiserver.customresources.structural import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_TYPE,
    MAP_KEYS,
    MAP_TYPE,
    PRESERVE,
    Structural,
)
from mooring.cluster.apiserver.customresources.validation_rules import rule_faults
from mooring.cluster.apiserver.errors import (
    ErrorList,
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from mooring.cluster.apiserver.store import Object

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_SCALARS: Final = ("string", "number", "integer", "boolean")
_UNSUPPORTED: Final = (
    "$ref", "id", "definitions", "patternProperties", "dependencies", "additionalItems",
)  # fmt: skip
# What a schema inside of allOf, anyOf, oneOf or not can't say, and how messages put it.
_ONLY_OUTSIDE: Final = {
    "title": "empty",
    "description": "empty",
    "type": "empty",
    "default": "undefined",
    "additionalProperties": "undefined",
    "nullable": "false",
    PRESERVE: "false",
    EMBEDDED: "false",
    LIST_TYPE: "undefined",
    MAP_KEYS: "empty",
    MAP_TYPE: "undefined",
}
_INT_OR_STRING_FORMS: Final = (
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
)


def validate_schema(schema: Object, field: str) -> ErrorList:
    """What is wrong with the `openAPIV3Schema` of a version."""
    found: ErrorList = []
    kind = schema.get("type", "")
    if schema.get("nullable"):
        found.append(forbidden_field(f"{field}.nullable", "nullable cannot be true at the root"))
    if not kind:
        found.append(required(f"{field}.type", "must not be empty at the root"))
    elif kind != "object":
        found.append(invalid_value(f"{field}.type", kind, "must be object at the root"))
    if found:
        return found
    found += _words(schema, field)
    found += _lists_and_maps(schema, field)
    structural = [*_structure(schema, field), *_root_metadata(schema, field)]
    found += structural
    if not structural:
        found += _defaults(schema, field)
        found += _rules(schema, field, is_object=True)
    return found


def _rules(schema: Object, field: str, *, is_object: bool = False) -> Iterator[FieldError]:
    yield from rule_faults(schema, field, is_object=is_object)
    for place, inner in _below(schema, field, junctors=False):
        yield from _rules(inner, place)


# --- words that are not supported -----------------------------------------------------------------


def _words(schema: Object, field: str) -> Iterator[FieldError]:
    """What is forbidden everywhere, and values that a word can't have."""
    for word in _UNSUPPORTED:
        if schema.get(word) is not None:
            yield forbidden_field(f"{field}.{word}", f"{word} is not supported")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{field}.uniqueItems", why)
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield unsupported(f"{field}.type", kind, _TYPES)
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield forbidden_field(f"{field}.type", why)
    if (pattern := schema.get("pattern")) and (why := pattern_fault(pattern)):
        why = f"must be a valid regular expression, but isn't: {why}"
        yield invalid_value(f"{field}.pattern", pattern, why)
    if schema.get("additionalProperties") not in (None, False) and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{field}.additionalProperties", why)
    if isinstance(schema.get("items"), list):
        why = "items must be a schema object and not an array"
        yield forbidden_field(f"{field}.items", why)
    if schema.get(PRESERVE) is False:
        yield invalid_value(f"{field}.{PRESERVE}", False, "must be true or undefined")
    for place, inner in _below(schema, field):
        yield from _words(inner, place)


def _below(schema: Object, field: str, *, junctors: bool = True) -> Iterator[tuple[str, Object]]:
    """The schemas in a schema, with their places."""
    for name, inner in (schema.get("properties") or {}).items():
        yield f"{field}.properties[{name}]", inner
    for word in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(word), dict):
            yield f"{field}.{word}", inner
    if junctors:
        yield from _inside(schema, field)


def _inside(schema: Object, field: str) -> Iterator[tuple[str, Object]]:
    for word in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(word) or ()):
            yield f"{field}.{word}[{index}]", inner
    if isinstance(inner := schema.get("not"), dict):
        yield f"{field}.not", inner


# --- structure ------------------------------------------------------------------------------------


def _structure(schema: Object, field: str, of: str = "") -> Iterator[FieldError]:
    """Types are there, and where they belong; `of` says what has no type."""
    kind = schema.get("type", "")
    is_free = schema.get(INT_OR_STRING) or schema.get(PRESERVE)
    if not kind and of and not is_free:
        yield required(f"{field}.type", f"must not be empty for specified {of}")
    if schema.get(EMBEDDED):
        if not schema.get(PRESERVE) and not schema.get("properties"):
            why = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
            yield required(f"{field}.properties", why)
        if kind != "object":
            yield invalid_value(f"{field}.type", kind, f"must be object if {EMBEDDED} is true")
        if of:
            yield from _root_metadata(schema, field)
    if kind == "array" and not isinstance(schema.get("items"), dict | list):
        yield required(f"{field}.items", "must be specified")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _structure(inner, f"{field}.properties[{name}]", "object fields")
    if isinstance(more := schema.get("additionalProperties"), dict):
        yield from _structure(more, f"{field}.additionalProperties", "object fields")
    if isinstance(items := schema.get("items"), dict):
        yield from _structure(items, f"{field}.items", "array items")
    is_usual = any(
        all(schema.get(word) == form for word, form in one.items()) for one in _INT_OR_STRING_FORMS
    )
    if not is_usual:
        for place, inner in _inside(schema, field):
            yield from _values_only(inner, place)


def _values_only(schema: Object, field: str) -> Iterator[FieldError]:
    for word, state in _ONLY_OUTSIDE.items():
        if schema.get(word) not in (None, False, "", []) or (word in schema and word == "default"):
            yield forbidden_field(f"{field}.{word}", f"must be {state} to be structural")
    for place, inner in _below({**schema, "additionalProperties": None}, field):
        yield from _values_only(inner, place)


def _root_metadata(schema: Object, field: str) -> Iterator[FieldError]:
    """What may be said of apiVersion, kind and metadata."""
    properties = schema.get("properties") or {}
    for name, wanted in (("metadata", "object"), ("apiVersion", "string"), ("kind", "string")):
        if name in properties and properties[name].get("type") not in (None, "", wanted):
            place = f"{field}.properties[{name}].type"
            yield invalid_value(place, properties[name]["type"], f"must be {wanted}")
    meta = properties.get("metadata")
    if meta is None:
        return
    said = {word for word, value in meta.items() if value not in (None, "", [], {}, False)}
    inner = meta.get("properties") or {}
    if said - {"type", "description", "properties"} or inner.keys() - {"name", "generateName"}:
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield forbidden_field(f"{field}.properties[metadata]", why)


# --- lists and maps -------------------------------------------------------------------------------


def _lists_and_maps(schema: Object, field: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    list_type, map_type = schema.get(LIST_TYPE), schema.get(MAP_TYPE)
    keys = schema.get(MAP_KEYS) or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if list_type is not None:
        if kind != "array":
            why = f"must be array if {LIST_TYPE} is specified"
            yield invalid_value(f"{field}.type", kind, why)
        elif list_type not in ("atomic", "set", "map"):
            yield unsupported(f"{field}.{LIST_TYPE}", list_type, ("atomic", "set", "map"))
    if keys and list_type is None:
        why = f"must be map if {MAP_KEYS} is non-empty"
        yield required(f"{field}.{LIST_TYPE}", why)
    elif keys and list_type != "map":
        why = f"must be map if {MAP_KEYS} is non-empty"
        yield invalid_value(f"{field}.{LIST_TYPE}", list_type, why)
    if kind == "array" and list_type == "map":
        yield from _map_list(schema, field, keys, items or {})
    if kind == "array" and list_type == "set" and items is not None:
        yield from _set_items(items, f"{field}.items")
    if map_type is not None:
        if kind != "object":
            why = f"must be object if {MAP_TYPE} is specified"
            yield invalid_value(f"{field}.type", kind, why)
        elif map_type not in ("atomic", "granular"):
            yield unsupported(f"{field}.{MAP_TYPE}", map_type, ("atomic", "granular"))
    for place, inner in _below(schema, field, junctors=False):
        yield from _lists_and_maps(inner, place)


def _map_list(schema: Object, field: str, keys: list[str], items: Object) -> Iterator[FieldError]:
    if not keys:
        yield required(f"{field}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if items.get("type") != "object":
        why = f"must be object if parent array's {LIST_TYPE} is map"
        yield invalid_value(f"{field}.items.type", items.get("type", ""), why)
        return
    properties = items.get("properties") or {}
    for key in dict.fromkeys(keys):
        place = f"{field}.items.properties[{key}]"
        known = properties.get(key)
        if known is None:
            why = "entries must all be names of item properties"
            yield invalid_value(f"{field}.{MAP_KEYS}", keys, why)
            continue
        if known.get("type") not in _SCALARS:
            why = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield invalid_value(f"{place}.type", known.get("type", ""), why)
        if known.get("default") is None and key not in (items.get("required") or ()):
            why = (
                f"this property is in {MAP_KEYS}, so it must have a default or be a required "
                "property"
            )
            yield required(f"{place}.default", why)
        if known.get("nullable"):
            why = f"this property is in {MAP_KEYS}, so it cannot be nullable"
            yield forbidden_field(f"{place}.nullable", why)
    if len(set(keys)) < len(keys):
        why = "must not contain duplicate entries"
        yield invalid_value(f"{field}.{MAP_KEYS}", keys, why)


def _set_items(items: Object, field: str) -> Iterator[FieldError]:
    if items.get("nullable"):
        yield forbidden_field(f"{field}.nullable", f"cannot be nullable when {LIST_TYPE} is set")
    kind = items.get("type", "")
    if kind == "object" and items.get(MAP_TYPE) != "atomic":
        why = f"must be atomic as item of a list with {LIST_TYPE}=set"
        yield invalid_value(f"{field}.{MAP_TYPE}", items.get(MAP_TYPE), why)
    elif kind == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        why = f"must be atomic as item of a list with {LIST_TYPE}=set"
        yield invalid_value(f"{field}.{LIST_TYPE}", items.get(LIST_TYPE), why)


# --- defaults -------------------------------------------------------------------------------------


def _defaults(schema: Object, field: str) -> Iterator[FieldError]:
    default: Any = schema.get("default")
    if default is not None:
        place = f"{field}.default"
        pruned = copy.deepcopy(default)
        if prune_part(pruned, Structural(schema)):
            yield invalid_value(place, default, "must not have unknown fields")
        else:
            yield from object_rules.validate(default, schema, place, "")
    for inner_field, inner in _below(schema, field, junctors=False):
        yield from _defaults(inner, inner_field)
