"""Serves the page on loopback, with answers from a scheduler, a cluster or a file behind it.

    GET  /, /app.js, …     the files of the page: the same for everyone, without any data
    POST /session          {"token": …} -> {"key": …}, once for each token
    *    /lens/v1/…        with `Authorization: Bearer KEY`, from the backend

A request that names another host, or comes from another origin, is refused before anything else:
neither a name that resolves to loopback nor a page elsewhere gets an answer.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec
from aiohttp import web

from mooring.errors import ConfigError, Problem
from mooring.observe.listener import HttpListener
from mooring.ui.access import Denial, bearer_token
from mooring.ui.assets import INDEX, Asset, web_assets
from mooring.ui.endpoints import refusal
from mooring.ui.lens import PREFIX
from mooring.ui.pages import JSON
from mooring.ui.session import Sessions

log = logging.getLogger(__name__)

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "mooring",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
MAX_CONNECTIONS: Final = 64
_HEADER_SECONDS: Final = 10.0
_IDLE: Final = 75.0

_OLD: Final = Denial(
    401,
    "Unauthorized",
    "this address was used before, or is not of this process: open the one that was printed last",
)
_NO_KEY: Final = Denial(401, "Unauthorized", "open the page by the address that was printed")
_ELSEWHERE: Final = Denial(403, "Forbidden", "this page answers to its own address only")
_NOT_FOUND: Final = Denial(404, "NotFound", "there is no such page")
_NOT_ALLOWED: Final = Denial(405, "MethodNotAllowed", "this method is not allowed here")


class Backend(Protocol):
    """Answers requests below /lens/; `LensPages` and `FileLens` do."""

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial: ...


class _Exchange(msgspec.Struct, forbid_unknown_fields=True):
    token: str


class PageServer:
    """The page on one loopback address."""

    def __init__(self, backend: Backend, *, address: str = "127.0.0.1", port: int = 0) -> None:
        if not ipaddress.ip_address(address).is_loopback:
            text = f"{address} can be reached from outside; the page is served on loopback only"
            raise ConfigError([Problem("--address", text)])
        self._backend = backend
        self._address = address
        self._port = port
        self._hosts: frozenset[str] = frozenset()
        self._sessions = Sessions()
        self._assets = web_assets()
        self._listener = HttpListener(
            self._handle,
            None,
            max_connections=MAX_CONNECTIONS,
            idle_seconds=_IDLE,
            header_seconds=_HEADER_SECONDS,
            cancels_handlers=True,
        )

    async def start(self) -> int:
        """Begin to serve; the port."""
        self._port = await self._listener.start(self._address, self._port)
        names = ("localhost", f"[{self._address}]" if ":" in self._address else self._address)
        self._hosts = frozenset(f"{name}:{self._port}" for name in names)
        return self._port

    async def close(self) -> None:
        await self._listener.close()

    def new_address(self) -> str:
        """An address that opens the page once."""
        host = f"[{self._address}]" if ":" in self._address else self._address
        return f"http://{host}:{self._port}/#token={self._sessions.new_token()}"

    # --- requests --------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._respond(request)
        except Exception:
            log.exception("a request handler failed", extra={"path": request.path})
            answer = Denial(500, "InternalError", "Internal error occurred")
        response = refusal(answer) if isinstance(answer, Denial) else answer
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        if not self._is_own(request):
            return _ELSEWHERE
        path = request.path
        if ".." in path.split("/"):
            return _NOT_FOUND
        if path == "/session":
            return await self._exchange(request)
        if path.startswith(PREFIX):
            if not self._sessions.is_valid(bearer_token(request.headers.get("Authorization", ""))):
                return _NO_KEY
            if request.method not in ("GET", "HEAD", "POST"):
                return _NOT_ALLOWED
            return await self._backend.respond(request)
        asset = self._assets.get(path.removeprefix("/") or INDEX)
        if asset is None:
            return _NOT_FOUND
        if request.method not in ("GET", "HEAD"):
            return _NOT_ALLOWED
        return _file(request, asset)

    def _is_own(self, request: web.BaseRequest) -> bool:
        """Whether a request was meant for this address, by a page of this address or by none."""
        host = request.headers.get("Host", "").lower()
        if host not in self._hosts:
            return False
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return False
        return request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")

    async def _exchange(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        if request.method != "POST":
            return _NOT_ALLOWED
        try:
            body = await request.content.read(1024)
            token = msgspec.json.decode(body, type=_Exchange).token
        except msgspec.MsgspecError as error:
            return Denial(400, "BadRequest", f"the request: {error}")
        key = self._sessions.exchange(token)
        if key is None:
            return _OLD
        body = msgspec.json.encode({"key": key})
        return web.Response(body=body, headers={"Content-Type": JSON})


@asynccontextmanager
async def served(backend: Backend, port: int = 0) -> AsyncIterator[PageServer]:
    """The page on loopback, as long as it is needed."""
    server = PageServer(backend, port=port)
    await server.start()
    try:
        yield server
    finally:
        await server.close()


def _file(request: web.BaseRequest, asset: Asset) -> web.Response:
    headers = {"Content-Type": asset.content_type, "ETag": asset.etag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == asset.etag:
        return web.Response(status=304, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return web.Response(body=asset.packed, headers=headers)
    return web.Response(body=asset.body, headers=headers)
