"""Programs that run beside a test: started, hurt and ended on purpose, never left behind.

Every program has its own log file and ends with the test process, whatever ends that: at exit by
`atexit`, after a crash by the kernel (see `launch.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Self

from tests.controlplane.forking import Forked, ForkServer, can_fork

_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_POLL = 0.02  # seconds between two looks at a program that starts or ends


class ProcessError(RuntimeError):
    """A program ended too early, never got ready or did not go; carries the end of its log."""


class Port:
    """A loopback port that stays ours while nobody listens on it.

    The socket is bound and never listens, so connections are refused until a program that shares
    ports (SO_REUSEPORT) listens; between a kill and a restart nobody else can take the port.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()


def free_port() -> int:
    """A port that was free a moment ago, for programs that do not share ports.

    Not one of those from which systems take the near ends of connections: such a port is soon
    taken by one, and a program needs a second to begin.
    """
    while True:
        number = random.randint(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", number))
            except OSError:
                continue
            return number


def listens(port: int) -> bool:
    """Whether somebody accepts connections on a loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


_Running = subprocess.Popen[bytes] | Forked


class Process:
    """One program: `ready` tells whether it serves, `ports` what it must have let go of to be gone.

    Signals go to its process id alone. With `forked`, `python -m mooring` is a fork of a process
    that has imported it (see `forking.py`).
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        ready: Callable[[], bool] | None = None,
        ports: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        forked: bool = False,
    ) -> None:
        self.name: str = name
        self.command: list[str] = list(command)
        self.log: Path = log
        self._ready = ready
        self._ports = tuple(ports)
        self._env = {**os.environ, **env} if env is not None else None
        self._cwd = cwd
        self._is_forked = forked
        self._running: _Running | None = None

    # --- life ----------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and return at once; `wait_ready` waits."""
        if self.is_alive:
            raise ProcessError(f"{self.name} runs already, as process {self.pid}")
        self._running = _SPAWNER.call(self._spawn)
        _STARTED.add(self)
        return self

    def wait_ready(self, timeout: float = 120.0) -> Self:
        """Wait until it serves; an error if it ends first."""
        deadline = time.monotonic() + timeout
        while self._ready is not None and not self._ready():
            if not self.is_alive:
                raise ProcessError(f"{self.name} ended with {self.exit_code}{self._last_words()}")
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"{self.name} was not ready within {timeout:g} s{self._last_words()}"
                )
            time.sleep(_POLL)
        return self

    def stop(self, timeout: float = 5.0) -> None:
        """Ask it to go (SIGTERM); after `timeout` seconds make it (SIGKILL)."""
        running = self._running
        if running is None:
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a paused program can't hear the first one
        try:
            running.wait(timeout)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
        self._gone()

    def kill(self) -> None:
        """End it without a chance to clean up (SIGKILL)."""
        self._signal(signal.SIGKILL)
        self._gone()

    def restart(self, timeout: float = 120.0) -> Self:
        """Kill it if it runs; start the same command again and wait until it serves."""
        self.kill()
        return self.start().wait_ready(timeout)

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing answers (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until it ends by itself; its exit code."""
        if self._running is None:
            raise ProcessError(f"{self.name} was never started")
        try:
            return self._running.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise ProcessError(
                f"{self.name} still runs after {timeout:g} s{self._last_words()}"
            ) from error

    # --- looks ---------------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        return self._running is not None and self._running.poll() is None

    @property
    def pid(self) -> int:
        if self._running is None:
            raise ProcessError(f"{self.name} was never started")
        return self._running.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number if one ended it."""
        return self._running.poll() if self._running is not None else None

    @property
    def resident_bytes(self) -> int:
        """How much memory it holds right now."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        """How much processor time it has used since its start."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def tail(self, lines: int = 30) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    # --- inside --------------------------------------------------------------------------------

    def _spawn(self) -> _Running:
        env = self._env if self._env is not None else os.environ
        if self._is_forked and can_fork(self.command, env):
            return FORKS.start(self.command, self.log, env, self._cwd)
        wrapped = [sys.executable, "-I", "-S", _LAUNCHER, str(os.getpid()), *self.command]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                wrapped,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,  # Ctrl-C is for the test process, which then ends us
            )

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None and self._running.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._running.send_signal(number)

    def _gone(self) -> None:
        if self._running is None:
            return
        self._running.wait()
        deadline = time.monotonic() + 10.0
        while any(listens(port) for port in self._ports):
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} ended, but somebody still listens on its port")
            time.sleep(_POLL)

    def _last_words(self) -> str:
        return f"; the end of {self.log}:\n{self.tail()}"


class _Spawner:
    """The one thread that starts programs.

    The kernel's notion of a parent is a thread, and a program started with `launch.py` ends with
    it. Tests start programs from threads that come and go; this one stays.
    """

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[Callable[[], _Running], Future[_Running]]] = (
            queue.SimpleQueue()
        )
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[], _Running]) -> _Running:
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spawner", daemon=True)
                self._thread.start()
        done: Future[_Running] = Future()
        self._orders.put((work, done))
        return done.result()

    def _run(self) -> None:
        while True:
            work, done = self._orders.get()
            try:
                done.set_result(work())
            except OSError as error:
                done.set_exception(error)


_SPAWNER = _Spawner()
FORKS = ForkServer()
_STARTED: weakref.WeakSet[Process] = weakref.WeakSet()


@atexit.register
def _end_everything() -> None:
    for process in list(_STARTED):
        process.kill()
    FORKS.close()
