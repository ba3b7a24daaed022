"""Decodes objects; one that cannot be decoded does not stop the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

import msgspec

from mooring.api import protobuf
from mooring.api.codec import DecodeError, decode
from mooring.api.meta import Object, ObjectMeta
from mooring.api.unreadable import NOT_JSON
from mooring.client import paths

log = logging.getLogger(__name__)

O = TypeVar("O", bound=Object)  # noqa: E741 - an object

OnRead = Callable[[O, msgspec.Raw], None]
"""Called with every decoded object and its JSON."""


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class BareObject(msgspec.Struct):
    """What is read of a bookmark, and of an object that cannot be decoded."""

    metadata: _Meta


_read_bare: Final = msgspec.json.Decoder(BareObject).decode


class UnreadableProtobuf(Exception):
    """Something in protobuf cannot be read: JSON says what is wrong, and with which object."""


class Reader(Generic[O]):
    """Decodes objects of one kind; logs once for each object that it cannot decode."""

    def __init__(self, kind: type[O], on_read: OnRead[O] | None = None) -> None:
        self.kind: type[O] = kind
        self.resource: str = paths.resource_of(kind)  # as RBAC messages spell it
        if group := paths.group_of(kind):
            self.resource += f".{group}"
        self.unread: dict[str, str] = {}  # key -> why it could not be decoded
        self.keeps_json: bool = on_read is not None
        # Whether objects are asked for in protobuf. What is kept as JSON has to come as JSON.
        self.in_protobuf: bool = kind in protobuf.KINDS and not self.keeps_json
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

    def read_protobuf(self, data: bytes) -> O:
        """The object. Raises `UnreadableProtobuf`."""
        try:
            return protobuf.decode(data, self.kind)
        except Exception as error:
            raise UnreadableProtobuf(str(error)) from error

    def ask_for_json(self, error: Exception) -> None:
        """From now on, because of this error: JSON can be read object by object."""
        self.in_protobuf = False
        extra = {"resource": self.resource, "error": str(error)}
        log.warning("what came in protobuf cannot be read, asking for JSON", extra=extra)

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
