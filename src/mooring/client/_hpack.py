"""Header fields of HTTP/2, compressed as RFC 7541 says. No I/O.

Both sides remember fields that were sent, in a table that drops the oldest; so all header blocks
of a connection have to pass through here, in the order in which they are sent or have arrived.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import Final

from mooring.client._hpack_tables import STATIC, unpacked

Field = tuple[str, str]
Sized = tuple[str, str, int]
"""A field and the bytes for which HPACK counts it."""

TABLE_SIZE: Final = 4096  # bytes, as HPACK counts them: of the table on either side

_OVERHEAD: Final = 32  # bytes by which a field counts for more than its letters
_KNOWN: Final = len(STATIC)
_NAME: Final = re.compile(r":?[!#$%&'*+.^_`|~0-9a-z-]+")
_BREAK: Final = re.compile(r"[\0\r\n]")
_MOST_DIGITS: Final = 4  # bytes after the first of a number; more than 256 MiB is nonsense


class Garbled(Exception):
    """A header block that is no HPACK, or holds what no header may; the state is lost with it."""


class Decoder:
    """What the server's header blocks say; no list of fields is longer than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._table: deque[Sized] = deque()  # the newest is the last
        self._size = 0
        self._size_limit = TABLE_SIZE

    def decode(self, block: bytes) -> list[Sized]:
        """The fields of one block. Raises `Garbled`."""
        try:
            return self._decode(block)
        except IndexError:
            raise Garbled(
                "a header block is cut off, or names a field which there is not"
            ) from None
        except ValueError as error:
            raise Garbled(str(error)) from None

    def _decode(self, block: bytes) -> list[Sized]:
        fields: list[Sized] = []
        table = self._table
        at, end, total = 0, len(block), 0
        while at < end:
            byte = block[at]
            at += 1
            if byte >= 0x80:
                index = byte & 0x7F
                if index == 0x7F:
                    index, at = _number(block, at, 0x7F)
                if index >= _KNOWN:
                    field = table[_KNOWN - 1 - index]
                elif index:
                    field = _STATIC_SIZED[index]
                else:
                    raise Garbled("a header block names field 0, which there is not")
            elif byte < 0x40 and byte & 0x20:
                at = self._resize(block, at, byte & 0x1F, is_first=not fields)
                continue
            else:
                mask = 0x3F if byte & 0x40 else 0x0F
                index = byte & mask
                if index == mask:
                    index, at = _number(block, at, mask)
                if index:
                    known = STATIC[index] if index < _KNOWN else table[_KNOWN - 1 - index]
                    name = known[0]
                else:
                    name, at = _string(block, at)
                    if not _NAME.fullmatch(name):
                        raise Garbled(f"{name[:60]!r} in the answer is no name for a header")
                value, at = _string(block, at)
                if _BREAK.search(value):
                    raise Garbled("a header of the answer holds a bare line break or a NUL")
                field = (name, value, len(name) + len(value) + _OVERHEAD)
                if byte & 0x40:
                    self._size += field[2]
                    table.append(field)
                    if self._size > self._size_limit:
                        self._evict()
            total += field[2]
            fields.append(field)
        if total > self._limit:
            raise Garbled(f"the headers of the answer are longer than {self._limit} bytes")
        return fields

    def _resize(self, block: bytes, at: int, size: int, *, is_first: bool) -> int:
        if size == 0x1F:
            size, at = _number(block, at, 0x1F)
        if size > TABLE_SIZE or not is_first:
            raise Garbled(f"a header block sets the size of the table to {size} where it may not")
        self._size_limit = size
        self._evict()
        return at

    def _evict(self) -> None:
        while self._size > self._size_limit:
            self._size -= self._table.popleft()[2]


class Encoder:
    """Header blocks for the server, out of fields that come again and again.

    What was encoded is the same bytes next time for as long as `version` is.
    """

    def __init__(self) -> None:
        self.version: int = 0
        self._table: deque[Field] = deque()
        self._numbers: dict[Field, int] = {}  # of those in the table, in the order of sending
        self._sent = 0  # fields that the table has ever taken
        self._size = 0
        self._size_limit = TABLE_SIZE
        self._is_resized = False

    def shrink(self, limit: int) -> None:
        """The server remembers no more than so many bytes; we never go up again."""
        if limit < self._size_limit:
            self._size_limit = limit
            self._is_resized = True
            self._evict()
            self.version += 1

    def encode(self, fields: Iterable[Field]) -> bytes:
        """These fields, remembered for the next time where they fit."""
        out = bytearray()
        if self._is_resized:
            self._is_resized = False
            self.version += 1
            _put_number(out, 0x20, 0x1F, self._size_limit)
        for field in fields:
            if field in _STATIC_FIELDS:
                out.append(0x80 | _STATIC_FIELDS[field])
            elif field in self._numbers:
                _put_number(out, 0x80, 0x7F, _KNOWN + self._sent - 1 - self._numbers[field])
            else:
                self._put_literal(out, field)
        return bytes(out)

    def _put_literal(self, out: bytearray, field: Field) -> None:
        name, value = field
        size = len(name) + len(value) + _OVERHEAD
        # A field that takes most of the table would push out all the others, each time anew.
        is_kept = size <= self._size_limit // 2
        flag, mask = (0x40, 0x3F) if is_kept else (0x00, 0x0F)
        _put_number(out, flag, mask, _STATIC_NAMES.get(name, 0))
        if name not in _STATIC_NAMES:
            _put_string(out, name)
        _put_string(out, value)
        if is_kept:
            self._table.append(field)
            self._numbers[field] = self._sent
            self._sent += 1
            self._size += size
            self._evict()
            self.version += 1

    def _evict(self) -> None:
        while self._size > self._size_limit:
            name, value = field = self._table.popleft()
            del self._numbers[field]
            self._size -= len(name) + len(value) + _OVERHEAD


def literal(name: bytes, value: bytes) -> bytes:
    """A field that nobody shall remember; the name is one of `PATH` and `CONTENT_LENGTH`."""
    length = len(value)
    if length < 0x7F:
        return name + _LENGTHS[length] + value
    out = bytearray(name)
    _put_number(out, 0x00, 0x7F, length)
    return bytes(out) + value


_STATIC_SIZED: Final = tuple(
    (name, value, len(name) + len(value) + _OVERHEAD) for name, value in STATIC
)
_STATIC_FIELDS: Final = {field: index for index, field in enumerate(STATIC) if field[1]}
_STATIC_NAMES: Final = {
    name: index for index, (name, _) in reversed(list(enumerate(STATIC))) if name
}  # the first of each name


def _number(block: bytes, at: int, base: int) -> tuple[int, int]:
    shift = 0
    for byte in block[at : at + _MOST_DIGITS]:
        at += 1
        base += (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return base, at
    raise Garbled("a header block holds a number that is too long, or cut off")


def _string(block: bytes, at: int) -> tuple[str, int]:
    first = block[at]
    length = first & 0x7F
    at += 1
    if length == 0x7F:
        length, at = _number(block, at, 0x7F)
    stop = at + length
    if stop > len(block):
        raise Garbled("a header block ends in the middle of a string")
    data = block[at:stop]
    return unpacked(data) if first >= 0x80 else data.decode("latin-1"), stop


def _put_number(out: bytearray, flag: int, mask: int, value: int) -> None:
    if value < mask:
        out.append(flag | value)
        return
    out.append(flag | mask)
    value -= mask
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_string(out: bytearray, text: str) -> None:
    data = text.encode("latin-1")
    _put_number(out, 0x00, 0x7F, len(data))
    out += data


def _unremembered(name: str) -> bytes:
    out = bytearray()
    _put_number(out, 0x00, 0x0F, _STATIC_NAMES[name])
    return bytes(out)


PATH: Final = _unremembered(":path")
CONTENT_LENGTH: Final = _unremembered("content-length")
_LENGTHS: Final = tuple(bytes((length,)) for length in range(0x7F))
