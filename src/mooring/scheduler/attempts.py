"""One pod at a time: decided, assumed, reserved and handed over to binding; or back in the queue.

The loop of `scheduler.py` calls `schedule_one`. Nothing here waits for a binding; what becomes of
one is handled when it has ended.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.errors import PluginOverrun
from mooring.framework.handle import Clock, Recorder
from mooring.framework.results import QueuedPod
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.observe.metrics import Metrics
from mooring.observe.texts import named
from mooring.queue.queue import SchedulingQueue
from mooring.runtime.guard import Guard
from mooring.runtime.plugin_caller import interrupted
from mooring.scheduler.binding import BOUND_BY, Assignment, Refusal
from mooring.scheduler.counting import AttemptCounts
from mooring.scheduler.cycle import Decision
from mooring.scheduler.evict import Evictor
from mooring.scheduler.extender_binds import ExtenderBinds
from mooring.scheduler.failure import FailureHandler, Spawn
from mooring.scheduler.handlers import ASSIGNED_POD_DELETED, Handlers
from mooring.scheduler.ledger import AttemptLedger
from mooring.scheduler.overruns import Overruns
from mooring.scheduler.profiles import ProfileRuntime

log = logging.getLogger(__name__)

_PLUGIN_TIMES_SAMPLED: Final = 0.1  # share of attempts whose plugin calls are timed one by one


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to schedule one pod, for observers."""

    pod: Pod
    number: int  # 1 for the pod's first
    decision: Decision


OnAttempt = Callable[[Attempt], None]


class Attempts:
    """Attempts with the runtimes of all profiles, `runtimes` by schedulerName.

    `spawn` starts a binding, `is_ending` says whether the scheduler is cancelled with its bindings.
    """

    ledger: AttemptLedger | None = None  # told of each attempt

    def __init__(
        self,
        runtimes: Mapping[str, ProfileRuntime],
        *,
        cache: Cache,
        queue: SchedulingQueue,
        handlers: Handlers,
        guard: Guard,
        overruns: Overruns,
        evictor: Evictor,
        failures: FailureHandler,
        extender_binds: ExtenderBinds | None,
        waits_for_extenders: bool,
        recorder: Recorder,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        on_attempt: OnAttempt | None,
        spawn: Spawn,
        is_ending: Callable[[], bool],
    ) -> None:
        self._runtimes = runtimes
        self._cache = cache
        self._queue = queue
        self._handlers = handlers
        self._guard = guard
        self._overruns = overruns
        self._evictor = evictor
        self._failures = failures
        self._extender_binds = extender_binds
        self._waits_for_extenders = waits_for_extenders
        self._recorder = recorder
        self._clock = clock
        self._random = rng
        self._metrics = metrics
        self._counts = AttemptCounts(metrics)
        self._on_attempt = on_attempt
        self._spawn = spawn
        self._is_ending = is_ending

    async def schedule_one(self) -> bool:
        """Schedule the next pod; False if no pod is ready."""
        queued = self._queue.pop()
        if queued is None:
            return False
        pod = queued.pod
        runtime = self._runtimes.get(pod.scheduler_name)
        if runtime is None:
            log.error("no profile for the pod's scheduler", extra={"pod": pod.key})
            self._queue.done(pod.uid)
        elif pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            self._queue.done(pod.uid)
        elif self._cache.is_assumed(pod.uid):
            self._queue.done(pod.uid)
        elif not self._waits_for_extenders:
            await self._attempt(runtime, queued)  # in one go: there is nothing to wait for
        else:
            with self._handlers.held():
                await self._attempt(runtime, queued)
        return True

    async def _attempt(self, runtime: ProfileRuntime, queued: QueuedPod) -> None:
        guard, overruns = self._guard, self._overruns
        limit = guard.decision_limit
        if overruns.is_active:
            admission = overruns.admit(runtime, queued)
            if admission is None:
                return
            runtime, limit = admission.runtime, admission.limit
        started = guard.timer()
        guard.record_plugins = self._random.random() < _PLUGIN_TIMES_SAMPLED
        guard.limit = limit
        guard.overrun = None
        state = CycleState()
        try:
            decision = await runtime.cycle.decide(state, queued.pod, self._cache.nodes)
        except Exception as error:
            decision = Decision(_broken("deciding", queued.pod, error), nominate="")
        took = guard.timer() - started
        self._counts.decided.observe(took)
        is_void = False
        if guard.overrun is not None or limit != guard.decision_limit:
            is_void = overruns.attempted(runtime, queued, decision.status, took)
        guard.limit = guard.budget
        if is_void:
            return
        if self._on_attempt is not None:
            self._on_attempt(Attempt(queued.pod, queued.attempts, decision))
        if not decision.status.ok:
            decision = self._without_loops(queued.pod, decision)
            if self.ledger is not None:
                self.ledger.decided(queued, decision, runtime.cycle.latest, took)
            # First, so that events from now on find the pod gated.
            self._make_room(queued.pod, decision)
            self._fail(runtime, queued, started, decision.status, decision)
            return
        entry = None
        if self.ledger is not None:
            entry = self.ledger.decided(queued, decision, runtime.cycle.latest, took)
        node_name = decision.node_name
        pod = self._cache.assume(queued.pod, node_name)
        self._queue.nominator.delete(queued.pod)
        assignment = Assignment(
            queued,
            pod,
            node_name,
            state,
            started,
            touched=self._cache.last_touch(node_name),
            evaluated=decision.evaluated,
            feasible=decision.found,
            entry=entry,
        )
        refusal = self._reserve(runtime, assignment)
        if refusal is not None:
            self._ended(assignment, refusal.status)
            self._fail(runtime, queued, started, refusal.status, refusal)
            return
        self._activate(state)
        self._spawn(self._bind(runtime, assignment))

    def permitted(self, assignment: Assignment) -> None:
        if self.ledger is not None and assignment.entry is not None:
            self.ledger.permitted(assignment.entry, self._guard.timer() - assignment.started)

    def _ended(self, assignment: Assignment, status: Status) -> None:
        if self.ledger is not None and assignment.entry is not None:
            self.ledger.ended(assignment.entry, status, self._guard.timer() - assignment.started)

    def _make_room(self, pod: Pod, decision: Decision) -> None:
        after = decision.after
        if after is None:
            return
        self._metrics.preemption_attempts.labels().add()
        if after.victims and after.nominate:
            self._evictor.evict(pod, after.nominate, after.victims, after.status.plugin)

    def _without_loops(self, pod: Pod, decision: Decision) -> Decision:
        """The decision without its preemption, if earlier ones of the pod did not help."""
        after = decision.after
        if after is None or not after.victims:
            return decision
        pause = self._evictor.pause(pod)
        if not pause:
            return decision
        note = f"preemption is put off for {pause:.0f}s: others took the room that was made before"
        self._recorder.event(pod, "Warning", "PreemptionPutOff", "Preempting", note)
        return msgspec.structs.replace(decision, after=None, nominate="")

    def _reserve(self, runtime: ProfileRuntime, assignment: Assignment) -> Refusal | None:
        try:
            return runtime.binder.reserve(assignment)
        except Exception as error:
            runtime.binder.undo(assignment)
            return Refusal(_broken("reserving", assignment.pod, error))

    async def _bind(self, runtime: ProfileRuntime, assignment: Assignment) -> None:
        self._counts.binding.add(+1)
        try:
            refusal = await runtime.binder.bind(assignment)
        except asyncio.CancelledError as error:
            if self._is_ending():
                raise  # the scheduler itself is cancelled
            refusal = Refusal(Status.error(interrupted(error)))
        except Exception as error:
            refusal = Refusal(_broken("binding", assignment.pod, error))
        finally:
            self._counts.binding.add(-1)
        if refusal is not None:
            self._binding_failed(runtime, assignment, refusal)
            return
        self._bound(runtime, assignment)
        if self._extender_binds is not None and BOUND_BY in assignment.state:
            self._extender_binds.add(assignment, assignment.state[BOUND_BY])
        await runtime.committer.post_bind(assignment.state, assignment.pod, assignment.node_name)
        self._activate(assignment.state)

    def _bound(self, runtime: ProfileRuntime, assignment: Assignment) -> None:
        queued, pod = assignment.queued, assignment.pod
        self._evictor.forget(pod.uid)
        if self._overruns.is_active:
            self._overruns.forget(pod.uid)
        took = self._count(runtime, assignment.started, "scheduled")
        if assignment.entry is not None and self.ledger is not None:
            self.ledger.ended(assignment.entry, OK, took)
        self._counts.bound(queued, self._clock.now())
        node = assignment.node_name
        if log.isEnabledFor(logging.INFO):
            counted = {"evaluatedNodes": assignment.evaluated, "feasibleNodes": assignment.feasible}
            extra = {"pod": pod.key, "node": node, **counted}
            log.info("Successfully bound pod to node", extra=extra)
        note = f"Successfully assigned {pod.key} to {node}"
        self._recorder.event(pod, "Normal", "Scheduled", "Binding", note)

    def refuse_bound(self, assignment: Assignment, status: Status) -> None:
        runtime = self._runtimes[assignment.pod.scheduler_name]
        self._binding_failed(runtime, assignment, Refusal(status))

    def _binding_failed(
        self, runtime: ProfileRuntime, assignment: Assignment, refusal: Refusal
    ) -> None:
        runtime.binder.undo(assignment)
        queued, status = assignment.queued, refusal.status
        self._ended(assignment, status)
        freed = assignment.pod
        if status.rejected:
            # After the pod is back in the queue, so that its own departure does not wake it.
            self._fail(runtime, queued, assignment.started, status, refusal)
            self._queue.move_all(
                ASSIGNED_POD_DELETED, freed, None, lambda other: other.uid != freed.uid
            )
        else:
            self._queue.move_all(ASSIGNED_POD_DELETED, freed, None)
            self._fail(runtime, queued, assignment.started, status, refusal)

    def _fail(
        self,
        runtime: ProfileRuntime,
        queued: QueuedPod,
        started: float,
        status: Status,
        why: Decision | Refusal,
    ) -> None:
        self._count(runtime, started, "unschedulable" if status.rejected else "error")
        penalty = 0.0
        if isinstance(status.cause, PluginOverrun):
            penalty = self._overruns.penalty(queued.pod)
        handle, found = self._failures.handle, why.diagnosis
        if isinstance(why, Decision):
            handle(queued, status, found, why.nominate, penalty=penalty)
        else:
            told, is_moot = why.announced, why.is_moot
            handle(queued, status, found, "", told, is_moot=is_moot, penalty=penalty)

    def fail_trial(self, runtime: ProfileRuntime, queued: QueuedPod, status: Status) -> None:
        decision = Decision(status, nominate="")
        if self.ledger is not None:
            self.ledger.decided(queued, decision, None, 0.0)
        self._fail(runtime, queued, self._guard.timer(), status, decision)

    def _count(self, runtime: ProfileRuntime, started: float, result: str) -> float:
        """Count an attempt that has ended; how many seconds it took."""
        took = self._guard.timer() - started
        self._counts.ended(runtime.profile.scheduler_name, result, took)
        return took

    def _activate(self, state: CycleState) -> None:
        if state.pods_to_activate:
            keys = list(state.pods_to_activate)
            state.pods_to_activate.clear()
            self._queue.activate(keys)


def _broken(what: str, pod: Pod, error: Exception) -> Status:
    """The status after an exception outside of plugin code, so that the pod is not lost."""
    log.exception("%s broke", what, extra={"pod": pod.key})
    return Status.error(named(error), cause=error)
