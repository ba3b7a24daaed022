"""Exec plugins: what they are told, what they bring, and when they are asked again."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.client.certificates import Authority, server_context, shake_hands
from tests.client.plugin_stage import (
    NOW,
    V1,
    V1BETA1,
    Stage,
    bearer,
    certificate,
    failure,
    headers,
)

from mooring.client.endpoint import Headers
from mooring.client.exec_plugin import ClusterInfo
from mooring.client.tls import Pem, ReloadingTls

CA = Authority()
ALICE = CA.client("alice")
BOB = CA.client("bob")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- asking and answering ------------------------------------------------------------------------


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_sends_the_token_that_the_plugin_prints(stage: Stage, version: str) -> None:
    stage.say({"token": "t0ken", "expirationTimestamp": None}, version)
    assert headers(stage.plugin(api_version=version)) == bearer("t0ken")


def test_does_not_run_before_somebody_asks(stage: Stage) -> None:
    stage.plugin()
    assert stage.runs == 0


def test_runs_once_for_all_who_ask_at_the_same_time(stage: Stage) -> None:
    stage.say({"token": "t0ken"})
    plugin = stage.plugin()

    async def ask() -> list[Headers]:
        return await asyncio.gather(*(plugin.headers() for _ in range(20)))

    assert asyncio.run(ask()) == [bearer("t0ken")] * 20
    assert headers(plugin) == bearer("t0ken")
    assert stage.runs == 1


def test_tells_the_plugin_its_arguments_and_variables(stage: Stage) -> None:
    stage.say({"token": "t0ken"})
    stage.script('echo "$1|$2|$COLOUR|$SHAPE" > told', "cat answer")
    headers(stage.plugin(args=("one", "two words"), env=(("SHAPE", "round"), ("COLOUR", "blue"))))
    assert (stage.folder / "told").read_text() == "one|two words|blue|round\n"


def told(stage: Stage, **settings: Any) -> dict[str, Any]:
    stage.say({"token": "t0ken"}, settings.get("api_version", V1))
    stage.script('printf %s "$KUBERNETES_EXEC_INFO" > told', "cat answer")
    headers(stage.plugin(**settings))
    found = json.loads((stage.folder / "told").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_tells_the_plugin_what_is_wanted(stage: Stage, version: str) -> None:
    assert told(stage, api_version=version) == {
        "kind": "ExecCredential",
        "apiVersion": version,
        "spec": {"interactive": False},
    }


def test_tells_the_plugin_about_the_cluster(stage: Stage) -> None:
    (stage.folder / "ca.crt").write_bytes(CA.pem)
    cluster = ClusterInfo(
        server="https://10.0.0.1:6443",
        tls_server_name="api",
        authority=Pem("ca", path=str(stage.folder / "ca.crt")),
        proxy="http://proxy:3128",
        config={"audience": "06e3fbd18de8"},
    )
    assert told(stage, cluster=cluster)["spec"]["cluster"] == {
        "server": "https://10.0.0.1:6443",
        "tls-server-name": "api",
        "certificate-authority-data": base64.b64encode(CA.pem).decode(),
        "proxy-url": "http://proxy:3128",
        "config": {"audience": "06e3fbd18de8"},
    }


@pytest.mark.parametrize(
    ("mode", "terminal", "expected"),
    [
        ("Never", True, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("Always", True, True),
    ],
)
def test_lends_the_plugin_the_terminal(
    stage: Stage, mode: str, terminal: bool, expected: bool
) -> None:
    stage.terminal = terminal
    assert told(stage, interactive_mode=mode)["spec"]["interactive"] is expected


def test_does_not_run_without_the_terminal_that_it_needs(stage: Stage) -> None:
    text = failure(stage.plugin(interactive_mode="Always"))
    assert text.endswith("interactiveMode is Always and standard input is not a terminal")
    assert stage.runs == 0


def test_finds_a_command_by_its_name(stage: Stage) -> None:
    stage.say({"token": "t0ken"})
    assert headers(stage.plugin(command="cat", args=(str(stage.answer),))) == bearer("t0ken")


# --- renewing ------------------------------------------------------------------------------------


def test_runs_again_shortly_before_the_end(stage: Stage) -> None:
    stage.say({"token": "first", "expirationTimestamp": stamp(900)})
    plugin = stage.plugin()
    headers(plugin)
    stage.say({"token": "other", "expirationTimestamp": stamp(1800)})
    stage.let_pass(839)
    assert headers(plugin) == bearer("first")
    stage.let_pass(1)
    assert headers(plugin) == bearer("other")
    assert stage.runs == 2


def test_does_not_run_for_each_request_when_it_gets_the_same_again(stage: Stage) -> None:
    stage.say({"token": "first", "expirationTimestamp": stamp(900)})
    plugin = stage.plugin()
    headers(plugin)
    for _ in range(120):
        stage.let_pass(7.5)
        headers(plugin)
    assert stage.runs < 15


def test_sends_what_is_past_its_end_by_our_clock(stage: Stage) -> None:
    # Our clock may be the wrong one; the server will say.
    stage.say({"token": "t0ken", "expirationTimestamp": stamp(-60)})
    plugin = stage.plugin()
    assert headers(plugin) == headers(plugin) == bearer("t0ken")
    assert stage.runs == 1


def test_runs_again_after_a_refusal(stage: Stage) -> None:
    stage.say({"token": "first"})
    plugin = stage.plugin()
    headers(plugin)
    stage.say({"token": "other"})
    stage.let_pass(10)
    assert asyncio.run(plugin.renew())
    assert headers(plugin) == bearer("other")


def test_runs_once_for_all_who_were_refused(stage: Stage) -> None:
    stage.say({"token": "t0ken"})
    plugin = stage.plugin()
    headers(plugin)
    stage.let_pass(10)

    async def refuse() -> list[bool]:
        return await asyncio.gather(*(plugin.renew() for _ in range(20)))

    assert asyncio.run(refuse()) == [True] * 20
    assert asyncio.run(plugin.renew())  # and for one who hears of it a moment later
    assert stage.runs == 2


def test_keeps_what_it_has_while_the_plugin_fails(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.say({"token": "t0ken", "expirationTimestamp": stamp(900)})
    plugin = stage.plugin()
    headers(plugin)
    stage.script("exit 1")
    stage.let_pass(850)
    assert headers(plugin) == bearer("t0ken")
    assert not asyncio.run(plugin.renew())
    assert "exec plugin failed, keeping its last credentials" in caplog.text
    stage.let_pass(51)
    assert "failed with exit code 1" in failure(plugin)


# --- certificates --------------------------------------------------------------------------------


def test_shows_the_certificate_that_the_plugin_prints(stage: Stage) -> None:
    plugin = stage.plugin()
    tls = ReloadingTls(authority=Pem("ca", data=CA.pem), given=plugin.identity)
    server = server_context(CA.server("localhost"), clients=CA)
    for pair, name in ((ALICE, "alice"), (BOB, "bob")):
        stage.say(certificate(pair))
        stage.let_pass(10)
        asyncio.run(plugin.renew())
        assert headers(plugin) == ()
        assert shake_hands(tls.context(), server).user() == name


def test_keeps_connections_when_the_certificate_is_the_same(stage: Stage) -> None:
    stage.say(certificate(ALICE) | {"token": "first"})
    plugin = stage.plugin()
    tls = ReloadingTls(given=plugin.identity)
    assert headers(plugin) == bearer("first")
    context = tls.context()
    stage.say(certificate(ALICE) | {"token": "other"})
    stage.let_pass(10)
    asyncio.run(plugin.renew())
    assert headers(plugin) == bearer("other")
    assert tls.context() is context
