"""The schemas of the kinds: their fields, and how lists and maps are merged.

The data is in `schema.txt`, generated from a real server. Patches, server-side apply, field
validation and the OpenAPI documents use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

SCHEMA_FILE: Final = Path(__file__).with_name("schema.txt")

Form = Literal["value", "struct", "list", "map", "any"]


class Key(msgspec.Struct, frozen=True):
    """A field that identifies elements of a list; without a default it may be missing."""

    name: str
    default: str | int | None


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of one value of an object."""

    form: Form
    name: str = ""  # of the struct or of the value: string, int32, time, ...
    element: Schema | None = None  # of a list or a map
    is_atomic: bool = False  # replaced as a whole by an apply
    keys: tuple[Key, ...] = ()  # of a list whose elements are merged; none for a set
    strategies: tuple[str, ...] = ()  # of strategic merge patches: merge, replace, retainKeys
    merge_key: str = ""  # of strategic merge patches; none for a set
    is_always_there: bool = False  # written even if it is not set
    members: dict[str, Schema] | None = None  # the fields of a struct that is not in schema.txt

    @property
    def fields(self) -> dict[str, Schema]:
        """The fields of a struct."""
        return all_types()[self.name].fields if self.members is None else self.members

    def at(self, name: str) -> Schema | None:
        """The schema under a name in a struct or a map; None for an unknown field."""
        if self.form == "struct":
            return self.fields.get(name) or self.element
        return self.items

    def of(self, value: Any) -> Schema:
        """The schema of this very value, where it may be a JSON schema or something else."""
        if self.name not in _OR_SCHEMA or not isinstance(value, dict | list):
            return self
        one = Schema(form="struct", name=JSON_SCHEMA)
        return one if isinstance(value, dict) else Schema(form="list", element=one)

    @property
    def items(self) -> Schema:
        """The schema of the elements of a list or a map."""
        return self.element or ANY


class Type(msgspec.Struct, frozen=True):
    """A struct and its fields."""

    name: str  # as in schema.txt: core.v1.Pod
    fields: dict[str, Schema]
    is_atomic: bool = False


ANY: Final = Schema(form="any")


class ValueType(msgspec.Struct, frozen=True):
    """A type of single values."""

    python: Any  # as msgspec checks it
    zero: Any
    go_name: str
    openapi: Mapping[str, Any]


_TEXT: Final = {"type": "string"}
_TIME: Final = {**_TEXT, "format": "date-time"}
_INT32: Final = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_DATE: Final = (  # of the years 1 to 9999, and with leap years
    r"(?!0000)(?:"
    r"[0-9]{4}-(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|[0-9]{4}-(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|[0-9]{4}-02-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_RFC3339: Final = Annotated[
    str,
    msgspec.Meta(pattern=rf"\A{_DATE}T{_CLOCK}:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-]{_CLOCK})\Z"),
]
_NUMBER_OR_TEXT: Final = {"format": "int-or-string", "oneOf": [{"type": "integer"}, _TEXT]}
VALUE_TYPES: Final[Mapping[str, ValueType]] = {
    "string": ValueType(str, "", "string", _TEXT),
    "boolean": ValueType(bool, False, "bool", {"type": "boolean"}),
    "int32": ValueType(_INT32, 0, "int32", {"type": "integer", "format": "int32"}),
    "int64": ValueType(int, 0, "int64", {"type": "integer", "format": "int64"}),
    "double": ValueType(float, 0.0, "float64", {"type": "number", "format": "double"}),
    "bytes": ValueType(str, "", "[]uint8", {**_TEXT, "format": "byte"}),
    "time": ValueType(_RFC3339, "", "time", _TIME),
    "microtime": ValueType(_RFC3339, "", "microtime", _TIME),
    "quantity": ValueType(
        str | int | float, "0", "quantity", {"oneOf": [_TEXT, {"type": "number"}]}
    ),
    "intorstring": ValueType(int | str, 0, "int32", _NUMBER_OR_TEXT),
    # Of a CustomResourceDefinition: a JSON schema, or a list of them, or a boolean.
    "schemaorlist": ValueType(Any, None, "v1.JSONSchemaPropsOrArray", {}),
    "schemaorbool": ValueType(Any, None, "v1.JSONSchemaPropsOrBool", {}),
}
JSON_SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"
_OR_SCHEMA: Final = frozenset(("schemaorlist", "schemaorbool"))


def schema_of(api_version: str, kind: str) -> Schema | None:
    """The schema of a kind; None if it is unknown."""
    group, _, version = api_version.rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    return Schema(form="struct", name=name) if name in all_types() else None


def empty_object(schema: Schema) -> dict[str, Any]:
    """An object with nothing set: its fields have no owner."""
    return {
        name: empty_object(field) if field.form == "struct" else None
        for name, field in schema.fields.items()
        if field.is_always_there
    }


@cache
def all_types() -> dict[str, Type]:
    """Every type, by name."""
    found: dict[str, Type] = {}
    fields: dict[str, Schema] = {}
    lines = SCHEMA_FILE.read_text().splitlines()
    atomic = {line.split()[0] for line in lines if line.endswith(" atomic") and line[0] != " "}
    for line in lines:
        if line.startswith("#"):
            continue
        name, *rest = line.split()
        if line.startswith("  "):
            fields[name] = _schema(rest[0], rest[1:], atomic)
        else:
            fields = {}
            found[name] = Type(name, fields, name in atomic)
    return found


def _schema(text: str, marks: list[str], atomic: set[str]) -> Schema:
    bare = _bare(text, atomic)
    if not marks:
        return bare
    changes: dict[str, Any] = {}
    for mark in marks:
        word, _, value = mark.partition("=")
        if word == "map":
            changes.update(is_atomic=False, keys=tuple(_key(part) for part in value.split(",")))
        elif word in ("set", "granular"):
            changes["is_atomic"] = False
        elif word == "atomic":
            changes["is_atomic"] = True
        elif word == "always":
            changes["is_always_there"] = True
        else:
            changes["strategies"] = (*changes.get("strategies", ()), word)
            changes["merge_key"] = changes.get("merge_key") or value
    return msgspec.structs.replace(bare, **changes)


def _bare(text: str, atomic: set[str]) -> Schema:
    if text.startswith("["):
        return Schema(form="list", element=_bare(text[1:-1], atomic), is_atomic=True)
    if text.startswith("{"):
        return Schema(form="map", element=_bare(text[1:-1], atomic))
    if text == "any":
        return ANY
    if text in VALUE_TYPES:
        return Schema(form="value", name=text)
    return Schema(form="struct", name=text, is_atomic=text in atomic)


def _key(text: str) -> Key:
    if text.endswith("?"):
        return Key(text[:-1], None)
    name, _, default = text.partition("=")
    return Key(name, int(default) if default.isdecimal() else default)
