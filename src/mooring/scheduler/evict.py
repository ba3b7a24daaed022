"""Carries out a preemption: evicts the victims and gates the preemptor until they are gone.

       evict                  all but the last are deleted
    ----------> the others -------------------------------> the last
                    |                                        |    | seen to be gone or terminating,
                    |       the API server refuses           |    | or called off
                    +---> the pod is made active <-----------+    v
                          and chooses again                       the gate is open

The preemptor is gated until the watch shows that its last victim is gone or has a grace period to
terminate: otherwise each victim that goes would wake it, and it would find no room and choose
further victims. In the end the event of a victim wakes it.

Some evictions are under way at a time, and the others wait in the order of their preemptors. If all
of them went on together, the first preemptor would wait for the victims of the last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set as AbstractSet
from typing import Final

from mooring.api.meta import Condition, format_time
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.client.errors import NotFound
from mooring.errors import ApiError
from mooring.framework.handle import Client, Clock, Recorder
from mooring.framework.status import OK, Status
from mooring.observe.metrics import Metrics
from mooring.preemption.victims import BY_SCHEDULER, DISRUPTION_TARGET
from mooring.queue.queue import SchedulingQueue
from mooring.runtime.waiting import WaitingPods
from mooring.scheduler.binding import BindingPlugins
from mooring.scheduler.failure import Spawn
from mooring.scheduler.preemption_backoff import PreemptionBackoff

log = logging.getLogger(__name__)

AT_A_TIME: Final = 32  # evictions; as many requests are under way at most

WAITING: Final = Status.unresolvable("waiting for the preemption for this pod to be finished")


class _Eviction:
    """The eviction of the victims of one preemptor."""

    def __init__(self, preemptor: Pod, node_name: str, victims: list[Pod], plugin: str) -> None:
        self.preemptor = preemptor
        self.node_name = node_name
        self.plugin = plugin  # that chose them
        *self.others, self.last = victims
        self.last_seen: Pod | None = self.last  # when it was last found to stay
        self.is_at_the_last = False  # the other victims are evicted
        self.is_carried_out = False  # all requests are answered

    def is_over(self, cache: Cache) -> bool:
        """Whether the watch has shown that the last victim is gone or terminating."""
        if not self.is_at_the_last:
            return False
        last = cache.get_pod(self.last.uid)
        if last is None:
            return True
        # Without a grace period it goes at once, and its room is there with the next event of it.
        return last.is_terminating and last.api.metadata.deletion_grace_period_seconds != 0


class Evictor:
    """Evicts victims for all profiles, and gates their preemptors."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        at_work: BindingPlugins,
        client: Client,
        recorder: Recorder,
        clock: Clock,
        metrics: Metrics,
        spawn: Spawn,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._waiting = waiting
        self._at_work = at_work
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._spawn = spawn
        self._under_way: dict[str, _Eviction] = {}  # by the preemptor's uid, until they are over
        self._at_the_last: dict[str, _Eviction] = {}  # those of them that may be over already
        self._backoff = PreemptionBackoff(clock.now)
        self._turns = asyncio.Semaphore(AT_A_TIME)

    def pause(self, pod: Pod) -> float:
        """Seconds until this pod may preempt again, after evictions that did not help."""
        pause = self._backoff.pause(pod.uid)
        if pause:
            self._metrics.preemption_loops.labels().add()
        return pause

    def forget(self, uid: str) -> None:
        """Forget a preemptor that is bound."""
        self._backoff.forget(uid)

    def gate(self, pod: Pod) -> Status:
        """Whether a pod may enter the queue; refused in the name of the plugin that preempts."""
        eviction = self._under_way.get(pod.uid)
        if eviction is None or eviction.is_over(self._cache):
            return OK
        return WAITING.by(eviction.plugin)

    def shut(self) -> AbstractSet[str]:
        """The pods, by uid, that the gate refuses."""
        find = self._cache.get_pod
        # Hundreds of evictions may be under way, and this is called for each victim that goes.
        changed = [
            (eviction, found)
            for eviction in self._at_the_last.values()
            if (found := find(eviction.last.uid)) is not eviction.last_seen
        ]
        for eviction, found in changed:
            if eviction.is_over(self._cache):
                self._forget(eviction)
            else:
                eviction.last_seen = found
        return self._under_way.keys()

    def makes_room_at_once(self, uid: str) -> bool:
        """Whether victims that leave no sooner than they are deleted are being deleted for a pod.

        The pod will be bound a moment after that, so that its nomination is not worth a write.
        """
        eviction = self._under_way.get(uid)
        if eviction is None or eviction.is_carried_out:
            return False
        return all(_goes_at_once(victim) for victim in (*eviction.others, eviction.last))

    def evict(self, preemptor: Pod, node_name: str, victims: tuple[Pod, ...], plugin: str) -> None:
        """Begin, in the background; from now on the preemptor is gated."""
        staying = [victim for victim in victims if not victim.is_terminating]
        if not staying:
            return
        self._metrics.preemption_victims.labels().observe(len(victims))
        self._backoff.evicted(preemptor.uid)
        eviction = _Eviction(preemptor, node_name, staying, plugin)
        self.shut()
        self._under_way[preemptor.uid] = eviction
        self._spawn(self._carry_out(eviction))

    async def _carry_out(self, eviction: _Eviction) -> None:
        pod = eviction.preemptor
        started = self._clock.now()
        self._metrics.goroutines.labels(eviction.plugin).add(+1)
        is_cleared = is_done = False
        try:
            async with self._turns:
                if self._queue.holds(pod):
                    is_cleared = await self._clear_claims(eviction)
                    is_done = await self._evict_all(eviction)
                else:  # deleted before its turn
                    self._forget(eviction)
                    is_cleared = is_done = True
        except asyncio.CancelledError:
            self._end(eviction, started, is_cleared=False, is_done=False)
            raise
        except Exception:
            log.exception("evicting broke", extra={"pod": pod.key, "node": eviction.node_name})
        self._end(eviction, started, is_cleared=is_cleared, is_done=is_done)

    def _end(self, eviction: _Eviction, started: float, *, is_cleared: bool, is_done: bool) -> None:
        """End an eviction; if victims remain, the preemptor is activated."""
        eviction.is_carried_out = True
        pod = eviction.preemptor
        self._metrics.goroutines.labels(eviction.plugin).add(-1)
        result = "success" if is_done and is_cleared else "error"
        self._metrics.preemption_tasks.labels(result).add()
        self._metrics.preemption_task_duration.labels(result).observe(self._clock.now() - started)
        if not is_done:
            self._forget(eviction)
        if not (is_done and is_cleared) or self._is_left_at_the_gate(eviction):
            self._queue.activate([pod.key])

    def _forget(self, eviction: _Eviction) -> None:
        for known in (self._under_way, self._at_the_last):
            if known.get(eviction.preemptor.uid) is eviction:
                del known[eviction.preemptor.uid]

    def _is_left_at_the_gate(self, eviction: _Eviction) -> bool:
        """Whether the preemptor was gated when the last event came: no other will wake it."""
        is_gone = self._cache.get_pod(eviction.last.uid) is None
        return is_gone and self._queue.where(eviction.preemptor.key) == "gated"

    async def _clear_claims(self, eviction: _Eviction) -> bool:
        """Withdraw the nominations of less important pods for this node."""
        preemptor, is_done = eviction.preemptor, True
        for other in self._queue.nominator.nominated_on(eviction.node_name):
            if other.priority < preemptor.priority and other.nominated_node_name:
                try:
                    await self._client.patch_pod_status(other, None, "")
                except ApiError as error:
                    extra = {"pod": other.key, "error": str(error)}
                    log.warning("could not withdraw a nomination", extra=extra)
                    is_done = False
        return is_done

    async def _evict_all(self, eviction: _Eviction) -> bool:
        """Evict the other victims concurrently, then the last; False if an eviction fails."""
        gone = await asyncio.gather(*(self._try(eviction, other) for other in eviction.others))
        if not all(gone):
            return False  # the preemptor has to choose again at once
        eviction.is_at_the_last = True
        if self._under_way.get(eviction.preemptor.uid) is eviction:
            self._at_the_last[eviction.preemptor.uid] = eviction
        return await self._try(eviction, eviction.last)

    async def _try(self, eviction: _Eviction, victim: Pod) -> bool:
        try:
            await self._evict(eviction, victim)
        except ApiError as error:
            extra = {"pod": victim.key, "preemptor": eviction.preemptor.key, "error": str(error)}
            log.warning("could not evict a pod", extra=extra)
            return False
        return True

    async def _evict(self, eviction: _Eviction, victim: Pod) -> None:
        preemptor, node_name = eviction.preemptor, eviction.node_name
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        if self._call_off(victim, eviction.plugin):
            note += " (in kube-scheduler memory)."
            if victim is eviction.last:
                self._forget(eviction)  # the victim returns to the queue: no watch shows its end
        elif not await self._delete(victim, preemptor):
            return
        extra = {"preemptor": preemptor.key, "victim": victim.key, "node": node_name}
        log.info("Preemptor Pod preempted victim Pod", extra=extra)
        self._recorder.event(victim, "Normal", "Preempted", "Preempting", note, preemptor)

    def _call_off(self, victim: Pod, plugin: str) -> bool:
        """Return a victim that is not bound yet to the queue instead of deleting it."""
        held = self._waiting.get(victim.uid)
        if held is not None:
            return held.preempt(plugin, "preempted")
        return self._at_work.cancel(victim.uid, Status.error(f"preempted by {plugin}"))

    async def _delete(self, victim: Pod, preemptor: Pod) -> bool:
        """Write the condition, then delete; False if the pod is gone already."""
        condition = Condition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=BY_SCHEDULER,
            message=f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod",
            observed_generation=victim.api.metadata.generation,
            last_transition_time=format_time(self._clock.now()),
        )
        if not _has(victim, condition):
            try:
                await self._client.patch_pod_status(victim, condition, None)
            except NotFound:
                return False
        await self._client.delete_pod(victim)
        return True


def _goes_at_once(victim: Pod) -> bool:
    """Whether nothing of a pod is left once it is deleted."""
    api = victim.api
    return api.spec.termination_grace_period_seconds == 0 and not api.metadata.finalizers


def _has(pod: Pod, condition: Condition) -> bool:
    wanted = (condition.type, condition.status, condition.reason, condition.message)
    known = pod.status.conditions
    return any((c.type, c.status, c.reason, c.message) == wanted for c in known)
