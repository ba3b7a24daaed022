"""Kubeconfigs that cannot be used: every problem is named, with its place, and no secret is."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.certificates import Authority

from mooring.client.kubeconfig import load_kubeconfig
from mooring.errors import ConfigError

CA = Authority()
CA_DATA = base64.b64encode(CA.pem).decode()
ALICE = CA.client("alice")
V1 = "client.authentication.k8s.io/v1"


def problems(path: str, environ: Mapping[str, str] | None = None, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_kubeconfig(path, environ=environ or {}, **options)
    return [str(problem) for problem in error.value.problems]


class Kubeconfig:
    """A file to be spoilt; problems come back without the name of the file."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder
        self.path: str = str(folder / "config")

    def problems(
        self,
        cluster: Mapping[str, Any] | None = None,
        user: Mapping[str, Any] | None = None,
        *,
        master: str = "",
        context: str = "",
        current: str | None = "c",
        **more: Any,
    ) -> list[str]:
        content = {
            "current-context": current,
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://h", **(cluster or {})}}],
            "users": [{"name": "u", "user": dict(user or {})}],
            **more,
        }
        return self.problems_of(yaml.safe_dump(content), master=master, context=context)

    def problems_of(self, text: str, **options: Any) -> list[str]:
        Path(self.path).write_text(text)
        return [found.removeprefix(f"{self.path}: ") for found in problems(self.path, **options)]


@pytest.fixture
def file(tmp_path: Path) -> Kubeconfig:
    return Kubeconfig(tmp_path)


# --- files ---------------------------------------------------------------------------------------


def test_says_that_there_is_no_such_file(tmp_path: Path) -> None:
    assert problems(str(tmp_path / "x")) == [f"{tmp_path}/x: no such file"]
    assert problems("", {"HOME": str(tmp_path)}) == [f"{tmp_path}/.kube/config: no such file"]
    listed = os.pathsep.join(["/nowhere/a", "/nowhere/b"])
    assert problems("", {"KUBECONFIG": listed}) == [f"{listed}: none of these files exists"]


def test_says_that_a_file_cannot_be_read(tmp_path: Path) -> None:
    assert problems(str(tmp_path)) == [f"{tmp_path}: cannot read: Is a directory"]
    (tmp_path / "binary").write_bytes(b"a: \xff")
    assert problems(str(tmp_path / "binary")) == [
        f"{tmp_path}/binary: not UTF-8 text: byte 3 is not valid"
    ]


def test_names_problems_of_all_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("- list")
    listed = os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")])
    assert problems("", {"KUBECONFIG": listed}) == [
        f"{tmp_path}/a: expected a kubeconfig, found a list",
        f"{tmp_path}/b: expected a kubeconfig, found a list",
    ]


def test_says_where_a_file_is_no_yaml_and_repeats_nothing_of_it(file: Kubeconfig) -> None:
    for text in (
        "token: *hunter2",
        "token: !hunter2 x",
        "a: 1\ntoken: 'hunter2",
        "token: a: hunter2",
    ):
        found = file.problems_of(text)
        assert len(found) == 1
        assert ": not YAML: " in found[0]
        assert found[0].startswith((f"{file.path}:1:", f"{file.path}:2:", f"{file.path}:3:"))
        assert "hunter2" not in found[0]


def test_says_that_a_file_is_something_else(file: Kubeconfig) -> None:
    assert file.problems_of("{apiVersion: v2, kind: Pod, clusters: 5}") == [
        "apiVersion: expected v1",
        "kind: expected Config",
    ]


def test_says_what_is_wrong_with_the_lists(file: Kubeconfig) -> None:
    text = """
    contexts: {a: b}
    clusters: [5, {cluster: {}}, {name: 5}, {name: k, cluster: x}]
    users: [{name: u}, {name: u}]
    current-context: 1.5
    """
    assert file.problems_of(text) == [
        "current-context: expected text, found a number; put it in quotes",
        "contexts: expected a list, found fields",
        "clusters[0]: expected fields, found a number",
        "clusters[1].name: expected the name of a cluster",
        "clusters[2].name: expected text, found a number; put it in quotes",
        "clusters[2].name: expected the name of a cluster",
        "clusters[k].cluster: expected fields, found text",
        "users[u]: there are two of this name, expected one",
    ]


# --- contexts ------------------------------------------------------------------------------------


def test_lists_the_contexts_it_knows(file: Kubeconfig) -> None:
    two = [{"name": name, "context": {"cluster": "k"}} for name in ("prod", "dev")]
    assert file.problems(contexts=two, context="pord") == [
        'contexts: there is no context "pord"; known contexts: dev, prod'
    ]
    assert file.problems(contexts=two) == [
        'current-context: there is no context "c"; known contexts: dev, prod'
    ]
    assert file.problems(contexts=two, current=None) == [
        "current-context: expected the name of the context to use; known contexts: dev, prod"
    ]
    assert file.problems_of("") == [
        "current-context: expected the name of the context to use; there are no contexts"
    ]


def test_lists_the_clusters_and_users_it_knows(file: Kubeconfig) -> None:
    context = {"name": "c", "context": {"cluster": "x", "user": "y"}}
    assert file.problems(contexts=[context]) == [
        'contexts[c].context.cluster: there is no cluster "x"; known clusters: k',
        'contexts[c].context.user: there is no user "y"; known users: u',
    ]
    assert file.problems(contexts=[{"name": "c"}]) == [
        "contexts[c].context.cluster: expected the name of a cluster; known clusters: k"
    ]


# --- clusters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["", "10.0.0.1:6443", "https://", "https://a:b@h"])
def test_says_that_the_server_is_no_url(file: Kubeconfig, server: str) -> None:
    [problem] = file.problems({"server": server})
    assert problem.startswith("clusters[k].cluster.server: expected a URL such as https://")


def test_says_that_the_other_server_is_no_url(file: Kubeconfig) -> None:
    [problem] = file.problems(master="10.0.0.1:6443")
    assert problem.startswith("--master: expected a URL such as https://")


def test_names_all_that_is_wrong_with_cluster_and_user(file: Kubeconfig) -> None:
    cluster = {
        "server": 6443,
        "certificate-authority": "missing.crt",
        "insecure-skip-tls-verify": "yes",
        "proxy-url": "socks5://proxy",
        "extensions": [5],
    }
    user = {"client-key-data": "c2VjcmV0", "client-certificate": "missing.crt", "as-groups": [1]}
    expected_url = "expected a URL such as https://10.0.0.1:6443"
    missing = f"{file.folder}/missing.crt: cannot read: No such file or directory"
    assert sorted(file.problems(cluster, user)) == [
        f"clusters[k].cluster.certificate-authority: {missing}",
        "clusters[k].cluster.extensions[0]: expected fields, found a number",
        "clusters[k].cluster.insecure-skip-tls-verify: expected true or false, found text",
        "clusters[k].cluster.proxy-url: expected http://host:port or https://host:port",
        f"clusters[k].cluster.server: {expected_url}, found no http:// or https:// in front of a "
        "host",
        "clusters[k].cluster.server: expected text, found a number; put it in quotes",
        "users[u].user.as-groups[0]: expected text, found a number; put it in quotes",
        f"users[u].user.client-certificate: {missing}",
        "users[u].user.client-key-data: expected a private key in PEM, found no -----BEGIN ... "
        "PRIVATE KEY-----",
    ]


def test_says_that_an_authority_is_given_twice_or_in_vain(file: Kubeconfig) -> None:
    (file.folder / "ca.crt").write_bytes(CA.pem)
    cluster = {
        "certificate-authority": "ca.crt",
        "certificate-authority-data": CA_DATA,
        "insecure-skip-tls-verify": True,
    }
    assert file.problems(cluster) == [
        "clusters[k].cluster.certificate-authority: given together with "
        "certificate-authority-data, expected one of them",
        "clusters[k].cluster.insecure-skip-tls-verify: given together with a certificate "
        "authority, expected one of them",
    ]


def test_says_that_data_is_not_base64(file: Kubeconfig) -> None:
    found = file.problems(
        {"certificate-authority-data": "???"},
        {"client-certificate-data": "hunter2", "client-key-data": "hünter2"},
    )
    assert [problem.partition(": expected base64")[0] for problem in found] == [
        "clusters[k].cluster.certificate-authority-data",
        "users[u].user.client-certificate-data",
        "users[u].user.client-key-data",
    ]
    assert "nter2" not in "".join(found)


# --- users ---------------------------------------------------------------------------------------


def test_says_that_a_key_needs_a_certificate_and_the_other_way_round(file: Kubeconfig) -> None:
    ALICE.write(file.folder, "user")
    assert file.problems(user={"client-key": "user.key"}) == [
        "users[u].user.client-certificate: expected, because client-key is given: neither is of "
        "use alone"
    ]
    assert file.problems(user={"client-certificate": "user.crt"}) == [
        "users[u].user.client-key: expected, because client-certificate is given: neither is of "
        "use alone"
    ]


@pytest.mark.parametrize("token", [{"token": "hunter2"}, {"tokenFile": "token"}])
def test_says_that_there_are_two_ways_to_authenticate(
    file: Kubeconfig, token: dict[str, str]
) -> None:
    (file.folder / "token").write_text("hunter2")
    assert file.problems(user={**token, "username": "jane", "password": "hunter2"}) == [
        "users[u].user: more than one way to authenticate: a token and a password, expected one "
        "of them"
    ]


def test_says_that_a_token_is_none(file: Kubeconfig) -> None:
    assert file.problems(user={"token": "hunter2\nx"}) == [
        "users[u].user.token: the token has characters that no token has, such as spaces or line "
        "breaks"
    ]
    assert file.problems(user={"token": 12345678}) == [
        "users[u].user.token: expected text, found a number; put it in quotes"
    ]
    assert file.problems(user={"tokenFile": "missing"}) == [
        f"users[u].user.tokenFile: {file.folder}/missing: No such file or directory"
    ]


def test_says_what_came_in_place_of_auth_providers(file: Kubeconfig) -> None:
    assert file.problems(user={"auth-provider": {"name": "gcp", "config": {"t": "hunter2"}}}) == [
        "users[u].user.auth-provider: was removed from Kubernetes (azure and gcp in v1.26); "
        "expected exec in its place"
    ]


def test_says_that_groups_need_a_user_to_impersonate(file: Kubeconfig) -> None:
    for extra in ({"as-groups": ["g"]}, {"as-uid": "1"}, {"as-user-extra": {"a": ["b"]}}):
        assert file.problems(user=extra) == [
            "users[u].user.as: expected a user to impersonate, because as-uid, as-groups or "
            "as-user-extra is given"
        ]


def test_lets_nobody_write_headers(file: Kubeconfig) -> None:
    user = {"as": "a\r\nb", "as-groups": ["\n"], "as-user-extra": {"k": ["\0"]}}
    text = "expected no line breaks or other control characters"
    assert file.problems(user=user) == [
        f"users[u].user.{key}: {text}" for key in ("as", "as-groups", "as-user-extra.k")
    ]


def test_says_what_is_wrong_with_a_plugin(file: Kubeconfig) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1alpha1",
        "interactiveMode": "Sometimes",
        "args": [1],
        "env": ["A=hunter2", {"value": "hunter2"}, {"name": "A=B"}],
        "provideClusterInfo": "true",
    }
    assert sorted(file.problems(user={"exec": plugin})) == [
        f"users[u].user.exec.apiVersion: expected one of: {V1}, {V1}beta1",
        "users[u].user.exec.args[0]: expected text, found a number; put it in quotes",
        "users[u].user.exec.command: expected a command to run",
        "users[u].user.exec.env[0]: expected fields, found text",
        "users[u].user.exec.env[1].name: expected the name of a variable",
        "users[u].user.exec.env[2].name: expected the name of a variable",
        "users[u].user.exec.interactiveMode: expected one of: Never, IfAvailable, Always",
        "users[u].user.exec.provideClusterInfo: expected true or false, found text",
    ]


def test_wants_to_know_whether_a_plugin_is_interactive(file: Kubeconfig) -> None:
    assert file.problems(user={"exec": {"apiVersion": V1, "command": "x"}}) == [
        "users[u].user.exec.interactiveMode: expected one of: Never, IfAvailable, Always"
    ]
