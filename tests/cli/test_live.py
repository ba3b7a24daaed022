"""What `mooring top` and `mooring queue` make of the answers of a scheduler, or another server."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.cli.in_process_cluster import command, serving
from tests.cli.stub_scheduler import Answer, stub_scheduler
from tests.cli.test_progress import Terminal
from tests.client.http_server import until

from mooring.cli import main
from mooring.cluster.embedded import run_scheduler
from mooring.cluster.lens import ClusterLens
from mooring.lens.api import LensQueue, QueueCounts
from mooring.testing import node
from mooring.ui.lens import PREFIX, LensPages


@pytest.fixture(autouse=True)
def own_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


async def test_top_does_without_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubeconfig"
    async with serving(config, node("n", cpu=4)) as cluster:
        running = await run_scheduler(cluster)  # with --record-size 0
        assert cluster.http is not None
        cluster.http.others[PREFIX] = ClusterLens(LensPages(running.lens))
        await until(lambda: len(running.scheduler.cache.nodes) == 1)
        assert await command("top", "-o", "json", "--kubeconfig", config) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["newest"]) == (1, [])


async def test_an_api_server_is_not_a_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubeconfig"
    async with serving(config):
        for name in ("top", "queue"):
            assert await command(name, "--once", "--kubeconfig", config) == 1
            assert capsys.readouterr().err == (
                "--from: no mooring scheduler answers there: expected its address,"
                " https://HOST:10259\n"
            )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, b'{"version": 1}'), "queue: not the answer of a mooring scheduler: Object missing"),
        ((200, b"<html>"), "queue: not the answer of a mooring scheduler: JSON is malformed"),
        ((503, b"later"), "later"),
        (
            (404, b'{"kind": "Status", "message": "the server could not find the resource"}'),
            "--from: no mooring scheduler answers there",
        ),
    ],
)
def test_an_answer_of_another_kind_is_one_line(
    answer: Answer, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with stub_scheduler(lambda path: answer) as server:
        assert main(["queue", "--once", "--from", server.url]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_terminal_is_looked_at_again_and_again_until_ctrl_c(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(path: str) -> Answer:
        looks = len(server.asked)
        if looks == 3:
            os.kill(os.getpid(), signal.SIGINT)
        counts = QueueCounts(active=10 * looks)
        found = LensQueue(at="2026-01-01T00:00:00Z", counts=counts, pods=())
        return (200, msgspec.json.encode(found)) if looks < 5 else (500, b"it goes on")

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with stub_scheduler(answer) as server:
        assert main(["queue", "--from", server.url, "--interval", "0.1"]) == 0
    shown = terminal.getvalue()
    assert "active 10 " in shown
    assert "active 20 " in shown
    assert "active 40 " not in shown


def test_an_interval_is_a_number_of_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("soon", "0"):
        with pytest.raises(SystemExit):
            main(["top", "--interval", text])
        said = capsys.readouterr().err
        assert f"--interval: expected seconds from 0.1 to 3600, got '{text}'" in said
