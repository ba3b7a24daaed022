"""Takes a changed configuration, and with `--reload` changed plugins, without ending the process.

    SIGHUP, or a changed file ──▶ a second process tries to start with it
                                     ├─ fails: the log says why, the scheduler goes on as before
                                     └─ starts: nothing new is decided, binds under way end, and
                                        the process is executed again, with the same pid

The new start reads everything anew, so that nothing of the old one is left: see ADR 0024. The code
of plugins is executed anew as well. Without `--reload` it must be what it was, because otherwise
writing a file would be running code.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn

from mooring.cli.run.settings import Settings
from mooring.runtime.profile import ProfilePlan

log = logging.getLogger(__name__)

_EVERY: Final = 0.3  # seconds between two looks at the files
_PATIENCE: Final = 60.0  # seconds for a start that is tried
_LONGEST: Final = 2_000  # characters of its problems
CHECK: Final = "--check-start"
_OURS: Final = "mooring.plugins."

_Stamp = tuple[int, int] | None


class Reload:
    """Decides whether this process is to be executed again.

    `stop` ends it as SIGTERM does. With `watch`, changed files are enough; else `request`, which
    SIGHUP calls.
    """

    def __init__(self, settings: Settings, stop: Callable[[], None], *, watch: bool) -> None:
        self.is_due: bool = False
        self._stop = stop
        self._watch = watch
        config = settings.options.config
        self._config = [Path(config)] if config and config != "-" else []
        self._code = code_of(settings.plans)
        self._seen = _stamps([*self._config, *self._code])
        self._asked = asyncio.Event()

    def request(self) -> None:
        """Take what has changed, if a start with it succeeds."""
        self._asked.set()

    async def run(self) -> None:
        """Until the process is to end."""
        log.info("Reload is possible", extra={"files": len(self._seen), "watching": self._watch})
        while not self.is_due:
            await self._changed()
            self.is_due = await self._is_accepted()
        log.info("Starting again with what has changed", extra={"v": 0})
        self._stop()

    async def _changed(self) -> None:
        """Wait for a request, or for files that have changed and stay as they are."""
        files = list(self._seen)
        while not self._asked.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _EVERY if self._watch else None)
            now = _stamps(files)
            if now != self._seen:
                await asyncio.sleep(_EVERY)
                if _stamps(files) == now:
                    break
        self._asked.clear()

    async def _is_accepted(self) -> bool:
        now = _stamps(self._seen)
        code = [file for file in self._code if now[file] != self._seen[file]]
        if code and not self._watch:
            self._refuse(f"{code[0]} has changed: code is taken only at a start, or by --reload")
            return False
        self._seen = now
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mooring", *sys.argv[1:], CHECK),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), _PATIENCE)
        except TimeoutError:
            self._refuse(f"a start takes longer than {_PATIENCE:.0f} s")
            return False
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            self._refuse(said.decode(errors="replace").strip()[-_LONGEST:])
            return False
        return True

    def _refuse(self, why: str) -> None:
        log.error("The change is not taken, the scheduler goes on as before", extra={"why": why})


def execute_again() -> NoReturn:
    """Replace this process by a new start with the same arguments."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and not sys.stdin.isatty():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the new start handles it
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, sys.orig_argv)


def code_of(plans: Iterable[ProfilePlan]) -> list[Path]:
    """The files of the plugins that are not ours, and of what they import from beside them."""
    files = set()
    for plan in plans:
        for plugin in plan.classes.values():
            if not plugin.__module__.startswith(_OURS):
                files |= _file_of(plugin.__module__)
    if not files:
        return []
    folders = {file.parent for file in files}
    for name in list(sys.modules):
        files |= {file for file in _file_of(name) if file.parent in folders}
    return sorted(files)


def _file_of(module: str) -> set[Path]:
    file = getattr(sys.modules.get(module), "__file__", None)
    return {Path(file)} if isinstance(file, str) and file.endswith(".py") else set()


def _stamps(files: Iterable[Path]) -> dict[Path, _Stamp]:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> _Stamp:
    """When it was last changed, and its size; None if it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
