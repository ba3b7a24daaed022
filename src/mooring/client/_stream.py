"""A response whose body arrives over time: a watch.

What arrives is buffered until it is taken; beyond some megabytes the socket is not read, and the
server has to wait. A stream that is silent for too long fails: bookmarks come every minute.

To take one event from the socket costs several times as much as to handle it. So a stream may rest
when events come soon after each other: what comes meanwhile is read in one go.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from typing import Final

from mooring.client._connection import Connection
from mooring.client._failures import Broken
from mooring.client._http1 import Malformed, ResponseParser
from mooring.client.errors import Unreachable

PAUSE_ABOVE: Final = 4 * 1024 * 1024  # buffered bytes
BUSY: Final = 64 * 1024  # bytes that come at once, after which there is no rest
MAX_FAILURE: Final = 64 * 1024  # bytes of the body of a failure


class HttpStream:
    """Fulfils `transport.Stream`; one reader at a time."""

    def __init__(
        self,
        connection: Connection,
        loop: asyncio.AbstractEventLoop,
        *,
        method: str,
        where: str,
        timeout: float,
        silence_limit: float,
        rest: float = 0.0,
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._parser = ResponseParser(method)
        self._where = where
        self._timeout = timeout  # seconds until the head is complete
        self._silence_limit = silence_limit
        self._rest = rest  # seconds
        self._resting: asyncio.TimerHandle | None = None
        self._last = -math.inf  # when something came
        self._news: asyncio.Future[None] | None = None  # done when something arrives
        self._why: Broken | None = None
        self._over = False
        self._paused = False

    @property
    def status(self) -> int:
        return self._parser.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._parser.headers

    @property
    def begun(self) -> bool:
        return self._parser.begun

    async def begin(self, payload: bytes, deadline: float) -> None:
        """Send the request and wait for the head of the answer. Raises `Broken`."""
        self._connection.reusable = False
        self._connection.attach(self)
        self._connection.expire_at(deadline)
        self._connection.write(payload)
        while not self._parser.status:
            if self._why is not None:
                raise self._why
            await self._more()
        coding = self._parser.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise Broken(f"the server streams in the coding {coding[:60]!r}; none was offered")

    async def read(self) -> bytes:
        body = b""
        async for part in self.chunks():
            body += part
            if len(body) >= MAX_FAILURE:
                break
        return body[:MAX_FAILURE]

    def chunks(self) -> AsyncIterator[bytes]:
        return _Chunks(self)

    async def next(self) -> bytes:
        """What arrived since the last call, after waiting for it if need be; empty at the end."""
        while True:
            if self._parser.buffered:
                return self._taken()
            if self._why is not None:
                raise Unreachable(f"{self._where}: {self._why}", sent=True)
            if self._over:
                return b""
            await self._more()

    def close(self) -> None:
        """Close the connection, wherever the response is."""
        if self._resting is not None:
            self._resting.cancel()
        self._connection.close()
        self._stop(Broken("the stream was closed"))

    def received(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except Malformed as error:
            self._connection.fail(Broken(str(error)))
            return
        if self._parser.done:
            self._over = True
            self._connection.close()
        elif self._parser.status:
            now = self._loop.time()
            self._connection.expire_at(now + self._silence_limit)
            if self._parser.buffered > PAUSE_ABOVE and not self._paused:
                self._paused = True
                self._connection.pause()
            elif now < self._last + 2 * self._rest and len(data) < BUSY and not self._paused:
                self._connection.pause()
                self._resting = self._loop.call_later(self._rest, self._connection.resume)
            self._last = now
        self._tell()

    def ended(self, clean: bool) -> None:
        try:
            self._parser.eof(clean=clean)
        except Malformed as error:
            self._stop(Broken(str(error)))
            return
        self._over = True
        self._tell()

    def broken(self, why: Broken) -> None:
        self._stop(why)

    def expired(self) -> None:
        if self._paused:  # the reader is slow, not the server
            self._connection.expire_at(self._loop.time() + self._silence_limit)
        elif self._parser.status:
            words = f"nothing was heard for {self._silence_limit:g}s"
            self._connection.fail(Broken(words, expired=True))
        else:
            self._connection.fail(Broken(f"no answer within {self._timeout:g}s", expired=True))

    def _taken(self) -> bytes:
        data = self._parser.take()
        if self._paused:
            self._paused = False
            self._connection.expire_at(self._loop.time() + self._silence_limit)
            self._connection.resume()
        return data

    def _stop(self, why: Broken) -> None:
        if not self._over and self._why is None:
            self._why = why
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _more(self) -> None:
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None


class _Chunks:
    """An iterator, not a generator, which would have to be closed if it is left early."""

    def __init__(self, stream: HttpStream) -> None:
        self._stream = stream

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        data = await self._stream.next()
        if not data:
            raise StopAsyncIteration
        return data
