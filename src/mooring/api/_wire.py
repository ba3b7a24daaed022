"""Protobuf on the wire: the numbers of fields, with integers or bytes.

Whatever the bytes, nothing but what `UNREADABLE` lists is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

UNREADABLE: Final = (ValueError, IndexError, OverflowError)
"""What is raised for bytes that are no message: IndexError if they end too early."""

NUMBER, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types

MAGIC: Final = b"k8s\0"  # before every answer


def unwrapped(body: bytes) -> bytes:
    """The object inside of the envelope that says its kind."""
    if not body.startswith(MAGIC):
        raise ValueError("the first bytes are not those of Kubernetes' protobuf")
    at, stop = place(body, 2, len(MAGIC), len(body))
    return body[at:stop]


def place(data: bytes, number: int, at: int, end: int) -> tuple[int, int]:
    """Where the first value of a field of bytes begins and ends; what follows it is not read.

    Without such a field it is the empty place at the end.
    """
    while at < end:
        tag, at = varint(data, at)
        if tag >> 3 == number and tag & 7 != BYTES:
            raise ValueError("a number where bytes are expected")
        if tag & 7 == NUMBER:
            _, at = varint(data, at)
            continue
        size, at = sized(tag & 7, data, at)
        if at + size > end:
            raise IndexError
        if tag >> 3 == number:
            return at, at + size
        at += size
    return end, end


def fields(data: Any) -> Iterator[tuple[int, Any]]:
    """The numbers and values of a message: integers, or bytes."""
    for tag, _, at, stop in _places(content(data)):
        yield tag >> 3, varint(data, at)[0] if tag & 7 == NUMBER else data[at:stop]


def repeated(number: int, data: bytes) -> tuple[list[bytes], bytes]:
    """The values of a repeated field, and the other fields."""
    tag = number << 3 | BYTES
    values: list[bytes] = []
    others: list[bytes] = []
    for found, start, at, stop in _places(data):
        if found == tag:
            values.append(data[at:stop])
        else:
            others.append(data[start:stop])
    return values, b"".join(others)


def _places(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The tags of a message's fields, where each begins, where its value does, and its end."""
    at, end = 0, len(data)
    while at < end:
        start = at
        tag, at = varint(data, at)
        if tag & 7 == NUMBER:
            stop = varint(data, at)[1]
        else:
            size, at = sized(tag & 7, data, at)
            stop = at + size
            if stop > end:
                raise IndexError
        yield tag, start, at, stop
        at = stop


def sized(wire_type: int, data: bytes, at: int) -> tuple[int, int]:
    """How many bytes a field has that is no varint, and where they begin."""
    if wire_type == BYTES:
        return varint(data, at)
    if wire_type == FIXED64:
        return 8, at
    if wire_type == FIXED32:
        return 4, at
    raise ValueError(f"wire type {wire_type} is not used by Kubernetes")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends. Raises IndexError at the end of the data."""
    if data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def content(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where bytes are expected")
    return value


def text(value: Any) -> str:
    # Go's JSON has the same replacement for what is no UTF-8.
    return content(value).decode(errors="replace")


def signed(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError("bytes where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value
