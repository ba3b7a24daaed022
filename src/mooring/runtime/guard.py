"""The guard: every call of plugin code goes through it.

Calls are timed, watched and checked. Any failure (an exception, a result of the wrong type, a call
that took longer than the budget) becomes one `PluginError` that names the plugin and the extension
point. The traceback is logged once per place, so that a plugin that fails for every pod does not
fill the disk.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
import traceback
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeVar, cast

from mooring.errors import PluginError, PluginOverrun
from mooring.framework._internal import InternalPlugin
from mooring.framework.plugin import Base
from mooring.framework.state import Failed
from mooring.framework.status import Code, Status
from mooring.observe import texts
from mooring.observe.metrics import Metrics
from mooring.observe.signals import is_ctrl_c

log = logging.getLogger(__name__)
T = TypeVar("T")

DEFAULT_BUDGET: Final = 5.0  # seconds; half of the renew deadline of a lease
STALL_LIMIT: Final = (
    0.25  # seconds; a call of a decision that takes longer leads to a trial in a copy
)


class PluginTimeout(texts.Overrun):
    """Raised inside a plugin that overran. Not an Exception, so that plugins do not catch it."""


class Guard:
    """Calls the plugin code of one scheduler.

    `limit` is the current time limit of a synchronous call: the budget, or during a decision the
    `decision_limit`, which may be less. Plugins of this project always have the whole budget,
    because they may need it in a large cluster.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        budget: float = DEFAULT_BUDGET,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.metrics = metrics
        self._budget = budget
        self.limit: float = budget  # seconds, for the next call
        self.decision_limit: float = budget  # seconds of a call at a point of a decision
        self.timer = timer
        self.overrun: tuple[str, str] | None = None  # plugin and point of the last overrun
        self.record_plugins = False  # set per cycle: plugin durations are sampled
        self.deadline: float | None = None  # while plugin code runs; read by the watchdog
        self._logged: set[tuple[str, ...]] = set()  # plugin, point and line of logged failures

    @property
    def budget(self) -> float:
        """The longest time of a call, in seconds."""
        return self._budget

    @budget.setter
    def budget(self, seconds: float) -> None:
        self._budget = self.limit = self.decision_limit = seconds

    def call(self, plugin: Base, point: str, function: Callable[..., T], *args: Any) -> T:
        """Call a plugin; raises only PluginError, or KeyboardInterrupt for Ctrl-C.

        A task is cancelled only where it awaits, so a CancelledError here is raised by the plugin.
        """
        timer = self.timer
        started = timer()
        outer = self.deadline  # of another plugin, whose use of the handle led to this call
        try:
            # Two blocks, so that a timeout that the watchdog raises between the answer and the
            # reset of the deadline is caught as well.
            try:
                self.deadline = started + self.limit
                answer = function(*args)
            finally:
                self.deadline = outer
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            failure = self.failure(plugin, point, error)
            raise failure from failure.__cause__
        took = timer() - started
        if self.record_plugins or took > self.limit:
            self._finish(plugin, point, answer, took)
        return answer

    @types.coroutine
    def acall(
        self,
        plugin: Base,
        point: str,
        function: Callable[..., Awaitable[T]],
        *args: Any,
        stands: bool = False,
    ) -> Generator[Any, Any, T]:
        """As `call`, for `async` points. Waiting is not limited, blocking the event loop is.

        So the deadline is set only while the plugin's own code runs. An answer that `stands`
        reports something done, such as a bind: it is accepted however long it took.
        """
        timer = self.timer
        busy = 0.0  # seconds
        inner = None
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            started = timer()
            try:
                try:  # as in `call`
                    self.deadline = started + self._budget
                    if inner is None:
                        inner = function(*args).__await__()
                    waited_for = inner.send(sent) if thrown is None else inner.throw(thrown)
                finally:
                    self.deadline = None
            except StopIteration as stop:
                answer: T = stop.value
                busy += timer() - started
                break
            except BaseException as error:
                if is_ctrl_c(error) or _is_from_outside(error, thrown):
                    raise
                failure = self.failure(plugin, point, error)
                raise failure from failure.__cause__
            busy += timer() - started
            sent, thrown = None, None
            try:
                sent = yield waited_for
            except BaseException as error:  # cancellation and failures belong to the inner code
                thrown = error
        if stands and busy > self._budget:
            extra = {"plugin": plugin.name, "point": point, "seconds": busy}
            log.warning("plugin blocked the event loop", extra=extra)
        elif self.record_plugins or busy > self._budget:
            self._finish(plugin, point, answer, busy)
        return answer

    def failure(self, plugin: Base, point: str, error: BaseException) -> PluginError:
        """The error that names plugin and point, with a safe copy of the exception as its cause."""
        kind = type(error)  # not `isinstance`, which may run code of the plugin
        if kind is PluginError or kind is PluginOverrun:
            return cast("PluginError", error)
        is_late = issubclass(kind, PluginTimeout)
        shown = None if is_late else self._watched(lambda: texts.safe_copy(error))
        if shown is None:
            return self.too_slow(plugin, point)
        if issubclass(kind, Failed):
            text = str(shown)
        else:
            text = texts.named(shown)
            self._log_once(plugin, point, shown)
        failure = PluginError(text, plugin=plugin.name, point=point)
        failure.__cause__ = shown
        return failure

    def wrong_answer(self, plugin: Base, point: str, got: object, expected: str) -> PluginError:
        shown = self._watched(lambda: texts.text_of(got, repr))
        if shown is None:
            return self.too_slow(plugin, point)
        if len(shown) > 80:
            shown = shown[:77] + "..."
        text = f"returned {shown}, expected {expected}"
        return PluginError(text, plugin=plugin.name, point=point)

    def too_slow(self, plugin: Base, point: str) -> PluginError:
        self.overrun = (plugin.name, point)
        text = f"took longer than its budget of {self.budget:g}s"
        return PluginOverrun(text, plugin=plugin.name, point=point)

    def check_budget(self, plugin: Base, point: str) -> None:
        """Raise if all calls of a per-node plugin together took too long; called between nodes."""
        if self.deadline is not None and self.timer() > self.deadline and self.is_late(plugin):
            raise self.too_slow(plugin, point)

    def is_late(self, plugin: Base | None) -> bool:
        """Whether the running call of this plugin has exceeded its limit."""
        if self.deadline is None:
            return False
        more = self._budget - self.limit if isinstance(plugin, InternalPlugin) else 0.0
        return self.timer() > self.deadline + more

    def _watched(self, look: Callable[[], T]) -> T | None:
        """Read a property of an answer, which may run code of the plugin; None if that hangs."""
        outer = self.deadline
        try:
            try:  # as in `call`
                self.deadline = self.timer() + self.limit
                return look()
            finally:
                self.deadline = outer
        except texts.Overrun:
            return None

    def _finish(self, plugin: Base, point: str, answer: object, took: float) -> None:
        """Record the duration of a call, or report that it took too long."""
        if took > self._budget:
            raise self.too_slow(plugin, point)
        if took > self.limit and not isinstance(plugin, InternalPlugin):
            self.overrun = (plugin.name, point)  # its answer is used nevertheless
        if self.record_plugins:
            code = answer.code if type(answer) is Status else Code.SUCCESS
            self.metrics.plugin_duration.labels(plugin.name, point, code.label).observe(took)

    def _log_once(self, plugin: Base, point: str, error: Exception) -> None:
        trace = traceback.walk_tb(error.__traceback__)
        places = [f"{frame.f_code.co_filename}:{line}" for frame, line in trace]
        key = (plugin.name, point, texts.type_name(error), *places[-1:])
        if key not in self._logged and len(self._logged) < 1_000:
            self._logged.add(key)
            extra = {"plugin": plugin.name, "point": point}
            log.error("plugin failed", extra=extra, exc_info=error)


def _is_from_outside(error: BaseException, thrown: BaseException | None) -> bool:
    """Whether the running task was cancelled or closed; if not, the plugin raised the error."""
    if isinstance(thrown, GeneratorExit):
        return True
    task = asyncio.current_task() if issubclass(type(error), asyncio.CancelledError) else None
    return task is not None and task.cancelling() > 0


class Watchdog:
    """Interrupts a plugin that hangs in synchronous code, by a timer signal in the main thread.

    Without it, a plugin that never returns would also stop watches and lease renewals. It checks
    several times per budget and costs nothing in between. Only for processes that mooring owns: a
    library must not take SIGALRM from its host.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._previous: Any = None

    def __enter__(self) -> Watchdog:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("the watchdog works by signals and needs the main thread")
        self._previous = signal.signal(signal.SIGALRM, self._look)
        interval = min(self._guard.budget / 4, STALL_LIMIT / 2)
        signal.setitimer(signal.ITIMER_REAL, interval, interval)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._previous)

    def _look(self, _signal: int, frame: types.FrameType | None) -> None:
        guard = self._guard
        deadline = guard.deadline
        if deadline is None or guard.timer() <= deadline or not guard.is_late(_called_in(frame)):
            return
        guard.deadline = guard.timer() + guard.budget  # time to unwind
        raise PluginTimeout


def _called_in(frame: types.FrameType | None) -> Base | None:
    """The plugin whose call is running in this frame; looked up here, so that calls stay cheap."""
    while frame is not None:
        if frame.f_code is Guard.call.__code__:
            plugin: Base = frame.f_locals["plugin"]
            return plugin
        frame = frame.f_back
    return None
