"""A transport that answers in protobuf, as the real API server does, where that is asked for.

The server behind it has JSON only. What it sends is converted: lists and watches of kinds that the
client reads in protobuf, and the Status of a watch that failed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from tests.api.go_protobuf import encode, encode_list, enveloped, field

from mooring.api.protobuf import MEDIA_TYPE
from mooring.client.transport import Fence, Request, Response, Stream, Transport

UNREADABLE = field(2, field(32, field(1, b"cpu") + field(2, field(1, b"lots"))))
"""A pod with an overhead that is no quantity."""


class ProtobufTransport:
    """Converts what another transport brings, while `in_protobuf`."""

    def __init__(self, inner: Transport) -> None:
        self.in_protobuf = False
        self.is_deaf = False  # whether JSON is asked for in vain
        self._inner = inner

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        response = await self._inner.send(request, fence)
        if not self._converts(request) or response.status != 200:
            return response
        found = msgspec.json.decode(response.body)
        meta = found["metadata"]
        kind = found["kind"].removesuffix("List")
        items = [_object(kind, item) for item in found["items"]]
        body = encode_list(kind, items, meta["resourceVersion"], meta.get("continue", ""))
        return Response(response.status, response.headers, body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as inner:
            yield _Framed(inner) if self._converts(request) and inner.status == 200 else inner

    async def close(self) -> None:
        await self._inner.close()

    def _converts(self, request: Request) -> bool:
        return self.in_protobuf and (self.is_deaf or request.accept.startswith(MEDIA_TYPE))


class _Framed:
    """A watch in protobuf."""

    def __init__(self, inner: Stream) -> None:
        self.status: int = inner.status
        self.headers: Mapping[str, str] = {"content-type": f"{MEDIA_TYPE};stream=watch"}
        self._inner = inner

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        rest = b""
        async for chunk in self._inner.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield b"".join(map(frame_of, lines))


def is_framed(stream: Stream) -> bool:
    return stream.headers.get("content-type", "").startswith(MEDIA_TYPE)


def frame_of(line: bytes) -> bytes:
    """The event of a line of JSON, with its length before it."""
    event: dict[str, Any] = msgspec.json.decode(line)
    return frame(event["type"], event["object"])


def frame(type_: str, value: dict[str, Any]) -> bytes:
    """An event, with its length before it."""
    kind = value.get("kind", "Pod")
    encoded = _status(value) if kind == "Status" else _object(kind, value)
    event = field(1, type_.encode()) + field(2, field(1, enveloped(kind, encoded)))
    return len(event).to_bytes(4, "big") + event


def _object(kind: str, value: dict[str, Any]) -> bytes:
    if not isinstance((value.get("spec") or {}).get("containers", []), list):
        return UNREADABLE  # what no real server could hold
    return encode(kind, value)


def _status(status: dict[str, Any]) -> bytes:
    pause = status.get("details", {}).get("retryAfterSeconds", 0)
    return (
        field(3, status.get("message", "").encode())
        + field(4, status.get("reason", "").encode())
        + field(5, field(5, pause))
        + field(6, status["code"])
    )
