"""The HTTPS server of a running process: health, and pages that need authorisation.

    GET /healthz, /livez, /readyz   and below, e.g. /readyz/informer-sync; ?verbose, ?exclude=ping
    GET /lens/v1/                   state, explanations, records and more, see `ui.lens`
    GET <page>                      one of `pages`: /metrics, /configz, /version

One request per connection, except below /lens/. A refusal is a Status, as from any Kubernetes
component.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

import msgspec
from aiohttp import web

from mooring.api.auth import UserInfo
from mooring.errors import ConfigError, Problem
from mooring.observe.listener import HttpListener
from mooring.ui.access import Access, Denial, bearer_token, certified_user
from mooring.ui.health import ENDPOINTS, Endpoint, Health, HealthResult
from mooring.ui.lens import METHODS, PREFIX, LensPages, needed, sight_of
from mooring.ui.pages import HEADERS, JSON, HttpPage
from mooring.ui.serving_tls import ServingTls

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 128
LIFETIME: Final = 30.0  # seconds from the first byte of a connection to the last

_METHODS: Final = ("GET", "HEAD")
_NOT_ALLOWED: Final = Denial(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
)
_HEALTH: Final[Mapping[str, Endpoint]] = {name: name for name in ENDPOINTS}


class Endpoints:
    """Serves health and pages on one address; without TLS only to the machine it runs on."""

    def __init__(
        self,
        *,
        address: str,
        port: int,
        tls: ServingTls | None,
        health: Health,
        pages: Mapping[str, Callable[[], HttpPage]],
        access: Access,
        lens: LensPages | None = None,
        max_connections: int = MAX_CONNECTIONS,
        lifetime: float = LIFETIME,
    ) -> None:
        if tls is None and not _is_loopback(address):
            text = f"{address} can be reached from outside; without TLS only loopback is served"
            raise ConfigError([Problem("--bind-address", text)])
        self._is_secure = tls is not None
        self._address = address
        self._port = port
        self._health = health
        self._pages = dict(pages)
        self._access = access
        self._lens = lens
        # A request takes milliseconds, so the oldest connection is not one in regular use.
        self._listener = HttpListener(
            self._handle,
            tls,
            max_connections=max_connections,
            idle_seconds=lifetime,
            lifetime=lifetime,
            evict_busy=True,
            port_flag="--secure-port",
        )

    async def start(self) -> int:
        """Begin to serve; returns the port, which is a free one if it was given as 0."""
        port = await self._listener.start(self._address, self._port)
        text = "Serving securely" if self._is_secure else "Serving without TLS, on loopback only"
        log.info(text, extra={"v": 0, "address": self._address, "port": port})
        return port

    async def close(self) -> None:
        await self._listener.close()

    @property
    def listener(self) -> HttpListener:
        return self._listener

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response: web.StreamResponse
            if self._lens is not None and request.path.startswith(PREFIX):
                response = await self._respond_by_lens(self._lens, request)
            else:
                response = await self._respond(request)
        except Exception:
            log.exception("a request handler failed", extra={"path": request.path})
            response = refusal(Denial(500, "InternalError", "Internal error occurred"))
        if not response.prepared:
            response.headers.update(HEADERS)
            if not request.path.startswith(PREFIX) or response.status >= 400:
                response.force_close()
        return response

    async def _respond_by_lens(
        self, lens: LensPages, request: web.BaseRequest
    ) -> web.StreamResponse:
        wanted = needed(request)
        allowed = await self._access.permitted(wanted, **_credentials(request))
        if isinstance(allowed, Denial):
            return refusal(allowed)
        sight = sight_of(request, allowed.answers)
        if sight is None:
            return refusal(allowed.denial(wanted[0]))
        if request.method not in METHODS:
            return refusal(_NOT_ALLOWED)
        answer = await lens.respond(request, sight)
        return refusal(answer) if isinstance(answer, Denial) else answer

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        # One string for both the review and the look-up, so that only the reviewed page is shown.
        path = request.path.encode(errors="replace").decode()
        verb = request.method.lower()
        denial = await self._access.check(verb, path, **_credentials(request))
        if denial is not None:
            return refusal(denial)
        if request.method not in _METHODS:
            return refusal(_NOT_ALLOWED)
        page = self._pages.get(path)
        if page is not None:
            shown = page()
            return web.Response(body=shown.body, headers={"Content-Type": shown.content_type})
        health = self._health_of(path, request)
        if health is not None:
            return web.Response(status=200 if health.healthy else 500, text=health.text)
        return web.Response(status=404, text="404 page not found\n")

    def _health_of(self, path: str, request: web.BaseRequest) -> HealthResult | None:
        first, _, check = path.removeprefix("/").partition("/")
        endpoint = _HEALTH.get(first)
        if endpoint is None:
            return None
        if path == f"/{endpoint}":
            exclude = request.query.getall("exclude", [])
            return self._health.check(endpoint, verbose="verbose" in request.query, exclude=exclude)
        return self._health.single(endpoint, check)


class _Credentials(TypedDict):
    token: str
    certified: UserInfo | None


def _credentials(request: web.BaseRequest) -> _Credentials:
    return {
        "token": bearer_token(request.headers.get("Authorization", "")),
        "certified": certified_user(request.get_extra_info("peercert")),
    }


def refusal(denial: Denial) -> web.Response:
    """A Status, as from any Kubernetes component."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": denial.message,
        "reason": denial.reason,
        "code": denial.code,
    }
    if denial.code == 403:
        status["details"] = {}
    headers = {"Content-Type": JSON}
    if denial.code == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if denial.code == 405:
        headers["Allow"] = ", ".join(_METHODS)
    if denial.code == 429:
        headers["Retry-After"] = "1"
    body = msgspec.json.encode(status)
    return web.Response(status=denial.code, body=body, headers=headers)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError as error:
        raise ConfigError([Problem("--bind-address", str(error))]) from error
