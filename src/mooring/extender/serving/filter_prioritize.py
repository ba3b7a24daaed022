"""The filter and prioritize verbs, answered by plugins that run as in a scheduler."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from mooring.decision.evaluation import Evaluation
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.functions import FunctionPlugin
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.extender.serving.plugins import ServedPlugins
from mooring.extender.serving.request import ExtenderRequest, Failure, read_request, select
from mooring.extender.serving.score_scale import to_extender_scores
from mooring.extender.wire import (
    FILTER,
    PRIORITIZE,
    AnyVerb,
    ExtenderArgs,
    ExtenderFilterResult,
    HostPriority,
    HostPriorityList,
)
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts

UNKNOWN = Status.unresolvable("node is not known to the extender")


class FilterPrioritizeHandler:
    """Filters and scores the nodes of a request."""

    def __init__(
        self, served: ServedPlugins, cluster: WatchedCluster, metrics: ExtenderMetrics
    ) -> None:
        self._served = served
        self._cluster = cluster
        self._metrics = metrics
        plugins = served.profile.plugins.values()
        self._async_functions = [
            one for one in plugins if isinstance(one, FunctionPlugin) and one.is_async
        ]

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        request, state = await self._read(FILTER, args)
        verdicts = Verdicts.passing(request.nodes)
        if len(request.nodes):
            with self._served.handle.looking_at(request.cache):
                evaluation = self._begin(request, state)
                if evaluation.passed_pre_filter:
                    evaluation.filter()
                    expect_unbroken(evaluation.status)
                verdicts = evaluation.verdicts()
        return self._filter_result(request, verdicts)

    async def prioritize(self, args: ExtenderArgs) -> HostPriorityList:
        request, state = await self._read(PRIORITIZE, args)
        points = np.zeros(len(request.names), dtype=np.int64)  # unknown nodes keep 0
        if len(request.nodes):
            with self._served.handle.looking_at(request.cache):
                # Refusals were reported by filter; Score may read what PreFilter stored.
                evaluation = self._begin(request, state)
                scores = evaluation.scores()
                expect_unbroken(evaluation.status)
                assert scores is not None
            weight = sum(table.weight for table in scores.plugins)
            points[request.places] = to_extender_scores(scores.totals, weight)
        return tuple(map(HostPriority, request.names, points.tolist()))

    def _begin(self, request: ExtenderRequest, state: CycleState) -> Evaluation:
        """Run PreFilter; raises `Failure` if it failed."""
        evaluation = self._served.evaluator.begin(
            state, request.pod, request.cache.nodes, among=request.nodes
        )
        expect_unbroken(evaluation.outcome.status)
        return evaluation

    def _filter_result(self, request: ExtenderRequest, verdicts: Verdicts) -> ExtenderFilterResult:
        """The feasible nodes, in the order and form of the request, and reasons for the others."""
        names, statuses = request.names, [OK, *verdicts.statuses, UNKNOWN]
        numbers = np.full(len(names), len(statuses) - 1, dtype=np.int64)
        numbers[request.places] = 0 if verdicts.index is None else verdicts.index
        unknown = len(names) - len(request.places)
        if unknown:
            self._metrics.unknown_nodes.labels().add(unknown)
        texts = [status.message for status in statuses]
        is_unresolvable = [
            status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in statuses
        ]
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        refused = np.flatnonzero(numbers)
        for place, number in zip(refused.tolist(), numbers[refused].tolist(), strict=True):
            into = unresolvable if is_unresolvable[number] else failed
            into[names[place]] = texts[number]
        listed = request.listed
        left: tuple[Any, ...] = names if listed is None else listed.items or ()
        if len(refused):
            left = tuple(map(left.__getitem__, np.flatnonzero(numbers == 0).tolist()))
        if listed is None:
            return ExtenderFilterResult(None, left, failed, unresolvable)
        kept = msgspec.structs.replace(listed, items=left)
        return ExtenderFilterResult(kept, None, failed, unresolvable)

    async def _read(self, verb: AnyVerb, args: ExtenderArgs) -> tuple[ExtenderRequest, CycleState]:
        """The request, and a state with the results of the async functions of the verb.

        The cluster changes while they are awaited, so they get a copy of the nodes.
        """
        request, state = await read_request(args, self._cluster), CycleState()
        asked = [plugin for plugin in self._async_functions if plugin.verb is verb]
        if asked and self._cluster.is_live(request.cache):
            cache = self._cluster.copy(request.nodes.names)
            nodes, places = select(cache, request.names)
            request = msgspec.structs.replace(request, cache=cache, nodes=nodes, places=places)
        for plugin in asked:
            ask = plugin.ask
            await self._served.wait_for(plugin, verb.name, ask, state, request.pod, request.nodes)
        return request, state


def expect_unbroken(status: Status) -> None:
    """Raise `Failure` for an ERROR status; refusals pass."""
    if not (status.ok or status.rejected):
        raise Failure(status.message, status.plugin)
