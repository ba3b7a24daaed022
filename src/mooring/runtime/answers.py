"""What plugins say when a decision is made by class: an answer as it should be, or `Unsure`.

What exactly is wrong with an answer, the full way says; here it is enough that something is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework import plugin as contract
from mooring.framework.results import LabelScores
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.guard import Guard


class Unsure(Exception):
    """The kept answers do not tell: a plugin said something that they are not made for."""


class Answers:
    """Asks the plugins of one profile."""

    def __init__(self, guard: Guard, weights: Mapping[str, int]) -> None:
        self.guard: Guard = guard
        self.weights: Mapping[str, int] = weights  # of scorers, by name

    def status(
        self, plugin: contract.Base, point: str, function: Callable[..., Any], *args: Any
    ) -> Status:
        status = self.guard.call(plugin, point, function, *args)
        if not isinstance(status, Status):
            raise Unsure(f"{plugin.name} answered with more than a status")
        return status

    # --- before the nodes are looked at --------------------------------------------------------

    def pre_filter(
        self, plugin: contract.PreFilter, state: CycleState, pod: Pod, nodes: Nodes
    ) -> None:
        status = self.status(plugin, "PreFilter", plugin.pre_filter, state, pod, nodes)
        if status.skipped:
            state.skip_filter.add(plugin.name)
        elif not status.ok:
            raise Unsure(f"{plugin.name} refuses all nodes")

    def pre_score(
        self, plugin: contract.PreScore, state: CycleState, pod: Pod, nodes: Nodes
    ) -> None:
        status = self.status(plugin, "PreScore", plugin.pre_score, state, pod, nodes)
        if status.skipped:
            state.skip_score.add(plugin.name)
        elif not status.ok:
            raise Unsure(f"{plugin.name} broke")

    # --- refusals ------------------------------------------------------------------------------

    def refused(
        self, plugin: contract.Filter, state: CycleState, pod: Pod, nodes: Nodes
    ) -> BoolArray | None:
        """Whom a vectorised filter refuses; None: nobody."""
        verdicts: Any = self.guard.call(plugin, "Filter", plugin.filter_all, state, pod, nodes)
        if not isinstance(verdicts, Verdicts) or verdicts.size != len(nodes):
            raise Unsure(f"{plugin.name} gave no verdicts")
        if verdicts.index is None:
            return None
        if not all(status.rejected for status in verdicts.statuses):
            raise Unsure(f"{plugin.name} broke")
        refused: BoolArray = verdicts.index != 0
        if refused.shape != (len(nodes),):
            raise Unsure(f"{plugin.name} gave odd verdicts")
        return refused

    # --- points --------------------------------------------------------------------------------

    def points(self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes) -> IntArray:
        """What a scorer gives each node, before it is rescaled."""
        if type(plugin).score_all is contract.Score.score_all:
            found = self.guard.call(
                plugin, "Score", _one_by_one, plugin, state, pod, nodes, self.guard
            )
        else:
            found = self.guard.call(plugin, "Score", plugin.score_all, state, pod, nodes)
        return _checked(plugin, found, len(nodes))

    def weighted(
        self,
        plugin: contract.Score,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        points: IntArray,
    ) -> IntArray:
        """Points as they count: rescaled, checked, times the weight. Perhaps the same array."""
        if isinstance(plugin, contract.NormalizeScore):
            point, ask = "ScoreExtensionNormalize", plugin.normalize_score
            found = self.guard.call(plugin, point, ask, state, pod, nodes, points)
            points = _checked(plugin, found, len(nodes))
        return self._times_weight(plugin, points)

    def weighted_by_label(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> LabelScores | None:
        """Likewise if one label is all that matters; None: it is not."""
        if type(plugin).final_by_label is contract.Score.final_by_label:
            return None
        ask = plugin.final_by_label
        found: Any = self.guard.call(plugin, "Score", ask, state, pod, nodes)
        if found is None:
            return None
        if not isinstance(found, LabelScores) or not isinstance(found.key, str):
            raise Unsure(f"{plugin.name} gave no points by label")
        points = _checked(plugin, found.points, nodes.label_count(found.key))
        return LabelScores(found.key, self._times_weight(plugin, points))

    def _times_weight(self, plugin: contract.Score, points: IntArray) -> IntArray:
        if len(points):
            least, most = points.item(points.argmin()), points.item(points.argmax())
            if least < MIN_SCORE or most > MAX_SCORE:
                raise Unsure(f"{plugin.name} gives points out of range")
        weight = self.weights[plugin.name]
        return points if weight == 1 else points * weight


def _checked(plugin: contract.Score, points: Any, size: int) -> IntArray:
    fits = isinstance(points, np.ndarray) and points.shape == (size,) and points.dtype.kind in "iu"
    if not fits:
        raise Unsure(f"{plugin.name} gave no points")
    found: IntArray = points.astype(np.int64, copy=False)
    return found


def _one_by_one(
    plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes, guard: Guard
) -> IntArray:
    points = []
    for node in nodes:
        points.append(plugin.score(state, pod, node))
        guard.check_budget(plugin, "Score")
    return np.array(points)
