"""All extenders of a scheduler: filters are called in turn, prioritize verbs concurrently.

The failure of an `ignorable` extender is ignored, and so is every failure of prioritize; any other
failure ends the scheduling attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from mooring.cache.arrays import IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.errors import Fenced
from mooring.client.transport import Fence
from mooring.extender.calling.caller import ExtenderCaller, ExtenderError, Filtered
from mooring.extender.wire import MAX_SCORE
from mooring.framework import scores
from mooring.framework.results import Candidate
from mooring.framework.status import OK, Status
from mooring.observe.family import MetricValue

log = logging.getLogger(__name__)

_SCALE: Final = scores.MAX_SCORE // MAX_SCORE
# A limit for scores, so that the sum with those of all plugins fits into 64 bits.
_MOST_POINTS: Final = 2**55


class ExtenderScores(msgspec.Struct, frozen=True):
    """The scores of one extender."""

    extender: str
    weight: int
    scores: IntArray  # before weight; zero for nodes that are not in the answer
    named: frozenset[str]


class Extenders:
    """The extenders of one scheduler, shared by its profiles; those that are ignorable come last.

    `fence` is checked before a bind, which must not be sent after the lease was lost.
    """

    def __init__(
        self,
        callers: Iterable[ExtenderCaller],
        *,
        fence: Fence | None = None,
        scoring: MetricValue | None = None,
    ) -> None:
        self._callers = sorted(callers, key=lambda caller: caller.config.ignorable)
        self._fence = fence
        self._scoring = scoring  # gauge of prioritize calls in progress

    def __len__(self) -> int:
        return len(self._callers)

    def __iter__(self) -> Iterator[ExtenderCaller]:
        return iter(self._callers)

    @property
    def has_filters(self) -> bool:
        """Whether any of them has a filter verb."""
        return any(caller.config.filter_verb for caller in self._callers)

    @property
    def has_scorers(self) -> bool:
        """Whether any of them has a prioritize verb."""
        return any(caller.config.prioritize_verb for caller in self._callers)

    async def ask_filters(self, pod: Pod, nodes: Nodes) -> Filtered | Status:
        """Filter the nodes; each extender gets the nodes that the one before it left."""
        left = frozenset(nodes.names)
        refused: dict[str, Status] = {}
        for caller in self._interested(pod):
            if not caller.config.filter_verb:
                continue
            if not left:
                break
            asked = nodes
            if len(left) < len(nodes):
                asked = nodes.take(np.array([name in left for name in nodes.names], dtype=np.bool_))
            try:
                answer = await caller.filter(pod, asked)
            except ExtenderError as error:
                if self._is_ignored(caller, pod, error):
                    continue
                return Status.error(str(error), cause=error)
            left = answer.left
            refused |= answer.refused
        return Filtered(left, {name: why for name, why in refused.items() if name not in left})

    async def ask_scores(self, pod: Pod, nodes: Nodes) -> list[ExtenderScores]:
        """The scores of all extenders that are interested in the pod; failures are logged."""
        callers = self._interested(pod)
        found = await asyncio.gather(*(self._ask_scores(one, pod, nodes) for one in callers))
        return [points for points in found if points is not None]

    async def review(
        self, pod: Pod, candidates: Sequence[Candidate], nodes: Nodes
    ) -> Sequence[Candidate] | Status:
        """The candidates that all preempt verbs accept."""
        for caller in self._interested(pod):
            if not caller.config.preempt_verb or not candidates:
                continue
            try:
                kept = await caller.preempt(pod, candidates, nodes)
                bare = [one.node_name for one in kept if not one.victims]
                if bare and not caller.config.ignorable:
                    raise ExtenderError(f'expected at least one victim pod on node "{bare[0]}"')
            except ExtenderError as error:
                if self._is_ignored(caller, pod, error):
                    continue
                return Status.error(str(error), cause=error)
            candidates = [one for one in kept if one.victims]
        return candidates

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind through the first extender with a bind verb; None if there is none that counts."""
        for caller in self._interested(pod):
            if not caller.config.bind_verb:
                continue
            try:
                await caller.bind(pod, node_name, self._fence)
            except Fenced as error:
                return Status.error(str(error), cause=error)
            except ExtenderError as error:
                if self._is_ignored(caller, pod, error):
                    continue
                return Status.error(str(error), cause=error)
            return OK
        return None

    async def close(self) -> None:
        for caller in self._callers:
            await caller.close()

    # --- inside --------------------------------------------------------------------------------

    def _interested(self, pod: Pod) -> list[ExtenderCaller]:
        return [caller for caller in self._callers if caller.is_interested(pod)]

    async def _ask_scores(
        self, caller: ExtenderCaller, pod: Pod, nodes: Nodes
    ) -> ExtenderScores | None:
        if self._scoring is not None:
            self._scoring.add(+1)
        try:
            given = await caller.prioritize(pod, nodes)
        except ExtenderError as error:
            extra = {"extender": caller.name, "pod": pod.key, "error": str(error)}
            log.warning("an extender gave no scores", extra=extra)
            return None
        finally:
            if self._scoring is not None:
                self._scoring.add(-1)
        weight = caller.config.weight if caller.config.prioritize_verb else 0
        most = _MOST_POINTS // max(weight * _SCALE, 1)
        points = [min(max(given.get(name, 0), -most), most) for name in nodes.names]
        return ExtenderScores(caller.name, weight * _SCALE, np.array(points), frozenset(given))

    def _is_ignored(self, caller: ExtenderCaller, pod: Pod, error: ExtenderError) -> bool:
        if caller.config.ignorable:
            extra = {"extender": caller.name, "pod": pod.key, "error": str(error)}
            log.warning("an extender failed and is ignored, as configured", extra=extra)
        return caller.config.ignorable
