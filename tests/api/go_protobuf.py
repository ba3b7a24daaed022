"""Objects in protobuf as the generated code of Kubernetes writes them, from their JSON.

Fields in the order of their numbers; what is no pointer in Go is written even if it is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.api.meta import parse_time
from mooring.cluster.apiserver.protobuf import _numbers
from mooring.cluster.apiserver.schema import Schema, schema_of


def field(number: int, content: bytes | int) -> bytes:
    """A field of a message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def enveloped(kind: str, content: bytes) -> bytes:
    head = field(1, b"v1") + field(2, kind.encode())
    return b"k8s\0" + field(1, head) + field(2, content) + field(3, b"") + field(4, b"")


def encode_list(
    kind: str, items: Sequence[dict[str, Any] | bytes], version: str, token: str = ""
) -> bytes:
    """A list of objects, some of which may be encoded already."""
    meta = field(1, b"") + field(2, version.encode()) + field(3, token.encode())
    encoded = (item if isinstance(item, bytes) else encode(kind, item) for item in items)
    written = b"".join(field(2, item) for item in encoded)
    return enveloped(f"{kind}List", field(1, meta) + written)


def encode(kind: str, value: dict[str, Any]) -> bytes:
    """An object of the core group, without its envelope."""
    schema = schema_of("v1", kind)
    assert schema is not None
    return _message(schema.name, value)


def _message(name: str, value: dict[str, Any]) -> bytes:
    numbers: dict[int, Any] = _numbers()[name]
    written = bytearray()
    for number, about in sorted(numbers.items()):
        if isinstance(about, dict):
            inner = b"".join(
                _field(within, one, value.get(one.name)) for within, one in sorted(about.items())
            )
            written += field(number, inner)
        else:
            written += _field(number, about, value.get(about.name))
    return bytes(written)


def _field(number: int, about: Any, value: Any) -> bytes:
    schema: Schema = about.schema
    if schema.form == "list":
        return b"".join(field(number, _value(schema.items, one)) for one in value or ())
    if schema.form == "map":
        pairs = sorted((value or {}).items())
        entries = (field(1, key.encode()) + field(2, _value(schema.items, v)) for key, v in pairs)
        return b"".join(field(number, entry) for entry in entries)
    if value is None and about.is_pointer:
        return b""
    return field(number, _value(schema, value))


def _value(schema: Schema, value: Any) -> bytes | int:
    if schema.form == "struct":
        return _message(schema.name, value or {})
    if schema.form == "any":
        return b""
    match schema.name:
        case "int32" | "int64" | "boolean":
            return int(value or 0)
        case "time":
            return b"" if value is None else field(1, int(parse_time(value))) + field(2, 0)
        case "quantity":
            return field(1, str(value or "0").encode())
        case "intorstring":
            return field(1, int(isinstance(value, str))) + (
                field(3, value.encode()) if isinstance(value, str) else field(2, int(value or 0))
            )
        case "bytes":
            return b""
    return str(value or "").encode()
