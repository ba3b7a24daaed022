"""Explanations of pods by a running scheduler, from its own cache and queue.

An explanation takes a few milliseconds of the scheduler's time, and several times that if evictions
are tried out on many nodes: then in steps, between which decisions are made.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from mooring import __version__
from mooring.api import core
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.component import Component
from mooring.decision.evaluation import Evaluation
from mooring.framework.plugin import PostFilter
from mooring.framework.state import CycleState
from mooring.framework.verdicts import Verdicts
from mooring.lens.columns import Matrix, matrix_of
from mooring.lens.explanation import Kind, plain
from mooring.lens.inspect import Inspector, PostFilterCall, unbound
from mooring.lens.queued import queued_state
from mooring.lens.sight import WHOLE, Sight, seen_explanation
from mooring.lens.slices import STANDING_BY, Busy
from mooring.lens.snapshot import QueuedState
from mooring.lens.stepwise import StepwisePostFilter, unknown_plugins
from mooring.observe.metrics import Metrics
from mooring.preemption.candidates import worth_trying
from mooring.runtime.runner import PostFilterOutcome, Runner
from mooring.scheduler.profiles import ProfileRuntime
from mooring.scheduler.scheduler import Scheduler

T = TypeVar("T")

MAX_WAITING: Final = 16  # explanations
AT_ONCE: Final = 24  # nodes on which evictions are tried out in one turn, if there are few in all
_FEW_NODES: Final = 500
_FEW_PODS: Final = 2_000
_PAUSE: Final = 19.0  # times the duration of a turn, until the next
_LOOK: Final = 0.002  # seconds

NAME: Final = f"mooring {__version__}"
NO_PREEMPTION: Final = "preemption is left out: mooring explain computes it from a snapshot"
ON_PROBATION: Final = "a plugin took too long lately: nothing is evaluated besides decisions"


class ExplanationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What an explanation says beside groups of nodes."""

    matrix: bool = False
    preemption: bool = True
    ask: Sequence[str] = ()  # nodes to say more about
    sight: Sight = WHOLE  # what the caller may see


USUAL: Final = ExplanationQuery()


def leads(component: Component) -> bool:
    """Whether this replica decides."""
    return component.election is None or component.election.is_leader


class LiveExplanations:
    """Explains pods of one scheduler, in turn."""

    def __init__(self, scheduler: Scheduler, component: Component) -> None:
        self._scheduler = scheduler
        self._component = component
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._next = 0.0  # on the clock of the loop
        self._metrics = Metrics()  # not shown
        self._runners: dict[str, Runner] = {}  # by profile

    async def explain(self, key: str, query: ExplanationQuery = USUAL) -> bytes | None:
        """JSON about the pod "namespace/name"; None if there is no such pod. May raise Busy."""
        if self._waiting >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} explanations are asked for")
        self._waiting += 1
        try:
            explained = partial(self._explained, key, query)
            found = await self._in_turn(explained)
            if isinstance(found, StepwisePostFilter):
                while await self._in_turn(partial(self._step, key, found)):
                    pass
                await self._in_turn(partial(found.finish, self._scheduler.now()))
                found = await self._in_turn(partial(explained, found))
            assert not isinstance(found, StepwisePostFilter)
            if found is None:
                return None
            if query.matrix:  # in a turn of its own: both together would take too long
                found["matrix"] = await self._in_turn(partial(self._matrix, key))
            return msgspec.json.encode(seen_explanation(found, query.sight))
        finally:
            self._waiting -= 1

    async def kind_of(self, key: str) -> Kind | None:
        """What the pod waits for; None if there is no such pod. May raise Busy."""
        return await self._in_turn(partial(self._kind_of, key))

    def _kind_of(self, key: str) -> Kind | None:
        pod = self._pod(key)
        if pod is None:
            return None
        runtime = self._runtime_of(pod)
        inspector = Inspector(runtime.evaluator, self._runner(runtime), self._scheduler.cache)
        return inspector.explain(pod, preemption=False).kind

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """Work of a few milliseconds, when it is its turn and no decision is under way."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(self._next - loop.time())
            # A decision that waits for an extender relies on what it has evaluated.
            while self._scheduler.handlers.are_held:  # noqa: ASYNC110 - an event would cost every pod
                await asyncio.sleep(_LOOK)
            if self._scheduler.overruns.is_active:
                raise Busy(ON_PROBATION)
            started = time.perf_counter()
            try:
                with self._apart_from_decisions():
                    return work()
            finally:
                self._next = loop.time() + _PAUSE * (time.perf_counter() - started)

    def _explained(
        self, key: str, query: ExplanationQuery, search: StepwisePostFilter | None = None
    ) -> dict[str, Any] | StepwisePostFilter | None:
        """The answer as JSON has it, or the search for evictions that has to be made before."""
        scheduler, pod = self._scheduler, self._pod(key)
        if pod is None:
            return None
        runtime, notes = self._runtime_of(pod), []
        name = runtime.profile.scheduler_name
        if name != pod.scheduler_name:
            notes.append(f'schedulerName "{pod.scheduler_name}" is another scheduler\'s: as {name}')
        if scheduler.config.extenders:
            notes.append("extenders are not asked")
        is_leader = leads(self._component)
        if not is_leader:
            notes.append(STANDING_BY)
        state = queued_state(scheduler, pod, scheduler.now())
        runner = self._runner(runtime)
        inspector = Inspector(runtime.evaluator, runner, scheduler.cache)
        found = inspector.explain(
            pod,
            ask=[name for name in query.ask if scheduler.cache.nodes.get(name) is not None],
            preemption=False,
            post_filter=self._post_filter(runner, search) if query.preemption else None,
            queue=state,
        )
        if not found.feasible and runner.profile.at(PostFilter):
            if search is not None:
                notes.append(search.note())
            elif found.preemption is None:
                if query.preemption and self._can_search(runner, pod, state):
                    return StepwisePostFilter(runner, pod)
                notes.append(NO_PREEMPTION)
        fields = plain(structs.replace(found, notes=(*found.notes, *notes)))
        fields["replica"] = {"leader": is_leader, "scheduler": NAME}
        return fields

    def _post_filter(
        self, runner: Runner, search: StepwisePostFilter | None
    ) -> PostFilterCall | None:
        """The answer of a search that was made; else the plugins, if they are done in a turn."""
        if search is not None:
            return lambda *_: search.outcome
        if unknown_plugins(runner.profile):
            return None

        def at_once(
            state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts
        ) -> PostFilterOutcome | None:
            worth = len(worth_trying(verdicts))
            if worth > (AT_ONCE if len(nodes) <= _FEW_NODES else 0):
                return None
            return runner.post_filter_alone(state, pod, nodes, verdicts)

        return at_once

    def _can_search(self, runner: Runner, pod: Pod, queue: QueuedState | None) -> bool:
        """Whether the search can be made in short steps.

        The first for a priority counts all pods, unless an attempt has done so.
        """
        if pod.node_name or unknown_plugins(runner.profile):
            return False
        is_counted = queue is not None and queue.attempts > 0
        return is_counted or self._scheduler.cache.pod_count <= _FEW_PODS

    def _step(self, key: str, search: StepwisePostFilter) -> bool:
        pod = self._pod(key)
        if pod is None or pod.node_name:
            return False
        evaluation = self._evaluated(self._runtime_of(pod), pod)
        return evaluation is not None and search.step(evaluation)

    def _evaluated(self, runtime: ProfileRuntime, pod: Pod) -> Evaluation | None:
        """The evaluation of a pod that fits nowhere; None for others."""
        state = CycleState(exhaustive=True)
        evaluation = runtime.evaluator.begin(state, pod, self._scheduler.cache.nodes)
        if evaluation.outcome.status.ok:
            evaluation.filter()
            fits_nowhere = evaluation.status.ok and not evaluation.count
        else:
            fits_nowhere = evaluation.outcome.status.rejected
        return evaluation if fits_nowhere and len(evaluation.nodes) else None

    def _runtime_of(self, pod: Pod) -> ProfileRuntime:
        runtimes = self._scheduler.runtimes
        return runtimes.get(pod.scheduler_name) or next(iter(runtimes.values()))

    def _runner(self, runtime: ProfileRuntime) -> Runner:
        """Of its own, because a runner keeps the metrics that it counts in."""
        name = runtime.profile.scheduler_name
        if name not in self._runners:
            self._runners[name] = Runner(runtime.profile, self._scheduler.guard)
        return self._runners[name]

    def _matrix(self, key: str) -> Matrix | None:
        cache, pod = self._scheduler.cache, self._pod(key)
        if pod is None:
            return None  # it has gone since it was explained
        runtime = self._runtime_of(pod)
        with cache.without_pod(pod):
            state = CycleState(exhaustive=True)
            evaluation = runtime.evaluator.begin(state, unbound(pod), cache.nodes)
            if evaluation.outcome.status.ok:
                evaluation.filter()
            return matrix_of(evaluation)

    @contextmanager
    def _apart_from_decisions(self) -> Iterator[None]:
        """No metric counts what happens inside, and plugins have no more time than in decisions."""
        guard = self._scheduler.guard
        before = guard.limit, guard.record_plugins, guard.metrics
        guard.limit, guard.record_plugins = guard.decision_limit, False
        guard.metrics = self._metrics
        try:
            yield
        finally:
            guard.limit, guard.record_plugins, guard.metrics = before

    def _pod(self, key: str) -> Pod | None:
        """The pod as decisions see it: assumed on its node, if it is on its way there."""
        api = next(
            (one.get(key) for one in self._component.informers if one.kind is core.Pod), None
        )
        if api is None:
            return None
        cache, handlers = self._scheduler.cache, self._scheduler.handlers
        return cache.get_pod(api.metadata.uid) or handlers.pending(key) or Pod(api)
