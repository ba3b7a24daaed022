"""A second process that acts for this one while its event loop stands still.

    loop ── heartbeat, in shared memory ──▶ stand-in: duties, told how long the loop stands still

The stand-in is a copy of the process, forked at the start. A plugin in C code that holds the
interpreter lock stops every thread of the first process, but not the stand-in. `mooring run` and
`mooring controller` give it their duties: to renew the lease (`client/lease_stand_in.py`) and to
answer health checks (`ui/health_stand_in.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import mmap
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from mooring.client.lease import uptime
from mooring.runtime.forked import detach, fork

log = logging.getLogger(__name__)

_BEAT: Final = 0.1  # seconds
_LOOK: Final = 0.05
_SILENT_AFTER: Final = 0.5  # seconds without a heartbeat; then the loop stands still
_BETWEEN_STARTS: Final = 1.0

Silence: TypeAlias = Callable[[], float]
"""Seconds for which the loop has stood still; 0 while it runs."""
Duty: TypeAlias = Callable[[Silence], Coroutine[Any, Any, None]]
"""What the stand-in does until it is ended."""


class StandIn:
    """The second process, with the files that it shares with this one.

    It ends with this process, however that ends: it must not renew the lease of one that is gone.
    """

    def __init__(self, duties: Sequence[Duty], *, files: Sequence[int] = ()) -> None:
        self._duties = duties
        self._files = files
        self._heartbeat = memoryview(mmap.mmap(-1, 8)).cast("d")
        self._pid = 0
        self._started_at = 0.0

    def start(self) -> None:
        """Fork."""
        self._started_at = self._beat()
        self._pid, parent = 0, os.getpid()
        try:
            self._pid = fork()
        except OSError as error:  # no process or no memory is left
            extra = {"error": str(error)}
            log.warning("no stand-in for health checks and the lease", extra=extra)
            return
        if not self._pid:
            self._run_in_copy(parent)

    async def run(self) -> None:
        """Write heartbeats; start another stand-in if this one has ended."""
        while True:
            now = self._beat()
            await asyncio.sleep(_BEAT)
            if now - self._started_at >= _BETWEEN_STARTS:
                self._restart_if_ended()

    def close(self) -> None:
        if self._pid:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0

    def _restart_if_ended(self) -> None:
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            log.warning("the stand-in for health checks and the lease has ended")
            self._pid = 0
        if not self._pid:
            self.start()

    def _beat(self) -> float:
        self._heartbeat[0] = now = uptime()
        return now

    def _silence(self) -> float:
        silence = uptime() - self._heartbeat[0]
        return silence if silence >= _SILENT_AFTER else 0.0

    # --- in the copy ---------------------------------------------------------------------------

    def _run_in_copy(self, parent: int) -> NoReturn:
        try:
            detach(*self._files)
            for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to both
                signal.signal(number, signal.SIG_IGN)
            # Garbage of the parent process may own files by number: it must not be collected here.
            gc.freeze()
            asyncio._set_running_loop(None)  # that of the parent process
            asyncio.run(self._stand_in(parent))
        finally:
            os._exit(0)

    async def _stand_in(self, parent: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            for duty in self._duties:
                tasks.create_task(duty(self._silence))
            while os.getppid() == parent:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(_LOOK)
            os._exit(0)
