"""Which protocol the server speaks, and the one connection for all requests if it is HTTP/2.

    not known ──► somebody dials, the others wait ──► HTTP/2: the session, until it is used up
        ▲                                        └──► HTTP/1.1: the pool, until it is empty
        └────────────────────────────────────────────────────────────────┘

The server says it in the TLS handshake, so the first connection has to be there before anybody
knows how many are needed.
"""

from __future__ import annotations

import asyncio
import ssl

from mooring.client._connection import Connection
from mooring.client._dial import Dialer
from mooring.client._failures import Broken
from mooring.client._h2 import Session
from mooring.client._pool import Pool


class Sessions:
    """Finds the session, and opens it if there is none."""

    def __init__(self, dialer: Dialer, pool: Pool) -> None:
        self._dialer = dialer
        self._pool = pool
        self._current: Session | None = None
        self._context: ssl.SSLContext | None = None  # with which it was opened
        self._is_plain = False  # the server wanted HTTP/1.1 when it was asked last
        self._dialing: asyncio.Future[Broken | None] | None = None

    def usable(self, context: ssl.SSLContext | None) -> Session | None:
        """The session, if there is one and certificates are still the same."""
        session = self._current
        if session is not None and session.usable and context is self._context:
            return session
        return None

    async def find(self, context: ssl.SSLContext, deadline: float) -> Session | None:
        """A session of this context; None: the server speaks HTTP/1.1. Raises `Broken`."""
        while True:
            session = self.usable(context)
            if session is not None:
                return session
            if self._is_plain and not self._pool.is_empty:
                return None
            if self._dialing is None:
                return await self._dial(context, deadline)
            why = await self._outcome(self._dialing, deadline)
            if why is not None:
                raise why.again()

    async def _dial(self, context: ssl.SSLContext, deadline: float) -> Session | None:
        loop = asyncio.get_running_loop()
        made: list[Session] = []

        def begin(connection: Connection) -> Session:
            made.append(Session(connection, loop))
            return made[0]

        self._dialing = loop.create_future()
        failure: Broken | None = None
        try:
            connection = await self._dialer.open(context, deadline, begin)
        except Broken as why:
            # Who had less time than others speaks only for itself.
            failure = None if why.expired and loop.time() >= deadline else why
            raise
        finally:
            self._dialing.set_result(failure)
            self._dialing = None
        self._is_plain = not made
        if not made:
            self._pool.adopt(connection)
            return None
        former, self._current, self._context = self._current, made[0], context
        if former is not None and former.usable:
            former.retire()
        return made[0]

    async def _outcome(
        self, dialing: asyncio.Future[Broken | None], deadline: float
    ) -> Broken | None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(dialing)
        except TimeoutError:
            spent = max(deadline - started, 0.0)
            raise Broken(f"no connection within {spent:.3g}s", expired=True) from None
