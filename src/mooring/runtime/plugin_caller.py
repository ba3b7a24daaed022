"""The call of a plugin for a status at any extension point: guarded, checked and timed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final

from mooring.cache.pods import Pod
from mooring.errors import PluginError
from mooring.framework.plugin import Base, Filter, Score
from mooring.framework.status import OK, SKIP, Code, Status
from mooring.observe.family import Histogram, MetricValue
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile

# kube-scheduler's words for points that are not "running <point> plugin".
_RUNNING: Final = {
    "PreFilterExtensionAddPod": 'running AddPod on PreFilter plugin "{}"',
    "PreFilterExtensionRemovePod": 'running RemovePod on PreFilter plugin "{}"',
    "Filter": 'running "{}" filter plugin',
    "Score": 'running Score plugins: plugin "{}" failed with',
    "ScoreExtensionNormalize": 'running Normalize on Score plugins: plugin "{}" failed with',
    "PreBindPreFlight": 'running PreBindPreFlight "{}"',
}


class PluginCaller:
    """The base of all callers. A failure of a plugin never raises here."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        self.profile = profile
        self.guard = guard
        self._durations: dict[str | tuple[str, Code], Histogram] = {}  # by point; not OK: and code

    def ask(
        self,
        plugin: Base,
        point: str,
        function: Callable[..., object],
        *args: object,
        accept: tuple[type[Any], ...] = (),
    ) -> Any:
        """A Status with the plugin's name, or an answer of one of the `accept`ed types.

        A failure becomes an ERROR status whose reason says what was running.
        """
        try:
            answer = self.guard.call(plugin, point, function, *args)
            return OK if answer is OK else self._signed(plugin, point, answer, accept)
        except PluginError as error:
            return accident(running(point, plugin), error)

    async def ask_async(
        self,
        plugin: Base,
        point: str,
        function: Callable[..., Awaitable[object]],
        *args: object,
        stands: bool = False,
    ) -> Status:
        try:
            answer = await self.guard.acall(plugin, point, function, *args, stands=stands)
            status: Status = OK if answer is OK else self._signed(plugin, point, answer)
        except PluginError as error:
            return accident(running(point, plugin), error)
        except asyncio.CancelledError as error:
            error.add_note(running(point, plugin))
            raise
        return status

    def applies(self, plugin: Base, pod: Pod) -> bool:
        """Whether a plugin applies to a pod; if `applies_to` fails, it does."""
        if not picks_pods(plugin):
            return True
        try:
            return bool(self.guard.call(plugin, "AppliesTo", plugin.applies_to, pod))
        except PluginError:
            return True

    def took(self, point: str, started: float, status: Status) -> Status:
        """Observe how long a point took; returns the status."""
        key = point if status is OK else (point, status.code)
        duration = self._durations.get(key)
        if duration is None:
            labels = (point, status.code.label, self.profile.scheduler_name)
            duration = self._durations[key] = self.guard.metrics.point_duration.labels(*labels)
        duration.observe(self.guard.timer() - started)
        return status

    def evaluations(self, point: type[Base]) -> dict[str, MetricValue]:
        """The counters of the calls of each plugin at a point, by plugin."""
        family, profile = self.guard.metrics.plugin_evaluations, self.profile
        return {
            plugin.name: family.labels(plugin.name, point.__name__, profile.scheduler_name)
            for plugin in profile.at(point)
        }

    def _signed(
        self, plugin: Base, point: str, answer: object, accept: tuple[type[Any], ...] = ()
    ) -> Any:
        if answer is SKIP:
            return _skip_of(plugin.name)
        if isinstance(answer, Status):
            return answer if answer.ok else answer.by(plugin.name)
        if isinstance(answer, accept):
            return answer
        expected = " or ".join(["Status", *[kind.__name__ for kind in accept]])
        raise self.guard.wrong_answer(plugin, point, answer, f"a {expected}")


@lru_cache(maxsize=1024)  # needed for nearly every pod, for few plugins
def _skip_of(plugin: str) -> Status:
    return SKIP.by(plugin)


def is_vectorised(plugin: Filter) -> bool:
    """Whether a Filter has its own vectorised form."""
    return type(plugin).filter_all is not Filter.filter_all


def overrides_normalize_score(plugin: Score) -> bool:
    """Whether a Score has its own `normalize_score`.

    If not, equal raw scores become equal normalized scores on all nodes.
    """
    return type(plugin).normalize_score is not Score.normalize_score


def normalizes(plugin: Base) -> bool:
    """Whether the scores of a plugin are normalized before they count."""
    return isinstance(plugin, Score) and (
        plugin.normalizer is not None or overrides_normalize_score(plugin)
    )


def picks_pods(plugin: Base) -> bool:
    """Whether a plugin may not apply to some pods."""
    return type(plugin).applies_to is not Base.applies_to


def running(point: str, plugin: Base) -> str:
    """The beginning of an error message about a plugin call, in kube-scheduler's words."""
    return _RUNNING.get(point, f'running {point} plugin "{{}}"').format(plugin.name)


def accident(while_running: str, error: PluginError) -> Status:
    """The status of the pod after a failure inside a plugin."""
    return Status(Code.ERROR, (f"{while_running}: {error}",), error.plugin, error)


def interrupted(error: asyncio.CancelledError) -> str:
    """The message about a cancelled task, for the status of the pod."""
    notes = getattr(error, "__notes__", None) or ["binding"]
    return f"{notes[0]}: the task was cancelled by a plugin"


def as_error(while_running: str, status: Status) -> Status:
    """A status that a point does not accept, as an error; failures name what was running."""
    if isinstance(status.cause, PluginError):
        return status
    text = f"{while_running}: {status.message}"
    return Status(Code.ERROR, (text,), status.plugin, status.cause)
