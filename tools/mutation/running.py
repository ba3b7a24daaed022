"""Runs the tests on a mutant, in a copy of the sources."""

from __future__ import annotations

import compileall
import importlib.util
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Literal

from tools.mutation.finding import Mutant

SOURCES: Final = Path("src")  # copied for every worker, with the mutant in the copy
MEMORY: Final = 4 << 30  # bytes of data for one run: a mutant may allocate in an endless loop

Outcome = Literal["caught", "timeout", "SURVIVED"]


class Worker:
    """A copy of the sources in a folder of its own, with one mutant at a time, and its tests."""

    def __init__(self, folder: Path, tests: Sequence[str], timeout: float) -> None:
        self._copy = folder / "copy"
        self._home = folder
        self._tests = list(tests)
        self.timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._original: tuple[Path, bytes] | None = None
        self._started = 0.0
        self.mutant: Mutant | None = None
        shutil.copytree(SOURCES, self._copy, ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled files are matched by content: a mutant may have the size and time of another.
        by_content = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self._copy, quiet=2, invalidation_mode=by_content)

    @property
    def output(self) -> str:
        return (self._home / "output").read_text(encoding="utf-8", errors="replace")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def start(self, mutant: Mutant | None) -> None:
        """Run the tests on a mutant, or on the sources as they are."""
        if mutant is not None:
            path = self._copy / Path(mutant.file).relative_to(SOURCES)
            self._original = path, path.read_bytes()
            path.write_bytes(mutant.apply(self._original[1]))
        # What hypothesis learned from one mutant must not decide about the next.
        shutil.rmtree(self._home / "hypothesis" / "examples", ignore_errors=True)
        options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={self._home / 'tmp'}"]
        if _has_hypothesis():
            options.append("--hypothesis-seed=0")
        self.mutant = mutant
        self._started = time.monotonic()
        with (self._home / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *self._tests],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
                preexec_fn=_limit_memory,  # this process has one thread
            )

    def ended(self) -> Outcome | None:
        """How the run ended; None if it has not."""
        assert self._process is not None
        code = self._process.poll()
        if code is None and self.seconds < self.timeout:
            return None
        self.stop()
        if code is None:
            return "timeout"
        return "SURVIVED" if code == 0 else "caught"

    def stop(self) -> None:
        """End the run with all processes that it started, and restore the source."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):  # all have ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._original is not None:
            path, source = self._original
            path.write_bytes(source)
            self._original = None

    def imports(self, file: str) -> bool:
        """Whether a file of the sources is imported from the copy."""
        path = Path(file).relative_to(SOURCES)
        parts = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
        code = f"import importlib.util as u; print(u.find_spec({'.'.join(parts)!r}).origin)"
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, env=self._environment(), capture_output=True, text=True)
        return run.stdout.strip() == str(self._copy / path)

    def _environment(self) -> dict[str, str]:
        before = os.environ.get("PYTHONPATH")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self._copy), before])),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self._home / "hypothesis"),
        }


def _has_hypothesis() -> bool:
    """Whether pytest will load its plugin."""
    is_installed = importlib.util.find_spec("hypothesis") is not None
    return is_installed and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")


def _limit_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class Interrupted(Exception):
    """Ctrl-C, or a request to end."""


@dataclass(slots=True)
class Signals:
    """Remembers that the program was asked to end, which it does between two steps."""

    seen: bool = False

    def sleep(self) -> None:
        """A moment. Raises Interrupted."""
        if self.seen:
            raise Interrupted
        time.sleep(0.05)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.seen = True

    @contextmanager
    def caught(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._remember) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


@contextmanager
def workers(count: int, tests: Sequence[str], timeout: float) -> Iterator[list[Worker]]:
    """So many workers; at the end their runs are stopped and their folders removed."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        made = [Worker(home / str(number), tests, timeout) for number in range(count)]
        try:
            yield made
        finally:
            for worker in made:
                worker.stop()
