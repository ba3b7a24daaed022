"""One request over HTTP/2, and its whole answer. No I/O.

    waiting ──► open, with a number: written, or as much as the server takes ──► done

The session moves it along; `future` is done when the answer is complete.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

from mooring.client._hpack import Sized
from mooring.client._http1 import Malformed
from mooring.client._request_format import Template
from mooring.client.transport import Fence, Request

_STATUS: Final = re.compile(r"[1-5][0-9]{2}")


class H2Exchange:
    """A request with its fence and its deadline; then what has come of the answer."""

    __slots__ = (
        "_parts",
        "_size",
        "body",
        "deadline",
        "fence",
        "future",
        "headers",
        "heard",
        "max_answer",
        "method",
        "number",
        "path",
        "rested",
        "status",
        "template",
        "timeout",
        "uncounted",
        "unsent",
        "window",
        "written",
    )

    def __init__(
        self,
        request: Request,
        path: bytes,
        template: Template,
        fence: Fence | None,
        deadline: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.future: asyncio.Future[None] = loop.create_future()
        self.method: str = request.method
        self.path: bytes = path
        self.body: bytes = request.body
        self.template: Template = template
        self.fence: Fence | None = fence
        self.deadline: float = deadline
        self.timeout: float = request.timeout
        self.max_answer: int | None = request.max_answer
        # From the moment of writing:
        self.number: int = 0  # of its stream; 0 as long as nothing was written
        self.written: float = 0.0  # when
        self.heard: int = 0  # how often the session had heard anything by then
        self.rested: bool = False  # others had been answered on the same connection before
        self.unsent: memoryview | None = None  # of the body
        self.window: int = 0  # bytes of the body that the server still takes
        # From the answer:
        self.status: int = 0  # 0 until its head is complete
        self.headers: dict[str, str] = {}
        self.uncounted: int = 0  # bytes of the body that the server may not send anew yet
        self._size = 0
        self._parts: list[bytes] = []

    def take(self) -> bytes:
        """The body of the answer."""
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def head(self, fields: list[Sized], *, is_end: bool) -> None:
        """A header block: of the answer, of one before it, or its trailers. Raises `Malformed`."""
        if self.status:
            if not is_end or any(name[0] == ":" for name, _, _ in fields):
                raise Malformed("the answer has a second head")
            return
        if not fields or fields[0][0] != ":status" or not _STATUS.fullmatch(fields[0][1]):
            raise Malformed("the head of the answer does not begin with a status")
        status = int(fields[0][1])
        if status < 200:
            if is_end or status == 101:
                raise Malformed(f"the answer ends with status {status}")
            return
        headers = self.headers
        for name, value, _ in fields[1:]:
            if name in headers:
                headers[name] += f", {value}"
            elif name[0] == ":":
                raise Malformed(f"the head of the answer holds {name[:60]!r}")
            else:
                headers[name] = value
        self.status = status

    def data(self, part: bytes) -> None:
        """A part of the body. Raises `Malformed`."""
        if not self.status:
            raise Malformed("the body of the answer comes before its head")
        self._size += len(part)
        if self.max_answer is not None and self._size > self.max_answer:
            raise Malformed(f"the answer is longer than {self.max_answer} bytes")
        self._parts.append(part)

    def end(self) -> None:
        """Nothing more will come. Raises `Malformed` if there is too little, or too much."""
        length = self.headers.get("content-length")
        if length is None or length == str(self._size):
            return
        if self.method != "HEAD" and self.status != 304:
            raise Malformed(f"the answer has {self._size} bytes, not {length[:60]!r}")
