"""The types of fields, and the error messages for values of other types.

`schema.py` has the schemas; msgspec checks them as Python types.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, TypedDict

import msgspec

from mooring.cluster.apiserver._gotext import go_kind
from mooring.cluster.apiserver.errors import shown
from mooring.cluster.apiserver.quantities import BadQuantity
from mooring.cluster.apiserver.schema import ANY, JSON_SCHEMA, VALUE_TYPES, Schema

_NUMBERS: Final = ("int32", "int64", "intorstring")
_TIMES: Final = ("time", "microtime")


def type_of(schema: Schema) -> Any:
    """The type that msgspec decodes: plain dictionaries whose fields may be null."""
    match schema.form:
        case "struct":
            return _struct(schema.name)
        case "list":
            return list.__class_getitem__(type_of(schema.items))
        case "map":
            return dict.__class_getitem__((str, type_of(schema.items)))
        case "value":
            return VALUE_TYPES[schema.name].python
    return Any


def without_nulls(value: Any, schema: Schema) -> Any:
    """As Go decodes: a null field is absent, a null element is empty."""
    if isinstance(value, dict):
        if schema.form == "map":
            return {key: _element(part, schema.items) for key, part in value.items()}
        return {
            key: without_nulls(part, schema.at(key) or ANY)
            for key, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [_element(part, schema.items) for part in value]
    return value


def _element(value: Any, schema: Schema) -> Any:
    if value is not None:
        return without_nulls(value, schema)
    if schema.form == "value":
        return VALUE_TYPES[schema.name].zero
    return {"struct": {}, "map": {}, "list": []}.get(schema.form)


def _or_none(schema: Schema) -> Any:
    return Any if schema.form == "any" else type_of(schema) | None


def is_recursive(schema: Schema) -> bool:
    """Whether a type contains itself: msgspec is told less of it, `fitted` does the rest."""
    return schema.name.startswith("apiextensions.")


def fitted(value: Any, schema: Schema) -> Any:
    """The known fields of a value without nulls; ValueError if a type does not match."""
    if said := next(_type_errors(value, schema, "", ""), ""):
        raise ValueError(said)
    return _known(value, schema)


def _known(value: Any, schema: Schema) -> Any:
    schema = schema.of(value)
    if isinstance(value, list):
        return [_known(part, schema.items) for part in value]
    if not isinstance(value, dict) or schema.form == "any":
        return value
    return {
        key: _known(part, within)
        for key, part in value.items()
        if (within := schema.at(key)) is not None and not _is_left_out(part, within, schema)
    }


def _is_left_out(value: Any, schema: Schema, parent: Schema) -> bool:
    """JSON schemas are written without empty lists and maps."""
    return parent.name == JSON_SCHEMA and schema.form in ("list", "map") and not value


@cache
def _struct(name: str) -> Any:
    if name == JSON_SCHEMA:
        return dict[str, Any]
    schema = Schema(form="struct", name=name)
    fields = {field: _or_none(inner) for field, inner in schema.fields.items()}
    return TypedDict(name.replace(".", "_"), fields, total=False)  # type: ignore[operator] # mypy wants literals


def explain_type_error(error: msgspec.ValidationError, value: Any, schema: Schema) -> str:
    """The message of Go's decoder, which names the struct and the path of the field."""
    return next(_type_errors(value, schema, "", ""), str(error))


def _type_errors(value: Any, schema: Schema, struct: str, path: str) -> Iterator[str]:
    schema = schema.of(value)
    if value is None or schema.form == "any":
        return  # Go accepts null for every type
    if schema.form == "list" and isinstance(value, list):
        for inner in value:
            yield from _type_errors(inner, schema.items, struct, path)
    elif schema.form == "map" and isinstance(value, dict):
        for inner in value.values():
            yield from _type_errors(inner, schema.items, struct, path)
    elif schema.form == "struct" and isinstance(value, dict):
        name = schema.name.rpartition(".")[2]
        for field, within in schema.fields.items():
            place = f"{path}.{field}" if path else field
            yield from _type_errors(value.get(field), within, name, place)
    elif schema.form != "value" or not _has_type(value, schema.name):
        yield _type_error(value, schema, struct, path)


def _has_type(value: Any, name: str) -> bool:
    try:
        msgspec.convert(value, VALUE_TYPES[name].python)
    except msgspec.ValidationError:
        return False
    return True


def _type_error(value: Any, schema: Schema, struct: str, path: str) -> str:
    if schema.name == "quantity":
        return str(BadQuantity())
    if schema.name in _TIMES and isinstance(value, str):
        why = "expected an RFC 3339 time such as 2024-05-01T12:00:00Z"
        return f'parsing time {shown(value)} as "2006-01-02T15:04:05Z07:00": {why}'
    kind = go_kind(value)
    if kind == "number" and schema.name in _NUMBERS:
        kind = f"number {value}"
    where = f"Go struct field {struct}.{path}"
    return f"json: cannot unmarshal {kind} into {where} of type {_go_type(schema)}"


def _go_type(schema: Schema) -> str:
    match schema.form:
        case "list":
            return f"[]{_go_type(schema.items)}"
        case "map":
            is_resources = schema.items.name == "quantity"
            return "v1.ResourceList" if is_resources else f"map[string]{_go_type(schema.items)}"
        case "struct":
            return ".".join(schema.name.split(".")[-2:])
        case "value":
            return VALUE_TYPES[schema.name].go_name
    return "interface {}"
