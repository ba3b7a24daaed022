"""The events of a watch, in the two forms in which a server tells them: JSON and protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from mooring.api import protobuf
from mooring.api.codec import DecodeError
from mooring.api.meta import Object
from mooring.api.unreadable import NOT_JSON, why_unreadable
from mooring.client._decoding import BareObject, O, Reader, UnreadableProtobuf
from mooring.client.errors import Garbled, status_error_of_event
from mooring.client.transport import MAX_ANSWER

BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"
_SIZE: Final = 4  # bytes before an event in protobuf, with its length

Told = TypeVar("Told", bound=Object, covariant=True)


class Events(Protocol[Told]):
    """One form of events, as one watch tells them; the parts of a long one are joined once."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that are complete now, still encoded; an empty one means nothing."""
        ...

    def read(self, data: bytes) -> tuple[str, Any]:
        """The type and the object of an event. Raises the Status of an ERROR event."""
        ...

    def version(self, bookmark: Any) -> str:
        """The resourceVersion of a bookmark."""
        ...

    def decode(self, encoded: Any) -> tuple[Told | None, bool]:
        """As `Reader.read`."""
        ...


def events_of(headers: Mapping[str, str], reader: Reader[O]) -> Events[O]:
    """The form that the headers of an answer name, if it was asked for."""
    if reader.in_protobuf and headers.get("content-type", "").startswith(protobuf.MEDIA_TYPE):
        return ProtobufEvents(reader)
    return JsonEvents(reader)


class _JsonEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_read_event: Final = msgspec.json.Decoder(_JsonEvent).decode
_read_bare: Final = msgspec.json.Decoder(BareObject).decode


class JsonEvents(Generic[O]):
    """A line of JSON for each event. Raises `Garbled`."""

    def __init__(self, reader: Reader[O]) -> None:
        self.decode = reader.read
        self._pieces: list[bytes] = []
        self._length = 0  # bytes of the pieces

    def feed(self, chunk: bytes) -> list[bytes]:
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

    def read(self, data: bytes) -> tuple[str, msgspec.Raw]:
        try:
            event = _read_event(data)
            if event.type == _ERROR:
                raise status_error_of_event(msgspec.json.decode(event.object, type=dict))
        except NOT_JSON as error:
            raise _garbled(data, error) from error
        return event.type, event.object

    def version(self, bookmark: msgspec.Raw) -> str:
        try:
            return _read_bare(bookmark).metadata.resource_version
        except NOT_JSON as error:
            raise _garbled(bytes(bookmark), error) from error


def _garbled(data: bytes, error: Exception) -> Garbled:
    shown = data[:80].decode(errors="replace")
    return Garbled(f"cannot read an event: {why_unreadable(error)}: {shown}")


class ProtobufEvents(Generic[O]):
    """Four bytes with the length before each event. Raises `UnreadableProtobuf`."""

    def __init__(self, reader: Reader[O]) -> None:
        self._reader = reader
        self._pieces: list[bytes] = []
        self._length = 0  # bytes of the pieces
        self._wanted = _SIZE  # bytes, before which there is nothing to do

    def feed(self, chunk: bytes) -> list[bytes]:
        self._pieces.append(chunk)
        self._length += len(chunk)
        if self._length < self._wanted:
            return []
        data = b"".join(self._pieces)
        events: list[bytes] = []
        at, end, self._wanted = 0, len(data), _SIZE
        while end - at >= _SIZE:
            stop = at + _SIZE + int.from_bytes(data[at : at + _SIZE], "big")
            if stop - at > MAX_ANSWER:
                raise UnreadableProtobuf(f"an event is longer than {MAX_ANSWER} bytes")
            if stop > end:
                self._wanted = stop - at
                break
            events.append(data[at + _SIZE : stop])
            at = stop
        self._pieces = [data[at:]]
        self._length = end - at
        return events

    def read(self, data: bytes) -> tuple[str, bytes]:
        try:
            type_, encoded = protobuf.read_event(data)
            if type_ == _ERROR:
                raise status_error_of_event(protobuf.decode_status(encoded))
        except DecodeError as error:
            raise UnreadableProtobuf(str(error)) from error
        return type_, encoded

    def version(self, bookmark: bytes) -> str:
        return self._reader.read_protobuf(bookmark).metadata.resource_version

    def decode(self, encoded: bytes) -> tuple[O | None, bool]:
        return self._reader.read_protobuf(encoded), True
