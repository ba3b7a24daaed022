"""Exec plugins that fail: what is said, what is stopped, and what is kept secret."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority, Pair
from tests.client.exec_plugin_rig import (
    V1,
    V1BETA1,
    ExecPluginRig,
    bearer,
    certificate,
    failure,
    headers,
)
from tests.garbage import NO_OBJECT, NO_TEXT

from mooring.client.endpoint import Headers
from mooring.client.errors import Unreachable
from mooring.client.exec_plugin import ClusterInfo, ExecSettings
from mooring.client.tls import Pem

CA = Authority()
ALICE = CA.client("alice")
BOB = CA.client("bob")


@pytest.fixture
def rig(tmp_path: Path) -> ExecPluginRig:
    return ExecPluginRig(tmp_path)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return  # dead; whoever adopted it has not noticed yet
    raise AssertionError(f"process {pid} is still there")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, "printed no status"),
        ({}, "printed neither a token nor a client certificate"),
        (
            {"clientKeyData": ALICE.key.decode()},
            "printed only one of clientCertificateData and clientKeyData, expected both",
        ),
        (
            certificate(Pair(ALICE.certificate, BOB.key)),
            "printed clientKeyData: the key does not belong to the certificate",
        ),
        ({"token": "hunter2\n"}, "printed a bad status.token: "),
        ({"token": 5}, "printed something that is no ExecCredential: Expected `str"),
        (
            {"token": "hunter2", "expirationTimestamp": "tomorrow"},
            "printed something that is no ExecCredential: Invalid RFC3339",
        ),
    ],
)
def test_says_what_is_wrong_with_the_answer(
    rig: ExecPluginRig, status: dict[str, Any] | None, expected: str
) -> None:
    rig.say(status)
    text = failure(rig.plugin())
    assert text.startswith(f"exec plugin {rig.folder}/plugin: {expected}")
    assert "hunter2" not in text


def test_says_that_the_answer_is_another_thing(rig: ExecPluginRig) -> None:
    rig.say({"token": "t0ken"}, V1BETA1)
    assert failure(rig.plugin()).endswith(f'printed apiVersion "{V1BETA1}", expected "{V1}"')
    rig.say({"token": "t0ken"}, kind="Pod")
    assert failure(rig.plugin()).endswith('printed kind "Pod", expected "ExecCredential"')
    rig.answer.write_text("hunter2")
    text = failure(rig.plugin())
    assert "printed something that is no ExecCredential: JSON is malformed" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("printed", [*NO_OBJECT, *NO_TEXT])
def test_says_that_what_was_printed_is_no_credential(rig: ExecPluginRig, printed: bytes) -> None:
    rig.answer.write_bytes(printed)
    assert "printed " in failure(rig.plugin())


def test_says_that_there_is_no_such_command_and_how_to_get_it(rig: ExecPluginRig) -> None:
    plugin = rig.plugin(command="kubelogin-x", install_hint="run\x1b[1m brew install it")
    assert failure(plugin) == "exec plugin kubelogin-x: not found; run brew install it"


def test_says_that_the_command_cannot_be_started(rig: ExecPluginRig) -> None:
    (rig.folder / "plugin").write_text("#!/nowhere/interpreter\n")
    assert failure(rig.plugin()).endswith("cannot be started: No such file or directory")


def test_repeats_the_last_lines_of_complaint_without_secrets(rig: ExecPluginRig) -> None:
    secret = "hunter2"
    rig.script(
        "for i in 1 2 3 4; do echo line $i >&2; done",
        'printf "\\033[31mlogin of %s failed\\033[0m\\n" "$AWS_SECRET_ACCESS_KEY" >&2',
        "echo token eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMzQ1Njc4OTAifQ.eyJhIjoxfQ.c2ln >&2",
        "echo '-----BEGIN PRIVATE KEY-----' >&2; echo MIGHAgEAMBMG >&2",
        "exit 3",
    )
    text = failure(rig.plugin(env=(("AWS_SECRET_ACCESS_KEY", secret),)))
    assert text == (
        f"exec plugin {rig.folder}/plugin: failed with exit code 3: line 3 | line 4 | "
        "login of [hidden] failed | token [hidden] | [hidden]"
    )


def test_says_nothing_of_a_line_whose_beginning_it_has_lost(rig: ExecPluginRig) -> None:
    rig.script("head -c 5000 /dev/zero | tr '\\0' x >&2", "echo >&2", "echo end >&2", "exit 1")
    assert failure(rig.plugin()).endswith("failed with exit code 1: end")


def test_says_which_signal_ended_the_plugin(rig: ExecPluginRig) -> None:
    rig.script("kill -9 $$")
    assert failure(rig.plugin()).endswith("was ended by signal 9")


def test_stops_a_plugin_that_prints_too_much(rig: ExecPluginRig) -> None:
    rig.script("echo $$ > pid", "exec cat /dev/zero")
    assert failure(rig.plugin()).endswith("printed more than 1048576 bytes")
    wait_until_gone(int((rig.folder / "pid").read_text()))


def test_stops_a_plugin_that_does_not_end_and_all_that_it_started(rig: ExecPluginRig) -> None:
    rig.script("mkfifo never", "cat never & echo $! > child.new", "mv child.new child", "wait")
    plugin = rig.plugin(time_limit=60.0)

    async def ask() -> None:
        asking = asyncio.create_task(plugin.headers())
        while not (rig.folder / "child").exists():  # noqa: ASYNC110 - a script has no Event
            await asyncio.sleep(0.001)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(asyncio.wait_for(ask(), 30))
    wait_until_gone(int((rig.folder / "child").read_text()))
    rig.script("cat answer")
    rig.say({"token": "t0ken"})
    assert headers(plugin) == bearer("t0ken")  # who gave up does not stop the others


@pytest.mark.parametrize("turns", range(10))
def test_leaves_nothing_behind_when_it_is_called_off_while_it_starts(
    rig: ExecPluginRig, turns: int
) -> None:
    rig.script("mkfifo never", "cat never & echo $! > child.new", "mv child.new child", "wait")
    child = rig.folder / "child"
    before = _children()  # of other tests, such as a browser

    async def ask() -> None:
        asking = asyncio.create_task(rig.plugin().headers())
        for _ in range(turns):
            await asyncio.sleep(0)
        deadline = time.monotonic() + 30
        # The script gets on, and the loop does not.
        while _children() - before and not child.exists():
            assert time.monotonic() < deadline
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(ask())
    if child.exists():
        wait_until_gone(int(child.read_text()))


def _children() -> set[str]:
    """The processes that this thread has started."""
    return set(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split())


def test_loses_patience_after_the_limit(rig: ExecPluginRig) -> None:
    rig.script("mkfifo never", "cat never")
    text = failure(rig.plugin(time_limit=0.01))
    assert text.endswith("was still running after 0.01 seconds")


def test_tells_all_who_wait_of_one_failure(rig: ExecPluginRig) -> None:
    rig.script("exit 1")
    plugin = rig.plugin()

    async def ask() -> list[Headers | BaseException]:
        asking = (plugin.headers() for _ in range(20))
        return await asyncio.gather(*asking, return_exceptions=True)

    answers = asyncio.run(ask())
    assert all(isinstance(answer, Unreachable) for answer in answers)
    assert len(set(map(id, answers))) == 20
    failure(plugin)  # so soon after, it is not tried again
    assert rig.runs == 1
    rig.let_pass(1)
    rig.script("cat answer")
    rig.say({"token": "t0ken"})
    assert headers(plugin) == bearer("t0ken")


def test_says_that_the_authority_for_the_plugin_cannot_be_read(rig: ExecPluginRig) -> None:
    cluster = ClusterInfo(server="https://h", authority=Pem("ca", path="/nowhere/ca.crt"))
    text = failure(rig.plugin(cluster=cluster))
    assert text.endswith("ca: /nowhere/ca.crt: cannot read: No such file or directory")


def test_shows_no_secret_when_printed(rig: ExecPluginRig) -> None:
    rig.say({"token": "hunter2"})
    settings = ExecSettings("c", V1, args=("hunter2",), env=(("A", "hunter2"),))
    plugin = rig.plugin(env=(("A", "hunter2"),))
    headers(plugin)
    granted = vars(plugin)["_granted"]
    assert all("hunter2" not in repr(value) for value in (settings, plugin, granted))
