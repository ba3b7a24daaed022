"""The validation of values against a JSON schema, with kube-apiserver's messages.

A value of a wrong type is still held against the rules for the type that it has, as the real
server does. `<nil>` is the field of messages about several fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from mooring.cluster.apiserver.customresources.formats import FORMATS
from mooring.cluster.apiserver.customresources.regular_expressions import searches
from mooring.cluster.apiserver.customresources.structural import EMBEDDED, INT_OR_STRING
from mooring.cluster.apiserver.errors import (
    ErrorList,
    FieldError,
    invalid_value,
    required,
    shown,
    unsupported,
)
from mooring.cluster.apiserver.store import Object

_NO_FIELD: Final = "<nil>"
_TYPE_INVALID: Final = "FieldValueTypeInvalid"
_INT32: Final = 2**31
_INT64: Final = 2**63


def validate(value: Any, schema: Object, field: str = "", name: str | None = None) -> ErrorList:
    """What is invalid; `field` is its place, `name` how messages call it if that differs."""
    name = field if name is None else name
    return list(_Check(field, name).value(value, schema, ""))


class _Check:
    """One validation: fields are named from a place, messages from a perhaps shorter one."""

    def __init__(self, field: str, name: str) -> None:
        self._field = field
        self._name = name

    def _at(self, path: str) -> tuple[str, str]:
        return _joined(self._field, path), _joined(self._name, path)

    def value(self, value: Any, schema: Object, path: str) -> Iterator[FieldError]:
        if value is None and schema.get("nullable"):
            return
        yield from self._type(value, schema, path)
        if (enum := schema.get("enum")) and not any(_same(value, one) for one in enum):
            field, _ = self._at(path)
            words = [one if isinstance(one, str) else shown(one) for one in enum]
            yield unsupported(field, value, words)
        if isinstance(value, bool) or value is None:
            pass
        elif isinstance(value, int | float):
            is_long = not -_INT64 <= value < 2 * _INT64  # Go reads such numbers as floats
            yield from self._number(float(value) if is_long else value, schema, path)
        elif isinstance(value, str):
            yield from self._text(value, schema, path)
        elif isinstance(value, list):
            yield from self._list(value, schema, path)
        elif isinstance(value, dict):
            yield from self._map(value, schema, path)
        yield from self._junctors(value, schema, path)

    # --- types and numbers -----------------------------------------------------------------------

    def _type(self, value: Any, schema: Object, path: str) -> Iterator[FieldError]:
        wanted = [schema["type"]] if schema.get("type") else []
        if schema.get(INT_OR_STRING):
            wanted = ["integer", "string"]
        kind = kind_of(value)
        if not wanted or kind in wanted or (kind == "integer" and "number" in wanted):
            return
        field, name = self._at(path)
        why = f'{name} in body must be of type {",".join(wanted)}: "{kind}"'
        yield FieldError(field, f'Invalid value: "{kind}": {why}', _TYPE_INVALID)

    def _number(self, value: float, schema: Object, path: str) -> Iterator[FieldError]:
        field, name = self._at(path)
        form = schema.get("format", "")
        if schema.get("type") == "integer" and not _fits(value, form):
            what = f"integer with format {form}" if form in _RANGES else "integer (default format)"
            yield _general(f"Checked value must be of type {what} in {name}")
        if (factor := schema.get("multipleOf")) and not _is_multiple(value, factor):
            why = f"{name} in body should be a multiple of {_plain(factor)}"
            yield invalid_value(field, value, why)
        if (most := schema.get("maximum")) is not None:
            is_open = bool(schema.get("exclusiveMaximum"))
            if value > most or (is_open and value == most):
                word = "less than" if is_open else "less than or equal to"
                yield invalid_value(field, value, f"{name} in body should be {word} {_plain(most)}")
        if (least := schema.get("minimum")) is not None:
            is_open = bool(schema.get("exclusiveMinimum"))
            if value < least or (is_open and value == least):
                word = "greater than" if is_open else "greater than or equal to"
                why = f"{name} in body should be {word} {_plain(least)}"
                yield invalid_value(field, value, why)

    # --- strings, lists and maps -----------------------------------------------------------------

    def _text(self, value: str, schema: Object, path: str) -> Iterator[FieldError]:
        field, name = self._at(path)
        most, least = schema.get("maxLength"), schema.get("minLength")
        if most is not None and len(value) > most:
            why = f"Too long: may not be more than {most} bytes"
            yield FieldError(field, why, "FieldValueTooLong")
        if least is not None and len(value) < least:
            why = f"{name} in body should be at least {least} chars long"
            yield invalid_value(field, value, why)
        if (pattern := schema.get("pattern")) and not searches(pattern, value):
            yield invalid_value(field, value, f"{name} in body should match '{pattern}'")
        form = schema.get("format", "")
        if form in FORMATS and not FORMATS[form](value):
            why = f"{name} in body must be of type {form}: {shown(value)}"
            yield FieldError(field, f"Invalid value: {shown(value)}: {why}", _TYPE_INVALID)

    def _size(self, size: int, of: str, schema: Object, path: str) -> Iterator[FieldError]:
        field, name = self._at(path)
        most, least = schema.get(f"max{of}"), schema.get(f"min{of}")
        if most is not None and size > most:
            yield _too_many(field, size, most)
        if least is not None and size < least:
            why = f"{name} in body should have at least {least} {of.lower()}"
            yield invalid_value(field, size, why)

    def _list(self, value: list[Any], schema: Object, path: str) -> Iterator[FieldError]:
        yield from self._size(len(value), "Items", schema, path)
        if isinstance(items := schema.get("items"), dict):
            for index, part in enumerate(value):
                yield from self.value(part, items, f"{path}[{index}]")

    def _map(self, value: Object, schema: Object, path: str) -> Iterator[FieldError]:
        yield from self._size(len(value), "Properties", schema, path)
        field, name = self._at(path)
        wanted = list(schema.get("required") or ())
        if schema.get(EMBEDDED):
            wanted += ["apiVersion", "kind"]
        for one in wanted:
            if one not in value:
                yield required(_joined(field, one))
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        for key, part in value.items():
            place = _joined(path, key)
            if key in properties:
                yield from self.value(part, properties[key], place)
            elif isinstance(more, dict):
                yield from self.value(part, more, place)
            elif more is False:
                why = f"{_joined(name, key)} in body is a forbidden property"
                yield invalid_value(field, key, why)

    # --- schemas that must, or must not, hold ----------------------------------------------------

    def _junctors(self, value: Any, schema: Object, path: str) -> Iterator[FieldError]:
        _, name = self._at(path)
        if some := schema.get("anyOf"):
            found = [list(self.value(value, one, path)) for one in some]
            if all(found):
                yield _general(f'"{name}" must validate at least one schema (anyOf)')
                yield from found[0]
        if one_of := schema.get("oneOf"):
            found = [list(self.value(value, one, path)) for one in one_of]
            count = sum(not errors for errors in found)
            if count != 1:
                told = f"Found {count} valid alternatives" if count else "Found none valid"
                why = f'"{name}" must validate one and only one schema (oneOf). {told}'
                yield _general(why)
                if not count:
                    yield from found[0]
        if every := schema.get("allOf"):
            found = [list(self.value(value, one, path)) for one in every]
            if any(found):
                for errors in found:
                    yield from errors
                rest = ". None validated" if all(found) else ""
                yield _general(f'"{name}" must validate all the schemas (allOf){rest}')
        if (never := schema.get("not")) is not None and not any(self.value(value, never, path)):
            yield _general(f'"{name}" must not validate the schema (not)')


# --- helpers --------------------------------------------------------------------------------------

_RANGES: Final = {
    "int32": (-_INT32, _INT32 - 1),
    "uint32": (0, 2 * _INT32 - 1),
    "int64": (-_INT64, _INT64 - 1),
    "uint64": (0, 2 * _INT64 - 1),
}


def kind_of(value: Any) -> str:
    """The JSON type of a value; a number without a fraction is an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if -_INT64 <= value < 2 * _INT64 else "number"
        case float():
            return "integer" if value.is_integer() and abs(value) < _INT64 else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _fits(value: float, form: str) -> bool:
    if isinstance(value, float) and not value.is_integer():
        return False
    low, high = _RANGES.get(form, _RANGES["int64"])
    return low <= value <= high


def _is_multiple(value: float, factor: float) -> bool:
    rest = math.fmod(value, factor)
    return rest == 0 or math.isclose(abs(rest), abs(factor), rel_tol=1e-9)


def _plain(number: float) -> str:
    """As Go prints a float: without a fraction that is zero."""
    if float(number).is_integer() and abs(number) < 1e21:
        return str(int(number))
    return str(number)


def _same(value: Any, other: Any) -> bool:
    return (
        type(value) is type(other) and value == other
        if isinstance(value, bool)
        else (value == other and not isinstance(other, bool))
    )


def _too_many(field: str, count: int, most: int) -> FieldError:
    message = f"Too many: {count}: must have at most {most} items"
    return FieldError(field, message, "FieldValueTooMany")


def _general(why: str) -> FieldError:
    return FieldError(_NO_FIELD, f'Invalid value: "": {why}')


def _joined(path: str, name: str) -> str:
    if not path or name.startswith("["):
        return f"{path}{name}"
    return f"{path}.{name}" if name else path
