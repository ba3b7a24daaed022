"""Endpoints of pods, and the choice between pod, flags and kubeconfig."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.certificates import Authority, server_context, shake_hands

from mooring.client.incluster import find_endpoint, in_cluster
from mooring.errors import ConfigError

CA = Authority()
POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}

KUBECONFIG = """
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://laptop:6443"}}]
users: [{name: me, user: {token: mine}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("of-the-pod")
    (folder / "ca.crt").write_bytes(CA.pem)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(KUBECONFIG)
    return tmp_path


def test_finds_server_token_and_authority(folder: Path) -> None:
    endpoint = in_cluster(POD, folder)
    assert (endpoint.host, endpoint.port, endpoint.prefix) == ("10.96.0.1", 443, "")
    assert endpoint.credentials is not None
    assert asyncio.run(endpoint.credentials.headers()) == (("authorization", "Bearer of-the-pod"),)
    assert endpoint.tls is not None
    server = server_context(CA.server("10.96.0.1"))
    shake_hands(endpoint.tls.context(), server, endpoint.host)


@pytest.mark.parametrize("host", ["fd00::1", "[fd00::1]"])
def test_knows_addresses_of_ipv6(folder: Path, host: str) -> None:
    endpoint = in_cluster(POD | {"KUBERNETES_SERVICE_HOST": host}, folder)
    assert endpoint.host == "fd00::1"
    assert endpoint.tls is not None
    server = server_context(CA.server("fd00::1"))
    shake_hands(endpoint.tls.context(), server, endpoint.host)


def test_renews_token_and_authority_together(folder: Path) -> None:
    endpoint = in_cluster(POD, folder)
    assert endpoint.credentials is not None
    assert endpoint.tls is not None
    assert not asyncio.run(endpoint.credentials.renew())
    other = Authority("other")
    (folder / "ca.crt").write_bytes(other.pem)
    assert asyncio.run(endpoint.credentials.renew())
    server = server_context(other.server("10.96.0.1"))
    shake_hands(endpoint.tls.context(), server, endpoint.host)


def test_says_that_it_is_not_in_a_cluster(folder: Path) -> None:
    with pytest.raises(ConfigError) as error:
        in_cluster({}, folder)
    assert str(error.value) == (
        "not running in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
        "set; give --kubeconfig"
    )


def test_names_all_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        in_cluster({"KUBERNETES_SERVICE_PORT": "https"}, tmp_path)
    assert [str(problem) for problem in error.value.problems] == [
        "not running in a cluster: KUBERNETES_SERVICE_HOST is not set; give --kubeconfig",
        "not running in a cluster: KUBERNETES_SERVICE_PORT: expected a port number, found another "
        "text; give --kubeconfig",
        f"not running in a cluster: {tmp_path}/token: No such file or directory; is "
        "automountServiceAccountToken false?; give --kubeconfig",
        f"not running in a cluster: {tmp_path}/ca.crt: cannot read: No such file or directory; "
        "give --kubeconfig",
    ]


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "\u0664\u0664\u0663"])
def test_refuses_what_is_no_port(folder: Path, port: str) -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_PORT: expected a port number"):
        in_cluster(POD | {"KUBERNETES_SERVICE_PORT": port}, folder)


# --- which one -----------------------------------------------------------------------------------


def test_prefers_the_cluster_when_nothing_is_asked_for(folder: Path, home: Path) -> None:
    endpoint = find_endpoint(environ=POD | {"HOME": str(home)}, folder=folder)
    assert endpoint.host == "10.96.0.1"


def test_does_what_kubectl_does_outside_of_a_cluster(home: Path, folder: Path) -> None:
    assert find_endpoint(environ={"HOME": str(home)}, folder=folder).host == "laptop"
    listed = {"HOME": "/nowhere", "KUBECONFIG": str(home / ".kube" / "config")}
    assert find_endpoint(environ=listed, folder=folder).host == "laptop"


def test_does_not_hide_that_a_pod_lacks_its_token(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        find_endpoint(environ=POD | {"HOME": str(home)}, folder=tmp_path / "none")


def test_says_where_it_looked_when_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        find_endpoint(environ={"HOME": str(tmp_path)}, folder=tmp_path)
    assert str(error.value) == (
        "not running in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
        f"set, and there is no {tmp_path}/.kube/config; give --kubeconfig"
    )


def test_prefers_the_file_that_is_named(home: Path, folder: Path) -> None:
    file = str(home / ".kube" / "config")
    assert find_endpoint(file, environ=POD, folder=folder).host == "laptop"


def test_asks_another_server_as_the_same_user(home: Path, folder: Path) -> None:
    file = str(home / ".kube" / "config")
    endpoint = find_endpoint(file, "https://other:1234/p", environ=POD, folder=folder)
    assert (endpoint.host, endpoint.port, endpoint.prefix) == ("other", 1234, "/p")
    assert endpoint.credentials is not None
    assert asyncio.run(endpoint.credentials.headers()) == (("authorization", "Bearer mine"),)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_is_nobody_when_only_a_server_is_named(scheme: str, folder: Path) -> None:
    endpoint = find_endpoint(master=f"{scheme}://127.0.0.1:8080", environ=POD, folder=folder)
    assert (endpoint.host, endpoint.port) == ("127.0.0.1", 8080)
    assert endpoint.credentials is None
    assert (endpoint.tls is not None) is (scheme == "https")


def test_says_that_the_named_server_is_no_url(folder: Path) -> None:
    with pytest.raises(ConfigError, match="--master: expected a URL such as https://"):
        find_endpoint(master="127.0.0.1:8080", environ=POD, folder=folder)
