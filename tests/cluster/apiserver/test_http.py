"""The embedded server over real sockets on loopback."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from tests.cluster.apiserver.http_fixtures import Recorder, in_loop, serving, trusting

from mooring.cluster.apiserver import http
from mooring.cluster.apiserver.http import HttpServer
from mooring.cluster.apiserver.requests import ADMIN, ApiRequest, ApiResponse, WatchResponse
from mooring.cluster.apiserver.resources import PODS
from mooring.cluster.apiserver.store import Store
from mooring.errors import ConfigError
from mooring.observe import listener

# --- requests ------------------------------------------------------------------------------------


@in_loop
async def test_passes_a_request_on_as_it_came() -> None:
    recorder = Recorder()
    async with serving(recorder) as (_, client):
        await client.ask(
            "/api/v1/pods?limit=5&labelSelector=a%3Db&limit=7&watch",
            "POST",
            data=b'{"kind":"Pod"}',
            headers={"Content-Type": "application/json", "X-Odd": "Yes"},
        )
    [request] = recorder.calls
    assert (request.method, request.path) == ("POST", "/api/v1/pods")
    assert request.query == {"limit": "7", "labelSelector": "a=b", "watch": ""}
    assert request.body == b'{"kind":"Pod"}'
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-odd"] == "Yes"
    assert request.caller == ADMIN


@in_loop
async def test_decodes_the_path() -> None:
    recorder = Recorder()
    async with serving(recorder) as (server, _):
        await by_hand(server, "GET /api/v1/nodes/a%20b%c3%a9 HTTP/1.1\r\nHost: x\r\n{auth}\r\n")
    assert recorder.calls[0].path == "/api/v1/nodes/a b\N{LATIN SMALL LETTER E WITH ACUTE}"


@in_loop
async def test_understands_very_long_selectors() -> None:
    recorder, selector = Recorder(), "a" * 50_000
    async with serving(recorder) as (_, client):
        await client.ask(f"/api/v1/pods?labelSelector={selector}")
    assert recorder.calls[0].query == {"labelSelector": selector}


@in_loop
async def test_answers_with_status_type_and_headers() -> None:
    reply = ApiResponse(
        status=201, body=b"ok", content_type="text/plain", headers={"Retry-After": "3"}
    )
    async with serving(Recorder(reply)) as (_, client):
        status, answer, body = await client.ask("/")
        assert (status, body) == (201, b"ok")
        assert answer.headers["Content-Type"] == "text/plain"
        assert answer.headers["Retry-After"] == "3"
        assert answer.headers["Cache-Control"] == "no-cache, private"


@in_loop
async def test_keeps_the_connection_for_further_requests() -> None:
    async with serving(Recorder()) as (server, _):
        asked = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        last = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answered = await by_hand(server, asked + asked + last)
        assert answered.count(b"HTTP/1.1 200 OK") == 3


@in_loop
async def test_tells_a_client_with_a_large_body_to_go_on() -> None:
    recorder = Recorder()
    async with serving(recorder) as (server, _):
        head = (
            "POST /api/v1/pods HTTP/1.1\r\nHost: x\r\n{auth}Connection: close\r\n"
            "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        answered = await by_hand(server, head, after=(b"100 Continue\r\n\r\n", b"{}"))
        assert answered.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert recorder.calls[0].body == b"{}"


@pytest.mark.parametrize("chunked", [False, True])
@in_loop
async def test_refuses_bodies_beyond_the_limit(chunked: bool) -> None:
    recorder = Recorder()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 100

    async with serving(recorder, body_limit=1000) as (_, client):
        assert (await client.ask("/", "POST", data=b"x" * 1000))[0] == 200
        data: Any = pieces() if chunked else b"x" * 1001
        status, _, body = await client.ask("/", "POST", data=data)
        assert status == 413
        assert json.loads(body) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Request entity too large: limit is 1000",
            "reason": "RequestEntityTooLarge",
            "code": 413,
        }
        assert (await client.ask("/", "POST", data=b"fine"))[0] == 200
    assert [len(request.body) for request in recorder.calls] == [1000, 4]


@in_loop
async def test_zips_big_answers_for_those_who_ask() -> None:
    big = json.dumps({"items": ["pod"] * 50_000}).encode()

    async def answer(request: ApiRequest) -> ApiResponse:
        return ApiResponse(body=big if request.path == "/big" else b"{}")

    async with serving(Recorder(answer)) as (_, client):
        asking = {"Accept-Encoding": "gzip"}
        _, zipped, body = await client.ask("/big", headers=asking)
        assert zipped.headers["Content-Encoding"] == "gzip"
        assert len(body) < len(big) / 10
        assert gzip.decompress(body) == big
        _, small, body = await client.ask("/small", headers=asking)
        assert ("Content-Encoding" in small.headers, body) == (False, b"{}")
        _, plain, body = await client.ask("/big", headers={"Accept-Encoding": "identity"})
        assert ("Content-Encoding" in plain.headers, body) == (False, big)


@in_loop
async def test_survives_a_handler_that_breaks(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: ApiRequest) -> ApiResponse:
        raise ZeroDivisionError(request.path)

    async with serving(Recorder(answer)) as (_, client):
        for _ in range(2):
            status, _, body = await client.ask("/api/v1/pods")
            assert (status, json.loads(body)["reason"]) == (500, "InternalError")
    assert [record.message for record in caplog.records] == ["a request handler failed"] * 2


# --- watches -------------------------------------------------------------------------------------


class Tap:
    """A watch that says what it is given, and knows how many listen."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.open = 0
        self.changed = asyncio.Event()

    async def handle(self, request: ApiRequest) -> ApiResponse | WatchResponse:
        return (
            WatchResponse(chunks=self._chunks())
            if "watch" in request.query
            else ApiResponse(body=b"{}")
        )

    async def _chunks(self) -> AsyncIterator[bytes]:
        self._count(1)
        try:
            while (line := await self.lines.get()) is not None:
                yield line
        finally:
            self._count(-1)

    def _count(self, by: int) -> None:
        self.open += by
        self.changed.set()

    async def wait_until(self, count: int) -> None:
        while self.open != count:
            self.changed.clear()
            await self.changed.wait()


@in_loop
async def test_sends_what_happens_when_it_happens() -> None:
    tap = Tap()
    async with serving(tap) as (_, client), client.open("/?watch=1") as answer:
        assert answer.status == 200  # before anything has happened
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert "Content-Encoding" not in answer.headers
        for line in (b"one\n", b"two\n" * 100_000, b"three\n"):
            tap.lines.put_nowait(line)
            assert await answer.content.readexactly(len(line)) == line
        tap.lines.put_nowait(None)
        assert await answer.content.read() == b""
        await tap.wait_until(0)


@in_loop
async def test_ends_the_subscription_of_who_has_gone() -> None:
    tap = Tap()
    async with serving(tap) as (_, client):
        answer = await client.open("/?watch=1")
        await tap.wait_until(1)
        answer.close()
        await tap.wait_until(0)  # without anything to send


@in_loop
async def test_ends_the_subscription_of_who_goes_in_the_middle_of_much_to_read() -> None:
    tap = Tap()
    async with serving(tap) as (_, client):
        answer = await client.open("/?watch=1")
        for _ in range(100):
            tap.lines.put_nowait(b"x" * 1_000_000)
        await answer.content.readexactly(10)
        answer.close()
        await tap.wait_until(0)


@in_loop
async def test_waits_for_slow_readers_without_making_others_wait() -> None:
    tap = Tap()
    async with serving(tap) as (_, client), client.open("/?watch=1") as answer:
        for _ in range(100):
            tap.lines.put_nowait(b"x" * 1_000_000)
        for _ in range(50):
            assert (await client.ask("/"))[0] == 200
        assert tap.lines.qsize() > 50  # they are not read, so nothing more is taken
        assert len(await answer.content.readexactly(100_000_000)) == 100_000_000


@in_loop
async def test_ends_watches_properly_when_it_closes() -> None:
    tap = Tap()
    async with serving(tap) as (server, client), client.open("/?watch=1") as answer:
        tap.lines.put_nowait(b"one\n")
        assert await answer.content.readexactly(4) == b"one\n"
        await server.close()
        assert await answer.content.read() == b""  # and not a broken connection
        assert tap.open == 0
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.ask("/")


@in_loop
async def test_answers_requests_beside_a_hundred_watches() -> None:
    """Every watch gets all changes, in order."""
    watches, writes = 100, 100
    store = Store()

    async def lines() -> AsyncIterator[bytes]:
        subscription = store.subscribe(PODS)
        try:
            while True:
                await subscription.arrival()
                yield b"".join(b"%d\n" % change.version for change in subscription.take())
        finally:
            subscription.close()

    async def answer(request: ApiRequest) -> ApiResponse | WatchResponse:
        if "watch" in request.query:
            return WatchResponse(chunks=lines())
        name = f"p{store.version}"
        store.put(PODS, {"metadata": {"namespace": "default", "name": name}})
        return ApiResponse(status=201, body=b"{}")

    async with serving(Recorder(answer)) as (_, client):
        streams = await asyncio.gather(*(client.open("/?watch=1") for _ in range(watches)))
        for _ in range(writes):
            assert (await client.ask("/", "POST", data=b"{}"))[0] == 201
        expected = b"".join(b"%d\n" % version for version in range(1, writes + 1))
        heard = await asyncio.gather(
            *(stream.content.readexactly(len(expected)) for stream in streams)
        )
        assert heard == [expected] * watches
        for stream in streams:
            stream.close()


# --- limits --------------------------------------------------------------------------------------


@in_loop
async def test_cuts_off_a_request_whose_headers_do_not_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "_HEADER_TIMEOUT", 0.2)
    tap = Tap()
    async with serving(tap, tls=False) as (server, client), client.open("/?watch=1") as answer:
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api HTTP/1.1\r\nHost: ")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        tap.lines.put_nowait(b"one\n")  # the watch is older, and still open
        assert await answer.content.readexactly(4) == b"one\n"


@in_loop
async def test_cuts_off_every_one_of_many_slow_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_HEADER_TIMEOUT", 0.5)
    monkeypatch.setattr(listener, "_HANDSHAKE", 0.5)
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE

    async def is_cut(context: ssl.SSLContext | None, said: bytes) -> bool:
        """Whether a connection that says this and then nothing is ended by the server."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(said)
        try:
            heard = await asyncio.wait_for(reader.read(), 20)
        except ConnectionResetError:
            heard = b""
        writer.close()
        return heard == b""

    async with serving(Recorder()) as (server, client):
        port = int(server.url.rpartition(":")[2])
        half_a_header = [is_cut(unverified, b"GET /api HTTP/1.1\r\nHost: ") for _ in range(30)]
        half_a_handshake = [is_cut(None, b"\x16\x03\x01") for _ in range(30)]
        assert all(await asyncio.gather(*half_a_header, *half_a_handshake))
        assert (await client.ask("/healthz"))[0] == 200


@in_loop
async def test_refuses_connections_beyond_the_limit_and_keeps_its_watches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "_MAX_CONNECTIONS", 2)
    tap = Tap()
    async with serving(tap) as (_, client):
        first, second = [await client.open("/?watch=1") for _ in range(2)]
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.ask("/")
        second.close()
        await tap.wait_until(1)
        assert (await client.ask("/"))[0] == 200
        tap.lines.put_nowait(b"one\n")
        assert await first.content.readexactly(4) == b"one\n"
        first.close()


# --- where it listens ----------------------------------------------------------------------------


def refusal(**options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        HttpServer(Recorder(), **options)
    return str(caught.value)


def test_serves_only_this_machine_unless_told_otherwise() -> None:
    assert "0.0.0.0 can be reached from outside" in refusal(address="0.0.0.0")
    assert "expected an IP address" in refusal(address="example.com")
    assert HttpServer(Recorder(), address="0.0.0.0", exposed=True)


def test_says_which_port_is_taken() -> None:
    async def story(port: int) -> None:
        with pytest.raises(ConfigError, match=f"port {port}: Address already in use"):
            await HttpServer(Recorder(), port=port).start()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(story(taken.getsockname()[1]))
    assert refusal(port=99999) == "--port: expected 0 to 65535, got 99999"


@in_loop
async def test_speaks_plain_http_when_asked_to() -> None:
    async with serving(Recorder(), tls=False) as (server, client):
        assert server.url.startswith("http://127.0.0.1:")
        assert (await client.ask("/api"))[0] == 200
        assert (await client.ask("/api", token=""))[0] == 401


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
@in_loop
async def test_listens_on_an_address_of_ipv6() -> None:
    async with serving(Recorder(), address="::1") as (server, client):
        assert server.url.startswith("https://[::1]:")
        assert (await client.ask("/api"))[0] == 200


try:
    socket.create_server(("::1", 0), family=socket.AF_INET6).close()
except OSError:
    pytest.skip("no IPv6 on loopback")


def test_may_be_closed_without_having_been_started() -> None:
    asyncio.run(HttpServer(Recorder()).close())


async def by_hand(server: HttpServer, text: str, after: tuple[bytes, bytes] | None = None) -> bytes:
    """Send these very bytes; `after` the first text has come, the second goes out."""
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting(server), server_hostname="localhost"
    )
    try:
        authorization = f"Authorization: Bearer {server.token}\r\n"
        writer.write(text.replace("{auth}", authorization).encode())
        answered = b""
        if after is not None:
            answered = await reader.readuntil(after[0])
            writer.write(after[1])
        if "Connection: close" in text:
            return answered + await reader.read()
        return answered + await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
