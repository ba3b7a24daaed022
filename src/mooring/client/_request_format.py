"""Requests as bytes in HTTP/1.1, and as header fields for HTTP/2. No I/O.

Nothing that a caller passes can end a line early: a path or a header that would is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from mooring.client._hpack import Field
from mooring.client.transport import Request

_TARGET: Final = re.compile(r"/[!-~]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})  # say "0" where there is no body
_MOST_TEMPLATES: Final = 100


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Header fields as they go over the wire. Raises `ValueError` for what would break out."""
    return b"".join(_header_line(name, value) for name, value in headers)


def _header_line(name: str, value: str) -> bytes:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is no name for an HTTP header")
    if not _VALUE.fullmatch(value):  # the value may be a secret: it is not shown
        raise ValueError(f"the value of the HTTP header {name} holds a line break or the like")
    return f"{name}: {value}\r\n".encode("latin-1")


class Template:
    """What many requests have in common in HTTP/2: all but path and body. Equal only to itself."""

    __slots__ = ("after", "before", "with_length")

    def __init__(
        self, before: tuple[Field, ...], after: tuple[Field, ...], *, with_length: bool
    ) -> None:
        self.before: tuple[Field, ...] = before
        self.after: tuple[Field, ...] = after
        self.with_length: bool = with_length  # say how long the body is, even if it is empty


class Proof:
    """Credentials, in the shape in which they go out. Raises `ValueError` for what would break."""

    __slots__ = ("fields", "lines", "templates")

    def __init__(self, headers: Iterable[Field] = ()) -> None:
        headers = tuple(headers)
        self.lines: bytes = header_lines(headers)
        self.fields: tuple[Field, ...] = tuple((name.lower(), value) for name, value in headers)
        self.templates: dict[tuple[str, str], Template] = {}  # by method and content type


class RequestFormat:
    """Requests to one server; what stays the same is encoded once."""

    def __init__(self, authority: str, prefix: str, user_agent: str) -> None:
        self._prefix: Final = prefix
        self._authority: Final = authority
        shown = (("User-Agent", user_agent), ("Accept", "application/json"))
        self._always: Final = b" HTTP/1.1\r\n" + header_lines([("Host", authority), *shown])
        self._shown: Final = tuple((name.lower(), value) for name, value in shown)
        self._begin: Final[dict[str, bytes]] = {}  # by method
        self._content: Final[dict[str, bytes]] = {}  # by content type

    def target(self, request: Request) -> bytes:
        """The path as it goes out."""
        path = self._prefix + request.path
        if not _TARGET.fullmatch(path):
            raise ValueError(f"the path {path!r} is not percent-encoded, or does not begin with /")
        return path.encode("ascii")

    def template(self, request: Request, proof: Proof) -> Template:
        """For HTTP/2: what the request has in common with others."""
        key = (request.method, request.content_type if request.body else "")
        return proof.templates.get(key) or self._make_template(key, proof)

    def encode(self, request: Request, proof: Proof, *, compressed: bool) -> bytes:
        """For HTTP/1.1: head and body."""
        method, body = request.method, request.body
        parts = [
            self._begin.get(method) or self._method(method),
            self.target(request),
            self._always,
            proof.lines,
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

    def _make_template(self, key: tuple[str, str], proof: Proof) -> Template:
        method, kind = key
        self._method(method)
        before = ((":method", method), (":scheme", "https"), (":authority", self._authority))
        after = [*self._shown, *proof.fields]
        if method == "GET":
            after.append(("accept-encoding", "gzip"))
        if kind:
            self._content_type(kind)
            after.append(("content-type", kind))
        with_length = bool(kind) or method in _WITH_LENGTH
        template = Template(before, tuple(after), with_length=with_length)
        if len(proof.templates) < _MOST_TEMPLATES:
            proof.templates[key] = template
        return template

    def _method(self, method: str) -> bytes:
        if not _TOKEN.fullmatch(method):
            raise ValueError(f"{method!r} is no HTTP method")
        begin = self._begin[method] = f"{method} ".encode("ascii")
        return begin

    def _content_type(self, kind: str) -> bytes:
        line = _header_line("Content-Type", kind) + b"Content-Length: "
        self._content[kind] = line
        return line
