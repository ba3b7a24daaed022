"""The transport over sockets: HTTP/1.1, with TLS and through proxies, to one API server.

    credentials ─► slot in the pool ─► connection, idle or new ─► fence ─► write ─► response

The fence is called once the connection is there, and nothing is awaited between it and the write:
a process that was stopped anywhere before cannot write after it lost its lease.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from mooring.client._connection import Connection
from mooring.client._dial import Dialer, host_header
from mooring.client._exchange import Exchange
from mooring.client._failures import Broken, describe_error
from mooring.client._http1 import Malformed, ResponseParser, TooLong, decoded
from mooring.client._pool import Pool
from mooring.client._request_format import RequestFormat, header_lines
from mooring.client._stream import HttpStream
from mooring.client.endpoint import Endpoint
from mooring.client.errors import AnswerTooLong, Unreachable
from mooring.client.reachability import Reachability
from mooring.client.transport import JSON, Fence, Request, Response, Stream, Transport

OnAnswer = Callable[[str, str, int, float], None]
"""Called for every try: method, host, status (0 without a response) and seconds."""


class HttpTransport(Transport):
    """Carries requests to one endpoint; belongs to one event loop.

    At most `max_connections` requests are under way at a time, streams not counted; the others
    wait. All limits are in seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        user_agent: str,
        max_connections: int = 32,
        connect_timeout: float = 10.0,
        idle_limit: float = 30.0,
        silence_limit: float = 130.0,
        on_answer: OnAnswer | None = None,
        reachability: Reachability | None = None,
    ) -> None:
        self._tls = endpoint.tls
        self._credentials = endpoint.credentials
        self._silence_limit = silence_limit
        self._on_answer = on_answer
        self._reachability = reachability
        self._host = host_header(endpoint)
        self._format = RequestFormat(self._host, endpoint.prefix, user_agent)
        self._pool = Pool(max_connections)
        self._dialer = Dialer(
            endpoint,
            self._pool,
            user_agent=user_agent,
            connect_timeout=connect_timeout,
            idle_limit=idle_limit,
        )
        self._renewing = asyncio.Lock()
        self._proof: tuple[tuple[str, str], ...] = ()  # that `_known` was made of
        self._known = _Identity(b"", None)

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        deadline = asyncio.get_running_loop().time() + request.timeout
        used = await self._identity()
        try:
            answer = await self._ask(request, used, fence, deadline)
        except _Untrusted:
            if not await self._renewed(used, deadline):
                raise
        else:
            if answer.status != 401 or not await self._renewed(used, deadline):
                return answer
        # A request that was not authenticated has done nothing: send it once more.
        return await self._ask(request, await self._identity(), fence, deadline)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        stream = await self.open_stream(request)
        try:
            yield stream
        finally:
            stream.close()

    async def open_stream(self, request: Request) -> HttpStream:
        """A stream that the caller has to close."""
        deadline = asyncio.get_running_loop().time() + request.timeout
        used = await self._identity()
        try:
            stream = await self._begin_stream(request, used, deadline)
        except _Untrusted:
            if not await self._renewed(used, deadline):
                raise
        else:
            with _closing_on_error(stream):
                if stream.status != 401 or not await self._renewed(used, deadline):
                    return stream
            stream.close()
        return await self._begin_stream(request, await self._identity(), deadline)

    async def close(self) -> None:
        self._dialer.close()
        await self._pool.close()

    # --- one try ---------------------------------------------------------------------------------

    async def _ask(
        self, request: Request, identity: _Identity, fence: Fence | None, deadline: float
    ) -> Response:
        loop = asyncio.get_running_loop()
        started = loop.time()
        method = request.method
        # A long list in protobuf is sent sooner than it can be compressed.
        compressed = method == "GET" and request.accept == JSON
        payload = self._format.encode(request, identity.proof, compressed=compressed)
        try:
            self._pool.use_context(identity.context)
            parser = await self._exchange(request, payload, fence, deadline)
            body = decoded(parser.headers, parser.take(), request.max_answer)
        except Malformed as error:
            self._notice(method, 0, started)
            too_long = isinstance(error, TooLong)
            raise self._unreachable(Broken(str(error), too_long=too_long), sent=True) from error
        except Unreachable:
            self._notice(method, 0, started)
            raise
        self._notice(method, parser.status, started)
        return Response(parser.status, parser.headers, body)

    async def _exchange(
        self, request: Request, payload: bytes, fence: Fence | None, deadline: float
    ) -> ResponseParser:
        loop = asyncio.get_running_loop()
        try:
            connection = await self._pool.acquire(deadline)
        except Broken as why:
            raise self._unreachable(why, sent=False) from why
        rested = connection is not None
        try:
            while True:
                if connection is None:
                    connection = await self._dial(deadline)
                if loop.time() >= deadline:  # the process stood still, or credentials were slow
                    raise self._unreachable(Broken("no time was left"), sent=False)
                exchange = Exchange(
                    connection, loop, request.method, request.timeout, request.max_answer
                )
                if fence is not None:
                    fence()
                try:
                    await exchange.begin(payload, deadline)
                except Broken as why:
                    begun = exchange.parser.begun
                    # The server closed an idle connection at the time of our write.
                    missed = rested and not begun and not why.expired
                    if not missed or request.method != "GET":
                        raise self._failed(why, begun=begun, rested=rested) from why
                    connection, rested = None, False
                else:
                    return exchange.parser
        finally:
            self._pool.release(connection)

    async def _begin_stream(
        self, request: Request, identity: _Identity, deadline: float
    ) -> HttpStream:
        started = asyncio.get_running_loop().time()
        payload = self._format.encode(request, identity.proof, compressed=False)
        self._pool.use_context(identity.context)
        connection = self._pool.take_idle()  # that of a list before, most of the time
        rested = connection is not None
        try:
            while True:
                stream = self._new_stream(connection or await self._dial(deadline), request)
                with _closing_on_error(stream):
                    try:
                        await stream.begin(payload, deadline)
                        break
                    except Broken as why:
                        begun = stream.begun
                        if not rested or begun or why.expired:
                            raise self._failed(why, begun=begun, rested=rested) from why
                stream.close()  # the server closed the idle connection at the time of our write
                connection, rested = None, False
        except Unreachable:
            self._notice(request.method, 0, started)
            raise
        self._notice(request.method, stream.status, started)
        return stream

    def _new_stream(self, connection: Connection, request: Request) -> HttpStream:
        return HttpStream(
            connection,
            asyncio.get_running_loop(),
            method=request.method,
            where=self._dialer.where,
            timeout=request.timeout,
            silence_limit=self._silence_limit,
            rest=request.rest,
        )

    # --- connections and credentials -------------------------------------------------------------

    async def _dial(self, deadline: float) -> Connection:
        context = self._context()  # of now: there may have been a wait
        self._pool.use_context(context)
        now = asyncio.get_running_loop().time
        try:
            connection = await self._dialer.open(context, deadline)
        except Broken as why:
            error = self._failed(why, begun=False, rested=False, sent=False)
            if self._reachability is not None:
                self._reachability.lost(str(error), now())
                error.is_logged = True
            raise error from why
        if self._reachability is not None:
            self._reachability.found(now())
        return connection

    def _context(self) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        try:
            return self._tls.context()
        except OSError as error:  # a file that is gone, or holds no certificate
            raise Unreachable(
                f"{self._dialer.where}: {describe_error(error)}", sent=False
            ) from error

    async def _identity(self) -> _Identity:
        known = self._known
        if self._credentials is not None:
            proof = await self._credentials.headers()
            if proof != self._proof:
                known = _Identity(header_lines(proof), None)
                self._proof = proof
        context = self._context()  # second: an exec plugin may give both
        if known.context is not context:
            known = _Identity(known.proof, context)
        self._known = known
        return known

    async def _renewed(self, used: _Identity, deadline: float) -> bool:
        """Whether the credentials may be others than those that were refused."""
        try:
            # One at a time: of many requests that were refused together, the first one renews.
            async with asyncio.timeout_at(deadline), self._renewing:
                if await self._identity() != used:
                    return True
                return self._credentials is not None and await self._credentials.renew()
        except TimeoutError:
            return False

    def _failed(self, why: Broken, *, begun: bool, rested: bool, sent: bool = True) -> Unreachable:
        """The error for a connection that broke before, or after, a request was written."""
        if why.untrusted and not begun and not rested:
            # With TLS 1.3 our certificate may be rejected after our write, but before the server
            # reads any of it.
            return _Untrusted(f"{self._dialer.where}: {why}", sent=False)
        return self._unreachable(why, sent=sent)

    def _unreachable(self, why: Broken, *, sent: bool) -> Unreachable:
        kind = AnswerTooLong if why.too_long else Unreachable
        return kind(f"{self._dialer.where}: {why}", sent=sent)

    def _notice(self, method: str, status: int, started: float) -> None:
        if self._on_answer is not None:
            seconds = asyncio.get_running_loop().time() - started
            self._on_answer(method, self._host, status, seconds)


class _Untrusted(Unreachable):
    """A certificate was rejected, ours or the server's; nothing was done."""


class _Identity(NamedTuple):
    """Credentials and TLS context of one try."""

    proof: bytes  # credentials as header lines
    context: ssl.SSLContext | None


@contextmanager
def _closing_on_error(stream: HttpStream) -> Iterator[None]:
    try:
        yield
    except BaseException:
        stream.close()
        raise
