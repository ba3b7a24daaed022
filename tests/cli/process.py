"""`mooring` as a process of its own."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.controlplane.forking import Forked, can_fork
from tests.controlplane.processes import FORKS

_PATIENCE = 60.0  # seconds; a machine may be busy


class Running:
    """A process, and what it says line by line; ended at the latest with the context.

    `forked`, it need not import its modules (see `tests.controlplane.forking`).
    """

    def __init__(
        self,
        *words: str,
        folder: Path | None = None,
        python: str = sys.executable,
        forked: bool = False,
    ) -> None:
        command = [python, "-m", "mooring", *words]
        env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        reading, writing = os.pipe()
        self._output = os.fdopen(reading, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | Forked
        if forked and can_fork(command, env):
            output = Path(f"/proc/{os.getpid()}/fd/{writing}")
            self._process = FORKS.start(command, output, env, folder)
        else:
            self._process = subprocess.Popen(
                command, cwd=folder, stdout=writing, stderr=subprocess.STDOUT, env=env
            )
        os.close(writing)
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._output.close()

    def until(self, text: str) -> str:
        """Wait for a line with this text; the line."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                line = self._lines.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError(f"{text!r} was not said in time:\n{self.all()}") from None
            assert line is not None, f"ended before it said {text!r}:\n{self.all()}"
            self.said.append(line)
            if text in line:
                return line

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self._process.send_signal(number)
        return self.end()

    def end(self) -> int:
        """Wait for the end; the exit code."""
        code = self._process.wait(timeout=_PATIENCE)
        self._reader.join()
        while (line := self._lines.get()) is not None:
            self.said.append(line)
        self._lines.put(None)
        return code

    def all(self) -> str:
        return "\n".join(self.said)

    def _read(self) -> None:
        for line in self._output:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)
