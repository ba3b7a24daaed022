"""The page on loopback: who gets an answer, and what may run in it."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping

import pytest
from aiohttp import web
from tests.browser.serving import ServedPage, served

from mooring.errors import ConfigError
from mooring.ui.access import Denial
from mooring.ui.assets import web_assets
from mooring.ui.page_server import PageServer
from mooring.ui.session import MAX_KEYS, Sessions


class Echo:
    """Answers with the path it was asked for."""

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse | Denial:
        if request.path.endswith("/refused"):
            return Denial(404, "NotFound", "not here")
        return web.json_response({"path": request.path})


@pytest.fixture(scope="module")
def page() -> Iterator[ServedPage]:
    with served(Echo()) as running:
        yield running


def ask(
    page: ServedPage,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    try:
        connection.putrequest(
            method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True
        )
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def exchange(page: ServedPage, token: str) -> tuple[int, str]:
    body = json.dumps({"token": token}).encode()
    status, _, answer = ask(page, "/session", method="POST", body=body)
    return status, json.loads(answer).get("key", "")


def token_of(page: ServedPage) -> str:
    address, _, token = page.address().partition("#token=")
    assert address == f"http://127.0.0.1:{page.port}/"
    return token


@pytest.fixture(scope="module")
def key(page: ServedPage) -> str:
    status, found = exchange(page, token_of(page))
    assert status == 200
    return found


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_answers_the_holder_of_a_key_and_no_one_else(page: ServedPage, key: str) -> None:
    path = "/lens/v1/state"
    assert ask(page, path, headers=bearer(key))[0] == 200
    assert ask(page, path)[0] == 401
    assert ask(page, path, headers=bearer(key + "x"))[0] == 401
    assert ask(page, path, headers=bearer(""))[0] == 401
    assert ask(page, f"{path}?token={key}")[0] == 401  # not in an address


def test_a_token_works_once(page: ServedPage) -> None:
    token = token_of(page)
    assert exchange(page, token)[0] == 200
    assert exchange(page, token)[0] == 401
    assert exchange(page, "x" * 43)[0] == 401
    assert ask(page, "/lens/v1/state", headers=bearer(token))[0] == 401  # a token is no key


@pytest.mark.parametrize("body", [b"", b"{}", b"[", b'{"token": 1}', b"\xff", b"x" * 5000])
def test_refuses_a_malformed_exchange(page: ServedPage, body: bytes) -> None:
    assert ask(page, "/session", method="POST", body=body)[0] == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},  # a name that resolves to loopback
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},  # another program of this machine
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/lens/v1/state", "/session"])
def test_refuses_other_hosts_and_origins(
    page: ServedPage, key: str, headers: dict[str, str], path: str
) -> None:
    named = {name: value.format(port=page.port) for name, value in headers.items()}
    status, answered, body = ask(page, path, headers={**bearer(key), **named})
    assert status == 403
    assert "access-control-allow-origin" not in answered
    assert json.loads(body)["kind"] == "Status"


def test_its_own_origin_is_welcome(page: ServedPage, key: str) -> None:
    for host in (f"127.0.0.1:{page.port}", f"localhost:{page.port}"):
        own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert ask(page, "/lens/v1/state", headers={**bearer(key), **own})[0] == 200


def test_a_preflight_of_another_origin_is_refused(page: ServedPage) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    status, answered, _ = ask(page, "/session", method="OPTIONS", headers=headers)
    assert status == 403
    assert not [name for name in answered if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "path",
    [
        "/../assets.py",
        "/..%2fassets.py",
        "/%2e%2e/assets.py",
        "/pages/../../assets.py",
        "/./../__init__.py",
        "//etc/passwd",
        "/etc/passwd",
        "/web/app.js",
        "/pages",
        "/pages/",
        "/app.js/",
        "/app.js%00",
        "/__pycache__/x.pyc",
        "/lens",
        "/lens/../session",
    ],
)
def test_serves_nothing_outside_its_folder(page: ServedPage, key: str, path: str) -> None:
    status, _, body = ask(page, path, headers=bearer(key))
    assert status in (403, 404)
    assert json.loads(body)["kind"] == "Status"


def test_serves_every_file_with_a_strict_policy(page: ServedPage) -> None:
    paths = ["/", *(f"/{path}" for path in web_assets())]
    for path in paths:
        status, headers, body = ask(page, path)
        assert status == 200, path
        assert body
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert re.search(r"script-src 'self';", policy)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
        assert "set-cookie" not in headers


def test_files_are_not_sent_twice(page: ServedPage) -> None:
    _, headers, body = ask(page, "/app.js", headers={"Accept-Encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    assert body[:2] == b"\x1f\x8b"
    status, _, again = ask(page, "/app.js", headers={"If-None-Match": headers["etag"]})
    assert (status, again) == (304, b"")


def test_methods(page: ServedPage, key: str) -> None:
    assert ask(page, "/app.js", method="POST", body=b"")[0] == 405
    assert ask(page, "/session")[0] == 405
    for method in ("PUT", "DELETE", "PATCH"):
        status, _, _ = ask(page, "/lens/v1/x", method=method, headers=bearer(key), body=b"")
        assert status == 405
    assert ask(page, "/", method="HEAD")[2] == b""


def test_refusals_of_the_backend_are_statuses_with_the_headers(page: ServedPage, key: str) -> None:
    status, headers, body = ask(page, "/lens/v1/refused", headers=bearer(key))
    assert status == 404
    assert json.loads(body)["message"] == "not here"
    assert "content-security-policy" in headers


def test_is_reached_on_loopback_only(page: ServedPage) -> None:
    with pytest.raises(ConfigError, match="loopback only"):
        PageServer(Echo(), address="0.0.0.0")
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
    for other in sorted(map(str, others)):
        if not other.startswith(("127.", "::1", "fe80")):
            with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                socket.create_connection((other, page.port), timeout=2).close()


def test_the_oldest_key_gives_way() -> None:
    sessions = Sessions()
    keys = [sessions.exchange(sessions.new_token()) for _ in range(MAX_KEYS + 1)]
    assert [sessions.is_valid(key or "") for key in keys] == [False, *([True] * MAX_KEYS)]
    assert len(set(keys)) == len(keys)
