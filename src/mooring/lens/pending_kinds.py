"""How many pods wait, by what they wait for: `mooring_pending_pods`.

The kind is that of an explanation, so it takes an evaluation. Pods of one owner with the same
refusals have one kind: one of them is evaluated, when it is due, some at a time. Every period the
pods are counted anew. Nothing is done on a replica that stands by.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from mooring.cache.pods import Pod
from mooring.lens.explanation import GATED, WAITS_FOR_OTHERS
from mooring.lens.inspect import AT_PERMIT
from mooring.lens.live_explanations import LiveExplanations
from mooring.lens.queued import queued_pods
from mooring.lens.slices import Busy
from mooring.lens.snapshot import QueuedState
from mooring.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)

PERIOD: Final = 30.0  # seconds between two counts
MOST_EVALUATED: Final = 50  # owners and refusals in a period
UNKNOWN: Final = "not known yet"
_STEP: Final = 100  # pods between two pauses
_KINDS: Final = {"gated": GATED, AT_PERMIT: WAITS_FOR_OTHERS}  # by where the pod is
_TRIED: Final = ("unschedulable", "backoff")

Alike = tuple[str, str, tuple[str, ...]]  # owner, namespace, refusing plugins


class PendingKinds:
    """Counts the waiting pods of one scheduler."""

    def __init__(
        self,
        scheduler: Scheduler,
        explanations: LiveExplanations,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._scheduler = scheduler
        self._explanations = explanations
        self._leads = leads
        self._known: dict[Alike, str] = {}
        self._due: dict[Alike, str] = {}  # a pod of those that are to be evaluated

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(PERIOD)
            if not self._leads():
                self._publish(Counter())
                continue
            try:
                await self.count()
            except Exception:
                log.exception("waiting pods could not be counted by kind")

    async def count(self) -> None:
        """Count once, and evaluate what is not known, or was known the longest."""
        found: Counter[str] = Counter()
        alike: Counter[Alike] = Counter()
        for number, (pod, state) in enumerate(queued_pods(self._scheduler)):
            if not number % _STEP:
                await asyncio.sleep(0)
            if state.queue in _KINDS:
                found[_KINDS[state.queue]] += 1
            elif state.queue in _TRIED and state.attempts:
                key = _alike(pod, state)
                alike[key] += 1
                self._due.setdefault(key, pod.key)
        self._due = {key: pod for key, pod in self._due.items() if key in alike}
        self._known = {key: kind for key, kind in self._known.items() if key in alike}
        await self._evaluate()
        for key, count in alike.items():
            found[self._known.get(key, UNKNOWN)] += count
        self._publish(found)

    async def _evaluate(self) -> None:
        """Take them in turn: one that was evaluated is due again after all others."""
        for key, pod in list(itertools.islice(self._due.items(), MOST_EVALUATED)):
            del self._due[key]
            try:
                kind = await self._explanations.kind_of(pod)
            except Busy:
                return  # it is due again with the next count
            if kind is not None:
                self._known[key] = kind

    def _publish(self, found: Counter[str]) -> None:
        family = self._scheduler.metrics.pending_kinds
        for (kind,), child in family:
            child.set(found.pop(kind, 0))
        for kind, count in found.items():
            family.labels(kind).set(count)


def _alike(pod: Pod, state: QueuedState) -> Alike:
    owner = pod.api.metadata.controller
    return owner.uid if owner is not None else pod.uid, pod.namespace, state.plugins
