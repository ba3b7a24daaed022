"""Opens connections: the socket, a proxy's tunnel if there is a proxy, TLS, within one timeout."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from mooring.client._connection import READ_SIZE, Connection
from mooring.client._exchange import Exchange, Handshake
from mooring.client._failures import Broken, describe_error, is_certificate_error
from mooring.client._pool import Pool
from mooring.client._request_format import header_lines
from mooring.client._tls_layer import TlsLayer
from mooring.client.endpoint import Endpoint
from mooring.client.tls import build_context

_NEXT_ADDRESS: Final = 0.25  # seconds before another address of the same name is tried as well


class Proxy(msgspec.Struct, frozen=True):
    """An HTTP proxy that tunnels to the server (CONNECT)."""

    host: str
    port: int
    secure: bool  # TLS on the way to it
    credentials: str = ""  # "user:password", or empty


def parse_proxy(url: str) -> Proxy | None:
    """None for no proxy at all. Raises `ValueError`, without the password."""
    if not url:
        return None
    found = urlsplit(url)
    if found.scheme not in ("http", "https") or not found.hostname or found.port == 0:
        shown = f"{found.scheme}://{found.hostname or ''}"
        raise ValueError(f"proxy: expected http://host:port or https://host:port, got {shown}")
    secure = found.scheme == "https"
    credentials = ""
    if found.username is not None:
        credentials = f"{unquote(found.username)}:{unquote(found.password or '')}"
    return Proxy(found.hostname, found.port or (443 if secure else 80), secure, credentials)


def authority(host: str, port: int) -> str:
    """Host and port as they stand in URLs and headers."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_header(endpoint: Endpoint) -> str:
    """The Host header: without the port if it is the default one."""
    usual = 80 if endpoint.tls is None else 443
    if endpoint.port != usual:
        return authority(endpoint.host, endpoint.port)
    return f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host


class Dialer:
    """Opens connections to one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        pool: Pool,
        *,
        user_agent: str,
        connect_timeout: float,
        idle_limit: float,
    ) -> None:
        self._pool = pool
        self._connect_timeout = connect_timeout
        self._idle_limit = idle_limit
        self._host, self._port = endpoint.host, endpoint.port
        self._server_name = endpoint.server_name or endpoint.host
        self._proxy = parse_proxy(endpoint.proxy)
        self._proxy_context: ssl.SSLContext | None = None
        self._connect_request = self._tunnel_request(user_agent)
        self._buffer = memoryview(bytearray(READ_SIZE))  # all connections live on one loop
        self._guards: set[asyncio.Timeout] = set()
        self._closed = False

    @property
    def where(self) -> str:
        """The way to the server, for messages."""
        server = authority(self._host, self._port)
        if self._proxy is None:
            return server
        return f"{server} through the proxy {authority(self._proxy.host, self._proxy.port)}"

    async def open(self, context: ssl.SSLContext | None, deadline: float) -> Connection:
        """A connection ready for its first request; without a context, in plain text."""
        if self._closed:
            raise Broken("the client is closed")
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = min(deadline, started + self._connect_timeout)
        connection = Connection(loop, self._pool, self._buffer, self._idle_limit)
        guard = asyncio.timeout_at(limit)
        try:
            async with guard:
                self._guards.add(guard)
                try:
                    await self._build(connection, context, limit)
                finally:
                    self._guards.discard(guard)
        except (OSError, ValueError) as error:  # ValueError: a name that cannot be one
            connection.close()
            if not guard.expired():
                raise Broken(
                    describe_error(error), untrusted=is_certificate_error(error)
                ) from error
            if self._closed:
                raise Broken("the client is closed") from None
            spent = max(limit - started, 0.0)
            raise Broken(f"no connection within {spent:.3g}s", expired=True) from None
        except BaseException:
            connection.close()
            raise
        if not connection.is_open:
            raise Broken("the server closed the connection at once")
        connection.context = context
        connection.reusable = True
        return connection

    def close(self) -> None:
        """Fail the connections that are being opened, and all later ones."""
        self._closed = True
        for guard in self._guards:
            guard.reschedule(asyncio.get_running_loop().time())

    async def _build(
        self, connection: Connection, context: ssl.SSLContext | None, limit: float
    ) -> None:
        proxy = self._proxy
        if proxy is None:
            await _connect(connection, self._host, self._port)
        else:
            await _connect(connection, proxy.host, proxy.port)
            if proxy.secure:
                await _secure(connection, self._trust_in_proxy(), proxy.host)
            await self._tunnel(connection, proxy, limit)
        if context is not None:
            await _secure(connection, context, self._server_name)

    async def _tunnel(self, connection: Connection, proxy: Proxy, limit: float) -> None:
        loop = asyncio.get_running_loop()
        exchange = Exchange(connection, loop, "CONNECT", self._connect_timeout)
        await exchange.begin(self._connect_request, limit + 1.0)  # the limit itself is guarded
        status = exchange.parser.status
        if status >= 300:
            hint = "; it wants other credentials" if status == 407 else ""
            raise Broken(f"the proxy answered {status}{hint}")
        if exchange.parser.surplus:
            raise Broken("the proxy sent more than its answer")

    def _tunnel_request(self, user_agent: str) -> bytes:
        target = authority(self._host, self._port)
        headers = [("Host", target), ("User-Agent", user_agent)]
        if self._proxy is not None and self._proxy.credentials:
            proof = base64.b64encode(self._proxy.credentials.encode()).decode("ascii")
            headers.append(("Proxy-Authorization", f"Basic {proof}"))
        return f"CONNECT {target} HTTP/1.1\r\n".encode("ascii") + header_lines(headers) + b"\r\n"

    def _trust_in_proxy(self) -> ssl.SSLContext:
        # A proxy belongs to the network, not to the cluster: it is verified by the system's CAs,
        # and does not get the client certificate.
        if self._proxy_context is None:
            self._proxy_context = build_context()
        return self._proxy_context


async def _connect(connection: Connection, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    pause = None if _is_address(host) else _NEXT_ADDRESS
    await loop.create_connection(lambda: connection, host, port, happy_eyeballs_delay=pause)


async def _secure(connection: Connection, context: ssl.SSLContext, server_name: str) -> None:
    layer = TlsLayer(context, server_name)
    await Handshake(connection, asyncio.get_running_loop(), layer).begin()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
