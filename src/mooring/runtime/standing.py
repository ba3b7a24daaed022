"""What the plugins say about one class of pods: kept, and brought up to date before each pod.

Plugins with a scope are asked once about every node, then again about nodes that changed: for
most pods that is the one that took the pod before. Plugins without one are asked for every pod.
The answer is the node that a full evaluation would choose, and nothing else: whoever wants to know
more, or meets anything unusual (`Unsure`), takes the full way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

import msgspec
import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Mark, Nodes
from mooring.framework import plugin as contract
from mooring.framework.scope import Scope
from mooring.framework.scores import MAX_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.runtime.guard import Guard
from mooring.runtime.layers import (
    Layer,
    Outdated,
    Unsure,
    check_range,
    checked_points,
    is_vectorised,
    points_by,
    refused_by,
)
from mooring.runtime.picking import MAX_POINTS, pick, ranked, turns
from mooring.runtime.profile import Profile

_OUT: Final = -(2**62)  # less than anything of a node where the pod fits

Claims = Callable[[CycleState, Pod, Nodes], Iterable[tuple[int, Status]]]
"""The rows where a pod would not fit beside others that have a claim on them."""

Shared = dict[Hashable, Layer]
"""Layers by what they depend on."""


class Chosen(msgspec.Struct, frozen=True):
    """The choice for one pod."""

    feasible: int  # how many nodes there were to choose from
    row: int = -1  # of the one chosen, if there were any


class Lineup:
    """The plugins of a profile that take part in a decision."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        self.guard: Guard = guard
        self.pre_filters: tuple[contract.PreFilter, ...] = profile.at(
            "preFilter", contract.PreFilter
        )
        self.filters: tuple[contract.Filter, ...] = profile.at("filter", contract.Filter)
        self.pre_scores: tuple[contract.PreScore, ...] = profile.at("preScore", contract.PreScore)
        self.scorers: tuple[contract.Score, ...] = profile.at("score", contract.Score)
        self.weights: dict[str, int] = profile.weights
        everybody = (*self.pre_filters, *self.filters, *self.pre_scores, *self.scorers)
        self.everybody: tuple[contract.Base, ...] = tuple(
            {plugin.name: plugin for plugin in everybody}.values()
        )


class Standing:
    """The answers of one profile's plugins for one class of pods."""

    def __init__(self, lineup: Lineup, shared: Shared, pod: Pod, nodes: Nodes) -> None:
        if MAX_SCORE * sum(lineup.weights.values()) >= MAX_POINTS:
            raise Unsure("the weights are too great")
        self._guard = lineup.guard
        self._weights = lineup.weights
        self._mark: Mark = nodes.mark
        scopes = {plugin.name: _scope_of(plugin, pod) for plugin in lineup.everybody}
        self._stamped = [
            plugin
            for plugin in lineup.everybody
            if scopes[plugin.name] is not None and _has_stamp(plugin)
        ]
        self._stamps = self._stamp(pod)
        self._state = CycleState()
        self._live_pre_filters: list[contract.PreFilter] = []
        for plugin in lineup.pre_filters:
            if scopes[plugin.name] is None:
                self._live_pre_filters.append(plugin)
            else:
                self._pre_filter(plugin, self._state, pod, nodes)
        self._live_pre_scores: list[contract.PreScore] = []
        for scorer in lineup.pre_scores:
            if scopes[scorer.name] is None:
                self._live_pre_scores.append(scorer)
            else:
                self._pre_score(scorer, self._state, pod, nodes)
        filters = [one for one in lineup.filters if one.name not in self._state.skip_filter]
        scorers = [one for one in lineup.scorers if one.name not in self._state.skip_score]
        self._live_filters = [one for one in filters if scopes[one.name] is None]
        self._live_scorers = [one for one in scorers if scopes[one.name] is None]
        self._layers: list[Layer] = _layers(
            lineup, shared, scopes, filters, scorers, self._state, pod, nodes
        )
        self._raws = [raw for layer in self._layers for raw in layer.raws]

        size = len(nodes)
        self._passed: BoolArray = np.zeros(size, dtype=np.bool_)
        self._points: IntArray = np.zeros(size, dtype=np.int64)
        self._turns = turns(size)[nodes.ranks]
        # What `ranked` makes of points; `_OUT` for those that do not pass.
        self._ranked: IntArray = np.full(size, _OUT, dtype=np.int64)
        self._listing: IntArray | None = None  # rows that pass, in order, while they are the same
        self._combine(np.arange(size))

    # --- one pod -------------------------------------------------------------------------------

    def is_current(self, pod: Pod) -> bool:
        """Whether everything but the nodes is as it was."""
        return self._stamp(pod) == self._stamps

    def choose(self, state: CycleState, pod: Pod, nodes: Nodes, claims: Claims) -> Chosen:
        """The best node for a pod of this class. Raises Unsure, or Outdated."""
        self._follow(pod, nodes)
        state.begin_like(self._state)
        for plugin in self._live_pre_filters:
            self._pre_filter(plugin, state, pod, nodes)
        passed = self._filter(state, pod, nodes)
        for row, status in claims(state, pod, nodes):
            if not status.rejected:
                raise Unsure("a claim could not be judged")
            if passed is self._passed:
                passed = passed.copy()
            passed[row] = False
        count = int(np.count_nonzero(passed))
        if count == 0:
            return Chosen(0)
        if count == 1:
            return Chosen(1, int(passed.argmax()))
        everybody = count == len(nodes)
        feasible = nodes if everybody else nodes.take(passed)
        for scorer in self._live_pre_scores:
            self._pre_score(scorer, state, pod, feasible)
        extra = self._extra(state, pod, feasible, None if everybody else passed)
        if extra is None and passed is self._passed:
            return Chosen(count, self._best_kept(nodes, count))
        return Chosen(count, self._best(nodes, passed, extra, everybody))

    # --- bringing it up to date ----------------------------------------------------------------

    def _follow(self, pod: Pod, nodes: Nodes) -> None:
        changes = nodes.changed_since(self._mark)
        if changes is None:
            raise Outdated
        if not changes.pods and not changes.nodes:
            return
        for layer in self._layers:
            layer.follow(pod, nodes)
        touched = {*changes.pods, *changes.nodes}
        if len(touched) == 1:
            self._combine_one(touched.pop())
        else:
            self._combine(np.array([*touched]))
        self._mark = nodes.mark

    def _combine_one(self, row: int) -> None:
        points = 0
        for layer in self._layers:
            if layer.refused[row]:
                if self._passed[row]:
                    self._passed[row] = False
                    self._listing = None
                self._ranked[row] = _OUT
                return
            points += layer.points.item(row)
        if not self._passed[row]:
            self._passed[row] = True
            self._listing = None
        self._points[row] = points
        self._ranked[row] = ranked(points, self._turns.item(row))

    def _combine(self, rows: IntArray) -> None:
        """Make one answer of the layers' for these nodes."""
        layers = self._layers
        if not layers:
            refused = np.zeros(len(rows), dtype=np.bool_)
            points = np.zeros(len(rows), dtype=np.int64)
        else:
            refused, points = layers[0].refused[rows], layers[0].points[rows]
            for layer in layers[1:]:
                refused |= layer.refused[rows]
                points += layer.points[rows]
        passes = ~refused
        if not np.array_equal(self._passed[rows], passes):
            self._passed[rows] = passes
            self._listing = None
        self._points[rows] = points
        self._ranked[rows] = np.where(refused, _OUT, ranked(points, self._turns[rows]))

    # --- what is asked for every pod -----------------------------------------------------------

    def _filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> BoolArray:
        passed = self._passed
        slow = []
        for plugin in self._live_filters:
            if plugin.name in state.skip_filter:
                continue
            if not is_vectorised(plugin):
                slow.append(plugin)
                continue
            refused = refused_by(self._guard, plugin, state, pod, nodes)
            if refused is not None:
                passed = passed & ~refused
        for plugin in slow:
            if passed is self._passed:
                passed = passed.copy()
            for row in np.flatnonzero(passed).tolist():
                status = self._ask(plugin, "Filter", plugin.filter, state, pod, nodes[row])
                if not status.ok:
                    if not status.rejected:
                        raise Unsure(f"{plugin.name} broke")
                    passed[row] = False
        return passed

    def _extra(
        self, state: CycleState, pod: Pod, feasible: Nodes, passed: BoolArray | None
    ) -> IntArray | None:
        """What is added to the kept points, per feasible node; None: the same for all."""
        extra: IntArray | None = None
        for raw in self._raws:
            if raw.same is not None and raw.plugin.by_extremes:
                continue  # rescaled, they would still be the same for all
            points = raw.points if passed is None else raw.points[passed]
            extra = self._added(extra, raw.plugin, state, pod, feasible, points)
        for plugin in self._live_scorers:
            if plugin.name in state.skip_score:
                continue
            points = points_by(self._guard, plugin, state, pod, feasible)
            extra = self._added(extra, plugin, state, pod, feasible, points)
        return extra

    def _added(
        self,
        extra: IntArray | None,
        plugin: contract.Score,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        points: IntArray,
    ) -> IntArray:
        if isinstance(plugin, contract.NormalizeScore):
            point, ask = "ScoreExtensionNormalize", plugin.normalize_score
            found = self._guard.call(plugin, point, ask, state, pod, nodes, points)
            points = checked_points(plugin, found, len(nodes))
        check_range(plugin, points)
        weighted = points * self._weights[plugin.name]
        return weighted if extra is None else extra + weighted

    # --- the choice ----------------------------------------------------------------------------

    def _best_kept(self, nodes: Nodes, count: int) -> int:
        """The best by kept points alone."""
        if count == len(self._ranked):
            return int(self._ranked.argmax())
        # Turns are those of all nodes: among fewer, each has another place.
        listing = self._listing
        if listing is None:
            listing = nodes.listing
            listing = self._listing = listing[self._passed[listing]]
        return int(listing[pick(self._points[listing])])

    def _best(
        self, nodes: Nodes, passed: BoolArray, extra: IntArray | None, everybody: bool
    ) -> int:
        """The best by kept points and what was added, or among fewer than pass by themselves."""
        points, listing = self._points, nodes.listing
        if everybody and extra is not None:
            points = points + extra
        elif extra is not None:
            points = points.copy()
            points[passed] += extra
        if not everybody:
            listing = listing[passed[listing]]
        return int(listing[pick(points[listing])])

    # --- asking --------------------------------------------------------------------------------

    def _pre_filter(
        self, plugin: contract.PreFilter, state: CycleState, pod: Pod, nodes: Nodes
    ) -> None:
        status = self._ask(plugin, "PreFilter", plugin.pre_filter, state, pod, nodes)
        if status.skipped:
            state.skip_filter.add(plugin.name)
        elif not status.ok:
            raise Unsure(f"{plugin.name} refuses all nodes")

    def _pre_score(
        self, plugin: contract.PreScore, state: CycleState, pod: Pod, nodes: Nodes
    ) -> None:
        status = self._ask(plugin, "PreScore", plugin.pre_score, state, pod, nodes)
        if status.skipped:
            state.skip_score.add(plugin.name)
        elif not status.ok:
            raise Unsure(f"{plugin.name} broke")

    def _ask(
        self, plugin: contract.Base, point: str, function: Callable[..., Any], *args: Any
    ) -> Status:
        status = self._guard.call(plugin, point, function, *args)
        if not isinstance(status, Status):
            raise Unsure(f"{plugin.name} answered with more than a status")
        return status

    def _stamp(self, pod: Pod) -> list[Hashable]:
        return [plugin.stamp(pod) for plugin in self._stamped]


def _scope_of(plugin: contract.Base, pod: Pod) -> Scope | None:
    """The scope as far as answers can be kept for it."""
    scope = plugin.scope_of(pod)
    return scope if scope in (Scope.OBJECT, Scope.NODE) else None


def _has_stamp(plugin: contract.Base) -> bool:
    """Whether its stamp can ever be another one."""
    return type(plugin).stamp is not contract.Base.stamp or bool(plugin.reads)


def _layers(
    lineup: Lineup,
    shared: Shared,
    scopes: dict[str, Scope | None],
    filters: list[contract.Filter],
    scorers: list[contract.Score],
    state: CycleState,
    pod: Pod,
    nodes: Nodes,
) -> list[Layer]:
    """The layers of a class: its own, by scope, and those that it shares with others."""
    parts: dict[str, Hashable] = {}
    for plugin in lineup.everybody:
        normal = isinstance(plugin, contract.NormalizeScore)
        if scopes[plugin.name] is Scope.NODE and not normal:
            part = plugin.part_of(pod)
            if part is not None:
                parts[plugin.name] = (part, plugin.stamp(pod))
    layers: list[Layer] = []

    def add(names: set[str], *, sees_pods: bool, besides: BoolArray | None) -> Layer | None:
        own_filters = [one for one in filters if one.name in names]
        own_scorers = [one for one in scorers if one.name in names]
        if not own_filters and not own_scorers:
            return None
        return Layer(
            own_filters,
            own_scorers,
            guard=lineup.guard,
            weights=lineup.weights,
            sees_pods=sees_pods,
            state=state,
            pod=pod,
            nodes=nodes,
            besides=besides,
        )

    objects = {name for name, scope in scopes.items() if scope is Scope.OBJECT}
    first = add(objects, sees_pods=False, besides=None)
    if first is not None:
        layers.append(first)
    if parts:
        key = tuple(sorted(parts.items(), key=lambda item: item[0]))
        layer = shared.get(key)
        if layer is not None:
            try:
                layer.follow(pod, nodes)
            except Outdated:
                layer = None
        if layer is None:
            layer = add(set(parts), sees_pods=True, besides=None)
        if layer is not None:
            shared[key] = layer
            layers.append(layer)
    rest = {name for name, scope in scopes.items() if scope is Scope.NODE} - parts.keys()
    own = add(rest, sees_pods=True, besides=first.refused if first is not None else None)
    if own is not None:
        layers.append(own)
    return layers
