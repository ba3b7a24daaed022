"""The transport protocol: requests go out, responses or streams of bytes come back.

`http.HttpTransport` uses sockets; an embedded server or a test implements it in process. Every
failure on the way is `Unreachable`; a response of any status is a response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
"""For an answer that is not read: a tenth less of the API server's CPU than the whole object."""

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer, also unpacked, and of an event of a watch: ten times an object's limit."""

Fence = Callable[[], None]
"""Raises `Fenced` if this process may not write any more; called right before sending."""

NewFence = Callable[[], Fence]
"""Called when a write is asked for: the fence that it has to pass when it is sent."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request to an API server; credentials are added by the transport."""

    method: str
    path: str  # with the query, percent-encoded
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON  # of the answer, if it is not a stream
    timeout: float = 30.0  # seconds until the answer is complete; of a stream, until it begins
    max_answer: int = MAX_ANSWER  # bytes; a longer one is not read to its end. Not for streams
    rest: float = 0.0  # seconds for which a stream may leave what follows to the socket


class Response(msgspec.Struct, frozen=True):
    """A complete HTTP response."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Stream(Protocol):
    """A response whose body arrives over time."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """The beginning of the body: for a response that is a failure."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, cut anywhere; ends when the server ends it."""
        ...


class Transport(Protocol):
    """Carries requests to one API server."""

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        """Send and wait for the answer. Raises `Unreachable` or what the fence raises."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send, and hold the connection while the body arrives."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
