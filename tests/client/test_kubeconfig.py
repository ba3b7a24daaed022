"""Kubeconfigs that are in order: which file, which context, and what they mean."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.certificates import Authority, server_context, shake_hands

from mooring.client.endpoint import Endpoint
from mooring.client.kubeconfig import load_kubeconfig

CA = Authority()
ALICE = CA.client("alice")
SERVER = "https://10.0.0.1:6443"


def text64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def config(
    cluster: Mapping[str, Any] | None = None, user: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A kubeconfig with one context `c`, its cluster `k` and its user `u`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": dict(user or {})}],
        **more,
    }


def write(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


def load(folder: Path, content: object, **options: Any) -> Endpoint:
    return load_kubeconfig(write(folder / "config", content), **{"environ": {}, **options})


def headers(endpoint: Endpoint) -> list[tuple[str, str]]:
    assert endpoint.credentials is not None
    return list(asyncio.run(endpoint.credentials.headers()))


def bearer(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


# --- which file ----------------------------------------------------------------------------------


def named(name: str) -> dict[str, Any]:
    return config({"server": f"https://{name}"})


def test_reads_the_file_that_is_named_and_no_other(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine", named("mine"))
    environ = {"KUBECONFIG": write(tmp_path / "other", named("other"))}
    assert load_kubeconfig(mine, environ=environ).host == "mine"


def test_reads_the_files_of_the_variable(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"users": [{"name": "u", "user": {"token": "first"}}]})
    other = write(tmp_path / "other", config(user={"token": "other"}))
    listed = os.pathsep.join(["", str(tmp_path / "missing"), first, other, first])
    endpoint = load_kubeconfig(environ={"KUBECONFIG": listed, "HOME": "/nowhere"})
    assert endpoint.host == "10.0.0.1"
    assert headers(endpoint) == bearer("first")


def test_takes_all_of_an_entry_from_one_file(tmp_path: Path) -> None:
    first = write(tmp_path / "first", config({"server": "https://first"}))
    other = write(tmp_path / "other", config({"tls-server-name": "other"}))
    endpoint = load_kubeconfig(environ={"KUBECONFIG": f"{first}{os.pathsep}{other}"})
    assert (endpoint.host, endpoint.server_name) == ("first", "")


def test_reads_the_file_at_home(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", named("home"))
    assert load_kubeconfig(environ={"HOME": str(tmp_path)}).host == "home"
    assert load_kubeconfig(environ={"HOME": str(tmp_path), "KUBECONFIG": ""}).host == "home"


def test_reads_json_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("\ufeff" + json.dumps(config()), encoding="utf-8")
    assert load_kubeconfig(str(file)).host == "10.0.0.1"


def test_finds_files_beside_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "users"
    users = {"client-certificate": "pki/user.crt", "client-key": "pki/user.key"}
    write(folder / "config", {"users": [{"name": "u", "user": users}]})
    write(tmp_path / "clusters" / "config", config({"certificate-authority": "ca.crt"}))
    (tmp_path / "clusters" / "ca.crt").write_bytes(CA.pem)
    (folder / "pki").mkdir()
    ALICE.write(folder / "pki", "user")
    monkeypatch.chdir(tmp_path)
    endpoint = load_kubeconfig(environ={"KUBECONFIG": "users/config:clusters/config"})
    monkeypatch.chdir("/")  # what was relative then is not relative to here
    assert endpoint.tls is not None
    server = server_context(CA.server(endpoint.host), clients=CA)
    assert shake_hands(endpoint.tls.context(), server, endpoint.host).user() == "alice"


# --- which context -------------------------------------------------------------------------------


def test_uses_the_context_that_is_named(tmp_path: Path) -> None:
    content = config(user={"token": "mine"})
    content["contexts"].append({"name": "d", "context": {"cluster": "l", "user": "u"}})
    content["clusters"].append({"name": "l", "cluster": {"server": "https://l"}})
    assert load(tmp_path, content).host == "10.0.0.1"
    assert load(tmp_path, content, context="d").host == "l"


def test_does_not_mind_what_is_wrong_with_what_it_does_not_use(tmp_path: Path) -> None:
    content = config()
    content["clusters"].append({"name": "broken", "cluster": {"certificate-authority-data": "?"}})
    content["users"].append({"name": "broken", "user": {"auth-provider": {"name": "gcp"}}})
    assert load(tmp_path, content).host == "10.0.0.1"


def test_needs_no_user(tmp_path: Path) -> None:
    content = config(contexts=[{"name": "c", "context": {"cluster": "k"}}])
    assert headers(load(tmp_path, content)) == []


def test_asks_another_server_when_told_to(tmp_path: Path) -> None:
    content = config({"tls-server-name": "kubernetes"}, {"token": "mine"})
    assert load(tmp_path, content).server_name == "kubernetes"
    endpoint = load(tmp_path, content, master="https://[::1]:7443/p/")
    assert (endpoint.host, endpoint.port, endpoint.prefix) == ("::1", 7443, "/p")
    assert endpoint.server_name == ""  # it was the other server's
    assert headers(endpoint) == bearer("mine")


def test_needs_no_context_and_no_cluster_for_another_server(tmp_path: Path) -> None:
    assert load(tmp_path, {}, master="http://h:8080").credentials is None
    content = config(
        contexts=[{"name": "c", "context": {"user": "u"}}],
        users=config(user={"token": "t"})["users"],
    )
    assert headers(load(tmp_path, content, master="https://h")) == bearer("t")


# --- the cluster ---------------------------------------------------------------------------------


def test_trusts_the_authority_in_the_data(tmp_path: Path) -> None:
    endpoint = load(tmp_path, config({"certificate-authority-data": text64(CA.pem)}))
    assert endpoint.tls is not None
    shake_hands(endpoint.tls.context(), server_context(CA.server("10.0.0.1")), "10.0.0.1")


def test_reads_data_that_is_broken_into_lines(tmp_path: Path) -> None:
    lines = base64.encodebytes(CA.pem).decode()
    assert load(tmp_path, config({"certificate-authority-data": lines})).tls is not None


def test_trusts_anybody_and_warns_when_told_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = load(tmp_path, config({"insecure-skip-tls-verify": True}))
    assert endpoint.tls is not None
    shake_hands(endpoint.tls.context(), server_context(CA.server("elsewhere")), "10.0.0.1")
    assert "the certificate of the API server is not verified" in caplog.text


def test_keeps_proxy_and_prefix(tmp_path: Path) -> None:
    cluster = {
        "server": "https://rancher/k8s/clusters/c-1",
        "proxy-url": "http://proxy:3128",
        "disable-compression": True,
    }
    endpoint = load(tmp_path, config(cluster))
    assert (endpoint.prefix, endpoint.proxy) == ("/k8s/clusters/c-1", "http://proxy:3128")


def test_tells_no_secret_to_a_server_without_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = load(tmp_path, config({"server": "http://h:8080"}, {"token": "mine", "as": "jane"}))
    assert (endpoint.host, endpoint.port, endpoint.tls) == ("h", 8080, None)
    assert headers(endpoint) == [("impersonate-user", "jane")]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


# --- the user ------------------------------------------------------------------------------------


def test_sends_the_token(tmp_path: Path) -> None:
    assert headers(load(tmp_path, config(user={"token": "mine"}))) == bearer("mine")


def test_sends_the_token_of_the_file_rather_than_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("filed\n")
    assert headers(load(tmp_path, config(user={"tokenFile": "token"}))) == bearer("filed")
    both = config(user={"tokenFile": "token", "token": "mine"})
    assert headers(load(tmp_path, both)) == bearer("filed")
    missing = config(user={"tokenFile": "missing", "token": "mine"})
    assert headers(load(tmp_path, missing)) == bearer("mine")


def test_sends_the_password(tmp_path: Path) -> None:
    sent = headers(load(tmp_path, config(user={"username": "jane", "password": "p"})))
    assert sent == [("authorization", f"Basic {text64(b'jane:p')}")]


def test_shows_the_certificate_in_the_data(tmp_path: Path) -> None:
    cluster = {"certificate-authority-data": text64(CA.pem)}
    user = {
        "client-certificate-data": text64(ALICE.certificate),
        "client-key-data": text64(ALICE.key),
    }
    endpoint = load(tmp_path, config(cluster, user))
    assert endpoint.tls is not None
    server = server_context(CA.server("10.0.0.1"), clients=CA)
    assert shake_hands(endpoint.tls.context(), server, "10.0.0.1").user() == "alice"
    assert headers(endpoint) == []


def test_shows_the_certificate_that_has_been_renewed(tmp_path: Path) -> None:
    cluster = {"certificate-authority-data": text64(CA.pem)}
    user = {"client-certificate": "user.crt", "client-key": "user.key"}
    ALICE.write(tmp_path, "user")
    endpoint = load(tmp_path, config(cluster, user))
    CA.client("bob").write(tmp_path, "user")
    assert endpoint.credentials is not None
    assert endpoint.tls is not None
    assert asyncio.run(endpoint.credentials.renew())
    server = server_context(CA.server("10.0.0.1"), clients=CA)
    assert shake_hands(endpoint.tls.context(), server, "10.0.0.1").user() == "bob"


def test_acts_for_somebody_else(tmp_path: Path) -> None:
    user = {
        "token": "mine",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"scopes": ["a"], 5: ["b"]},
    }
    assert headers(load(tmp_path, config(user=user))) == [
        *bearer("mine"),
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-scopes", "a"),
        ("impersonate-extra-5", "b"),
    ]


def test_runs_the_plugin_beside_the_file(tmp_path: Path) -> None:
    status = {"token": "t0ken"}
    answer = {"kind": "ExecCredential", "status": status}
    answer["apiVersion"] = "client.authentication.k8s.io/v1beta1"
    (tmp_path / "answer").write_text(json.dumps(answer))
    plugin = tmp_path / "bin" / "plugin"
    plugin.parent.mkdir()
    plugin.write_text(
        f'#!/bin/sh\ncd {tmp_path}\nprintf %s "$1 $A $KUBERNETES_EXEC_INFO" > told\ncat answer\n'
    )
    plugin.chmod(0o755)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    content = config(
        {"certificate-authority-data": text64(CA.pem), "extensions": [extension]},
        {
            "exec": {
                "apiVersion": answer["apiVersion"],
                "command": "bin/plugin",
                "args": ["login"],
                "env": [{"name": "A", "value": "1"}],
                "provideClusterInfo": True,
            }
        },
    )
    endpoint = load(tmp_path, content, environ={"PATH": os.environ["PATH"]})
    assert headers(endpoint) == bearer("t0ken")
    told = (tmp_path / "told").read_text()
    assert told.startswith("login 1 {")
    assert json.loads(told.removeprefix("login 1 "))["spec"]["cluster"] == {
        "server": SERVER,
        "certificate-authority-data": text64(CA.pem),
        "config": {"audience": "a"},
    }


def test_needs_no_plugin_when_there_is_a_token(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "nowhere",
        "interactiveMode": "Never",
    }
    content = config(user={"token": "mine", "exec": plugin})
    assert headers(load(tmp_path, content)) == bearer("mine")


def test_shows_no_secret_when_printed(tmp_path: Path) -> None:
    user = {"token": "hunter2", "as": "jane"}
    endpoint = load(tmp_path, config({"proxy-url": "http://me:hunter2@proxy"}, user))
    assert "hunter2" not in repr(endpoint)
