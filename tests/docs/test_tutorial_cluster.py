"""The tutorial, step by step, as somebody would type it.

A comment above a block says what to do with it: `run` it, `start` it and go on once it has said
something, or `stop` what was started. Steps for kubectl are taken where there is one.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from tests.cli.process import Running
from tests.controlplane.build import ControlPlaneError, binaries

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial-cluster.md"
_STEP = re.compile(
    r"^<!-- (?P<what>run|run with kubectl|start|stop)"
    r'(?:; says "(?P<says>[^"]+)"(?: (?P<times>once|six times))?)? -->\n'
    r"(?:```sh\n(?P<text>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_TIMES = {"once": 1, "six times": 6}


class Step(msgspec.Struct, frozen=True):
    what: str
    text: str
    says: str
    times: int


def steps() -> list[Step]:
    return [
        Step(
            found["what"],
            found["text"] or "",
            found["says"] or "",
            _TIMES[found["times"] or "once"],
        )
        for found in _STEP.finditer(PAGE.read_text(encoding="utf-8"))
    ]


class Reader:
    """Somebody who follows the page: a folder, a terminal, and what runs in others."""

    def __init__(self, folder: Path, kubectl: Path | None) -> None:
        self._folder = folder
        self._kubectl = kubectl
        self._running: list[Running] = []
        self._ends = ExitStack()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *unused: object) -> None:
        self._ends.close()

    def take(self, step: Step) -> None:
        if step.what == "stop":
            while self._running:
                assert self._running.pop().stop(signal.SIGINT) == 0
        elif step.what == "start":
            self._start(step)
        elif step.what == "run" or self._kubectl is not None:
            self._run(step)

    def _start(self, step: Step) -> None:
        program, *words = shlex.split(step.text)
        assert program == "mooring"
        running = self._ends.enter_context(Running(*words, folder=self._folder))
        self._running.append(running)
        for _ in range(step.times):
            running.until(step.says)

    def _run(self, step: Step) -> None:
        programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
        if self._kubectl is not None:
            programs.insert(0, str(self._kubectl))
        found = subprocess.run(
            ["bash", "-e", "-c", step.text],
            cwd=self._folder,
            env={**os.environ, "PATH": ":".join(programs)},
            capture_output=True,
            text=True,
        )
        assert found.returncode == 0, f"{step.text}\n{found.stdout}{found.stderr}"
        assert step.says in found.stdout
        for line in step.text.splitlines():
            if line.startswith("cd "):
                self._folder /= line.removeprefix("cd ")


def kubectl() -> Path | None:
    """The folder with kubectl, if it can be had."""
    try:
        return binaries()
    except ControlPlaneError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        return None


def test_can_be_followed_step_by_step(tmp_path: Path) -> None:
    with Reader(tmp_path, kubectl()) as reader:
        for step in steps():
            reader.take(step)


def test_says_of_every_command_what_to_do_with_it() -> None:
    commands = PAGE.read_text(encoding="utf-8").count("```sh\n")
    assert commands == len([step for step in steps() if step.text]) > 5
