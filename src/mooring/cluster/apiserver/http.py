"""The embedded server on a socket: HTTPS with a certificate authority of its own.

    socket ─▶ TLS ─▶ authentication ─▶ ApiRequest ─▶ ApiServer.handle ─┬─▶ ApiResponse, or gzip
                     401, 403          413                             └─▶ WatchResponse, chunks

Everything runs on one event loop. A watch sends a batch and then pauses; the pause grows with the
number of watches: changes in between are sent together, and a hundred watches leave time for
requests. `HttpListener` accepts the connections and limits their number and their time.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import logging
import secrets
import ssl
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import web

from mooring.client import certificates
from mooring.client.certificates import Authority, Pair
from mooring.client.errors import StatusError
from mooring.cluster.apiserver import kubeconfig
from mooring.cluster.apiserver._auth import Authenticator, Authorize, admit, check, impersonated
from mooring.cluster.apiserver.bootstrap import (
    create_roles,
    publish_address,
    publish_authority,
)
from mooring.cluster.apiserver.requests import (
    ADMIN,
    JSON,
    ApiRequest,
    ApiResponse,
    Caller,
    WatchResponse,
)
from mooring.cluster.apiserver.server import ApiServer, refusal
from mooring.errors import ConfigError, Problem
from mooring.observe.listener import HttpListener

log = logging.getLogger(__name__)

BODY_LIMIT: Final = 3 * 1024 * 1024  # bytes, as kube-apiserver's
_GZIP_FROM: Final = 128 * 1024  # bytes; likewise
_GZIP_LEVEL: Final = 1  # likewise
_WATCH_PAUSE: Final = 0.0002  # seconds between batches of a watch, for every watch there is
_MIN_WATCH_PAUSE: Final = 0.002  # less is not worth a timer
_HEADER_TIMEOUT: Final = 10.0  # seconds for the request line and the headers to arrive
_IDLE_TIMEOUT: Final = 180.0  # seconds until an unused connection is closed, after clients do so
_SHUTDOWN_TIMEOUT: Final = 1.0  # seconds for requests in progress
_MAX_CONNECTIONS: Final = 1000  # every watch has one, so do kubectl and each request in progress
_MAX_LINE: Final = 64 * 1024  # bytes of the request line, and of a header

_HEADERS: Final = {"Cache-Control": "no-cache, private", "Content-Type": JSON, "Server": "mooring"}


class Handler(Protocol):
    """Answers requests: the ApiServer."""

    async def handle(self, call: ApiRequest) -> ApiResponse | WatchResponse: ...


class OtherPages(Protocol):
    """Answers requests that are none of an API server's, of authenticated callers or others."""

    async def respond(
        self, request: web.BaseRequest, caller: Caller | None, authorize: Authorize | None
    ) -> web.StreamResponse: ...


class _ServerTls:
    """The server's certificate; clients may show one of the same authority."""

    def __init__(self, authority: Authority, address: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.verify_mode = ssl.CERT_OPTIONAL
        certificates.load(context, authority.server([address]))
        certificates.trust(context, authority.certificate)
        self._context = context

    def context(self) -> ssl.SSLContext:
        return self._context


class HttpServer:
    """Carries requests over sockets to one ApiServer.

    An administrator's token is generated unless `tokens` are given; the kubeconfig has the first of
    them. Only loopback addresses are served unless `exposed`. Without TLS there are no
    certificates, and kubectl sends no tokens. `authorize` may refuse callers outside of
    system:masters.
    """

    def __init__(
        self,
        server: Handler,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        tls: bool = True,
        exposed: bool = False,
        tokens: Mapping[str, Caller] | None = None,
        authorize: Authorize | None = None,
        body_limit: int = BODY_LIMIT,
    ) -> None:
        self._server = server
        self._address = _checked(address, exposed=exposed)
        if not 0 <= port <= 65535:
            raise ConfigError([Problem("--port", f"expected 0 to 65535, got {port}")])
        self._port = port
        self._body_limit = body_limit
        self.token: str = secrets.token_urlsafe(32) if tokens is None else next(iter(tokens), "")
        self.authenticator: Authenticator = Authenticator(
            {self.token: ADMIN} if tokens is None else tokens
        )
        self._authorize = authorize
        self._authority = Authority("mooring") if tls else None
        if isinstance(server, ApiServer):  # reviews answer as the server decides
            server.reviews.authenticate = self.authenticator.by_token
            self.authenticator.accounts = server.tokens.caller
            self._authorize = authorize or server.reviews.authorize
            server.reviews.authorize = self._authorize
            if self._authority is not None:
                publish_authority(server.verbs, self._authority.certificate)
            create_roles(server.verbs)
        self._listener = HttpListener(
            self._handle,
            None if self._authority is None else _ServerTls(self._authority, address),
            max_connections=_MAX_CONNECTIONS,
            idle_seconds=_IDLE_TIMEOUT,
            header_seconds=_HEADER_TIMEOUT,
            max_line=_MAX_LINE,
            cancels_handlers=True,  # a watch whose reader has gone ends at once
        )
        self.others: dict[str, OtherPages] = {}  # by the beginning of the path, such as "/lens/"
        self._watches: set[asyncio.Task[Any]] = set()
        self._is_closing = False
        self.url: str = ""  # set by `start`

    # --- living --------------------------------------------------------------------------------

    async def start(self) -> str:
        """Begin to serve; the URL."""
        port = await self._listener.start(self._address, self._port)
        scheme = "https" if self._authority is not None else "http"
        host = f"[{self._address}]" if ":" in self._address else self._address
        self.url = f"{scheme}://{host}:{port}"
        if isinstance(self._server, ApiServer):
            publish_address(self._server.verbs, self.url)
        return self.url

    async def close(self) -> None:
        """Accept no more connections; requests in progress finish, watches are ended."""
        self._is_closing = True
        for task in self._watches:
            task.cancel()
        if self._watches:
            await asyncio.wait(list(self._watches), timeout=_SHUTDOWN_TIMEOUT)
        await self._listener.close(_SHUTDOWN_TIMEOUT)

    # --- credentials ---------------------------------------------------------------------------

    @property
    def authority(self) -> bytes:
        """The CA certificate that clients must trust, PEM; empty without TLS."""
        return self._authority.certificate if self._authority is not None else b""

    def client_certificate(self, user: str, *groups: str) -> Pair:
        if self._authority is None:
            raise ValueError("expected a server with TLS, which client certificates need")
        return self._authority.client(user, groups)

    def kubeconfig(self, path: str | Path, *, force: bool = False) -> None:
        """Write the administrator's kubeconfig; ConfigError if the file is not ours."""
        if not self.url:
            raise ValueError("expected a server that has been started: its port is not known yet")
        text = kubeconfig.render(self.url, authority=self.authority, token=self.token)
        kubeconfig.write(path, text, force=force)

    # --- requests ------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            for prefix, pages in self.others.items():
                if request.path.startswith(prefix):
                    header = request.headers.get("Authorization", "")
                    certificate = request.get_extra_info("peercert")
                    caller = self.authenticator.caller(header, certificate)
                    return await pages.respond(request, caller, self._authorize)
            answer = await self._server.handle(await self._call(request))
        except StatusError as error:
            answer = refusal(error)
        except Exception:
            log.exception("a request handler failed", extra={"path": request.path})
            broken = StatusError("Internal error occurred", code=500, reason="InternalError")
            answer = refusal(broken)
        if isinstance(answer, WatchResponse):
            return await self._stream(request, answer)
        return await _response(request, answer)

    async def _call(self, request: web.BaseRequest) -> ApiRequest:
        target, _, query = request.raw_path.partition("?")
        path = request.path if target[:1] != "/" else unquote(target) if "%" in target else target
        headers = {name.lower(): value for name, value in request.headers.items()}
        caller = self.authenticator.caller(
            headers.get("authorization", ""), request.get_extra_info("peercert")
        )
        caller = impersonated(
            admit(caller, path),
            headers.get("impersonate-user", ""),
            request.headers.getall("Impersonate-Group", ()),
            headers.get("impersonate-uid", ""),
            self._authorize,
        )
        call = ApiRequest(
            method=request.method,
            path=path,
            query=dict(parse_qsl(query, keep_blank_values=True)) if query else {},
            headers=headers,
            caller=caller,
        )
        if self._authorize is not None:
            check(self._authorize, call)
        if not request.body_exists:
            return call
        return msgspec.structs.replace(call, body=await self._body(request))

    async def _body(self, request: web.BaseRequest) -> bytes:
        too_large = StatusError(
            f"Request entity too large: limit is {self._body_limit}",
            code=413,
            reason="RequestEntityTooLarge",
        )
        if (request.content_length or 0) > self._body_limit:
            raise too_large
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # the answer is yet to come
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > self._body_limit:
                raise too_large
        return bytes(body)

    # --- watches -------------------------------------------------------------------------------

    async def _stream(
        self, request: web.BaseRequest, watching: WatchResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=_HEADERS | {"Content-Type": watching.content_type})
        task = asyncio.current_task()
        assert task is not None
        self._watches.add(task)
        try:
            await response.prepare(request)
            async for chunk in watching.chunks:
                await response.write(chunk)
                rest = _WATCH_PAUSE * len(self._watches)
                if rest >= _MIN_WATCH_PAUSE:
                    await asyncio.sleep(rest)
        except asyncio.CancelledError:
            if not self._is_closing:
                raise
            task.uncancel()  # closed by us: end the response properly
        except ConnectionError as error:
            log.debug("a watch ended early", extra={"path": request.path, "error": str(error)})
        finally:
            self._watches.discard(task)
            if isinstance(watching.chunks, AsyncGenerator):
                await watching.chunks.aclose()  # at once, and with it the subscription
        return response


async def _response(request: web.BaseRequest, reply: ApiResponse) -> web.Response:
    headers = {**_HEADERS, "Content-Type": reply.content_type, **reply.headers}
    body = reply.body
    if len(body) >= _GZIP_FROM:
        headers["Vary"] = "Accept-Encoding"
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            # In a thread, because it takes as long as dozens of requests.
            body = await asyncio.to_thread(gzip.compress, body, _GZIP_LEVEL, mtime=0)
    return web.Response(body=body, status=reply.status, headers=headers)


def _checked(address: str, *, exposed: bool) -> str:
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError as error:
        raise ConfigError([Problem("--address", f"expected an IP address: {error}")]) from error
    if not is_loopback and not exposed:
        text = f"{address} can be reached from outside; only loopback is served unless --expose"
        raise ConfigError([Problem("--address", text)])
    return address
