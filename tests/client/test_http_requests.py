"""What goes over the wire for a request, and what never does."""

from __future__ import annotations

import pytest
from tests.client.http_server import (
    Received,
    always,
    answer,
    client,
    get,
    post,
    serve,
)
from tests.client.test_http_tls import Contexts
from tests.event_loop import run

from mooring.client._dial import host_header
from mooring.client.endpoint import Endpoint
from mooring.client.transport import MERGE_PATCH, Request


def sent(request: Request, prefix: str = "") -> Received:
    async def scenario() -> Received:
        async with serve(always(answer())) as server, client(server.port, prefix=prefix) as to:
            await to.send(request)
            assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"
            return server.requests[0]

    return run(scenario())


def test_sends_method_path_and_body() -> None:
    path = "/api/v1/pods/x?fieldManager=m"
    request = Request(method="PATCH", path=path, body=b"{}", content_type=MERGE_PATCH)
    received = sent(request)
    assert (received.method, received.path, received.body) == ("PATCH", path, b"{}")
    assert received.headers["content-type"] == MERGE_PATCH
    assert received.headers["user-agent"] == "mooring-test"
    assert received.headers["accept"] == "application/json"


def test_puts_the_prefix_before_the_path() -> None:
    assert sent(get("/api"), prefix="/k8s/clusters/c-1").path == "/k8s/clusters/c-1/api"


def test_asks_for_compression_only_when_reading() -> None:
    assert sent(get()).headers["accept-encoding"] == "gzip"
    assert "accept-encoding" not in sent(post()).headers


def test_says_that_a_body_is_empty_where_one_is_expected() -> None:
    assert sent(Request(method="POST", path="/x")).headers["content-length"] == "0"
    assert "content-length" not in sent(Request(method="DELETE", path="/x")).headers
    assert "content-type" not in sent(get()).headers


@pytest.mark.parametrize(
    "request_",
    [
        get("/a b"),
        get("/a\r\nX: y"),
        get("/a\n"),
        get("/ä"),
        get("a"),
        get(""),
        Request(method="GE T", path="/"),
        Request(method="GET\r\n", path="/"),
        Request(method="POST", path="/", body=b"x", content_type="a\r\nX: y"),
    ],
)
async def test_refuses_what_would_end_a_line_early(request_: Request) -> None:
    async with serve(always(answer())) as server, client(server.port) as transport:
        with pytest.raises(ValueError, match=r"percent-encoded|HTTP"):
            await transport.send(request_)
        assert not server.peers


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        (Endpoint("api.example", 80), "api.example"),
        (Endpoint("api.example", 443), "api.example:443"),
        (Endpoint("api.example", 443, tls=Contexts()), "api.example"),
        (Endpoint("10.0.0.1", 6443, tls=Contexts()), "10.0.0.1:6443"),
        (Endpoint("fd00::1", 443, tls=Contexts()), "[fd00::1]"),
        (Endpoint("fd00::1", 6443, tls=Contexts()), "[fd00::1]:6443"),
    ],
)
def test_names_the_server_as_a_url_does(endpoint: Endpoint, said: str) -> None:
    assert host_header(endpoint) == said
