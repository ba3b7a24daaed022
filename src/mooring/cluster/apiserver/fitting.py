"""Which types the fields of objects have, and what is said about values of other types.

`schema.py` knows the shapes; msgspec checks them when they are given to it as types.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, TypedDict

import msgspec

from mooring.cluster.apiserver._gotext import go_kind
from mooring.cluster.apiserver.quantities import BadQuantity
from mooring.cluster.apiserver.schema import ANY, Shape

_INT32: Final = msgspec.Meta(ge=-(2**31), le=2**31 - 1)
_VALUES: Final[dict[str, Any]] = {
    "string": str,
    "boolean": bool,
    "int32": Annotated[int, _INT32],
    "int64": int,
    "double": float,
    "bytes": str,
    "time": str,
    "microtime": str,
    "quantity": str | int | float,
    "intorstring": int | str,
}
_EMPTY: Final[dict[str, Any]] = {
    "struct": dict,
    "map": dict,
    "list": list,
    "boolean": False,
    "int32": 0,
    "int64": 0,
    "double": 0.0,
    "quantity": "0",
    "intorstring": 0,
}
_NUMBERS: Final = ("int32", "int64", "intorstring")
_GO_NAMES: Final = {
    "boolean": "bool",
    "bytes": "[]uint8",
    "double": "float64",
    "intorstring": "int32",
}


def type_of(shape: Shape) -> Any:
    """What msgspec is to decode: plain dictionaries in which fields may be null."""
    match shape.form:
        case "struct":
            return _struct(shape.name)
        case "list":
            return list.__class_getitem__(type_of(shape.items))
        case "map":
            return dict.__class_getitem__((str, type_of(shape.items)))
        case "value":
            return _VALUES[shape.name]
    return Any


def without_nulls(value: Any, shape: Shape) -> Any:
    """As Go decodes: a field that is null was never there, an element that is null is empty."""
    if isinstance(value, dict):
        if shape.form == "map":
            return {key: _element(part, shape.items) for key, part in value.items()}
        return {
            key: without_nulls(part, shape.at(key) or ANY)
            for key, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [_element(part, shape.items) for part in value]
    return value


def _element(value: Any, shape: Shape) -> Any:
    if value is not None:
        return without_nulls(value, shape)
    empty: Any = _EMPTY.get(shape.name, "") if shape.form == "value" else _EMPTY.get(shape.form)
    return empty() if callable(empty) else empty


def _or_none(shape: Shape) -> Any:
    return Any if shape.form == "any" else type_of(shape) | None


@cache
def _struct(name: str) -> Any:
    shape = Shape(form="struct", name=name)
    fields = {field: _or_none(inner) for field, inner in shape.fields.items()}
    return TypedDict(name.replace(".", "_"), fields, total=False)  # type: ignore[operator] # mypy wants literals


def explained(error: msgspec.ValidationError, value: Any, shape: Shape) -> str:
    """In the words of Go's decoder, which names the struct and the path of the field."""
    return next(_misfits(value, shape, "", ""), str(error))


def _misfits(value: Any, shape: Shape, struct: str, path: str) -> Iterator[str]:
    if value is None or shape.form == "any":
        return  # Go takes null for anything
    if shape.form == "list" and isinstance(value, list):
        for inner in value:
            yield from _misfits(inner, shape.items, struct, path)
    elif shape.form == "map" and isinstance(value, dict):
        for inner in value.values():
            yield from _misfits(inner, shape.items, struct, path)
    elif shape.form == "struct" and isinstance(value, dict):
        name = shape.name.rpartition(".")[2]
        for field, within in shape.fields.items():
            place = f"{path}.{field}" if path else field
            yield from _misfits(value.get(field), within, name, place)
    elif shape.form != "value" or not _suits(value, shape.name):
        yield _misfit(value, shape, struct, path)


def _suits(value: Any, name: str) -> bool:
    try:
        msgspec.convert(value, _VALUES[name])
    except msgspec.ValidationError:
        return False
    return True


def _misfit(value: Any, shape: Shape, struct: str, path: str) -> str:
    if shape.name == "quantity":
        return str(BadQuantity())
    kind = go_kind(value)
    if kind == "number" and shape.name in _NUMBERS:
        kind = f"number {value}"
    where = f"Go struct field {struct}.{path}"
    return f"json: cannot unmarshal {kind} into {where} of type {_go_type(shape)}"


def _go_type(shape: Shape) -> str:
    match shape.form:
        case "list":
            return f"[]{_go_type(shape.items)}"
        case "map":
            is_resources = shape.items.name == "quantity"
            return "v1.ResourceList" if is_resources else f"map[string]{_go_type(shape.items)}"
        case "struct":
            return ".".join(shape.name.split(".")[-2:])
        case "value":
            return _GO_NAMES.get(shape.name, shape.name)
    return "interface {}"
