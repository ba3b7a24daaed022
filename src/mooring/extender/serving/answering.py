"""Answers to filter and prioritize, by plugins that are asked as in a scheduler."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from mooring.decision.evaluation import Evaluation
from mooring.extender.serving.cluster import Cluster
from mooring.extender.serving.figures import ExtenderMetrics
from mooring.extender.serving.functions import AsksLater
from mooring.extender.serving.hosting import Hosted
from mooring.extender.serving.question import Failure, Question, read_question, select
from mooring.extender.serving.tenths import in_tenths
from mooring.extender.wire import (
    ExtenderArgs,
    ExtenderFilterResult,
    HostPriority,
    HostPriorityList,
)
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts

UNKNOWN = Status.unresolvable("node is not known to the extender")


class Answering:
    """Decides for one extender."""

    def __init__(self, hosted: Hosted, cluster: Cluster, metrics: ExtenderMetrics) -> None:
        self._hosted = hosted
        self._cluster = cluster
        self._metrics = metrics
        plugins = hosted.profile.plugins.values()
        self._later = [plugin for plugin in plugins if isinstance(plugin, AsksLater)]

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        question, state = await self._read("filter", args)
        verdicts = Verdicts.passing(question.nodes)
        if len(question.nodes):
            with self._hosted.handle.looking_at(question.seen):
                evaluation = self._begin(question, state)
                if evaluation.passed_pre_filter:
                    evaluation.filter()
                    expect_unbroken(evaluation.status)
                    verdicts = evaluation.verdicts()
                else:
                    verdicts.reject_all(evaluation.outcome.status)
        return self._sorted_out(question, verdicts)

    async def prioritize(self, args: ExtenderArgs) -> HostPriorityList:
        question, state = await self._read("prioritize", args)
        points = np.zeros(len(question.names), dtype=np.int64)  # an unknown node gets none
        if len(question.nodes):
            with self._hosted.handle.looking_at(question.seen):
                # A refusal was told when the nodes were filtered; Score may read what was stored.
                evaluation = self._begin(question, state)
                scores = evaluation.scores()
                expect_unbroken(evaluation.status)
                assert scores is not None
            weight = sum(table.weight for table in scores.plugins)
            points[question.places] = in_tenths(scores.totals, weight)
        return tuple(map(HostPriority, question.names, points.tolist()))

    def _begin(self, question: Question, state: CycleState) -> Evaluation:
        """PreFilter; raises `Failure` if it broke."""
        evaluation = self._hosted.evaluator.begin(
            state, question.pod, question.seen.nodes, among=question.nodes
        )
        expect_unbroken(evaluation.outcome.status)
        return evaluation

    def _sorted_out(self, question: Question, verdicts: Verdicts) -> ExtenderFilterResult:
        """Who stays, in the order and the form in which they came, and why the others do not."""
        names, statuses = question.names, [OK, *verdicts.statuses, UNKNOWN]
        numbers = np.full(len(names), len(statuses) - 1, dtype=np.int64)
        numbers[question.places] = 0 if verdicts.index is None else verdicts.index
        unknown = len(names) - len(question.places)
        if unknown:
            self._metrics.unknown_nodes.labels().add(unknown)
        texts = [status.message for status in statuses]
        hopeless = [status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in statuses]
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        refused = np.flatnonzero(numbers)
        for place, number in zip(refused.tolist(), numbers[refused].tolist(), strict=True):
            into = unresolvable if hopeless[number] else failed
            into[names[place]] = texts[number]
        listed = question.listed
        left: tuple[Any, ...] = names if listed is None else listed.items or ()
        if len(refused):
            left = tuple(map(left.__getitem__, np.flatnonzero(numbers == 0).tolist()))
        if listed is None:
            return ExtenderFilterResult(None, left, failed, unresolvable)
        kept = msgspec.structs.replace(listed, items=left)
        return ExtenderFilterResult(kept, None, failed, unresolvable)

    async def _read(self, verb: str, args: ExtenderArgs) -> tuple[Question, CycleState]:
        question = await read_question(args, self._cluster)
        state = CycleState()
        return await self._ask_later(verb, question, state), state

    async def _ask_later(self, verb: str, question: Question, state: CycleState) -> Question:
        """Ask the functions that wait for something, before the plain ones; what is asked then.

        While they wait the cluster changes, so they get a copy of the nodes.
        """
        asked = [plugin for plugin in self._later if plugin.verb == verb]
        if not asked:
            return question
        if self._cluster.is_live(question.seen):
            seen = self._cluster.copy(question.nodes.names)
            nodes, places = select(seen, question.names)
            question = msgspec.structs.replace(question, seen=seen, nodes=nodes, places=places)
        for plugin in asked:
            await self._hosted.wait_for(
                plugin, plugin.verb, plugin.ask, state, question.pod, question.nodes
            )
        return question


def expect_unbroken(status: Status) -> None:
    """Raise `Failure` unless a status is OK or a refusal."""
    if not (status.ok or status.rejected):
        raise Failure(status.message, status.plugin)
