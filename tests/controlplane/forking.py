"""`python -m mooring` without its imports: a fork of a process that has made them (Linux).

Its command line, folder, environment and log are its own; what it shares with its siblings is that
modules were loaded before. How modules are loaded is for tests that start `mooring` otherwise.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_OWN = ("PYTHONPATH", "PYTHONUNBUFFERED")  # of Python's own variables, those that a fork can obey


def can_fork(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a fork does the same as this command."""
    told = {name for name in env if name.startswith("PYTHON") and name not in _OWN}
    same = all(env[name] == os.environ.get(name) for name in told)
    return (
        sys.platform == "linux" and list(command[:3]) == [sys.executable, "-m", "mooring"] and same
    )


class ForkServer:
    """One for each test process, started when it is needed first; ends with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: Any = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], log: Path, env: Mapping[str, str], folder: Path | None
    ) -> Forked:
        """To be called in the thread that stays: the server ends with it (see `launch.py`)."""
        order = {
            "command": list(command),
            "log": str(log),
            "env": dict(env),
            "folder": str(folder or Path.cwd()),
        }
        return Forked(self, self._ask(order))

    def ended(self, pid: int) -> int:
        """The exit code of a process that has ended; its number is free from now on."""
        return self._ask({"ended": pid})

    def close(self) -> None:
        """End it, and with it whatever it has started."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._lines.close()

    def _ask(self, order: Mapping[str, Any]) -> int:
        with self._lock:
            if self._lines is None:
                self._lines = self._begin()
            print(json.dumps(order), file=self._lines, flush=True)
            return int(self._lines.readline())

    def _begin(self) -> Any:
        ours, theirs = socket.socketpair()
        env = {name: value for name, value in os.environ.items() if name not in _OWN}
        launcher = [sys.executable, "-I", "-S", str(_HERE / "launch.py"), str(os.getpid())]
        with theirs:
            self._process = subprocess.Popen(
                [*launcher, sys.executable, str(_HERE / "fork_server.py"), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=env,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        with ours:
            return ours.makefile("rw")


class Forked:
    """A process of the server; what `subprocess.Popen` is, as far as `Process` needs it."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid: int = pid
        self._server = server
        self._lock = threading.Lock()
        self._code: int | None = None
        self._handle = os.pidfd_open(pid)  # the server keeps the number until it is asked for

    def poll(self) -> int | None:
        with self._lock:
            if self._code is None and self._has_ended(0):
                self._code = self._server.ended(self.pid)
                os.close(self._handle)
            return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("mooring", timeout or 0.0)
        code = self.poll()
        assert code is not None
        return code

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def _has_ended(self, timeout: float | None) -> bool:
        looking = select.poll()
        looking.register(self._handle, select.POLLIN)
        return bool(looking.poll(None if timeout is None else timeout * 1000))
