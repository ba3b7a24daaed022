"""The pool of connections: limits the requests in flight and keeps idle connections.

A slot belongs to a request, not to a connection: a request that has to open another connection
keeps its slot. A slot that becomes free goes to the first waiter, with its connection if that is
reusable, so that requests are sent in order.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

from mooring.client._connection import Connection
from mooring.client._failures import Broken


class Pool:
    """At most `limit` requests at a time; the connection used last is used next."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"max_connections: expected at least 1, got {limit}")
        self._limit = limit
        self._in_use = 0  # slots
        self._idle: list[Connection] = []  # the one used last is the last
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._alive: set[Connection] = set()  # from being opened to the end of the socket
        self._context: ssl.SSLContext | None = None
        self._all_closed: asyncio.Future[None] | None = None
        self._closed = False

    def use_context(self, context: ssl.SSLContext | None) -> None:
        """Reuse only connections that were opened with this context from now on."""
        if context is self._context:
            return
        self._context = context
        for connection in tuple(self._idle):
            if connection.context is not context:
                connection.close()

    async def acquire(self, deadline: float) -> Connection | None:
        """Take a slot, with an idle connection or None. To be followed by `release`."""
        if self._closed:
            raise Broken("the client is closed")
        if self._in_use >= self._limit:
            connection = await self._wait(deadline)
            return connection if connection is not None and connection.is_open else None
        self._in_use += 1
        return self.take_idle()

    def take_idle(self) -> Connection | None:
        """An idle connection, which leaves the pool; None if there is none."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()
        return None

    def release(self, connection: Connection | None) -> None:
        """Give the slot back; the connection is kept if it is reusable."""
        if connection is not None and not self._is_reusable(connection):
            connection.close()
            connection = None
        while self._waiters:
            first = self._waiters.popleft()
            if not first.done():
                if connection is not None:
                    connection.mark_idle()
                first.set_result(connection)
                return
        self._in_use -= 1
        if connection is not None:
            connection.mark_idle()
            self._idle.append(connection)

    async def close(self) -> None:
        self._closed = True
        while self._waiters:
            _fail_waiter(self._waiters.popleft(), Broken("the client is closed"))
        for connection in tuple(self._alive):
            connection.fail(Broken("the client is closed"))
        if self._alive:
            if self._all_closed is None:
                self._all_closed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._all_closed)  # others may be closing it too

    def opening(self, connection: Connection) -> None:
        self._alive.add(connection)

    def closing(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def lost(self, connection: Connection) -> None:
        """Its socket is closed, or was never opened."""
        self._alive.discard(connection)
        if self._all_closed is not None and not self._alive and not self._all_closed.done():
            self._all_closed.set_result(None)

    async def _wait(self, deadline: float) -> Connection | None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection | None] = loop.create_future()
        late = Broken("all connections were in use for too long", expired=True)
        timer = loop.call_at(deadline, _fail_waiter, waiter, late)
        self._waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())  # the slot was ours already
            raise
        finally:
            timer.cancel()

    def _is_reusable(self, connection: Connection) -> bool:
        return connection.reusable and connection.context is self._context and not self._closed


def _fail_waiter(waiter: asyncio.Future[Connection | None], why: Broken) -> None:
    if not waiter.done():
        waiter.set_exception(why)
