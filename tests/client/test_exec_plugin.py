"""Exec plugins: what they are told, what they bring, and when they are asked again."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority, server_context, shake_hands
from tests.client.exec_plugin_rig import (
    NOW,
    V1,
    V1BETA1,
    ExecPluginRig,
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
def rig(tmp_path: Path) -> ExecPluginRig:
    return ExecPluginRig(tmp_path)


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- asking and answering ------------------------------------------------------------------------


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_sends_the_token_that_the_plugin_prints(rig: ExecPluginRig, version: str) -> None:
    rig.say({"token": "t0ken", "expirationTimestamp": None}, version)
    assert headers(rig.plugin(api_version=version)) == bearer("t0ken")


def test_does_not_run_before_somebody_asks(rig: ExecPluginRig) -> None:
    rig.plugin()
    assert rig.runs == 0


def test_runs_once_for_all_who_ask_at_the_same_time(rig: ExecPluginRig) -> None:
    rig.say({"token": "t0ken"})
    plugin = rig.plugin()

    async def ask() -> list[Headers]:
        return await asyncio.gather(*(plugin.headers() for _ in range(20)))

    assert asyncio.run(ask()) == [bearer("t0ken")] * 20
    assert headers(plugin) == bearer("t0ken")
    assert rig.runs == 1


def test_another_loop_does_not_wait_for_a_run_of_this_one(rig: ExecPluginRig) -> None:
    """As in a forked copy of the process, where that run never ends."""
    rig.say({"token": "t0ken"})
    rig.script("sleep 60")
    plugin = rig.plugin()
    loop = asyncio.new_event_loop()
    under_way = loop.create_task(plugin.headers())
    loop.run_until_complete(asyncio.sleep(0))
    rig.script("cat answer")
    assert asyncio.run(asyncio.wait_for(plugin.headers(), 20.0)) == bearer("t0ken")
    under_way.cancel()
    loop.run_until_complete(asyncio.gather(under_way, return_exceptions=True))
    loop.close()


def test_tells_the_plugin_its_arguments_and_variables(rig: ExecPluginRig) -> None:
    rig.say({"token": "t0ken"})
    rig.script('echo "$1|$2|$COLOUR|$SHAPE" > told', "cat answer")
    headers(rig.plugin(args=("one", "two words"), env=(("SHAPE", "round"), ("COLOUR", "blue"))))
    assert (rig.folder / "told").read_text() == "one|two words|blue|round\n"


def told(rig: ExecPluginRig, **settings: Any) -> dict[str, Any]:
    rig.say({"token": "t0ken"}, settings.get("api_version", V1))
    rig.script('printf %s "$KUBERNETES_EXEC_INFO" > told', "cat answer")
    headers(rig.plugin(**settings))
    found = json.loads((rig.folder / "told").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_tells_the_plugin_what_is_wanted(rig: ExecPluginRig, version: str) -> None:
    assert told(rig, api_version=version) == {
        "kind": "ExecCredential",
        "apiVersion": version,
        "spec": {"interactive": False},
    }


def test_tells_the_plugin_about_the_cluster(rig: ExecPluginRig) -> None:
    (rig.folder / "ca.crt").write_bytes(CA.pem)
    cluster = ClusterInfo(
        server="https://10.0.0.1:6443",
        tls_server_name="api",
        authority=Pem("ca", path=str(rig.folder / "ca.crt")),
        proxy="http://proxy:3128",
        config={"audience": "06e3fbd18de8"},
    )
    assert told(rig, cluster=cluster)["spec"]["cluster"] == {
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
    rig: ExecPluginRig, mode: str, terminal: bool, expected: bool
) -> None:
    rig.terminal = terminal
    assert told(rig, interactive_mode=mode)["spec"]["interactive"] is expected


def test_does_not_run_without_the_terminal_that_it_needs(rig: ExecPluginRig) -> None:
    text = failure(rig.plugin(interactive_mode="Always"))
    assert text.endswith("interactiveMode is Always and standard input is not a terminal")
    assert rig.runs == 0


def test_finds_a_command_by_its_name(rig: ExecPluginRig) -> None:
    rig.say({"token": "t0ken"})
    assert headers(rig.plugin(command="cat", args=(str(rig.answer),))) == bearer("t0ken")


# --- renewing ------------------------------------------------------------------------------------


def test_runs_again_shortly_before_the_end(rig: ExecPluginRig) -> None:
    rig.say({"token": "first", "expirationTimestamp": stamp(900)})
    plugin = rig.plugin()
    headers(plugin)
    rig.say({"token": "other", "expirationTimestamp": stamp(1800)})
    rig.let_pass(839)
    assert headers(plugin) == bearer("first")
    rig.let_pass(1)
    assert headers(plugin) == bearer("other")
    assert rig.runs == 2


def test_does_not_run_for_each_request_when_it_gets_the_same_again(rig: ExecPluginRig) -> None:
    rig.say({"token": "first", "expirationTimestamp": stamp(900)})
    plugin = rig.plugin()
    headers(plugin)
    for _ in range(120):
        rig.let_pass(7.5)
        headers(plugin)
    assert rig.runs < 15


def test_sends_what_is_past_its_end_by_our_clock(rig: ExecPluginRig) -> None:
    # Our clock may be the wrong one; the server will say.
    rig.say({"token": "t0ken", "expirationTimestamp": stamp(-60)})
    plugin = rig.plugin()
    assert headers(plugin) == headers(plugin) == bearer("t0ken")
    assert rig.runs == 1


def test_runs_again_after_a_refusal(rig: ExecPluginRig) -> None:
    rig.say({"token": "first"})
    plugin = rig.plugin()
    headers(plugin)
    rig.say({"token": "other"})
    rig.let_pass(10)
    assert asyncio.run(plugin.renew())
    assert headers(plugin) == bearer("other")


def test_runs_once_for_all_who_were_refused(rig: ExecPluginRig) -> None:
    rig.say({"token": "t0ken"})
    plugin = rig.plugin()
    headers(plugin)
    rig.let_pass(10)

    async def refuse() -> list[bool]:
        return await asyncio.gather(*(plugin.renew() for _ in range(20)))

    assert asyncio.run(refuse()) == [True] * 20
    assert asyncio.run(plugin.renew())  # and for one who hears of it a moment later
    assert rig.runs == 2


def test_keeps_what_it_has_while_the_plugin_fails(
    rig: ExecPluginRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.say({"token": "t0ken", "expirationTimestamp": stamp(900)})
    plugin = rig.plugin()
    headers(plugin)
    rig.script("exit 1")
    rig.let_pass(850)
    assert headers(plugin) == bearer("t0ken")
    assert not asyncio.run(plugin.renew())
    assert "exec plugin failed, keeping its last credentials" in caplog.text
    rig.let_pass(51)
    assert "failed with exit code 1" in failure(plugin)


# --- certificates --------------------------------------------------------------------------------


def test_shows_the_certificate_that_the_plugin_prints(rig: ExecPluginRig) -> None:
    plugin = rig.plugin()
    tls = ReloadingTls(authority=Pem("ca", data=CA.pem), given=plugin.identity)
    server = server_context(CA.server("localhost"), clients=CA)
    for pair, name in ((ALICE, "alice"), (BOB, "bob")):
        rig.say(certificate(pair))
        rig.let_pass(10)
        asyncio.run(plugin.renew())
        assert headers(plugin) == ()
        assert shake_hands(tls.context(), server).user() == name


def test_keeps_connections_when_the_certificate_is_the_same(rig: ExecPluginRig) -> None:
    rig.say(certificate(ALICE) | {"token": "first"})
    plugin = rig.plugin()
    tls = ReloadingTls(given=plugin.identity)
    assert headers(plugin) == bearer("first")
    context = tls.context()
    rig.say(certificate(ALICE) | {"token": "other"})
    rig.let_pass(10)
    asyncio.run(plugin.renew())
    assert headers(plugin) == bearer("other")
    assert tls.context() is context
