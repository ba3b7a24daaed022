"""Frames of HTTP/2 (RFC 9113), as bytes and out of bytes. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

# Kinds of frames.
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

OF_CONNECTION: Final = frozenset({SETTINGS, PING, GOAWAY})  # never on a stream

# Flags.
END_STREAM: Final = 0x01
ACK: Final = 0x01
END_HEADERS: Final = 0x04
PADDED: Final = 0x08
PRIORITISED: Final = 0x20

# Settings.
HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

# Errors.
NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
FLOW_CONTROL_ERROR: Final = 3
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9

_ERRORS: Final[Mapping[int, str]] = {
    0: "no error",
    1: "protocol error",
    2: "internal error",
    3: "flow control error",
    4: "settings timeout",
    5: "stream closed",
    6: "frame size error",
    7: "refused stream",
    8: "cancelled",
    9: "compression error",
    10: "connect error",
    11: "enhance your calm",
    12: "inadequate security",
    13: "HTTP/1.1 required",
}

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SMALLEST_FRAME_LIMIT: Final = 16_384  # bytes; everybody takes frames of that size
LARGEST_FRAME_LIMIT: Final = 2**24 - 1  # bytes
LARGEST_NUMBER: Final = 2**31 - 1  # of a stream
LARGEST_WINDOW: Final = 2**31 - 1  # bytes
FIRST_WINDOW: Final = 65_535  # bytes, before anybody has said otherwise

Frame = tuple[int, int, int, bytes]
"""Kind, flags, number of the stream, payload."""

_HEAD: Final = struct.Struct(">HBBBL")  # the length is a number of three bytes
_SETTING: Final = struct.Struct(">HL")
_HEAD_SIZE: Final = 9  # bytes


class Violation(Exception):
    """The server breaks the rules of HTTP/2; the connection has to be given up."""

    def __init__(self, words: str, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(words)
        self.code: int = code


def error_words(code: int) -> str:
    return _ERRORS.get(code, f"error {code}")


class FrameReader:
    """Frames out of bytes as they arrive; cutting them elsewhere changes nothing."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now. Raises `Violation`."""
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        unpack = _HEAD.unpack_from
        while end - at >= _HEAD_SIZE:
            high, low, kind, flags, number = unpack(data, at)
            length = high << 8 | low
            if length > SMALLEST_FRAME_LIMIT:
                raise Violation(f"a frame is {length} bytes long", FRAME_SIZE_ERROR)
            start = at + _HEAD_SIZE
            stop = start + length
            if stop > end:
                break
            yield kind, flags, number & 0x7FFFFFFF, data[start:stop]
            at = stop
        self._rest = data[at:]


def frame_head(kind: int, flags: int, number: int, length: int) -> bytes:
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, number)


def frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    return frame_head(kind, flags, number, len(payload)) + payload


def settings(values: Mapping[int, int]) -> bytes:
    payload = b"".join(_SETTING.pack(name, value) for name, value in values.items())
    return frame(SETTINGS, 0, 0, payload)


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """Names and values. Raises `Violation`."""
    if len(payload) % _SETTING.size:
        raise Violation("SETTINGS are cut off", FRAME_SIZE_ERROR)
    yield from _SETTING.iter_unpack(payload)


def reset(number: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, number, code.to_bytes(4, "big"))


def window_update(number: int, size: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, number, size.to_bytes(4, "big"))


def goaway(code: int) -> bytes:
    return frame(GOAWAY, 0, 0, bytes(4) + code.to_bytes(4, "big"))


def header_frames(number: int, block: bytes, limit: int, *, is_all: bool) -> bytes:
    """A header block, cut into frames of `limit` bytes at most; `is_all`: no body follows."""
    last = END_STREAM if is_all else 0
    if len(block) <= limit:
        return frame_head(HEADERS, END_HEADERS | last, number, len(block)) + block
    out = [frame(HEADERS, last, number, block[:limit])]
    for at in range(limit, len(block), limit):
        flags = END_HEADERS if at + limit >= len(block) else 0
        out.append(frame(CONTINUATION, flags, number, block[at : at + limit]))
    return b"".join(out)


def number_in(payload: bytes) -> int:
    """What RST_STREAM and WINDOW_UPDATE hold. Raises `Violation`."""
    if len(payload) != 4:
        raise Violation("a frame has not the size of its kind", FRAME_SIZE_ERROR)
    return int.from_bytes(payload, "big")


def check_window(size: int) -> None:
    """Raises `Violation` for one that is wider than any may be."""
    if size > LARGEST_WINDOW:
        raise Violation(f"a window is {size} bytes wide", FLOW_CONTROL_ERROR)


def unpadded(flags: int, payload: bytes) -> bytes:
    """A payload without its padding, and without the priority before it. Raises `Violation`."""
    start, stop = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise Violation("a frame ends before its padding", FRAME_SIZE_ERROR)
        start = 1
        stop -= payload[0]
    if flags & PRIORITISED:
        start += 5
    if stop < start:
        raise Violation("a frame holds more padding than there is")
    return payload[start:stop]
