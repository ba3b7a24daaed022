"""Builds the oracle, a Go program that links kube-scheduler's own packages, and asks it.

The binary is kept by `tests.golang`: the first build takes minutes, every later use nothing.
Without Go there is no oracle: `OracleError` says so in a sentence.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from tests import golang

Scenario = Mapping[str, Any]
Result = dict[str, Any]

_SOURCES = Path(__file__).parent


class OracleError(RuntimeError):
    """The oracle could not be built or stopped answering."""


def build() -> Path:
    """The binary for the sources as they are; built if this is the first time they are seen."""
    sources = [*_SOURCES.glob("*.go"), _SOURCES / "go.mod", _SOURCES / "go.sum"]
    try:
        return golang.build("oracle", _SOURCES, sources, packages=["."]) / "oracle"
    except golang.GoError as error:
        raise OracleError(str(error)) from error


class Oracle:
    """A running oracle: give it scenarios, get kube-scheduler's answers in the same order."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(build())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program and wait for it."""
        if self._process.poll() is None:
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                # Questions that were never read: nobody waits for their answers.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()

    def answers(self, scenarios: Iterable[Scenario]) -> Iterator[Result]:
        """One result per scenario. Take them all before asking again."""
        lines = [_question(scenario) for scenario in scenarios]
        feeder = threading.Thread(target=self._feed, args=(lines,), daemon=True)
        feeder.start()
        output = self._process.stdout
        assert output is not None
        for _ in lines:
            line = output.readline()
            if not line:
                raise OracleError(f"the oracle ended with code {self._process.wait()}")
            yield json.loads(line)
        feeder.join()

    def answer(self, scenario: Scenario) -> Result:
        """The result of one scenario."""
        return next(iter(list(self.answers([scenario]))))

    def _feed(self, lines: list[bytes]) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        # If it ended, whoever reads the answers says so.
        with contextlib.suppress(BrokenPipeError, ValueError):
            for line in lines:
                pipe.write(line)
            pipe.flush()


def answers(scenarios: Iterable[Scenario]) -> list[Result]:
    """Start an oracle, ask it everything, end it."""
    with Oracle() as oracle:
        return list(oracle.answers(scenarios))


def _question(scenario: Scenario) -> bytes:
    asked = {key: value for key, value in scenario.items() if key != "expect"}
    return json.dumps(asked, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    print(build())
