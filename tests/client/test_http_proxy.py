"""Proxies: a tunnel, with credentials and with TLS of its own, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest
from tests.certificates import Authority, server_context
from tests.client.http_server import (
    CHUNKED_HEAD,
    LAST_CHUNK,
    Handler,
    Peer,
    Received,
    always,
    answer,
    chunk,
    client,
    get,
    post,
    serve,
    until,
)
from tests.client.test_http_tls import Contexts, trusting
from tests.event_loop import run

from mooring.client.endpoint import Endpoint
from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport

CA = Authority()
SERVER = CA.server("127.0.0.1")
PROXY_CA = Authority("proxy-ca")
PROXY = PROXY_CA.server("127.0.0.1")
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def tunnel(peer: Peer) -> None:
    """A proxy that does as it is told."""
    host, _, port = (await peer.request()).path.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        await peer.send(ESTABLISHED)
        await asyncio.gather(pass_on(peer.reader, writer), pass_on(reader, peer.writer))
    finally:
        writer.transport.abort()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def through(*, secure: bool, url: str, proxy_tls: ssl.SSLContext | None = None) -> Received:
    """What the proxy was asked for, after requests and a stream went through it."""

    async def handler(peer: Peer) -> None:
        while True:
            if (await peer.request()).path == "/watch":
                await peer.send(CHUNKED_HEAD, chunk(b"event"), LAST_CHUNK)
            else:
                await peer.send(answer(b"hello"))

    async def scenario() -> Received:
        tls = Contexts(trusting(CA)) if secure else None
        context = server_context(SERVER) if secure else None
        async with serve(handler, tls=context) as server, serve(tunnel, tls=proxy_tls) as proxy:
            where = url.format(f"127.0.0.1:{proxy.port}")
            async with client(server.port, tls=tls, proxy=where) as to:
                for request in (get(), post(body=b"x" * 1_000_000), get()):
                    assert (await to.send(request)).body == b"hello"
                async with to.stream(get("/watch")) as stream:
                    assert await stream.read() == b"event"
            assert [len(peer.requests) for peer in server.peers] == [4]
            assert proxy.requests[0].path == f"127.0.0.1:{server.port}"
            assert all(request.method == "CONNECT" for request in proxy.requests)
            await until(lambda: all(peer.writer.is_closing() for peer in proxy.peers))
            return proxy.requests[0]

    return run(scenario())


@pytest.mark.parametrize("secure", [False, True])
def test_goes_through_a_tunnel(secure: bool) -> None:
    received = through(secure=secure, url="http://{}")
    assert "proxy-authorization" not in received.headers
    assert received.headers["user-agent"] == "mooring-test"


def test_shows_the_proxy_the_credentials_of_its_url() -> None:
    received = through(secure=True, url="http://us%40er:p%3Aw@{}")
    assert received.headers["proxy-authorization"] == "Basic dXNAZXI6cDp3"  # us@er:p:w


@pytest.mark.parametrize("secure", [False, True])
def test_speaks_tls_to_the_proxy_too(
    secure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(PROXY_CA.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    through(secure=secure, url="https://{}", proxy_tls=server_context(PROXY))


async def test_does_not_believe_every_proxy() -> None:
    async with serve(tunnel, tls=server_context(PROXY)) as proxy:
        url = f"https://127.0.0.1:{proxy.port}"
        async with client(1, tls=Contexts(trusting(CA)), proxy=url) as to:
            with pytest.raises(Unreachable, match="certificate verify failed") as found:
                await to.send(post())
            assert not found.value.sent


async def hang_up(peer: Peer) -> None:
    await peer.request()
    peer.close()


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (always(answer(b"", 407)), "the proxy answered 407; it wants other credentials"),
        (always(answer(b"no way", 502)), "the proxy answered 502"),
        (always(b"HTTP/1.1 502 Bad\r\nContent-Length: 9\r\n\r\n"), "the proxy answered 502"),
        (always(b""), r"no connection within 0\.3s"),
        (always(ESTABLISHED + b"surprise"), "the proxy sent more than its answer"),
        (hang_up, "closed the connection without an answer"),
    ],
)
async def test_says_what_the_proxy_said(handler: Handler, said: str) -> None:
    async with serve(handler) as proxy:
        url = f"http://user:secret@127.0.0.1:{proxy.port}"
        async with client(1, proxy=url, connect_timeout=0.3) as to:
            with pytest.raises(Unreachable, match=said) as found:
                await to.send(post())
            where = f"127.0.0.1:1 through the proxy 127.0.0.1:{proxy.port}: "
            assert str(found.value).startswith(where)
            assert "secret" not in str(found.value)
            assert not found.value.sent
        await until(lambda: proxy.peers[0].reader.at_eof() or handler is hang_up)


@pytest.mark.parametrize("url", ["socks5://user:secret@p:1080", "p:3128", "http://"])
def test_refuses_a_proxy_it_cannot_use(url: str) -> None:
    with pytest.raises(ValueError, match="proxy: expected http://host:port") as found:
        HttpTransport(Endpoint("h", 1, proxy=url), user_agent="x")
    assert "secret" not in str(found.value)
