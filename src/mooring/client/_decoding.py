"""Decodes watch events and objects; an object that cannot be decoded does not stop the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

import msgspec

from mooring.api.codec import DecodeError, decode
from mooring.api.meta import Object, ObjectMeta
from mooring.api.unreadable import NOT_JSON, why_unreadable
from mooring.client import paths
from mooring.client.errors import Garbled, status_error_of_event
from mooring.client.transport import MAX_ANSWER

log = logging.getLogger(__name__)

O = TypeVar("O", bound=Object)  # noqa: E741 - an object

OnRead = Callable[[O, msgspec.Raw], None]
"""Called with every decoded object and its JSON."""

BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Bare(msgspec.Struct):
    """What is read of a bookmark, and of an object that cannot be decoded."""

    metadata: _Meta


_read_event: Final = msgspec.json.Decoder(WatchEvent).decode
_read_bare: Final = msgspec.json.Decoder(_Bare).decode


def read_event(line: bytes) -> WatchEvent:
    """The event of a line. Raises the Status of an ERROR event."""
    try:
        event = _read_event(line)
        if event.type == _ERROR:
            raise status_error_of_event(msgspec.json.decode(event.object, type=dict))
    except NOT_JSON as error:
        raise _garbled(line, error) from error
    return event


def bookmarked(event: WatchEvent) -> str:
    """The resourceVersion of a bookmark."""
    try:
        return _read_bare(event.object).metadata.resource_version
    except NOT_JSON as error:
        raise _garbled(bytes(event.object), error) from error


def _garbled(data: bytes, error: Exception) -> Garbled:
    shown = data[:80].decode(errors="replace")
    return Garbled(f"cannot read an event: {why_unreadable(error)}: {shown}")


class Lines:
    """Cuts chunks into lines; the parts of a long line are joined once, not for each chunk."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0  # bytes of the pieces

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete now. Raises `Garbled` if one becomes too long."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
            self._length = 0
        if rest:
            self._pieces.append(rest)
            self._length += len(rest)
            if self._length > MAX_ANSWER:
                raise Garbled(f"an event is longer than {MAX_ANSWER} bytes")
        return lines


class Reader(Generic[O]):
    """Decodes objects of one kind; logs once for each object that it cannot decode."""

    def __init__(self, kind: type[O], on_read: OnRead[O] | None = None) -> None:
        self.kind: type[O] = kind
        self.resource: str = paths.resource_of(kind)  # as RBAC messages spell it
        if group := paths.group_of(kind):
            self.resource += f".{group}"
        self.unread: dict[str, str] = {}  # key -> why it could not be decoded
        self.keeps_json: bool = on_read is not None
        self._on_read = on_read

    def read(self, raw: msgspec.Raw) -> tuple[O | None, bool]:
        """The object and True; or False with its metadata alone, or None, if it is undecodable."""
        try:
            value = decode(raw, self.kind)
        except Exception as error:  # one object must not stop the others
            return self._read_bare(raw, error), False
        if self.unread:
            self.unread.pop(value.key, None)
        if self._on_read is not None:
            self._on_read(value, raw)
        return value, True

    def forget(self, key: str) -> None:
        self.unread.pop(key, None)

    def forget_all_but(self, keys: Iterable[str]) -> None:
        self.unread = {key: self.unread[key] for key in keys if key in self.unread}

    def _read_bare(self, raw: msgspec.Raw, error: Exception) -> O | None:
        value: O | None = None
        try:
            meta = _read_bare(raw).metadata
        except NOT_JSON:  # the first error says more
            key = ""
        else:
            value = self.kind(metadata=ObjectMeta(**msgspec.structs.asdict(meta)))
            key = value.key
        why = str(error) if isinstance(error, DecodeError) else f"{type(error).__name__}: {error}"
        if self.unread.get(key) != why:
            self.unread[key] = why
            extra = {"resource": self.resource, "object": key, "reason": why}
            log.error("cannot read an object, keeping what is known of it", extra=extra)
        return value


def is_older(version: str, than: str) -> bool:
    """Whether one resourceVersion of a kind is known to be older than another.

    Conforming servers (KEP-5504) give growing numbers without leading zeros, so that the longer is
    the greater. Of other versions nothing is known, and only the order of events counts.
    """
    if not (_is_number(version) and _is_number(than)):
        return False
    return (len(version), version) < (len(than), than)


def _is_number(version: str) -> bool:
    return version.isdecimal() and version.isascii() and version[0] != "0"
