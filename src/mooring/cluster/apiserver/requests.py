"""Requests and replies between the wire and the server, whatever the wire is.

`http.py` carries them over sockets, `transport.py` within the process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

JSON: Final = "application/json"


class Caller(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    uid: str = ""


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
    """A complete answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = {}


class WatchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that goes on: lines of JSON as things happen."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
