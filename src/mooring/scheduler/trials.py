"""Trials: pods that may hang a plugin are decided in a forked copy of the process first.

A copy screens a batch of pods, each within `SCREENING` seconds. The first pod that takes longer
ends the copy; that pod is tried alone, with the whole budget, and the others of its batch move to
another copy. The deciding thread never waits: results are reported to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import time
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

import msgspec

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.framework.state import CycleState
from mooring.runtime.forked import OUT_OF_MEMORY, CallNote, Copy, NotingGuard, end_after
from mooring.runtime.guard import Guard
from mooring.scheduler.profiles import ProfileRuntime

log = logging.getLogger(__name__)

SCREENING: Final = 0.4  # seconds for one pod of a batch
MEMORY: Final = 256 << 20  # bytes that a copy may take beyond what this process has
_BATCH: Final = 32
_MOST_SCREENING: Final = 2  # copies at a time that get on with their batch
_MOST_STUCK: Final = 2  # copies that screen, but have not for `_STUCK_AFTER` seconds
_STUCK_AFTER: Final = 0.1
_MOST_ALONE: Final = 2
_NICE_SCREENING: Final = 5
_NICE_ALONE: Final = 10
_FORK_AGAIN: Final = 5.0  # seconds after a fork that failed
_GRACE: Final = 1.0  # seconds after which a copy that ignores its timer is killed


class Outcome(msgspec.Struct, frozen=True):
    """The result of a trial: its seconds, or the plugin that overran, at which point, and how."""

    seconds: float = 0.0
    overran: str = ""  # what happened; empty if it ended
    plugin: str = ""
    point: str = ""


class PodTrial(msgspec.Struct, frozen=True):
    """One pod to try. Pods with a `key` that is not doubted are screened first, one of each."""

    runtime: ProfileRuntime
    pod: Pod
    key: Hashable
    alone: bool
    is_doubted: Callable[[], bool]
    is_wanted: Callable[[], bool]  # False once the pod is gone
    report: Callable[[Outcome], None]


class Trials:
    """Runs trials in a few copies at a time; `report` is called from the event loop."""

    def __init__(
        self, guard: Guard, cache: Cache, *, screening: float = SCREENING, memory: int = MEMORY
    ) -> None:
        self._guard = guard
        self._cache = cache
        self._screening = screening
        self._memory = memory
        self._to_screen: dict[str, PodTrial] = {}  # by uid, as below
        self._to_try_alone: deque[PodTrial] = deque()
        self._known: set[str] = set()  # uids that wait or are being tried
        self._running: dict[int, _Batch] = {}  # by pipe
        self._is_closed = False
        self._random = random.Random()  # of its own: a trial must not change what is decided

    def __contains__(self, uid: object) -> bool:
        return uid in self._known

    def submit(self, trial: PodTrial) -> None:
        """Try a pod as soon as there is a copy for it; not twice at the same time."""
        if trial.pod.uid in self._known:
            return
        self._known.add(trial.pod.uid)
        if trial.alone:
            self._to_try_alone.append(trial)
        else:
            self._to_screen[trial.pod.uid] = trial
        # Later, so that pods of the same turn share a batch.
        asyncio.get_running_loop().call_soon(self._start)

    def withdraw(self, key: Hashable) -> list[Pod]:
        """Remove and return the pods with this key that wait to be screened."""
        pods = [trial.pod for trial in self._to_screen.values() if trial.key == key]
        for pod in pods:
            del self._to_screen[pod.uid]
            self._known.discard(pod.uid)
        return pods

    def close(self) -> None:
        """End all copies; nothing is reported any more."""
        self._is_closed = True
        self._to_screen.clear()
        self._to_try_alone.clear()
        for batch in list(self._running.values()):
            self._end(batch)

    def _start(self) -> None:
        alone = sum(batch.alone for batch in self._running.values())
        stuck = sum(batch.is_stuck for batch in self._running.values())
        screening = len(self._running) - alone - min(stuck, _MOST_STUCK)
        for _ in range(_MOST_SCREENING - screening):
            if batch := self._next_batch():
                self._fork(batch, alone=False)
        while self._to_try_alone and alone < _MOST_ALONE:
            trial = self._to_try_alone.popleft()
            if trial.is_wanted():
                self._fork([trial], alone=True)
                alone += 1
            else:
                self._known.discard(trial.pod.uid)

    def _next_batch(self) -> list[PodTrial]:
        """Undoubted pods first, in random order, so that many bad pods can't block the others."""
        gone = [uid for uid, trial in self._to_screen.items() if not trial.is_wanted()]
        for uid in gone:
            del self._to_screen[uid]
            self._known.discard(uid)
        waiting = list(self._to_screen.values())
        self._random.shuffle(waiting)
        waiting.sort(key=lambda trial: trial.is_doubted())
        batch: list[PodTrial] = []
        keys = {trial.key for one in self._running.values() for trial in one.trials}
        for trial in waiting:
            if len(batch) < _BATCH and (trial.is_doubted() or trial.key not in keys):
                keys.add(trial.key)
                batch.append(self._to_screen.pop(trial.pod.uid))
        return batch

    def _fork(self, trials: list[PodTrial], *, alone: bool) -> None:
        seconds = self._guard.budget if alone else min(self._screening, self._guard.budget)
        note = CallNote()

        def work(write: Callable[[bytes], None]) -> None:
            self._guard.__class__ = NotingGuard
            guard = self._guard
            assert isinstance(guard, NotingGuard)
            guard.note = note
            guard.limit = guard.budget
            for trial in trials:
                end_after(seconds)
                started = time.monotonic()
                with contextlib.suppress(Exception):  # it will fail in the same way outside
                    trial.runtime.cycle.decide_alone(CycleState(), trial.pod, self._cache.nodes)
                end_after(0)
                write(b"%.6f" % (time.monotonic() - started))

        loop = asyncio.get_running_loop()
        nice = _NICE_ALONE if alone else _NICE_SCREENING
        try:
            copy = Copy(work, nice=nice, memory=self._memory)
        except OSError as error:  # no process or no memory is left
            log.warning("could not fork to try pods", extra={"error": str(error)})
            note.close()
            loop.call_later(_FORK_AGAIN, self._submit_again, trials)
            return
        batch = _Batch(copy, note, deque(trials), seconds, alone)
        self._running[copy.pipe] = batch
        self._watch(batch)
        loop.add_reader(copy.pipe, self._read, batch)

    def _submit_again(self, trials: list[PodTrial]) -> None:
        for trial in trials:
            self._known.discard(trial.pod.uid)
            if not self._is_closed:
                self.submit(trial)

    def _watch(self, batch: _Batch) -> None:
        if batch.timer is not None:
            batch.timer.cancel()
        loop = asyncio.get_running_loop()
        if batch.alone or batch.is_stuck:
            late = partial(self._ended, batch, is_late=True)
            batch.timer = loop.call_later(batch.seconds + _GRACE, late)
        else:
            batch.timer = loop.call_later(_STUCK_AFTER, self._move_on, batch)

    def _move_on(self, batch: _Batch) -> None:
        """Screen the rest of the batch in another copy."""
        batch.is_stuck = True
        self._watch(batch)
        self._give_back(batch, keep=1)
        self._start()

    def _give_back(self, batch: _Batch, keep: int) -> None:
        while len(batch.trials) > keep:
            trial = batch.trials.pop()
            self._to_screen[trial.pod.uid] = trial

    def _read(self, batch: _Batch) -> None:
        lines = batch.copy.read()
        if lines is None:
            self._ended(batch)
            return
        for line in lines[: len(batch.trials)]:  # what else it did was given to another
            self._report(batch.trials.popleft(), Outcome(float(line)))
        if not batch.trials:
            self._end(batch)
        elif lines:
            self._watch(batch)
        self._start()

    def _ended(self, batch: _Batch, *, is_late: bool = False) -> None:
        plugin, point = batch.note.read()
        code = self._end(batch)
        self._give_back(batch, keep=1)
        for trial in batch.trials:  # the reason why it has ended
            what = self._what_happened(code, batch.seconds, is_late)
            self._report(trial, Outcome(0.0, what, plugin, point))
        self._start()

    def _end(self, batch: _Batch) -> int:
        asyncio.get_running_loop().remove_reader(batch.copy.pipe)
        if batch.timer is not None:
            batch.timer.cancel()
        del self._running[batch.copy.pipe]
        code = batch.copy.end()
        batch.note.close()
        return code

    def _what_happened(self, code: int, seconds: float, is_late: bool) -> str:
        if code == OUT_OF_MEMORY:
            return f"took more than its {self._memory / (1 << 20):g}Mi of memory"
        if is_late or code == -signal.SIGALRM:
            return f"took longer than its budget of {seconds:g}s"
        if code == -signal.SIGKILL:  # not by us: of all processes the kernel chooses a copy first
            return "was killed with its process, as when the memory of the machine runs out"
        return f"ended its process with {code}"

    def _report(self, trial: PodTrial, outcome: Outcome) -> None:
        self._known.discard(trial.pod.uid)
        trial.report(outcome)


class _Batch:
    """A running copy, and the trials that it has not ended yet."""

    def __init__(
        self, copy: Copy, note: CallNote, trials: deque[PodTrial], seconds: float, alone: bool
    ) -> None:
        self.copy = copy
        self.note = note
        self.trials = trials
        self.seconds = seconds
        self.alone = alone
        self.is_stuck = False
        self.timer: asyncio.TimerHandle | None = None
