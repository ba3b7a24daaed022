"""The bar of long commands: on a terminal, after a moment, and nowhere else."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from tests.cli.stub_scheduler import Answer, stub_scheduler
from tests.controlplane.waiting import wait_until

from mooring.cli import main, sources
from mooring.cli import progress as progress_module
from mooring.cli.progress import progress
from mooring.lens.snapshot import ClusterState, Snapshot
from mooring.lens.writing import write_snapshot
from mooring.testing import node, pod


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error from now on; not a fixture, because pytest sets its own for each phase."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(progress_module, "_BETWEEN", 0.0)
    return found


def test_a_bar_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "_MOMENT", 0.0)
    with progress() as shown:
        shown.show("reading pods: 500", 3, 12)
        shown.placed(1_500, 3_000)
        shown.done(1, 4)
        shown.show("waiting")
    said = terminal.getvalue()
    for text in ("━━", "reading pods: 500", "1,500 pods placed", "1 of 4 runs", "waiting"):
        assert text in said
    assert said.endswith("\x1b[2K")  # it is gone afterwards


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress() as shown:
        shown.show("reading pods: 500", 3, 12)
    assert terminal.getvalue() == ""


def test_says_that_a_scheduler_has_not_answered_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress_module, "_MOMENT", 0.0)
    monkeypatch.setattr(sources, "_TICK", 0.001)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    terminal = on_terminal(monkeypatch)
    text = "waiting for the scheduler"

    def answer(path: str) -> Answer:
        wait_until(lambda: text in terminal.getvalue(), what="it says so", every=0.001)
        return 503, b"later"

    with stub_scheduler(answer) as scheduler:
        assert main(["queue", "--once", "--from", scheduler.url]) == 1
    assert terminal.getvalue().endswith("later\n")


def test_without_a_terminal_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "_MOMENT", 0.0)
    with progress() as shown:
        shown.show("reading pods: 500", 3, 12)
    assert capsys.readouterr() == ("", "")


def test_the_json_of_a_command_on_a_terminal_is_json_alone(tmp_path: Path) -> None:
    """With the bar on standard error, as a terminal has it."""
    nodes = tuple(node(f"n{number}", cpu=64).api for number in range(4))
    file, wanted = tmp_path / "small.snap.gz", tmp_path / "pod.yaml"
    write_snapshot(Snapshot(cluster=ClusterState(nodes=nodes)), file)
    container = {"name": "c", "resources": {"requests": {"cpu": "200m"}}}
    wanted.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": pod("p").name},
                "spec": {"containers": [container]},
            }
        )
    )
    code = (
        "import sys; from mooring.cli import main, progress\n"
        "progress._MOMENT = progress._BETWEEN = 0.0\n"
        f"sys.exit(main(['capacity', {str(file)!r}, {str(wanted)!r}, '-o', 'json']))"
    )
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
            check=True,
        )
        assert json.loads(done.stdout)["total"] == 4 * 110
        assert b"pods placed" in os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
