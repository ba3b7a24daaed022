"""An incremental parser of HTTP/1.1 responses. No I/O.

Strict about framing, because a wrong guess would give one request the response of another:
whatever is not clearly HTTP/1.1 is `Malformed`, and the connection is closed.
"""

from __future__ import annotations

import enum
import gzip
import io
import re
import zlib
from typing import Final

MAX_HEAD: Final = 64 * 1024  # bytes of a header block, or of the trailers
MAX_LINE: Final = 4 * 1024  # bytes of the line before a chunk

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS_LINE: Final = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
_SIZE_LINE: Final = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_BEGINNING: Final = b"HTTP/1."


class Malformed(Exception):
    """Not a complete response in HTTP/1.1; the message says what is wrong."""


class TooLong(Malformed):
    """The body, also unpacked, has more bytes than it may have."""


class _Phase(enum.IntEnum):
    HEAD = 0
    COUNTED = 1  # Content-Length says how much
    CHUNK_LINE = 2
    CHUNK_DATA = 3
    CHUNK_END = 4  # the line break after the data of a chunk
    TRAILERS = 5
    UNTIL_CLOSE = 6
    DONE = 7


# Plain names: an attribute of an enum costs a lookup, and these are compared for every chunk.
_HEAD, _COUNTED, _CHUNK_LINE, _CHUNK_DATA, _CHUNK_END, _TRAILERS, _UNTIL_CLOSE, _DONE = _Phase


class ResponseParser:
    """One response, fed with bytes as they arrive, cut anywhere; `take` returns body bytes."""

    __slots__ = (
        "_left",
        "_limit",
        "_method",
        "_parts",
        "_phase",
        "_rest",
        "begun",
        "buffered",
        "headers",
        "keep_alive",
        "status",
        "surplus",
    )

    def __init__(self, method: str, limit: int | None = None) -> None:
        self.status: int = 0  # 0 until the head is complete
        self.headers: dict[str, str] = {}  # names in lower case
        self.keep_alive: bool = False
        self.begun: bool = False  # something has come
        self.surplus: bool = False  # more has come than belongs to the answer
        self.buffered: int = 0  # bytes of the body that were not taken yet
        self._limit = limit  # bytes of the body that may wait to be taken
        self._method = method
        self._phase = _HEAD
        self._rest = b""  # an unfinished line or head
        self._left = 0  # bytes to come, of the body or of a chunk
        self._parts: list[bytes] = []

    @property
    def done(self) -> bool:
        return self._phase is _DONE

    def take(self) -> bytes:
        """The part of the body that arrived since the last call."""
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self.buffered = 0
        return body

    def feed(self, data: bytes) -> None:
        """Parse the next bytes. Raises `Malformed`."""
        self.begun = True
        if self._rest:
            data = self._rest + data
            self._rest = b""
        at, end = 0, len(data)
        while at < end:
            phase = self._phase
            if phase is _COUNTED or phase is _CHUNK_DATA:
                at = self._counted(data, at)
            elif phase is _CHUNK_LINE:
                at = self._chunks(data, at)
            elif phase is _HEAD:
                at = self._head(data, at)
            elif phase is _CHUNK_END:
                at = self._chunk_end(data, at)
            elif phase is _TRAILERS:
                at = self._trailers(data, at)
            elif phase is _UNTIL_CLOSE:
                self._keep(data[at:])
                return
            else:
                self.surplus = True
                return

    def eof(self, *, clean: bool = True) -> None:
        """The server closed, `clean` with a close_notify. Raises `Malformed` if too early."""
        if self._phase is _UNTIL_CLOSE and clean:
            self._phase = _DONE
        elif not self.begun:
            raise Malformed("the server closed the connection without an answer")
        elif self._phase is not _DONE:
            raise Malformed("the server closed the connection in the middle of its answer")

    # --- one method for each phase: takes and returns a position in the data ----------------------

    def _head(self, data: bytes, at: int) -> int:
        if not data.startswith(_BEGINNING, at) and not _BEGINNING.startswith(data[at : at + 7]):
            raise Malformed(f"the server answered {_shown(data[at:])}, which is not HTTP/1.1")
        stop = data.find(b"\r\n\r\n", at)
        if (stop + 4 if stop >= 0 else len(data)) - at > MAX_HEAD:
            raise Malformed(f"the headers of the answer are longer than {MAX_HEAD} bytes")
        if stop < 0:
            self._rest = data[at:]
            return len(data)
        line, fields = _head_fields(data[at:stop].decode("latin-1"))
        found = _STATUS_LINE.fullmatch(line)
        if found is None:
            raise Malformed(f"the server answered {_shown(data[at:])}, which is not HTTP/1.1")
        status = int(found[2])
        if status >= 200:
            self.headers = fields
            self._phase = self._framing(status, found[1] == "1")
            self.status = status
        elif status == 101:
            raise Malformed("the server switches to another protocol, which was not asked for")
        return stop + 4

    def _framing(self, status: int, modern: bool) -> _Phase:
        """What comes after the head (RFC 9112, 6.3), and whether the connection survives it."""
        headers = self.headers
        closing = "connection" in headers and "close" in _listed(headers["connection"])
        self.keep_alive = modern and not closing
        # After CONNECT comes the tunnel, or a body whose content the status makes superfluous.
        if status in (204, 304) or self._method in ("HEAD", "CONNECT"):
            return _DONE
        coding = headers.get("transfer-encoding")
        length = headers.get("content-length")
        if coding is not None:
            if _listed(coding) != ["chunked"]:
                raise Malformed(f"the server answered with transfer coding {_clipped(coding)!r}")
            # With both, a proxy may frame the body differently: do not reuse the connection.
            self.keep_alive = self.keep_alive and length is None
            return _CHUNK_LINE
        if length is not None:
            if not _LENGTH.fullmatch(length):
                length = _agreed(length)
            self._left = int(length)
            self._check(self._left)
            return _COUNTED if self._left else _DONE
        self.keep_alive = False
        return _UNTIL_CLOSE

    def _counted(self, data: bytes, at: int) -> int:
        stop = at + self._left
        part = data[at:stop]
        self._keep(part)
        self._left -= len(part)
        if not self._left:
            self._phase = _DONE if self._phase is _COUNTED else _CHUNK_END
        return at + len(part)

    def _chunks(self, data: bytes, at: int) -> int:
        """Chunks that are all there, many at a time: a busy watch is made of them."""
        while True:
            found = _SIZE_LINE.match(data, at)
            if found is None or found.end() - at > MAX_LINE:
                return self._unfinished_line(data, at)
            start = found.end()
            size = int(found[1], 16)
            if size == 0:
                self._phase = _TRAILERS
                return start
            stop = start + size
            if data[stop : stop + 2] != b"\r\n":
                self._left = size
                self._phase = _CHUNK_DATA
                return start
            self._keep(data[start:stop])
            at = stop + 2

    def _unfinished_line(self, data: bytes, at: int) -> int:
        if at < len(data) and (data.find(b"\r\n", at) >= 0 or len(data) - at > MAX_LINE):
            raise Malformed(f"a chunk of the answer begins with {_shown(data[at:])}, not its size")
        self._rest = data[at:]
        return len(data)

    def _chunk_end(self, data: bytes, at: int) -> int:
        found = data[at : at + 2]
        if found == b"\r\n":
            self._phase = _CHUNK_LINE
        elif found == b"\r":
            self._rest = found
        else:
            raise Malformed("a chunk of the answer is longer than it says")
        return at + len(found)

    def _trailers(self, data: bytes, at: int) -> int:
        found = data[at : at + 2]
        if found == b"\r\n":
            self._phase = _DONE
            return at + 2
        stop = data.find(b"\r\n\r\n", at)
        if (stop + 4 if stop >= 0 else len(data)) - at > MAX_HEAD:
            raise Malformed(f"the trailers of the answer are longer than {MAX_HEAD} bytes")
        if stop < 0:
            self._rest = data[at:]
            return len(data)
        _head_fields("\r\n" + data[at:stop].decode("latin-1"))  # checked, then ignored
        self._phase = _DONE
        return stop + 4

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.buffered += len(part)
        self._check(self.buffered)

    def _check(self, size: int) -> None:
        if self._limit is not None and size > self._limit:
            raise TooLong(f"the answer is longer than {self._limit} bytes")


_names: Final[dict[str, str]] = {}  # header names as servers spell them -> in lower case
_MOST_NAMES: Final = 1000


def _head_fields(text: str) -> tuple[str, dict[str, str]]:
    """The first line of a head, and the fields after it."""
    lines = text.split("\r\n")
    breaks = len(lines) - 1
    if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
        raise Malformed("a header of the answer holds a bare line break or a NUL")
    fields: dict[str, str] = {}
    first = lines[0]
    for line in lines[1:]:
        raw, colon, value = line.partition(":")
        name = _names.get(raw) or _field_name(raw)
        if not colon:
            raise Malformed(f"the answer has a header line without a colon: {_clipped(line)!r}")
        value = value.strip(" \t")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return first, fields


def _field_name(raw: str) -> str:
    # Also refuses folded lines and a space before the colon, which proxies read differently.
    if not _TOKEN.fullmatch(raw):
        raise Malformed(f"{_clipped(raw)!r} in the answer is no name for a header")
    name = raw.lower()
    if len(_names) < _MOST_NAMES:
        _names[raw] = name
    return name


def _listed(value: str) -> list[str]:
    return [item.strip(" \t").lower() for item in value.split(",")]


def _agreed(length: str) -> str:
    """The one length that a repeated Content-Length says."""
    said = set(_listed(length))
    if len(said) != 1 or not _LENGTH.fullmatch(length := said.pop()):
        raise Malformed(f"the length of the answer is {_clipped(length)!r}, which is no number")
    return length


def _shown(data: bytes) -> str:
    return repr(data[:40].decode("latin-1"))


def _clipped(text: str) -> str:
    return text[:60]


def decoded(headers: dict[str, str], body: bytes, limit: int) -> bytes:
    """The body without its content coding, of `limit` bytes at most. Raises `Malformed`."""
    coding = headers.get("content-encoding", "identity").lower()
    if coding == "identity":
        return body
    if coding not in ("gzip", "x-gzip"):
        raise Malformed(f"the server answered in the coding {_clipped(coding)!r}; gzip was offered")
    if not body:
        return body
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            found = file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Malformed(f"the compressed answer cannot be unpacked: {error}") from error
    if len(found) > limit:
        raise TooLong(f"the answer is longer than {limit} bytes")
    return found
