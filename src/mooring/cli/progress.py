"""How far a command is: a bar on standard error, if that is a terminal and it takes a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_MOMENT: Final = 0.5  # seconds
_BETWEEN: Final = 0.1  # seconds between two pictures


class ProgressBar:
    """Shows the latest of what it is told, now and then, on a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._next = time.monotonic() + _MOMENT
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._runs = ""

    def show(self, text: str, done: float = 0, total: float = 0) -> None:
        """What is going on; without a total, the bar only says that it goes on."""
        if not self._is_shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _BETWEEN
        if self._bar is None:
            self._begin()
        assert self._bar is not None
        assert self._task is not None
        of = {"total": total, "completed": min(done, total)} if total else {"total": None}
        self._bar.update(self._task, description=f"{self._runs}{text}", **of)
        self._bar.refresh()

    def placed(self, count: int, total: int) -> None:
        """Pods of a simulation that have a node."""
        self.show(f"{count:,} pods placed", count, total)

    def done(self, count: int, total: int) -> None:
        """Runs of a sweep that have ended."""
        if total > 1:
            self._runs = f"{count} of {total} runs, "
            self.show("", count, total)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("")
        self._bar.start()


@contextmanager
def progress() -> Iterator[ProgressBar]:
    """Shown while the work goes on."""
    shown = ProgressBar()
    try:
        yield shown
    finally:
        shown.end()
