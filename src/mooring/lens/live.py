"""Explanations and snapshots of a running scheduler, from its own cache and queue.

The HTTPS endpoints call it, on the loop of the scheduler: an explanation takes a few milliseconds,
a snapshot is made in slices. Decisions have priority: explanations get a twentieth of the time.
Nothing is written, and no pod is moved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from msgspec import structs

from mooring import __version__
from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.internals import listing_of
from mooring.cache.pods import Pod
from mooring.client.component import Component
from mooring.client.paths import group_of, resource_of
from mooring.framework.state import CycleState
from mooring.lens.columns import Matrix, matrix_of
from mooring.lens.explanation import plain
from mooring.lens.inspect import Inspector, unbound
from mooring.lens.queued import queued_state, queued_states
from mooring.lens.slices import STANDING_BY, Busy, in_slices
from mooring.lens.snapshot import KINDS, ClusterState, MissingKind, QueuedState, Snapshot
from mooring.lens.writing import encoded
from mooring.scheduler.profiles import ProfileRuntime
from mooring.scheduler.scheduler import Scheduler

MAX_WAITING: Final = 16  # explanations
MAX_SNAPSHOTS: Final = 2
_PAUSE: Final = 19.0  # times the duration of an explanation, until the next
_LOOK: Final = 0.002  # seconds
_STEP: Final = 100  # objects between two looks at the clock

NO_PREEMPTION: Final = "preemption is not evaluated by a running scheduler"
_NAME: Final = f"mooring {__version__}"
ON_PROBATION: Final = "a plugin took too long lately: nothing is evaluated besides decisions"


class LiveLens:
    """Answers about the cluster as one scheduler knows it.

    `config` is the configuration in force, as plain data without secrets.
    """

    def __init__(self, scheduler: Scheduler, component: Component, config: Any = None) -> None:
        self._scheduler = scheduler
        self._component = component
        self._config = config
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._next = 0.0  # on the clock of the loop
        self._snapshots = 0

    # --- explanations --------------------------------------------------------------------------

    async def explain(self, key: str, *, matrix: bool = False) -> bytes | None:
        """JSON about the pod "namespace/name"; None if there is no such pod. May raise Busy."""
        if self._scheduler.overruns.is_active:
            raise Busy(ON_PROBATION)
        if self._waiting >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} explanations are asked for")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._explain_in_turn(key, matrix)
        finally:
            self._waiting -= 1

    async def _explain_in_turn(self, key: str, matrix: bool) -> bytes | None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._next - loop.time())
        # A decision that waits for an extender relies on what it has evaluated.
        while self._scheduler.handlers.are_held:  # noqa: ASYNC110 - an event would cost every pod
            await asyncio.sleep(_LOOK)
        started = time.perf_counter()
        try:
            pod = self._pod(key)
            return None if pod is None else self._explained(pod, matrix)
        finally:
            self._next = loop.time() + _PAUSE * (time.perf_counter() - started)

    def _explained(self, pod: Pod, matrix: bool) -> bytes:
        scheduler = self._scheduler
        runtime = scheduler.runtimes.get(pod.scheduler_name)
        notes = [NO_PREEMPTION]
        if runtime is None:
            runtime = next(iter(scheduler.runtimes.values()))
            name = runtime.profile.scheduler_name
            notes.append(f'schedulerName "{pod.scheduler_name}" is another scheduler\'s: as {name}')
        if scheduler.config.extenders:
            notes.append("extenders are not asked")
        if not self._leads:
            notes.append(STANDING_BY)
        state = queued_state(scheduler, pod, scheduler.now())
        inspector = Inspector(runtime.evaluator, runtime.runner, scheduler.cache)
        with self._apart_from_decisions():
            found = inspector.explain(pod, preemption=False, queue=state)
            fields = plain(structs.replace(found, notes=(*found.notes, *notes)))
            if matrix:
                fields["matrix"] = self._matrix(runtime, pod)
        fields["replica"] = {"leader": self._leads, "scheduler": _NAME}
        return msgspec.json.encode(fields)

    def _matrix(self, runtime: ProfileRuntime, pod: Pod) -> Matrix:
        cache = self._scheduler.cache
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
        before = guard.limit, guard.record_plugins
        guard.limit, guard.record_plugins = guard.decision_limit, False
        try:
            yield
        finally:
            guard.limit, guard.record_plugins = before

    def _pod(self, key: str) -> Pod | None:
        """The pod as decisions see it: assumed on its node, if it is on its way there."""
        api = next(
            (one.get(key) for one in self._component.informers if one.kind is core.Pod), None
        )
        if api is None:
            return None
        cache, handlers = self._scheduler.cache, self._scheduler.handlers
        return cache.get_pod(api.metadata.uid) or handlers.pending(key) or Pod(api)

    @property
    def _leads(self) -> bool:
        election = self._component.election
        return election is None or election.is_leader

    # --- snapshots -----------------------------------------------------------------------------

    async def snapshot(self) -> AsyncGenerator[bytes, None]:
        """The file in chunks, all of it as it is now. May raise Busy, before the first chunk."""
        if self._snapshots >= MAX_SNAPSHOTS:
            raise Busy(f"{MAX_SNAPSHOTS} snapshots are being made")
        self._snapshots += 1
        try:
            snapshot = await in_slices(self._collected())
            chunks = encoded(snapshot)
            while True:
                started = time.perf_counter()
                chunk = next(chunks, None)
                if chunk is None:
                    return
                if chunk:
                    yield chunk
                # As long as the chunk took: decisions are made meanwhile, if there are any.
                await asyncio.sleep(time.perf_counter() - started)
        finally:
            self._snapshots -= 1

    def _collected(self) -> Generator[None, None, Snapshot]:
        """Objects are immutable: references to them, taken in one step, are one moment."""
        scheduler, cache = self._scheduler, self._scheduler.cache
        found: dict[str, Any] = {
            field: tuple(informer)
            for informer in self._component.informers
            for field, kind in KINDS.items()
            if informer.kind is kind
        }
        # In the order in which ties are broken, which is not that of their arrival.
        found["nodes"] = tuple(cache.table.api[row] for row in listing_of(cache.nodes).tolist())
        assumed = {uid: cache.get_pod(uid) for uid in cache.assumed_uids()}
        states = queued_states(scheduler)
        at, seq = scheduler.now(), int(sum(way.value for _, way in scheduler.metrics.decisions))
        yield
        pods: list[core.Pod] = []
        for number, pod in enumerate(found.get("pods", ())):
            known = assumed.get(pod.metadata.uid) if assumed else None
            pods.append(pod if known is None else known.api)
            if not number % _STEP:
                yield
        queue: list[QueuedState] = []
        for number, state in enumerate(states):
            queue.append(state)
            if not number % _STEP:
                yield
        found["pods"] = tuple(pods)
        return Snapshot(
            cluster=ClusterState(**found),
            config=self._config,
            queue=tuple(queue),
            missing=tuple(
                _not_watched(kind) for field, kind in KINDS.items() if field not in found
            ),
            at=at,
            seq=seq,
            scheduler=_NAME if self._leads else f"{_NAME}, standing by",
        )


def _not_watched(kind: type[Object]) -> MissingKind:
    group = group_of(kind)
    name = f"{resource_of(kind)}.{group}" if group else resource_of(kind)
    return MissingKind(name, "no plugin of this scheduler reads it")
