"""Keeps a plugin that hangs for some pods from stopping all others.

    attempt ── a call overran its limit ──▶ trial, alone ── ended ──▶ attempt again, whole budget
       ▲                                        │
       │ the plugin is on probation:            └── overran ──▶ policy: the pod fails and waits in
       └── ended ◀── trial in a batch ◀── pods of unknown key       the penalty box, or the plugin
                          └── overran ──▶ trial, alone              is skipped for the pod

While a plugin is on probation, only pods whose *key* has been tried run on the deciding thread. The
key is all that a plugin may read of a pod but its name and status. If some pods of a key overran,
the others need trials as well, because the name may matter. Without probation, pods cost nothing
here.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Literal, Protocol, TypeAlias, TypeVar, get_args

import msgspec

from mooring.cache.pods import Pod
from mooring.errors import PluginOverrun
from mooring.framework._internal import InternalPlugin
from mooring.framework.depends_on import everything_of
from mooring.framework.handle import Recorder
from mooring.framework.results import QueuedPod
from mooring.framework.status import Status
from mooring.observe.metrics import Metrics
from mooring.queue.queue import SchedulingQueue
from mooring.runtime.guard import STALL_LIMIT, Guard
from mooring.runtime.plugin_caller import accident, running
from mooring.scheduler.profiles import ProfileRuntime
from mooring.scheduler.trials import Outcome, PodTrial

log = logging.getLogger(__name__)
_K = TypeVar("_K")
_V = TypeVar("_V")

Policy: TypeAlias = Literal["fail", "skip", "isolate"]
POLICIES: Final = get_args(Policy)
ALL_PLUGINS: Final = "*"
PROBATION: Final = 900.0  # seconds without an overrun until a plugin is trusted again
FIRST_PENALTY: Final = 10.0  # seconds; doubles with each further overrun of the pod
LONGEST_PENALTY: Final = 600.0
_PARKED: Final = 60.0  # seconds; a pod is activated when its trial has ended
_PUT_OFF: Final = 1.0  # seconds until a slow pod asks again for its share of the time
_SLOW_SHARE: Final = 0.2  # of the time, for slow pods while there are others
_ALL_SLOW_AFTER: Final = 10.0  # seconds without any other pod: then slow ones may take all the time
_CONVINCING: Final = 3  # pods of a key that overran, and none that did not
_MOST_KEPT: Final = 10_000  # keys, and pods
_ENTRY_KEPT: Final = 2 * LONGEST_PENALTY


class Tries(Protocol):
    """`Trials`, for tests."""

    def __contains__(self, uid: object) -> bool: ...

    def submit(self, trial: PodTrial) -> None: ...

    def withdraw(self, key: Hashable) -> list[Pod]: ...

    def close(self) -> None: ...


class _Key:
    """The results of trials and attempts of pods with one key."""

    __slots__ = ("overruns", "passed", "seconds", "suspects")

    def __init__(self) -> None:
        self.passed = False
        self.seconds = 0.0  # the longest that ended
        self.suspects: set[str] = set()  # uids of pods that overran, or may have
        self.overruns = 0  # trials that did not end

    @property
    def vouches(self) -> bool:
        """Whether other pods of this key need no trial."""
        return self.passed and not self.suspects


class _Entry:
    """The state of one pod that overran or was tried."""

    __slots__ = ("overruns", "skipped", "ticket", "touched_at")

    def __init__(self) -> None:
        self.touched_at = 0.0
        self.ticket: tuple[Hashable, float] | None = None  # key and seconds of a trial that ended
        self.overruns = 0
        self.skipped: frozenset[str] = frozenset()


class Admission(msgspec.Struct, frozen=True):
    """How a pod may be decided: by this runtime, each call within `limit` seconds."""

    runtime: ProfileRuntime
    limit: float


class Overruns:
    """Decides which pods are tried elsewhere before they are decided.

    `trials` is None where the process must not be forked: then a pod that overran only waits longer
    each time. `fail` ends an attempt with an error; `without` is a runtime less some plugins.
    """

    def __init__(
        self,
        *,
        guard: Guard,
        queue: SchedulingQueue,
        recorder: Recorder,
        metrics: Metrics,
        runtimes: Mapping[str, ProfileRuntime],
        fail: Callable[[ProfileRuntime, QueuedPod, Status], None],
        without: Callable[[ProfileRuntime, frozenset[str]], ProfileRuntime],
    ) -> None:
        self.is_active: bool = False  # whether pods must be admitted
        self._trials: Tries | None = None
        self._policies: Mapping[str, Policy] = {}
        self._guard = guard
        self._queue = queue
        self._recorder = recorder
        self._metrics = metrics
        self._runtimes = runtimes
        self._fail = fail
        self._without = without
        self._reduced: dict[tuple[str, frozenset[str]], ProfileRuntime] = {}
        self._keys: dict[Hashable, _Key] = {}
        self._entries: dict[str, _Entry] = {}  # by uid
        self._probation: dict[str, float] = {}  # plugin -> when it ends, by the guard's timer
        self._isolated: frozenset[str] = frozenset()
        self._credit = 0.0  # seconds that slow pods may take now
        self._credited_at = 0.0  # by the guard's timer
        self._quick_at = -math.inf  # when a pod that is not slow was last decided
        metrics.before_scrape(self._measure)

    def enable(self, trials: Tries, policies: Mapping[str, Policy]) -> None:
        """Allow forks from now on; `policies` by plugin, or for all others under `*`."""
        self._trials = trials
        self._policies = policies
        self._credited_at = self._guard.timer()
        self._guard.decision_limit = min(STALL_LIMIT, self._guard.budget)
        names = {
            plugin.name
            for runtime in self._runtimes.values()
            for plugin in runtime.evaluator.plugins.all
            if not isinstance(plugin, InternalPlugin)
        }
        self._isolated = frozenset(n for n in names if self._policy(n) == "isolate")
        self._update()

    def close(self) -> None:
        if self._trials is not None:
            self._trials.close()

    # --- before and after an attempt -----------------------------------------------------------

    def admit(self, runtime: ProfileRuntime, queued: QueuedPod) -> Admission | None:
        """How to decide the pod now; None if it waits, for a trial or for its share of time."""
        trials = self._trials
        if trials is None:
            return Admission(runtime, self._guard.decision_limit)
        pod = queued.pod
        entry = self._entries.get(pod.uid)
        if entry is None and not (self._probation or self._isolated):
            return Admission(runtime, self._guard.decision_limit)
        runtime = self._runtime_for(runtime, entry)
        key = _key_of(runtime, pod)
        seconds = self._seconds(key, entry)
        if seconds is None:
            self._try(runtime, queued, key, alone=entry is not None and entry.overruns > 0)
            return None
        if seconds <= self._guard.decision_limit:
            self._quick_at = self._guard.timer()
            return Admission(runtime, self._guard.decision_limit)
        if not self._has_credit(seconds):
            self._queue.put_back(queued, _PUT_OFF)
            return None
        return Admission(runtime, self._guard.budget)

    def attempted(
        self, runtime: ProfileRuntime, queued: QueuedPod, status: Status, seconds: float
    ) -> bool:
        """Whether the attempt of a slow pod, or after an overrun, is void: then a trial follows.

        To be called before the guard's limit is reset.
        """
        self._credit -= seconds
        overran = self._guard.overrun
        if overran is None:
            return False
        self._overran(*overran)
        if self._trials is None:
            return False
        pod = queued.pod
        key = _key_of(runtime, pod)
        known = self._known(key)
        if status.ok:  # it took long, but it ended
            known.passed = True
            known.seconds = max(known.seconds, seconds)
            return False
        known.suspects.add(pod.uid)
        entry = self._entry(pod.uid)
        entry.ticket = None
        has_had_budget = self._guard.limit >= self._guard.budget
        if has_had_budget and self._policy(overran[0]) != "skip":
            return False
        self._try(runtime, queued, key, alone=True)
        return True

    def penalty(self, pod: Pod) -> float:
        """Seconds until a pod is tried again whose attempt ended in an overrun."""
        entry = self._entry(pod.uid)
        entry.overruns += 1
        entry.ticket = None
        self._update()
        # Compared by count: after many overruns a float would overflow.
        doubled = min(entry.overruns - 1, 16)
        return float(min(FIRST_PENALTY * 2**doubled, LONGEST_PENALTY))

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound."""
        if self._entries.pop(uid, None) is not None:
            self._update()

    def expire(self) -> None:
        """End probations that are over. To be called every second."""
        now = self._guard.timer()
        ended = [plugin for plugin, until in self._probation.items() if until <= now]
        for plugin in ended:
            del self._probation[plugin]
            log.info("plugin is no longer on probation", extra={"v": 0, "plugin": plugin})
        if ended and not (self._probation or self._isolated):
            self._keys.clear()
        while self._entries:  # the first was touched longest ago
            uid, entry = next(iter(self._entries.items()))
            if entry.touched_at + _ENTRY_KEPT > now:
                break
            del self._entries[uid]
        self._update()

    def note(self) -> str:
        """For /readyz: which plugins are on probation."""
        names = sorted(self._probation)
        return f"on probation after overruns: {', '.join(names)}" if names else ""

    # --- trials --------------------------------------------------------------------------------

    def _try(
        self, runtime: ProfileRuntime, queued: QueuedPod, key: Hashable, *, alone: bool
    ) -> None:
        trials, pod = self._trials, queued.pod
        assert trials is not None
        self._queue.put_back(queued, _PARKED)
        if pod.uid in trials:
            return

        def is_doubted() -> bool:
            return bool(self._known(key).suspects)

        def is_wanted() -> bool:
            return self._queue.holds(pod)

        def report(outcome: Outcome) -> None:
            self._tried(runtime, pod, key, outcome, alone=alone)

        trials.submit(PodTrial(runtime, pod, key, alone, is_doubted, is_wanted, report))

    def _tried(
        self, runtime: ProfileRuntime, pod: Pod, key: Hashable, outcome: Outcome, *, alone: bool
    ) -> None:
        known = self._known(key)
        if not outcome.overran:
            vouched = known.vouches
            known.passed = True
            known.seconds = max(known.seconds, outcome.seconds)
            known.suspects.discard(pod.uid)
            self._entry(pod.uid).ticket = (key, outcome.seconds)
            released = [pod]
            if known.vouches and not vouched and self._trials is not None:
                released += self._trials.withdraw(key)
            self._queue.activate([one.key for one in released])
            return
        known.suspects.add(pod.uid)
        is_convincing = known.overruns >= _CONVINCING and not known.passed
        if not alone and not is_convincing:
            queued = self._queue.take_back(pod)
            if queued is not None:
                self._try(runtime, queued, key, alone=True)
            return
        known.overruns += 1
        self._overran(outcome.plugin, outcome.point)
        queued = self._queue.take_back(pod)
        if queued is None:
            return  # deleted, or changed and under way again
        if self._policy(outcome.plugin) == "skip" and outcome.plugin in runtime.profile.plugins:
            self._skip(runtime, queued, outcome)
            return
        status = self._status(runtime, outcome)
        self._fail(runtime, queued, status)

    def _skip(self, runtime: ProfileRuntime, queued: QueuedPod, outcome: Outcome) -> None:
        entry = self._entry(queued.pod.uid)
        entry.skipped |= {outcome.plugin}
        note = f"decided without plugin {outcome.plugin}: at {outcome.point} it {outcome.overran}"
        self._recorder.event(queued.pod, "Warning", "PluginSkipped", "Scheduling", note)
        # The plugins that are left may hang as well.
        reduced = self._runtime_for(runtime, entry)
        self._try(reduced, queued, _key_of(reduced, queued.pod), alone=False)

    def _status(self, runtime: ProfileRuntime, outcome: Outcome) -> Status:
        plugin = runtime.profile.plugins.get(outcome.plugin)
        if plugin is None:  # not in the code of a plugin
            return accident("deciding", PluginOverrun(outcome.overran, plugin="", point=""))
        budget = f"took longer than its budget of {self._guard.budget:g}s"
        what = budget if outcome.overran.startswith("took longer") else outcome.overran
        error = PluginOverrun(what, plugin=plugin.name, point=outcome.point)
        return accident(running(outcome.point, plugin), error)

    # --- what is known -------------------------------------------------------------------------

    def _policy(self, plugin: str) -> Policy:
        return self._policies.get(plugin) or self._policies.get(ALL_PLUGINS) or "fail"

    def _overran(self, plugin: str, point: str) -> None:
        self._metrics.plugin_overruns.labels(plugin, point).add()
        if plugin not in self._probation:
            extra = {"plugin": plugin, "point": point, "policy": self._policy(plugin)}
            log.warning("plugin overran its time and is on probation", extra=extra)
        self._probation[plugin] = self._guard.timer() + PROBATION
        self._update()

    def _update(self) -> None:
        can_try = self._trials is not None
        self.is_active = can_try and bool(self._probation or self._entries or self._isolated)

    def _measure(self) -> None:
        self._metrics.plugins_on_probation.labels().set(len(self._probation))

    def _known(self, key: Hashable) -> _Key:
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = _Key()
            _drop_oldest(self._keys)
        return known

    def _entry(self, uid: str) -> _Entry:
        """Of a pod; from now on the one touched last."""
        entry = self._entries.pop(uid, None) or _Entry()
        entry.touched_at = self._guard.timer()
        self._entries[uid] = entry
        _drop_oldest(self._entries)
        return entry

    def _seconds(self, key: Hashable, entry: _Entry | None) -> float | None:
        """The seconds that the decision of a pod takes; None if a trial has to show it."""
        if entry is not None:
            if entry.ticket is not None and entry.ticket[0] == key:
                return entry.ticket[1]
            if entry.overruns:
                return None
        known = self._keys.get(key)
        return known.seconds if known is not None and known.vouches else None

    def _runtime_for(self, runtime: ProfileRuntime, entry: _Entry | None) -> ProfileRuntime:
        if entry is None or not entry.skipped:
            return runtime
        name = runtime.profile.scheduler_name
        reduced = self._reduced.get((name, entry.skipped))
        if reduced is None:
            reduced = self._without(self._runtimes[name], entry.skipped)
            self._reduced[name, entry.skipped] = reduced
        return reduced

    def _has_credit(self, seconds: float) -> bool:
        """Whether a slow pod may take so long now."""
        now = self._guard.timer()
        earned = (now - self._credited_at) * _SLOW_SHARE
        self._credit = min(self._credit + earned, self._guard.budget)
        self._credited_at = now
        return self._credit >= seconds or now - self._quick_at > _ALL_SLOW_AFTER


def _key_of(runtime: ProfileRuntime, pod: Pod) -> Hashable:
    profile = runtime.profile
    return profile.scheduler_name, frozenset(profile.plugins), everything_of(pod)


def _drop_oldest(kept: dict[_K, _V]) -> None:
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]
