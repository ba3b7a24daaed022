"""Plugin code in a forked copy of the process, where it may hang, crash or fill the memory.

The copy has all state of this process at the time of the fork and shares nothing with it but a pipe
and a page of memory: it opens no connection, writes no log and ends by itself.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import mmap
import os
import resource
import signal
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from mooring.framework.plugin import Base
from mooring.runtime.guard import Guard

T = TypeVar("T")

OUT_OF_MEMORY: Final = 3  # exit code
_MOST_FILES: Final = 65_536
_LONGEST_NOTE: Final = 1_024  # bytes


class CallNote:
    """The plugin and point that run in a copy; readable here even after the copy was killed."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _LONGEST_NOTE)

    def write(self, plugin: str, point: str) -> None:
        text = f"{plugin}\n{point}\n".encode()[:_LONGEST_NOTE]
        self._page[: len(text)] = text

    def read(self) -> tuple[str, str]:
        plugin, point, *_ = (self._page[:].decode(errors="replace") + "\n\n").split("\n")
        return plugin.strip("\0"), point.strip("\0")

    def close(self) -> None:
        self._page.close()


class NotingGuard(Guard):
    """The guard of a copy: notes each call, and ends the process when its memory is used up."""

    note: CallNote

    def call(self, plugin: Base, point: str, function: Callable[..., T], *args: Any) -> T:
        outer = self.note.read()
        self.note.write(plugin.name, point)
        try:
            answer: T = super().call(plugin, point, self._checked, function, *args)
            return answer
        finally:
            self.note.write(*outer)

    @staticmethod
    def _checked(function: Callable[..., T], *args: Any) -> T:
        try:
            return function(*args)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)  # at once, while the note still names the plugin


class Copy:
    """One forked copy that runs `work(write)`; each `write` sends a line to this process.

    `nice` and `memory`, in bytes beyond those of this process, limit it.
    """

    def __init__(
        self, work: Callable[[Callable[[bytes], None]], None], *, nice: int, memory: int
    ) -> None:
        self._unread = b""
        reading, writing = os.pipe()
        try:
            self.pid: int = fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if not self.pid:
            _run_in_copy(work, writing, nice, memory)
        os.close(writing)
        os.set_blocking(reading, False)
        self.pipe: int = reading

    def read(self) -> list[bytes] | None:
        """The lines that have arrived; None after the copy has ended."""
        try:
            data = os.read(self.pipe, 65_536)
        except BlockingIOError:
            return []
        if not data:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        return lines

    def end(self) -> int:
        """Kill the copy if it still runs; its exit code, or the negative number of a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def end_after(seconds: float) -> None:
    """Let the kernel end this copy after this time; 0 cancels that."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _run_in_copy(
    work: Callable[[Callable[[bytes], None]], None], pipe: int, nice: int, memory: int
) -> NoReturn:
    try:
        detach(pipe)
        gc.disable()  # it would touch, and so copy, all memory
        os.nice(nice)
        _limit_memory(memory)
        work(lambda line: _write(pipe, line + b"\n"))
    finally:
        os._exit(0)


def fork() -> int:
    """The pid of a copy of this process; 0 in the copy, which must `detach` and never return."""
    with warnings.catch_warnings():
        # Threads besides this one only write logs, and a copy writes none.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def detach(*kept: int) -> None:
    """Close all files above 2 but these.

    Connections of the parent process must end when it closes them, not when this copy ends.
    """
    signal.set_wakeup_fd(-1)  # that of the parent's event loop
    for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    logging.disable(logging.CRITICAL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    after = 3
    for file in sorted(kept):
        os.closerange(after, file)
        after = file + 1
    os.closerange(after, _MOST_FILES)


def _limit_memory(more: int) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, the kernel kills this copy, not its parent
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = now + more
    if most == resource.RLIM_INFINITY or limit < most:
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]
