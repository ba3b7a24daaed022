"""Requests and responses, independent of how they are transported.

`http.py` carries them over sockets, `transport.py` within the process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

JSON: Final = "application/json"
MAX_NODES: Final = 50_000  # keys and values in a body: every one of them costs microseconds


class Caller(msgspec.Struct, frozen=True):
    """The user that makes a request."""

    name: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ADMIN: Final = Caller()


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str  # without the query, decoded
    query: Mapping[str, str] = {}  # the last of repeated parameters
    headers: Mapping[str, str] = {}  # names in lower case
    body: bytes = b""
    caller: Caller = ADMIN


class ApiResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A complete response."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}


NO_PAGE: Final = ApiResponse(
    status=404, body=b"404 page not found\n", content_type="text/plain; charset=utf-8"
)


class WatchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A streamed response: lines of JSON, one per event."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
