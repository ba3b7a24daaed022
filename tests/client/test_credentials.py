"""Credentials: headers, files that rotate, and secrets that stay secret."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from pathlib import Path

import pytest
from rich.pretty import pretty_repr

from mooring.client.credentials import (
    BasicAuth,
    BearerToken,
    Impersonation,
    TokenFile,
    WithCertificates,
    token_problem,
)
from mooring.client.endpoint import Credentials, Endpoint, Headers, parse_server
from mooring.client.errors import Unreachable


class Clock:
    def __init__(self) -> None:
        self.now: float = 100.0

    def __call__(self) -> float:
        return self.now


class Certificates:
    """Stands in for TLS; counts how often it is asked to look."""

    def __init__(self, *, changed: bool) -> None:
        self.changed: bool = changed
        self.looks: int = 0

    def renew(self) -> bool:
        self.looks += 1
        return self.changed


def headers(credentials: Credentials) -> Headers:
    return asyncio.run(credentials.headers())


def renew(credentials: Credentials) -> bool:
    return asyncio.run(credentials.renew())


def bearer(token: str) -> Headers:
    return (("authorization", f"Bearer {token}"),)


def swap(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


# --- what stays the same -------------------------------------------------------------------------


def test_sends_a_token() -> None:
    assert headers(BearerToken("t0ken")) == bearer("t0ken")
    assert not renew(BearerToken("t0ken"))


def test_sends_a_password() -> None:
    sent = dict(headers(BasicAuth("zoë", "pass:word")))["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")).decode() == "zoë:pass:word"
    assert not renew(BasicAuth("zoë", "x"))


@pytest.mark.parametrize("token", ["", "two words", "a\r\nx-other: 1", "tokén", "a\0"])
def test_knows_what_cannot_be_a_token(token: str) -> None:
    assert token_problem(token)


# --- a token in a file ---------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_reads_the_token_without_the_line_break(path: Path, clock: Clock) -> None:
    assert headers(TokenFile(str(path), clock=clock)) == bearer("first")


def test_sends_the_new_token_a_second_after_it_came(path: Path, clock: Clock) -> None:
    file = TokenFile(str(path), clock=clock)
    swap(path, "other")
    assert headers(file) == bearer("first")
    clock.now += 1
    assert headers(file) == bearer("other")


def test_notices_that_a_kubelet_swapped_the_link(tmp_path: Path, clock: Clock) -> None:
    for name in ("first", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
        os.utime(tmp_path / name / "token", (0, 0))  # only the inode tells them apart
    (tmp_path / "..data").symlink_to("first")
    (tmp_path / "token").symlink_to("..data/token")
    file = TokenFile(str(tmp_path / "token"), clock=clock)
    (tmp_path / "..tmp").symlink_to("other")
    (tmp_path / "..tmp").replace(tmp_path / "..data")
    clock.now += 1
    assert headers(file) == bearer("other")


def test_reads_the_token_at_once_after_it_was_refused(path: Path, clock: Clock) -> None:
    file = TokenFile(str(path), clock=clock)
    assert not renew(file)
    swap(path, "other")
    assert renew(file)
    assert headers(file) == bearer("other")


def test_reads_after_a_refusal_even_what_looks_unchanged(path: Path, clock: Clock) -> None:
    file = TokenFile(str(path), clock=clock)
    before = path.stat()
    path.write_text("other\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert renew(file)
    assert headers(file) == bearer("other")


def test_says_that_the_token_changed_to_those_who_ask_a_moment_later(
    path: Path, clock: Clock
) -> None:
    file = TokenFile(str(path), clock=clock)
    swap(path, "other")
    clock.now += 1
    assert headers(file) == bearer("other")
    assert renew(file)  # the refused request may still have had the first one
    clock.now += 60
    assert not renew(file)


@pytest.mark.parametrize("content", [None, "", " \n", "two words"])
def test_keeps_the_last_token_and_warns_once_while_the_file_is_no_good(
    path: Path, clock: Clock, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    file = TokenFile(str(path), clock=clock)
    if content is None:
        path.unlink()
    else:
        swap(path, content)
    for _ in range(3):
        clock.now += 1
        assert headers(file) == bearer("first")
        assert not renew(file)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    swap(path, "other")
    clock.now += 1
    assert headers(file) == bearer("other")


def test_sends_the_given_token_until_the_file_can_be_read(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "token"
    file = TokenFile(str(path), first="given", clock=clock)
    assert headers(file) == bearer("given")
    path.write_text("read")
    clock.now += 1
    assert headers(file) == bearer("read")


def test_cannot_send_anything_before_there_was_a_token(tmp_path: Path, clock: Clock) -> None:
    file = TokenFile(str(tmp_path / "token"), clock=clock)
    assert file.trouble == "No such file or directory"
    with pytest.raises(Unreachable, match="No such file") as error:
        headers(file)
    assert not error.value.sent


def test_says_that_a_file_is_no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    assert TokenFile(str(path)).trouble == "not UTF-8 text"


# --- somebody else -------------------------------------------------------------------------------


def test_names_whom_it_acts_for_beside_who_it_is() -> None:
    somebody = Impersonation(
        BearerToken("t0ken"),
        user="jane",
        uid="1234",
        groups=["dev", "ops"],
        extra={"example.com/Scopes of": ["a", "b"]},
    )
    assert list(headers(somebody)) == [
        ("authorization", "Bearer t0ken"),
        ("impersonate-user", "jane"),
        ("impersonate-uid", "1234"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-example.com%2FScopes%20of", "a"),
        ("impersonate-extra-example.com%2FScopes%20of", "b"),
    ]


def test_acts_for_somebody_while_being_nobody() -> None:
    somebody = Impersonation(None, user="jane")
    assert dict(headers(somebody)) == {"impersonate-user": "jane"}
    assert not renew(somebody)


def test_renews_who_it_is_and_not_whom_it_acts_for(path: Path, clock: Clock) -> None:
    somebody = Impersonation(TokenFile(str(path), clock=clock), user="jane")
    swap(path, "other")
    assert renew(somebody)
    assert dict(headers(somebody))["authorization"] == "Bearer other"


# --- certificates beside it ----------------------------------------------------------------------


@pytest.mark.parametrize("changed", [True, False])
def test_looks_at_the_certificates_too(changed: bool) -> None:
    certificates = Certificates(changed=changed)
    assert renew(WithCertificates(BearerToken("t0ken"), certificates.renew)) is changed
    assert renew(WithCertificates(None, certificates.renew)) is changed
    assert certificates.looks == 2


def test_looks_at_the_certificates_even_if_the_token_is_new(path: Path, clock: Clock) -> None:
    certificates = Certificates(changed=False)
    credentials = WithCertificates(TokenFile(str(path), clock=clock), certificates.renew)
    swap(path, "other")
    assert renew(credentials)
    assert certificates.looks == 1


def test_says_nothing_when_the_certificate_says_it_all() -> None:
    assert headers(WithCertificates(None, Certificates(changed=False).renew)) == ()


# --- secrets -------------------------------------------------------------------------------------


def test_shows_no_secret_when_printed(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("hunter2")
    token = BearerToken("hunter2")
    holders: list[Credentials] = [
        token,
        BasicAuth("jane", "hunter2"),
        TokenFile(str(path), first="hunter2"),
        Impersonation(token, user="jane"),
        WithCertificates(token, Certificates(changed=False).renew),
    ]
    for holder in holders:
        endpoint = Endpoint("h", 1, proxy="http://jane:hunter2@proxy:3128", credentials=holder)
        for text in (repr(holder), str(holder), repr(endpoint), pretty_repr(endpoint)):
            assert "hunter2" not in text
            assert base64.b64encode(b"jane:hunter2").decode() not in text
        assert "proxy:3128" in repr(endpoint)


# --- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "secure", "host", "port", "prefix"),
    [
        ("https://10.0.0.1:6443", True, "10.0.0.1", 6443, ""),
        ("https://api.example.com/", True, "api.example.com", 443, ""),
        ("http://localhost:8080", False, "localhost", 8080, ""),
        ("http://localhost", False, "localhost", 80, ""),
        ("https://[fd00::1]:6443", True, "fd00::1", 6443, ""),
        ("https://rancher/k8s/clusters/c-1/?x=1", True, "rancher", 443, "/k8s/clusters/c-1"),
    ],
)
def test_takes_a_url_apart(url: str, secure: bool, host: str, port: int, prefix: str) -> None:
    found = parse_server(url)
    assert (found.secure, found.host, found.port, found.prefix) == (secure, host, port, prefix)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "10.0.0.1:6443",
        "localhost:6443",
        "ftp://host",
        "https://",
        "https://:6443",
        "https:///path",
        "https://host:0",
        "https://host:65536",
        "https://host:port",
        "https://[fd00::1",
        "https://jane:hunter2@host",
    ],
)
def test_says_what_url_it_expected(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"expected a URL such as https://10\.0\.0\.1:6443"
    ) as error:
        parse_server(url)
    assert "hunter2" not in str(error.value)
