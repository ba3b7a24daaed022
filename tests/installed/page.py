"""A page as a list of steps, and a terminal that takes them.

A comment above a block says what to do with it: `run` it, `start` it and go on once it has said
something, or `stop` what was started. Steps for kubectl are taken where there is one.
"""

from __future__ import annotations

import re
import shlex
import signal
from contextlib import ExitStack
from pathlib import Path

import msgspec
from tests.cli.process import Running
from tests.installed.environment import Environment

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


def steps(page: Path) -> list[Step]:
    return [
        Step(
            found["what"],
            found["text"] or "",
            found["says"] or "",
            _TIMES[found["times"] or "once"],
        )
        for found in _STEP.finditer(page.read_text(encoding="utf-8"))
    ]


class Terminal:
    """Takes the steps of a page: a folder, and what was started there."""

    def __init__(self, environment: Environment, folder: Path, kubectl: Path | None) -> None:
        self._environment = environment
        self._folder = folder
        self._kubectl = kubectl
        self._running: list[Running] = []
        self._ends = ExitStack()

    def __enter__(self) -> Terminal:
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
        running = Running(*words, folder=self._folder, python=self._environment.python)
        self._ends.enter_context(running)
        self._running.append(running)
        for _ in range(step.times):
            running.until(step.says)

    def _run(self, step: Step) -> None:
        before = f"export PATH={self._kubectl}:$PATH\n" if self._kubectl is not None else ""
        said = self._environment.call("bash", "-ec", before + step.text, cwd=self._folder)
        assert step.says in said
        for line in step.text.splitlines():
            if line.startswith("cd "):
                self._folder /= line.removeprefix("cd ")
