"""Requests in protobuf, as kubectl and other Go programs send objects they create.

They accept JSON in responses, but always send protobuf: so requests are converted to JSON before
they are read. Field numbers are in `fieldnumbers.txt`, names and types in `schema.txt`.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from mooring.api.meta import format_time
from mooring.api.unreadable import why_unreadable
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.requests import JSON, MAX_NODES, ApiRequest
from mooring.cluster.apiserver.schema import JSON_SCHEMA, Schema, schema_of
from mooring.cluster.apiserver.store import Object

NUMBERS_FILE: Final = Path(__file__).with_name("fieldnumbers.txt")
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\0"  # before every object
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Wire = Iterator[tuple[int, Any]]


class _Field(msgspec.Struct, frozen=True):
    """A field in JSON that a number stands for."""

    name: str
    schema: Schema
    is_pointer: bool


# By field number: a field, or the fields of an embedded message, which JSON has inline.
Numbers = dict[int, "_Field | Numbers"]


def is_protobuf(request: ApiRequest) -> bool:
    return request.headers.get("content-type", "").startswith(PROTOBUF)


def as_json(request: ApiRequest) -> ApiRequest:
    """The request with its body in JSON; raises a bad request if it is unreadable."""
    if not is_protobuf(request):
        return request
    headers = {**request.headers, "content-type": JSON}
    body = msgspec.json.encode(decode_protobuf(request.body)) if request.body else b""
    return msgspec.structs.replace(request, headers=headers, body=body)


def decode_protobuf(body: bytes) -> Object:
    """An object, with the apiVersion and kind of its envelope."""
    try:
        return _Reader().object(body)
    except (ValueError, OverflowError, struct.error, RecursionError) as error:
        why = why_unreadable(error)
        raise bad_request(
            f"the object provided is unrecognized (must be of type protobuf): {why}"
        ) from error


class _Reader:
    """Reads one object; refuses more than `MAX_NODES` keys and values."""

    def __init__(self) -> None:
        self._left = MAX_NODES // 2  # fields

    def object(self, body: bytes) -> Object:
        if not body.startswith(_MAGIC):
            raise ValueError(
                "provided data does not appear to be a protobuf message, expected prefix"
            )
        envelope = dict(self._fields(body[len(_MAGIC) :]))
        said = {number: _text(value) for number, value in self._fields(envelope.get(1, b""))}
        api_version, kind = said.get(1, ""), said.get(2, "")
        # DeleteOptions carry the apiVersion of the object to delete.
        schema = schema_of("meta/v1" if kind == "DeleteOptions" else api_version, kind)
        if schema is None:
            raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
        value = self._message(envelope.get(2, b""), schema)
        return {"kind": kind, "apiVersion": api_version, **value}

    def _message(self, data: bytes, schema: Schema) -> Object:
        found: Object = {}
        self._read_into(found, data, _numbers()[schema.name])
        return found

    def _read_into(self, found: Object, data: bytes, numbers: Any) -> None:
        for number, raw in self._fields(data):
            field = numbers.get(number)
            if isinstance(field, dict):
                self._read_into(found, raw, field)
            elif field is not None:
                self._add(found, field, raw)

    def _add(self, found: Object, field: _Field, raw: Any) -> None:
        schema = field.schema
        if schema.form == "list":
            found.setdefault(field.name, []).append(self._value(raw, schema.items))
        elif schema.form == "map":
            pair = dict(self._fields(raw))
            key = _text(pair.get(1, b""))
            found.setdefault(field.name, {})[key] = self._value(pair.get(2, b""), schema.items)
        else:
            value = self._value(raw, schema)
            # Fields that are not pointers in Go are always sent: zero means unset.
            if value is not None and (field.is_pointer or value or schema.form == "struct"):
                found[field.name] = value

    def _value(self, raw: Any, schema: Schema) -> Any:
        match schema.form:
            case "struct":
                return self._message(raw, schema)
            case "list":  # in a map: a message of its own, with the elements in its first field
                return [self._value(element, schema.items) for _, element in self._fields(raw)]
            case "any":
                content = dict(self._fields(raw)).get(1)
                return msgspec.json.decode(content) if content else None
        match schema.name:
            case "int32" | "int64":
                return _signed(raw)
            case "boolean":
                return bool(_signed(raw))
            case "double":
                return struct.unpack("<d", _content(raw))[0]
            case "schemaorlist" | "schemaorbool":
                return self._schemas(raw, schema.name)
            case "bytes":
                return base64.b64encode(_content(raw)).decode()
            case "time" | "microtime":
                return self._time(raw, micros=schema.name == "microtime")
            case "quantity":
                return _text(dict(self._fields(raw)).get(1, b""))
            case "intorstring":
                parts = dict(self._fields(raw))
                if parts.get(1):
                    return _text(parts.get(3, b""))
                return _signed(parts.get(2, 0))
        return _text(raw)

    def _schemas(self, raw: Any, name: str) -> Any:
        """A JSON schema in a CustomResourceDefinition, or a list of them, or a boolean."""
        one = Schema(form="struct", name=JSON_SCHEMA)
        if name == "schemaorbool":
            parts = dict(self._fields(raw))
            return self._message(parts[2], one) if 2 in parts else bool(parts.get(1))
        found = [(number, self._message(part, one)) for number, part in self._fields(raw)]
        listed = [schema for number, schema in found if number == 2]
        return listed or (found[0][1] if found else None)

    def _time(self, raw: Any, *, micros: bool) -> str | None:
        parts = dict(self._fields(raw))
        if not parts:
            return None
        seconds = _signed(parts.get(1, 0)) + _signed(parts.get(2, 0)) / 1e9
        return format_time(seconds, micros=micros)

    def _fields(self, raw: Any) -> Wire:
        """The numbers and raw values of a message."""
        for field in _fields(raw):
            self._left -= 1
            if self._left < 0:
                raise ValueError(f"the object has more than {MAX_NODES} keys and values")
            yield field


def _signed(raw: Any) -> int:
    if not isinstance(raw, int):
        raise ValueError(f"proto: wrong wireType = {_BYTES}, expected a number")
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _text(raw: Any) -> str:
    return _content(raw).decode()


def _content(raw: Any) -> bytes:
    if not isinstance(raw, bytes):
        raise ValueError(f"proto: wrong wireType = {_VARINT}, expected bytes")
    return raw


# --- the wire -------------------------------------------------------------------------------------


def _fields(raw: Any) -> Wire:
    data = _content(raw)
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if kind == _BYTES:
            length, place = _varint(data, place)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"proto: wrong wireType = {kind}")
        if place + length > len(data):
            raise ValueError("unexpected EOF")
        yield number, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data):
            raise ValueError("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place
        shift += 7
        if shift > 63:
            raise ValueError("proto: integer overflow")


@cache
def _numbers() -> dict[str, Numbers]:
    """By type."""
    found: dict[str, Numbers] = {}
    for line in NUMBERS_FILE.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, *entries = line.split()
        schemas = Schema(form="struct", name=name).fields
        numbers: Numbers = {}
        for entry in entries:
            field, _, text = entry.partition("=")
            *outer, number = (int(one) for one in text.rstrip("*").split("."))
            within: Any = numbers
            for one in outer:
                within = within.setdefault(one, {})
            within[number] = _Field(field, schemas[field], text.endswith("*"))
        found[name] = numbers
    return found
