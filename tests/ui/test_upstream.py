"""The page of a running scheduler: requests are forwarded, and nothing else is."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from mooring.client.endpoint import Endpoint
from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport
from mooring.errors import ApiError
from mooring.observe.listener import HttpListener
from mooring.ui.file_lens import MAX_BODY
from mooring.ui.page_server import PageServer, served
from mooring.ui.upstream import UpstreamLens


class Upstream:
    """A scheduler that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.breaks_off = False  # a snapshot, else it is refused

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs, await request.read()))
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        if request.path.endswith("/stream"):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for number in range(3):
                await response.write(f"event: queue\ndata: {number}\n\n".encode())
            await response.write_eof()
            return response
        if request.path.endswith("/nodes/large"):
            return web.json_response({"text": "x" * 2000})
        if request.path.endswith("/snapshot"):
            if self.breaks_off:
                response = web.StreamResponse(headers={"Content-Length": "100"})
                await response.prepare(request)
                await response.write(b"the beginning")
                assert request.transport is not None
                request.transport.abort()
                return response
            return web.json_response({"kind": "Status", "message": "too many"}, status=429)
        if request.path.endswith("/nodes/secret"):
            return web.json_response({"kind": "Status", "message": "forbidden"}, status=403)
        return web.json_response({"ok": True})


@asynccontextmanager
async def forwarded(
    namespace: str = "",
) -> AsyncIterator[tuple[Upstream, PageServer, HttpListener, UpstreamLens]]:
    upstream = Upstream()
    listener = HttpListener(upstream.handle, None, max_connections=16, idle_seconds=5)
    port = await listener.start("127.0.0.1", 0)
    transport = HttpTransport(Endpoint("127.0.0.1", port), user_agent="test")
    lens = UpstreamLens(transport, namespace)
    try:
        async with served(lens) as page:
            yield upstream, page, listener, lens
    finally:
        await transport.close()
        await listener.close()


class Client:
    """A browser that has its key."""

    def __init__(self, address: str) -> None:
        at, _, token = address.partition("/#token=")
        self._at = at.removeprefix("http://")
        body = json.dumps({"token": token}).encode()
        self._key = ""
        self.headers: dict[str, str] = {}  # of the last answer
        self._key = json.loads(self.ask("/session", body)[1])["key"]

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._at, timeout=20)
        headers = {"Authorization": f"Bearer {self._key}", "Cookie": "a=b"}
        headers["Accept-Encoding"] = "gzip"
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            answer = connection.getresponse()
            self.headers = dict(answer.getheaders())
            text = answer.read()
            packed = answer.getheader("Content-Encoding") == "gzip"
            return answer.status, gzip.decompress(text) if packed else text
        finally:
            connection.close()


async def test_forwards_questions_and_answers_but_no_header_of_the_browser() -> None:
    async with forwarded() as (upstream, page, _, lens):
        await lens.check()
        client = await asyncio.to_thread(Client, page.new_address())
        path = "/lens/v1/pods/shop/web/explain?depth=matrix&node=a%2Fb"
        assert await asyncio.to_thread(client.ask, path) == (200, b'{"ok": true}')
        await asyncio.to_thread(client.ask, "/lens/v1/what-if", b'{"drain": ["a"]}')
        assert upstream.asked == [
            ("GET", "/lens/v1/state", b""),
            ("GET", path, b""),
            ("POST", "/lens/v1/what-if", b'{"drain": ["a"]}'),
        ]
        for headers in upstream.headers:
            assert not {"authorization", "cookie", "origin"} & headers.keys()


async def test_asks_for_the_one_namespace_of_its_reader() -> None:
    async with forwarded("shop") as (upstream, page, _, lens):
        await lens.check()
        client = await asyncio.to_thread(Client, page.new_address())
        await asyncio.to_thread(client.ask, "/lens/v1/records?limit=1&pod=shop%2Fweb")
        assert [path for _, path, _ in upstream.asked] == [
            "/lens/v1/state?namespace=shop",
            "/lens/v1/records?limit=1&pod=shop/web&namespace=shop",
        ]


async def test_forwards_streams_and_refusals_as_they_come() -> None:
    async with forwarded() as (_, page, _, _):
        client = await asyncio.to_thread(Client, page.new_address())
        status, body = await asyncio.to_thread(client.ask, "/lens/v1/stream")
        assert (status, body.count(b"event: queue")) == (200, 3)
        status, body = await asyncio.to_thread(client.ask, "/lens/v1/nodes/secret")
        assert (status, json.loads(body)["message"]) == (403, "forbidden")


async def test_packs_what_is_long() -> None:
    async with forwarded() as (_, page, _, _):
        client = await asyncio.to_thread(Client, page.new_address())
        status, body = await asyncio.to_thread(client.ask, "/lens/v1/nodes/large")
        assert (status, json.loads(body)) == (200, {"text": "x" * 2000})
        assert client.headers["Content-Encoding"] == "gzip"
        await asyncio.to_thread(client.ask, "/lens/v1/nodes/small")
        assert "Content-Encoding" not in client.headers


async def test_a_stream_that_is_refused_or_breaks_off_does_not_look_whole() -> None:
    async with forwarded() as (upstream, page, _, _):
        client = await asyncio.to_thread(Client, page.new_address())
        status, body = await asyncio.to_thread(client.ask, "/lens/v1/snapshot")
        assert (status, json.loads(body)["message"]) == (429, "too many")
        upstream.breaks_off = True
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            await asyncio.to_thread(client.ask, "/lens/v1/snapshot")


async def test_forwards_no_question_that_is_too_long() -> None:
    async with forwarded() as (upstream, page, _, _):
        client = await asyncio.to_thread(Client, page.new_address())
        status, body = await asyncio.to_thread(
            client.ask, "/lens/v1/what-if", b"x" * (MAX_BODY + 1)
        )
        assert status == 413
        assert f"expected at most {MAX_BODY:,} bytes" in json.loads(body)["message"]
        assert upstream.asked == []


@pytest.mark.parametrize("path", ["/lens/v2/state", "/lens/v1/../../metrics", "/lens/metrics"])
async def test_forwards_nothing_else(path: str) -> None:
    async with forwarded() as (upstream, page, _, _):
        client = await asyncio.to_thread(Client, page.new_address())
        assert (await asyncio.to_thread(client.ask, path))[0] == 404
        assert upstream.asked == []


async def test_says_so_if_the_scheduler_does_not_answer() -> None:
    async with forwarded() as (_, page, listener, lens):
        client = await asyncio.to_thread(Client, page.new_address())
        await listener.close()
        for path in ("/lens/v1/state", "/lens/v1/stream"):
            status, body = await asyncio.to_thread(client.ask, path)
            assert status == 502
            assert "the scheduler does not answer" in json.loads(body)["message"]
        with pytest.raises(Unreachable):
            await lens.check()


async def test_check_tells_a_refusal() -> None:
    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "message": "no", "code": 401}, status=401)

    listener = HttpListener(refuse, None, max_connections=4, idle_seconds=5)
    port = await listener.start("127.0.0.1", 0)
    transport = HttpTransport(Endpoint("127.0.0.1", port), user_agent="test")
    try:
        with pytest.raises(ApiError, match="no"):
            await UpstreamLens(transport).check()
    finally:
        await transport.close()
        await listener.close()
