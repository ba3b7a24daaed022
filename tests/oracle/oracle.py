"""Builds the oracle, a Go program that links kube-scheduler's own packages, and asks it.

The binary is kept outside the tree under the hash of its sources: the first build takes minutes,
every later use nothing. Without Go there is no oracle: `OracleError` says so in a sentence.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Scenario = Mapping[str, Any]
Result = dict[str, Any]

_SOURCES = Path(__file__).parent
# Where Go's installer puts it; the folder is not always on the path.
_USUAL_PLACE = Path("/usr/local/go/bin/go")
_KEPT_BUILDS = 3


class OracleError(RuntimeError):
    """The oracle could not be built or stopped answering."""


def cache_folder() -> Path:
    """Where builds and findings are kept, outside the tree."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mooring"


def go() -> str | None:
    """The Go command, or None."""
    return shutil.which("go") or (str(_USUAL_PLACE) if _USUAL_PLACE.exists() else None)


def build() -> Path:
    """The binary for the sources as they are; built if this is the first time they are seen."""
    binary = _binary_path()
    if binary.exists():
        return binary
    command = go()
    if command is None:
        raise OracleError("the oracle is a Go program, and there is no Go on this machine's PATH")
    binary.parent.mkdir(parents=True, exist_ok=True)
    with (binary.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build is enough for all who wait
        if not binary.exists():
            _compile(command, binary)
            _prune(binary.parent)
    return binary


def _binary_path() -> Path:
    digest = hashlib.sha256()
    for source in sorted([*_SOURCES.glob("*.go"), _SOURCES / "go.mod", _SOURCES / "go.sum"]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return cache_folder() / "oracle" / f"oracle-{digest.hexdigest()[:16]}"


def _compile(command: str, binary: Path) -> None:
    fresh = binary.with_name(f"building-{os.getpid()}")
    built = subprocess.run(
        [command, "build", "-trimpath", "-ldflags=-s -w", "-o", str(fresh), "."],
        cwd=_SOURCES,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        fresh.unlink(missing_ok=True)
        raise OracleError(f"go build failed:\n{built.stderr.strip()}")
    fresh.replace(binary)


def _prune(folder: Path) -> None:
    builds = sorted(folder.glob("oracle-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in builds[_KEPT_BUILDS:]:
        old.unlink(missing_ok=True)


class Oracle:
    """A running oracle: give it scenarios, get kube-scheduler's answers in the same order."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(build())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
