"""Queueing hints: whether an event makes a refused pod worth another attempt.

Plugins register the events that may change their verdict, with a hint that checks the objects of
the event. Only hints of the plugins that refused a pod are called. Nothing here moves a pod.
"""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from mooring.cache.pods import Pod
from mooring.framework.events import NODE, Action, ClusterEvent, Event
from mooring.framework.results import NOTHING_DECLINED, QueuedPod
from mooring.observe.family import Histogram
from mooring.observe.metrics import Metrics
from mooring.queue.inflight import ObservedEvent

log = logging.getLogger(__name__)

Hint = Callable[[ClusterEvent, Pod, object | None, object | None], bool]


class Registration(msgspec.Struct, frozen=True):
    """A plugin waits for an event; without a hint every such event requeues the pod."""

    event: ClusterEvent
    plugin: str
    hint: Hint | None


def with_taint_fallback(registrations: Iterable[Registration]) -> tuple[Registration, ...]:
    """Register every plugin that waits for new nodes for changed taints as well.

    A new node often has taints that keep pods off until it is ready. When they are removed, the
    hints about the new node are out of date.
    """
    given = tuple(registrations)
    actions: dict[str, Action] = {}
    for known in given:
        if known.event.resource == NODE:
            actions[known.plugin] = actions.get(known.plugin, Action(0)) | known.event.action
    added = tuple(
        Registration(Event.NODE_TAINTS_CHANGED, plugin, None)
        for plugin, action in actions.items()
        if Action.ADD in action and Action.UPDATE_NODE_TAINT not in action
    )
    return given + added


class Requeue(enum.Enum):
    """What an event means for a pod."""

    SKIP = enum.auto()
    AFTER_BACKOFF = enum.auto()
    IMMEDIATELY = enum.auto()


class _Listener:
    """A registration that an event matches, and the durations of its hint for that event."""

    __slots__ = ("_answers", "_metrics", "event", "hint", "plugin")

    def __init__(self, known: Registration, event: ClusterEvent, metrics: Metrics) -> None:
        self.plugin: str = known.plugin
        self.hint: Hint | None = known.hint
        self.event = event
        self._metrics = metrics
        self._answers: dict[str, Histogram] = {}

    def took(self, seconds: float, answer: str) -> None:
        """`answer` is one of Queue, QueueSkip and Error."""
        child = self._answers.get(answer)
        if child is None:
            labels = (self.plugin, self.event.label, answer)
            child = self._answers[answer] = self._metrics.hint_duration.labels(*labels)
        child.observe(seconds)


class DeclinedHint(msgspec.Struct, frozen=True):
    """A plugin that heard of an event and said that it does not help the pod."""

    plugin: str
    event: str
    times: int
    last_at: float  # seconds since 1970
    changed: str  # the last time: "namespace/name" of the object


def declined_hints(queued: QueuedPod) -> list[DeclinedHint]:
    """What hints have declined since the pod's last attempt, the latest first."""
    found = [
        DeclinedHint(known.plugin, known.event.label, times, at, str(getattr(changed, "key", "")))
        for known, (times, at, changed) in queued.declined.items()
        if isinstance(known, _Listener)
    ]
    return sorted(found, key=lambda one: one.last_at, reverse=True)


class Hints:
    """The registrations of every profile, and the decision made from them."""

    __slots__ = (
        "_complained",
        "_matching",
        "_metrics",
        "_now",
        "_plugins",
        "_registrations",
        "_timer",
    )

    def __init__(
        self,
        registrations: Mapping[str, Sequence[Registration]],
        metrics: Metrics | None = None,
        timer: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._registrations = {name: tuple(known) for name, known in registrations.items()}
        self._metrics = metrics or Metrics()
        self._timer = timer
        self._now = now
        # There are few distinct events, so the registrations that each one matches are cached.
        self._matching: dict[tuple[str, ClusterEvent], tuple[_Listener, ...]] = {}
        self._plugins: dict[ClusterEvent, tuple[str, ...]] = {}
        self._complained: set[str] = set()

    def plugins_for(self, event: ClusterEvent) -> tuple[str, ...]:
        """The plugins of any profile that wait for this event; none: the event is ignored."""
        found = self._plugins.get(event)
        if found is None:
            matching = (self._matches(profile, event) for profile in self._registrations)
            found = tuple(dict.fromkeys(known.plugin for some in matching for known in some))
            self._plugins[event] = found
        return found

    def concerns_gate(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Whether the plugin that gates this pod waits for this event."""
        matching = self._matches(queued.pod.scheduler_name, event)
        return any(known.plugin == queued.gated_by for known in matching)

    def requeue_for(self, queued: QueuedPod, observed: ObservedEvent) -> Requeue:
        """What this event means for this pod; no backoff if it helps after a Pending status."""
        event, _, new = observed
        pod, pending = queued.pod, queued.pending_plugins
        rejectors = queued.unschedulable_plugins | pending
        if not rejectors:
            return Requeue.AFTER_BACKOFF
        if event.is_wildcard:
            is_about_another = isinstance(new, Pod) and new.uid != pod.uid
            return Requeue.SKIP if is_about_another else Requeue.AFTER_BACKOFF
        if pod.scheduler_name not in self._registrations:
            return Requeue.AFTER_BACKOFF  # no event could ever wake it
        requeue = Requeue.SKIP
        for known in self._matches(pod.scheduler_name, event):
            if known.plugin not in rejectors:
                continue
            if not self._helps(known, pod, observed):
                self._remember(queued, known, observed)
                continue
            if known.plugin in pending:
                return Requeue.IMMEDIATELY
            requeue = Requeue.AFTER_BACKOFF
            if not pending:
                break
        return requeue

    def wakes_on(self, queued: QueuedPod) -> Iterator[Registration]:
        """The events that may wake this pod, of the plugins that refused it; none: any may."""
        rejectors = queued.unschedulable_plugins | queued.pending_plugins
        for known in self._registrations.get(queued.pod.scheduler_name, ()):
            if known.plugin in rejectors and (
                not queued.gated_by or known.plugin == queued.gated_by
            ):
                yield known

    def requeue_for_any(
        self, queued: QueuedPod, observed_events: Iterable[ObservedEvent]
    ) -> Requeue:
        """The most favourable meaning of these events."""
        requeue = Requeue.SKIP
        for observed in observed_events:
            found = self.requeue_for(queued, observed)
            if found is Requeue.IMMEDIATELY:
                return found
            if found is Requeue.AFTER_BACKOFF:
                requeue = found
                if not queued.pending_plugins:
                    break
        return requeue

    def _remember(self, queued: QueuedPod, known: _Listener, observed: ObservedEvent) -> None:
        """One entry per registration and kind of event, however often a hint says no."""
        if queued.declined is NOTHING_DECLINED:
            queued.declined = {}
        times, _, _ = queued.declined.get(known, (0, 0.0, None))
        changed = observed.old if observed.new is None else observed.new
        queued.declined[known] = (times + 1, self._now(), changed)

    def _matches(self, profile: str, event: ClusterEvent) -> tuple[_Listener, ...]:
        found = self._matching.get((profile, event))
        if found is None:
            registered = self._registrations.get(profile, ())
            found = tuple(
                _Listener(known, event, self._metrics)
                for known in registered
                if known.event.matches(event)
            )
            self._matching[profile, event] = found
        return found

    def _helps(self, known: _Listener, pod: Pod, observed: ObservedEvent) -> bool:
        if known.hint is None:
            return True
        event, old, new = observed
        started = self._timer()
        try:
            answer = known.hint(event, pod, old, new)
        except Exception:
            known.took(self._timer() - started, "Error")
            # An extra attempt is better than a pod that is never retried. Logged once per plugin.
            if known.plugin not in self._complained:
                self._complained.add(known.plugin)
                log.exception(
                    "hint failed; the pod is retried",
                    extra={"plugin": known.plugin, "pod": pod.key, "event": event.label},
                )
            return True
        known.took(self._timer() - started, "Queue" if answer else "QueueSkip")
        return answer
