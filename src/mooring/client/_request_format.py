"""Requests in HTTP/1.1 as bytes. No I/O. Paths and headers with line breaks are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from mooring.client.transport import Request

_TARGET: Final = re.compile(r"/[!-~]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})  # say "0" where there is no body


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Header fields as bytes. Raises `ValueError` for an illegal name or value."""
    return b"".join(_header_line(name, value) for name, value in headers)


def _header_line(name: str, value: str) -> bytes:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is no name for an HTTP header")
    if not _VALUE.fullmatch(value):  # the value may be a secret: it is not shown
        raise ValueError(f"the value of the HTTP header {name} holds a line break or the like")
    return f"{name}: {value}\r\n".encode("latin-1")


class RequestFormat:
    """Requests to one server as bytes; what stays the same is encoded once."""

    def __init__(self, authority: str, prefix: str, user_agent: str) -> None:
        self._prefix: Final = prefix
        always = [("Host", authority), ("User-Agent", user_agent)]
        self._always: Final = b" HTTP/1.1\r\n" + header_lines(always)
        self._accepting: Final[dict[str, bytes]] = {}  # by media types
        self._begin: Final[dict[str, bytes]] = {}  # by method
        self._content: Final[dict[str, bytes]] = {}  # by content type

    def encode(self, request: Request, credentials: bytes, *, compressed: bool) -> bytes:
        """Head and body; `credentials` are header lines."""
        path = self._prefix + request.path
        if not _TARGET.fullmatch(path):
            raise ValueError(f"the path {path!r} is not percent-encoded, or does not begin with /")
        method, body = request.method, request.body
        parts = [
            self._begin.get(method) or self._method(method),
            path.encode("ascii"),
            self._accepting.get(request.accept) or self._accept(request.accept),
            credentials,
        ]
        if compressed:
            parts.append(b"Accept-Encoding: gzip\r\n")
        if body:
            kind = request.content_type
            parts.append(self._content.get(kind) or self._content_type(kind))
            parts.append(b"%d\r\n\r\n" % len(body))
            parts.append(body)
        else:
            parts.append(b"Content-Length: 0\r\n\r\n" if method in _WITH_LENGTH else b"\r\n")
        return b"".join(parts)

    def _accept(self, kinds: str) -> bytes:
        lines = self._accepting[kinds] = self._always + _header_line("Accept", kinds)
        return lines

    def _method(self, method: str) -> bytes:
        if not _TOKEN.fullmatch(method):
            raise ValueError(f"{method!r} is no HTTP method")
        begin = self._begin[method] = f"{method} ".encode("ascii")
        return begin

    def _content_type(self, kind: str) -> bytes:
        line = _header_line("Content-Type", kind) + b"Content-Length: "
        self._content[kind] = line
        return line
