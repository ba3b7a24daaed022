"""A served process for tests: real sockets on loopback, an imagined API server behind it."""

import asyncio
import http.client
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from mooring.api.auth import ResourceAttributes, UserInfo
from mooring.errors import ApiError
from mooring.ui.access import Access
from mooring.ui.endpoints import Endpoints
from mooring.ui.health import Health
from mooring.ui.pages import HttpPage
from mooring.ui.serving_tls import ServingTls


class FakeReviewer:
    """Knows some tokens and what their owners may do; counts the questions."""

    def __init__(self) -> None:
        self.tokens = {
            "admin": UserInfo(username="admin", groups=("system:masters",)),
            "scraper": UserInfo(username="scraper", uid="7", groups=("monitoring",)),
            "guest": UserInfo(username="guest"),
        }
        self.may = {("scraper", "get", "/metrics"), ("certified", "get", "/metrics")}
        self.lists = {"scraper": {"pods", "nodes"}, "certified": {"nodes"}}
        self.outage: ApiError | None = None
        self.asked: list[tuple[str, ...]] = []

    async def review_token(self, token: str) -> UserInfo | None:
        self.asked.append(("token", token))
        if self.outage is not None:
            raise self.outage
        return self.tokens.get(token)

    async def allowed(self, user: UserInfo, verb: str, path: str) -> bool:
        self.asked.append(("access", user.username, verb, path))
        if self.outage is not None:
            raise self.outage
        return (user.username, verb, path) in self.may

    async def may_access(self, user: UserInfo, resource: ResourceAttributes) -> bool:
        self.asked.append(("access", user.username, resource.verb, resource.resource))
        if self.outage is not None:
            raise self.outage
        everywhere = not resource.namespace and resource.verb == "list"
        return everywhere and resource.resource in self.lists.get(user.username, ())


class Reply(msgspec.Struct):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.text)


class Client:
    """Asks one served process, a new connection each time."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self.port = port
        self.context = context

    async def get(self, path: str, token: str = "", **options: Any) -> Reply:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.request("GET", path, headers=headers, **options)

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Reply:
        return await asyncio.to_thread(self._ask, method, path, headers or {}, body)

    def _ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        connection: http.client.HTTPConnection
        if self.context is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        else:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=20, context=self.context
            )
        try:
            connection.request(method, path, body=body or None, headers=dict(headers))
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()


@asynccontextmanager
async def serve(
    *,
    tls: ServingTls | None = None,
    context: ssl.SSLContext | None = None,
    health: Health | None = None,
    pages: Mapping[str, Callable[[], HttpPage]] | None = None,
    access: Access | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Endpoints that are served, and a client of them."""
    endpoints = Endpoints(
        address="127.0.0.1",
        port=0,
        tls=tls,
        health=health or Health(),
        pages=pages or {"/metrics": lambda: HttpPage(b"up 1\n", "text/plain; version=0.0.4")},
        access=access or Access(FakeReviewer()),
        **options,
    )
    port = await endpoints.start()
    try:
        yield Client(port, context)
    finally:
        await endpoints.close()
