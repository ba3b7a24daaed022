"""Which server and which user the flags mean."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from mooring.client.credentials import WithCertificates
from mooring.client.endpoint import Endpoint
from mooring.client.server_access import ServerAccess, find_server
from mooring.errors import ConfigError

URL = "https://10.0.0.7:10259"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def kubeconfig(home: Path, **cluster: object) -> str:
    file = home / "config.yaml"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "jane"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **cluster}}],
        "users": [{"name": "jane", "user": {"token": "janes-token"}}],
    }
    file.write_text(yaml.safe_dump(content))
    return str(file)


def sent(endpoint: Endpoint) -> dict[str, str]:
    assert isinstance(endpoint.credentials, WithCertificates)
    return dict(asyncio.run(endpoint.credentials.headers()))


def test_the_user_of_the_kubeconfig_goes_to_the_other_server(home: Path) -> None:
    file = kubeconfig(home)
    found = find_server(URL, ServerAccess(kubeconfig=file, insecure_skip_tls_verify=True))
    assert (found.host, found.port) == ("10.0.0.7", 10259)
    assert sent(found) == {"authorization": "Bearer janes-token"}
    assert found.tls is not None
    assert found.tls.context().check_hostname is False
    # Without the flag the certificate is verified, by the CA of the cluster or of the system.
    verified = find_server(URL, ServerAccess(kubeconfig=file))
    assert verified.tls is not None
    assert verified.tls.context().check_hostname is True


def test_a_token_replaces_the_user_of_the_kubeconfig(home: Path) -> None:
    access = ServerAccess(kubeconfig=kubeconfig(home), token="another")
    assert sent(find_server(URL, access)) == {"authorization": "Bearer another"}
    assert "another" not in repr(access)


def test_without_any_credentials_the_caller_is_anonymous() -> None:
    assert sent(find_server(URL, ServerAccess())) == {}


@pytest.mark.parametrize(
    ("url", "access", "problem"),
    [
        ("10.0.0.7:10259", ServerAccess(), "--from: expected a URL such as https://10.0.0.1:6443"),
        (
            "http://10.0.0.7:10259",
            ServerAccess(token="t"),
            "--from: credentials are not sent over plain http",
        ),
        (URL, ServerAccess(token="two words"), "--token: the token has characters"),
        (
            URL,
            ServerAccess(client_certificate="a.crt"),
            "--client-certificate: expected both --client-certificate and --client-key",
        ),
        (
            URL,
            ServerAccess(certificate_authority="ca.crt", insecure_skip_tls_verify=True),
            "--insecure-skip-tls-verify: given together with --certificate-authority",
        ),
        (
            URL,
            ServerAccess(certificate_authority="/no/such/ca.crt"),
            "--certificate-authority: /no/such/ca.crt: cannot read: No such file or directory",
        ),
    ],
)
def test_what_can_not_be_meant_is_named(url: str, access: ServerAccess, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_server(url, access)
    assert str(caught.value.problems[0]).startswith(problem)
