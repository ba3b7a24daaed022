"""The kubeconfig of an embedded cluster, as a file."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
import yaml
from tests.cluster.apiserver.http_fixtures import Recorder

from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.client.transport import Request
from mooring.cluster.apiserver import kubeconfig
from mooring.cluster.apiserver.http import HttpServer
from mooring.errors import ConfigError

TEXT = kubeconfig.render("https://127.0.0.1:1", authority=b"PEM", token="secret")
OTHERS = "apiVersion: v1\nkind: Config\nclusters: []\n"


def test_leads_a_client_to_the_server(tmp_path: Path) -> None:
    recorder = Recorder()

    async def story() -> None:
        server = HttpServer(recorder)
        with pytest.raises(ValueError, match="started"):
            server.kubeconfig(tmp_path / "config")
        await server.start()
        server.kubeconfig(tmp_path / "config")
        endpoint = load_kubeconfig(str(tmp_path / "config"))
        transport = HttpTransport(endpoint, user_agent="test")
        try:
            answer = await transport.send(Request(method="GET", path="/api/v1/pods"))
            assert answer.status == 200
        finally:
            await transport.close()
            await server.close()

    asyncio.run(story())
    assert [call.caller.name for call in recorder.calls] == ["system:admin"]


def test_is_for_our_eyes_only_and_leaves_nothing_else_behind(tmp_path: Path) -> None:
    kubeconfig.write(tmp_path / "config", TEXT)
    assert [found.name for found in tmp_path.iterdir()] == ["config"]
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600
    assert (tmp_path / "config").read_text() == TEXT


@pytest.mark.parametrize("before", ["", TEXT, TEXT.replace("secret", "other")])
def test_replaces_its_own_file_and_an_empty_one(tmp_path: Path, before: str) -> None:
    (tmp_path / "config").write_text(before)
    (tmp_path / "config").chmod(0o644)
    kubeconfig.write(tmp_path / "config", TEXT)
    assert (tmp_path / "config").read_text() == TEXT
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600


def with_another_cluster() -> str:
    document = yaml.safe_load(TEXT)
    document["clusters"].append({"name": "production", "cluster": {"server": "https://prod"}})
    return yaml.safe_dump(document)


@pytest.mark.parametrize(
    "theirs",
    [OTHERS, "not: [yaml", "!!bool x", "[" * 3000, "just text", "[1, 2]", with_another_cluster()],
)
def test_never_overwrites_the_file_of_somebody_else(tmp_path: Path, theirs: str) -> None:
    (tmp_path / "config").write_text(theirs)
    with pytest.raises(ConfigError, match="exists and was not made by mooring"):
        kubeconfig.write(tmp_path / "config", TEXT)
    assert (tmp_path / "config").read_text() == theirs
    kubeconfig.write(tmp_path / "config", TEXT, force=True)
    assert (tmp_path / "config").read_text() == TEXT


def test_writes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(TEXT)
    (tmp_path / "link").symlink_to("real")
    kubeconfig.write(tmp_path / "link", TEXT.replace("secret", "new"))
    assert (tmp_path / "link").is_symlink()
    assert "new" in (tmp_path / "real").read_text()


def test_names_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        kubeconfig.write(tmp_path, TEXT)
    missing = tmp_path / "no" / "where"
    with pytest.raises(ConfigError) as caught:
        kubeconfig.write(missing, TEXT)
    assert str(caught.value) == f"{missing}: {os.strerror(2)}"
