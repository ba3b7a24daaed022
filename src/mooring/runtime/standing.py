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
from mooring.cache.snapshot import Changes, Mark, Nodes
from mooring.framework import plugin as contract
from mooring.framework.scope import Scope
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.guard import Guard
from mooring.runtime.picking import MAX_POINTS, pick, ranked, turns
from mooring.runtime.profile import Profile

_ONE_BY_ONE: Final = 2  # up to so many nodes are asked about in the per-node form
_OUT: Final = -(2**62)  # less than anything of a node where the pod fits


Claims = Callable[[CycleState, Pod, Nodes], Iterable[tuple[int, Status]]]
"""The rows where a pod would not fit beside others that have a claim on them."""


class Unsure(Exception):
    """The kept answers do not tell: a plugin said something that they are not made for."""


class Chosen(msgspec.Struct, frozen=True):
    """The choice for one pod."""

    feasible: int  # how many nodes there were to choose from
    row: int = -1  # of the one chosen, if there were any


class Lineup:
    """The plugins of a profile that take part in a decision, with what is asked of each."""

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


class _Scoped:
    """Filters and scorers of one scope, and which nodes the filters refuse."""

    def __init__(
        self, filters: list[contract.Filter], scorers: list[contract.Score], size: int
    ) -> None:
        # The vectorised ones first: the others need not be asked about nodes those refuse.
        self.filters = sorted(filters, key=lambda plugin: not _is_vectorised(plugin))
        self.plain = [one for one in scorers if not isinstance(one, contract.NormalizeScore)]
        self.refused: BoolArray = np.zeros(size, dtype=np.bool_)
        self.points: IntArray = np.zeros(size, dtype=np.int64)  # of the plain scorers, weighted


class _Raw:
    """The points of a scorer that are rescaled for each choice."""

    def __init__(self, plugin: contract.NormalizeScore, size: int) -> None:
        self.plugin = plugin
        self.points: IntArray = np.zeros(size, dtype=np.int64)
        self.same: int | None = None  # the points of all nodes, as long as they are equal
        self.is_empty = True  # no node has points so far

    def put(self, rows: list[int] | IntArray, points: IntArray) -> None:
        self.points[rows] = points
        least, most = int(points.min()), int(points.max())
        if self.is_empty:
            self.same = least if least == most else None
            self.is_empty = False
        elif not least == most == self.same:
            self.same = None  # perhaps equal again some day, and not worth the looking


class Standing:
    """The answers of one profile's plugins for one class of pods."""

    def __init__(self, lineup: Lineup, pod: Pod, nodes: Nodes) -> None:
        self._guard = lineup.guard
        self._weights = lineup.weights
        if MAX_SCORE * sum(lineup.weights.values()) >= MAX_POINTS:
            raise Unsure("the weights are too great")
        self._mark: Mark = nodes.mark
        size = len(nodes)
        scopes = {plugin.name: _scope_of(plugin, pod) for plugin in lineup.everybody}
        kept = [plugin for plugin in lineup.everybody if scopes[plugin.name] is not None]
        self._stamped = [plugin for plugin in kept if plugin.stamp(pod) is not None]
        self.stamps: Hashable = self._stamp(pod)
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

        def filters(scope: Scope | None) -> list[contract.Filter]:
            skipped = self._state.skip_filter
            return [
                plugin
                for plugin in lineup.filters
                if scopes[plugin.name] is scope and plugin.name not in skipped
            ]

        def scorers(scope: Scope | None) -> list[contract.Score]:
            skipped = self._state.skip_score
            return [
                plugin
                for plugin in lineup.scorers
                if scopes[plugin.name] is scope and plugin.name not in skipped
            ]

        self._live_filters = filters(None)
        self._live_scorers = scorers(None)
        self._object = _Scoped(filters(Scope.OBJECT), scorers(Scope.OBJECT), size)
        self._node = _Scoped(filters(Scope.NODE), scorers(Scope.NODE), size)
        rescaled = (*scorers(Scope.OBJECT), *scorers(Scope.NODE))
        self._raw = [
            _Raw(one, size) for one in rescaled if isinstance(one, contract.NormalizeScore)
        ]
        self._raw_of_node = {
            one.name for one in scorers(Scope.NODE) if isinstance(one, contract.NormalizeScore)
        }

        everywhere = np.arange(size)
        self._refilter(self._object, pod, nodes, everywhere)
        self._refilter(self._node, pod, nodes, everywhere, self._object.refused)
        self._passed: BoolArray = ~(self._object.refused | self._node.refused)
        self._scored: BoolArray = np.zeros(size, dtype=np.bool_)
        self._ranks = nodes.ranks
        self._turns = turns(size)[self._ranks]
        # What `ranked` makes of points; `_OUT` for those that do not pass.
        self._ranked: IntArray = np.full(size, _OUT, dtype=np.int64)
        self._listing: IntArray | None = None  # rows that pass, in order, while they are the same
        self._rescore(pod, nodes, np.flatnonzero(self._passed))

    # --- one pod -------------------------------------------------------------------------------

    def is_current(self, pod: Pod) -> bool:
        """Whether everything but the nodes is as it was."""
        return self._stamp(pod) == self.stamps

    def choose(self, state: CycleState, pod: Pod, nodes: Nodes, claims: Claims) -> Chosen | None:
        """The best node for a pod of this class; None if the columns are not what they were."""
        changes = nodes.changed_since(self._mark)
        if changes is None:
            return None
        if changes.pods or changes.nodes:
            self._follow(pod, nodes, changes)
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
            return Chosen(count, self._best_listed(nodes, count))
        return Chosen(count, self._best(nodes, passed, extra, everybody))

    # --- bringing it up to date ----------------------------------------------------------------

    def _follow(self, pod: Pod, nodes: Nodes, changes: Changes) -> None:
        touched = set(changes.nodes)
        if not touched and not self._raw_of_node:
            few = set(changes.pods)
            if len(few) <= _ONE_BY_ONE:
                for row in few:
                    self._follow_pods_of(row, pod, nodes)
                self._mark = nodes.mark
                return
        if touched:
            self._refilter(self._object, pod, nodes, np.array(sorted(touched)))
            touched.update(changes.pods)
        else:
            touched = set(changes.pods)
        rows = np.array(sorted(touched)) if len(touched) > 1 else np.array([*touched])
        self._refilter(self._node, pod, nodes, rows, self._object.refused)
        passes = ~(self._object.refused[rows] | self._node.refused[rows])
        if not np.array_equal(self._passed[rows], passes):
            self._passed[rows] = passes
            self._listing = None
        if changes.nodes:
            self._scored[rows] = False
        else:
            self._scored[rows[~passes]] = False
        out = rows[~passes]
        if len(out):
            self._ranked[out] = _OUT
        self._rescore(pod, nodes, rows[passes])
        self._mark = nodes.mark

    def _follow_pods_of(self, row: int, pod: Pod, nodes: Nodes) -> None:
        """What most pods need: the node that took the last one has another pod now."""
        if self._object.refused[row]:
            return
        call, state, node = self._guard.call, self._state, nodes[row]
        for plugin in self._node.filters:
            status = call(plugin, "Filter", plugin.filter, state, pod, node)
            if status is not OK and self._is_refusal(plugin, status):
                self._node.refused[row] = True
                if self._passed[row]:
                    self._passed[row] = self._scored[row] = False
                    self._listing = None
                    self._ranked[row] = _OUT
                return
        if not self._scored[row]:
            self._node.refused[row] = False
            self._passed[row] = True
            self._listing = None
            self._rescore(pod, nodes, np.array([row]))
            return
        total = 0
        for scorer in self._node.plain:
            points = call(scorer, "Score", scorer.score, state, pod, node)
            if type(points) is not int or not MIN_SCORE <= points <= MAX_SCORE:
                raise Unsure(f"{scorer.name} gives odd points")
            total += points * self._weights[scorer.name]
        self._node.points[row] = total
        self._ranked[row] = ranked(self._object.points[row] + total, self._turns[row])

    def _refilter(
        self,
        scoped: _Scoped,
        pod: Pod,
        nodes: Nodes,
        rows: IntArray,
        besides: BoolArray | None = None,
    ) -> None:
        """Ask again who is refused; per-node filters need not see whom others refuse `besides`."""
        if not scoped.filters:
            return
        if len(rows) <= _ONE_BY_ONE:
            for row in rows.tolist():
                scoped.refused[row] = (besides is None or not besides[row]) and any(
                    self._refuses(plugin, pod, nodes, row) for plugin in scoped.filters
                )
            return
        everybody = len(rows) == len(nodes)
        some = nodes if everybody else nodes.take(rows)
        refused = np.zeros(len(rows), dtype=np.bool_)
        for plugin in scoped.filters:
            if _is_vectorised(plugin):
                found = self._refused(plugin, self._state, pod, some)
                if found is not None:
                    refused |= found
            else:
                open_ = ~refused if besides is None else ~(refused | besides[rows])
                for place in np.flatnonzero(open_).tolist():
                    refused[place] = self._refuses(plugin, pod, nodes, int(rows[place]))
        scoped.refused[rows] = refused

    def _rescore(self, pod: Pod, nodes: Nodes, rows: IntArray) -> None:
        """Points for nodes that pass and changed, or pass anew."""
        if not len(rows):
            return
        fresh = rows[~self._scored[rows]]
        if len(fresh):
            self._put_points(self._object, pod, nodes, fresh)
        self._put_points(self._node, pod, nodes, rows)
        for raw in self._raw:
            asked = rows if raw.plugin.name in self._raw_of_node else fresh
            if len(asked):
                raw.put(asked, self._points_of(raw.plugin, pod, nodes, asked))
        self._scored[rows] = True
        points = self._object.points[rows] + self._node.points[rows]
        self._ranked[rows] = ranked(points, self._turns[rows])

    def _put_points(self, scoped: _Scoped, pod: Pod, nodes: Nodes, rows: IntArray) -> None:
        if not scoped.plain:
            return
        total: IntArray = np.zeros(len(rows), dtype=np.int64)
        for plugin in scoped.plain:
            points = self._points_of(plugin, pod, nodes, rows)
            if int(points.min()) < MIN_SCORE or int(points.max()) > MAX_SCORE:
                raise Unsure(f"{plugin.name} gives points out of range")
            total += points * self._weights[plugin.name]
        scoped.points[rows] = total

    # --- filters -------------------------------------------------------------------------------

    def _filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> BoolArray:
        passed = self._passed
        slow = []
        for plugin in self._live_filters:
            if plugin.name in state.skip_filter:
                continue
            if not _is_vectorised(plugin):
                slow.append(plugin)
                continue
            refused = self._refused(plugin, state, pod, nodes)
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

    def _refused(
        self, plugin: contract.Filter, state: CycleState, pod: Pod, nodes: Nodes
    ) -> BoolArray | None:
        """Whom a vectorised filter refuses; None: nobody."""
        call = self._guard.call
        verdicts: Any = call(plugin, "Filter", plugin.filter_all, state, pod, nodes)
        if not isinstance(verdicts, Verdicts) or verdicts.size != len(nodes):
            raise Unsure(f"{plugin.name} gave no verdicts")
        if verdicts.index is None:
            return None
        if not all(one.rejected for one in verdicts.statuses):
            raise Unsure(f"{plugin.name} broke")
        refused: BoolArray = verdicts.index != 0
        if refused.shape != (len(nodes),):
            raise Unsure(f"{plugin.name} gave odd verdicts")
        return refused

    def _refuses(self, plugin: contract.Filter, pod: Pod, nodes: Nodes, row: int) -> bool:
        status = self._guard.call(plugin, "Filter", plugin.filter, self._state, pod, nodes[row])
        return status is not OK and self._is_refusal(plugin, status)

    @staticmethod
    def _is_refusal(plugin: contract.Filter, status: Any) -> bool:
        if not isinstance(status, Status) or not (status.ok or status.rejected):
            raise Unsure(f"{plugin.name} broke")
        return status.rejected

    # --- points --------------------------------------------------------------------------------

    def _points_of(
        self, plugin: contract.Score, pod: Pod, nodes: Nodes, rows: IntArray
    ) -> IntArray:
        call = self._guard.call
        if len(rows) <= _ONE_BY_ONE or not _scores_all(plugin):
            points = [
                call(plugin, "Score", plugin.score, self._state, pod, nodes[row])
                for row in rows.tolist()
            ]
            return _checked(plugin, np.array(points), len(rows))
        some = nodes if len(rows) == len(nodes) else nodes.take(rows)
        found = call(plugin, "Score", plugin.score_all, self._state, pod, some)
        return _checked(plugin, found, len(rows))

    def _extra(
        self,
        state: CycleState,
        pod: Pod,
        feasible: Nodes,
        passed: BoolArray | None,
    ) -> IntArray | None:
        """What is added to the kept points, per feasible node; None: the same for all."""
        extra: IntArray | None = None
        for raw in self._raw:
            if raw.same is not None and raw.plugin.by_extremes:
                continue  # rescaled, they would still be the same for all
            points = raw.points if passed is None else raw.points[passed]
            extra = self._added(extra, raw.plugin, state, pod, feasible, points)
        for plugin in self._live_scorers:
            if plugin.name in state.skip_score:
                continue
            points = self._live_points(plugin, state, pod, feasible)
            extra = self._added(extra, plugin, state, pod, feasible, points)
        return extra

    def _live_points(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> IntArray:
        call = self._guard.call
        if _scores_all(plugin):
            found = call(plugin, "Score", plugin.score_all, state, pod, nodes)
            return _checked(plugin, found, len(nodes))
        points = call(plugin, "Score", _one_by_one, plugin, state, pod, nodes, self._guard)
        return _checked(plugin, points, len(nodes))

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
            points = _checked(plugin, found, len(nodes))
        if int(points.min()) < MIN_SCORE or int(points.max()) > MAX_SCORE:
            raise Unsure(f"{plugin.name} gives points out of range")
        weighted = points * self._weights[plugin.name]
        return weighted if extra is None else extra + weighted

    # --- the choice ----------------------------------------------------------------------------

    def _best_listed(self, nodes: Nodes, count: int) -> int:
        """The best by kept points alone."""
        if count == len(self._ranked):
            return int(self._ranked.argmax())
        # Turns are those of all nodes: among fewer, each has another place.
        listing = self._listing
        if listing is None:
            listing = nodes.listing
            listing = self._listing = listing[self._passed[listing]]
        points = self._object.points[listing] + self._node.points[listing]
        return int(listing[pick(points)])

    def _best(
        self, nodes: Nodes, passed: BoolArray, extra: IntArray | None, everybody: bool
    ) -> int:
        """The best by kept points and what was added, or among fewer than pass by themselves."""
        kept = self._object.points + self._node.points
        if extra is not None:
            if everybody:
                kept = kept + extra
            else:
                kept[passed] += extra
        listing = nodes.listing
        if not everybody:
            listing = listing[passed[listing]]
        return int(listing[pick(kept[listing])])

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

    def _stamp(self, pod: Pod) -> Hashable:
        return tuple([plugin.stamp(pod) for plugin in self._stamped])


def _scope_of(plugin: contract.Base, pod: Pod) -> Scope | None:
    """The scope as far as answers can be kept for it."""
    scope = plugin.scope_of(pod)
    return scope if scope in (Scope.OBJECT, Scope.NODE) else None


def _is_vectorised(plugin: contract.Filter) -> bool:
    return type(plugin).filter_all is not contract.Filter.filter_all


def _scores_all(plugin: contract.Score) -> bool:
    return type(plugin).score_all is not contract.Score.score_all


def _one_by_one(
    plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes, guard: Guard
) -> IntArray:
    points = []
    for node in nodes:
        points.append(plugin.score(state, pod, node))
        guard.check_budget(plugin, "Score")
    return np.array(points)


def _checked(plugin: contract.Score, points: Any, size: int) -> IntArray:
    """Points as they should be; the full way says what is wrong with them otherwise."""
    fits = isinstance(points, np.ndarray) and points.shape == (size,) and points.dtype.kind in "iu"
    if not fits:
        raise Unsure(f"{plugin.name} gave no points")
    found: IntArray = points.astype(np.int64, copy=False)
    return found
