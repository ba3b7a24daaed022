"""Pods that wait without having been refused: gated at PreEnqueue, or held at Permit.

kube-scheduler says nothing about them, and their condition stays as kube-scheduler leaves it. Here
an Event says which plugin keeps a pod waiting, once per stay, unless that plugin has
`reports_waiting = False`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from mooring.cache.pods import Pod
from mooring.client.event_series import truncated
from mooring.config import format_duration
from mooring.framework import plugin as contract
from mooring.framework.handle import Recorder
from mooring.framework.status import Status
from mooring.queue.queue import SchedulingQueue
from mooring.runtime.profile import Profile
from mooring.runtime.waiting import WaitingPod, WaitingPods

GATED: Final = "SchedulingGated"  # the reasons of Events
ON_PERMIT: Final = "WaitingOnPermit"
_AT_ONCE: Final = 100  # Events


class HeldPods:
    """Why pods wait, and the Events that say so.

    While `is_standing_by()`, another replica may be the leader and report the same pods: then
    nothing is reported, and `catch_up` does it later.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        waiting: WaitingPods,
        recorder: Recorder,
        is_standing_by: Callable[[], bool],
    ) -> None:
        self._profiles = profiles
        self._queue = queue
        self._waiting = waiting
        self._recorder = recorder
        self._is_standing_by = is_standing_by
        self._has_missed = False  # a pod that was gated while standing by
        self._later: deque[Pod] = deque()

    def why(self, key: str) -> str:
        """Which plugin keeps the pod "namespace/name" waiting; "" if none does."""
        found = self._queue.find(key)
        if found is not None:
            status = self._queue.gate_of(key)
            return "" if self._gate(found.pod, status) is None else _gated(status)
        return next((on_permit(held) for held in self._waiting if held.pod.key == key), "")

    def gated(self, pod: Pod, status: Status) -> None:
        """A PreEnqueue plugin begins to keep a pod waiting."""
        if self._is_standing_by():
            self._has_missed = True
            return
        plugin = self._gate(pod, status)
        if plugin is not None and plugin.reports_waiting:
            self._report(pod, GATED, _gated(status))

    def held_at_permit(self, held: WaitingPod) -> None:
        """Permit plugins begin to keep a pod waiting."""
        profile = self._profiles[held.pod.scheduler_name]
        holding = {name for name in held.pending_plugins if held.timeouts[name] > 0}
        plugins = (one for one in profile.at(contract.Permit) if one.name in holding)
        if any(one.reports_waiting for one in plugins):
            self._report(held.pod, ON_PERMIT, on_permit(held))

    def catch_up(self) -> None:
        """Report some of the pods that were gated while standing by. Call every second."""
        if self._is_standing_by():
            return
        if self._has_missed:
            self._has_missed = False
            self._later = deque(queued.pod for queued in self._queue.listed()["gated"])
        for _ in range(min(len(self._later), _AT_ONCE)):
            pod = self._later.popleft()
            if self._queue.holds(pod):
                self.gated(pod, self._queue.gate_of(pod.key))

    def _gate(self, pod: Pod, status: Status) -> contract.PreEnqueue | None:
        """The plugin that gates a pod; None also for a preemptor: its condition says more."""
        profile = self._profiles.get(pod.scheduler_name)
        plugins = () if profile is None or status.ok else profile.at(contract.PreEnqueue)
        return next((plugin for plugin in plugins if plugin.name == status.plugin), None)

    def _report(self, pod: Pod, reason: str, note: str) -> None:
        self._recorder.event(pod, "Normal", reason, "Scheduling", truncated(note))


def on_permit(held: WaitingPod) -> str:
    """Where a pod held at Permit is to go, and which plugins hold it."""
    holding = ", ".join(
        f"{plugin} (at most {format_duration(held.timeouts[plugin])})"
        for plugin in held.pending_plugins
    )
    return f"waiting on permit for node {held.node_name}, held by {holding}"


def _gated(status: Status) -> str:
    text = f"gated by the PreEnqueue plugin {status.plugin}"
    return f"{text}: {status.message}" if status.message else text
