"""Answers about a running scheduler, from its own cache and queue.

The HTTPS endpoints call it, on the loop of the scheduler. Decisions have priority: what takes long
is done in slices, and explanations get a twentieth of the time. Nothing is written, and no pod is
moved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any, Final

import msgspec

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.internals import listing_of
from mooring.cache.pods import Pod
from mooring.client.component import Component
from mooring.client.paths import group_of, resource_of
from mooring.lens.api import Depth
from mooring.lens.journal import DecisionJournal
from mooring.lens.live_explanations import MAX_WAITING as MAX_WAITING
from mooring.lens.live_explanations import NAME, USUAL, ExplanationQuery, LiveExplanations, leads
from mooring.lens.live_views import LiveViews, Source
from mooring.lens.pending_kinds import PendingKinds
from mooring.lens.queued import queued_states
from mooring.lens.record import DecisionRecord
from mooring.lens.slices import LONG_STEP, Busy, in_slices
from mooring.lens.snapshot import KINDS, ClusterState, MissingKind, QueuedState, Snapshot
from mooring.lens.worker import LensWorker, PastQuestion
from mooring.lens.writing import encoded
from mooring.scheduler.scheduler import Scheduler

MAX_SNAPSHOTS: Final = 2
_STEP: Final = 100  # objects between two looks at the clock


class LiveLens:
    """Answers about the cluster as one scheduler knows it.

    `config` is the configuration in force, as plain data without secrets; `record` has the
    attempts, `journal` what was known at each; `worker` answers what takes longer than a moment.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        component: Component,
        config: Any = None,
        *,
        record: DecisionRecord | None = None,
        worker: LensWorker | None = None,
        journal: DecisionJournal | None = None,
        source: Source = "scheduler",
    ) -> None:
        self.worker: LensWorker | None = worker
        self._journal = journal
        self.views: LiveViews = LiveViews(
            scheduler,
            record,
            source=source,
            leads=lambda: leads(component),
            explains_past=lambda: self.worker is not None and self._journal is not None,
        )
        self._scheduler = scheduler
        self._component = component
        self._config = config
        self._explanations = LiveExplanations(scheduler, component)
        self.pending_kinds: PendingKinds = PendingKinds(
            scheduler, self._explanations, lambda: leads(component)
        )
        self._snapshots = 0

    async def explain(self, key: str, query: ExplanationQuery = USUAL) -> bytes | None:
        """JSON about the pod "namespace/name"; None if there is no such pod. May raise Busy."""
        return await self._explanations.explain(key, query)

    async def ask(self, question: str, body: bytes) -> bytes:
        """The answer of a worker to "remedies NAMESPACE/NAME", "what-if" or "capacity".

        May raise Busy, or ConfigError if the question can't be answered.
        """
        return await self._working().ask(question, body, self.snapshot())

    async def explain_past(
        self, key: str, seq: int, *, depth: Depth = "groups", ask: Sequence[str] = ()
    ) -> bytes | None:
        """JSON about the pod as attempt `seq` found it; None without a journal.

        May raise Busy, or ConfigError if the journal has no such attempt of this pod.
        """
        journal = self._journal
        if journal is None:
            return None
        asked = PastQuestion(
            journal=str(journal.folder),
            since=journal.since,
            seq=seq,
            pod=key,
            depth=depth,
            nodes=tuple(ask),
        )
        return await self._working().ask("past", msgspec.json.encode(asked))

    def _working(self) -> LensWorker:
        if self.worker is None:
            raise Busy("this scheduler answers nothing that needs a worker (--lens-workers 0)")
        return self.worker

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

    def _collected(self) -> Generator[bool, None, Snapshot]:
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
        yield LONG_STEP
        if assumed and "pods" in found:
            found["pods"] = yield from _with_assumed(found["pods"], assumed)
        queue: list[QueuedState] = []
        for number, state in enumerate(states):
            queue.append(state)
            if not number % _STEP:
                yield False
        yield LONG_STEP
        return Snapshot(
            cluster=ClusterState(**found),
            config=self._config,
            queue=tuple(queue),
            missing=tuple(
                _not_watched(kind) for field, kind in KINDS.items() if field not in found
            ),
            at=at,
            seq=seq,
            scheduler=NAME if leads(self._component) else f"{NAME}, standing by",
        )


def _with_assumed(
    pods: tuple[core.Pod, ...], assumed: Mapping[str, Pod | None]
) -> Generator[bool, None, tuple[core.Pod, ...]]:
    """The pods, those that are assumed on the nodes where they are."""
    found: list[core.Pod] = []
    for number, pod in enumerate(pods):
        known = assumed.get(pod.metadata.uid)
        found.append(pod if known is None else known.api)
        if not number % _STEP:
            yield False
    yield LONG_STEP
    return tuple(found)


def _not_watched(kind: type[Object]) -> MissingKind:
    group = group_of(kind)
    name = f"{resource_of(kind)}.{group}" if group else resource_of(kind)
    return MissingKind(name, "no plugin of this scheduler reads it")
