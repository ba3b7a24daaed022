"""What the plugins say about one class of pods: kept, and brought up to date before each pod.

Plugins with a scope are asked once about every node, then again about nodes that changed: for
most pods that is the one that took the pod before. Plugins that look at the whole cluster, or have
no scope, are asked for every pod: about topology domains if that is all they look at, else about
every node. The answer is the node that a full evaluation would choose, and nothing else: whoever
wants to know more, or meets anything unusual (`Unsure`), takes the full way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
import numpy as np

from mooring.cache.arrays import BoolArray, IntArray, any_of
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Mark, Nodes
from mooring.framework import plugin as contract
from mooring.framework.scores import MAX_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.answers import Unsure
from mooring.runtime.asking import is_vectorised
from mooring.runtime.domains import ByDomain
from mooring.runtime.field import Extra, Field
from mooring.runtime.layers import Layer, Raw, Touched
from mooring.runtime.lineup import Lineup, Shared, layers_of, scope_of
from mooring.runtime.picking import MAX_POINTS, pick
from mooring.runtime.refusals import Judge, Refusals
from mooring.runtime.rescaling import Rescaled
from mooring.runtime.stamps import Stamps

_FEW: Final = 12  # up to so many nodes are combined one by one


Claims = Callable[[CycleState, Pod, Nodes], Iterable[tuple[int, Status]]]
"""The rows where a pod would not fit beside others that have a claim on them."""


class Chosen(msgspec.Struct, frozen=True):
    """The choice for one pod."""

    feasible: int  # how many nodes there were to choose from
    row: int = -1  # of the one chosen, if there were any
    verdicts: Verdicts | None = None  # why there were none, if that is known


class Standing:
    """The answers of one profile's plugins for one class of pods."""

    def __init__(
        self, lineup: Lineup, shared: Shared, judge: Judge, pod: Pod, nodes: Nodes
    ) -> None:
        if MAX_SCORE * sum(lineup.answers.weights.values()) >= MAX_POINTS:
            raise Unsure("the weights are too great")
        self._answers = lineup.answers
        self._mark: Mark = nodes.mark
        scopes = {plugin.name: scope_of(plugin, pod) for plugin in lineup.everybody}
        scoped = [plugin for plugin in lineup.everybody if scopes[plugin.name] is not None]
        self._stamps = Stamps(scoped, lineup.objects, pod, nodes)
        self._state = CycleState()
        self._earlier: CycleState | None = None  # of the last pod
        # The rows that changed since points were last asked for, and those whose node did.
        self._touched: set[int] = set()
        self._moved: set[int] = set()
        self._live_pre_filters: list[contract.PreFilter] = []
        for plugin in lineup.pre_filters:
            if scopes[plugin.name] is None:
                self._live_pre_filters.append(plugin)
            else:
                self._answers.pre_filter(plugin, self._state, pod, nodes)
        live_pre_scores: list[contract.PreScore] = []
        for scorer in lineup.pre_scores:
            if scopes[scorer.name] is None:
                live_pre_scores.append(scorer)
            else:
                self._answers.pre_score(scorer, self._state, pod, nodes)
        filters = [one for one in lineup.filters if one.name not in self._state.skip_filter]
        scorers = [one for one in lineup.scorers if one.name not in self._state.skip_score]
        self._layers: list[Layer] = layers_of(
            lineup, shared, scopes, filters, scorers, self._state, pod, nodes
        )
        self._raws: list[Raw] = [raw for layer in self._layers for raw in layer.raws]

        size = len(nodes)
        self._field = Field(nodes)
        self._rescaled: list[Rescaled] = []  # everything that is, in the field
        self._rescaled_raws: dict[str, Rescaled] = {}  # those of them that are in a layer
        self._wards: list[tuple[contract.DomainFilter, ByDomain[np.bool_]]] = []
        self._live_filters: list[contract.Filter] = []
        for one in filters:
            if scopes[one.name] is None:
                if isinstance(one, contract.DomainFilter):
                    ask = functools.partial(self._answers.guard.call, one, "Filter")
                    nobody = np.zeros(size, dtype=np.bool_)
                    self._wards.append((one, ByDomain(one.name, ask, nobody)))
                else:
                    self._live_filters.append(one)
        self._graders: list[tuple[contract.DomainScore, ByDomain[np.int64], Rescaled]] = []
        self._live_scorers: list[contract.Score] = []
        for grader in scorers:
            if scopes[grader.name] is None:
                if isinstance(grader, contract.DomainScore) and _is_easy(grader):
                    rescaled = Rescaled(grader, self._field, size)
                    self._rescaled.append(rescaled)
                    ask = functools.partial(self._answers.guard.call, grader, "Score")
                    grades = ByDomain(grader.name, ask, rescaled.points)
                    self._graders.append((grader, grades, rescaled))
                else:
                    self._live_scorers.append(grader)
        self._live_scorer_names = [one.name for one in self._live_scorers]
        domain_scorers = {grader.name for grader, _, _ in self._graders}
        self._graders_pre_scores = [one for one in live_pre_scores if one.name in domain_scorers]
        self._live_pre_scores = [one for one in live_pre_scores if one.name not in domain_scorers]
        # Whoever says no, by row: all layers in one column, the others in theirs.
        self._refused_by_layers: BoolArray = np.zeros(size, dtype=np.bool_)
        self._refused_by_layers_cells: memoryview = self._refused_by_layers.data
        self._ward_columns: list[BoolArray] = [refusals.column for _, refusals in self._wards]
        self._refusal_cells: list[memoryview] = [
            self._refused_by_layers_cells,
            *(column.data for column in self._ward_columns),
        ]
        everywhere = np.arange(size)
        self._combine_many(everywhere)
        self._open_many(everywhere)
        self._reasons = Refusals(judge)
        self._ward_names = [ward.name for ward, _ in self._wards]

    # --- one pod -------------------------------------------------------------------------------

    def is_current(self, pod: Pod, nodes: Nodes) -> bool:
        """Whether everything but the nodes is as it was."""
        return self._stamps.hold(pod, nodes)

    def choose(self, state: CycleState, pod: Pod, nodes: Nodes, claims: Claims) -> Chosen:
        """The best node for a pod of this class. Raises Unsure, or Outdated."""
        touched = Touched.since_then(self._mark, nodes)
        state.begin_like(self._state)
        state.earlier = self._earlier
        try:
            self._follow(state, pod, nodes, touched)
            chosen = self._choose(state, pod, nodes, claims)
        finally:
            state.earlier = None
        self._earlier = state
        return chosen

    def _choose(self, state: CycleState, pod: Pod, nodes: Nodes, claims: Claims) -> Chosen:
        field = self._field
        besides = self._refused_besides(state, pod, nodes, claims)
        if besides is not None:
            return self._choose_apart(state, pod, nodes, besides)
        if not field.count:
            return Chosen(0, verdicts=self._why_nobody(state, pod, nodes))
        if field.count == 1:
            return Chosen(1, field.any_row)
        if self._graders:
            self._grade(state, pod, nodes)
        for rescaled in self._rescaled:
            self._settle(rescaled, state, pod, nodes)
        skipped = state.skip_score
        if skipped.issuperset(self._live_scorer_names):
            return Chosen(field.count, field.best())
        rows = None if field.count == len(nodes) else field.rows
        feasible = nodes if rows is None else nodes.take(rows)
        for scorer in self._live_pre_scores:
            if scorer.name not in skipped:
                self._answers.pre_score(scorer, state, pod, feasible)
        extra = self._live_points(state, pod, feasible)
        return Chosen(field.count, field.best_with(extra, nodes, rows))

    def _why_nobody(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts | None:
        """What everybody says, if it is only those of whom answers can be kept who refuse."""
        if not state.skip_filter.issuperset(self._ward_names):
            return None
        return self._reasons.follow(state, pod, nodes)

    # --- bringing it up to date ----------------------------------------------------------------

    def _follow(self, state: CycleState, pod: Pod, nodes: Nodes, touched: Touched) -> None:
        if touched.both:
            for layer in self._layers:
                layer.follow(pod, nodes, touched)
            self._combine(touched)
            if self._graders:
                self._touched.update(touched.both)
                self._moved.update(touched.changes.nodes)
        self._mark = touched.now
        for plugin in self._live_pre_filters:
            self._answers.pre_filter(plugin, state, pod, nodes)
        for ward, refusals in self._wards:
            tables: Any = {}
            if ward.name not in state.skip_filter:
                tables = self._answers.guard.call(
                    ward, "Filter", ward.filter_by_domain, state, pod, nodes
                )
            rows, answers = refusals.follow(tables, touched.both, touched.changes.nodes, nodes)
            if len(rows):
                refusals.column[rows] = answers
                self._open(rows)

    def _combine(self, touched: Touched) -> None:
        """Make one answer of the layers' for these nodes."""
        if len(touched.both) > _FEW:
            self._combine_many(touched.rows)
            return
        refused_cells = self._refused_by_layers_cells
        for row in touched.both:
            points = 0
            refused_cells[row] = False
            for layer in self._layers:
                points += layer.point_cells[row]
                if layer.refused_cells[row]:
                    refused_cells[row] = True
            for rescaled in self._rescaled:
                points += rescaled.counted_cells[row]
            self._field.put_one(row, points)
            self._open_one(row)
        if any(raw.matters for raw in self._raws):
            self._follow_raws(touched.rows)

    def _combine_many(self, rows: IntArray) -> None:
        points: IntArray | None = None
        for column in self._point_columns():
            points = column[rows] if points is None else points + column[rows]
        if points is not None:
            self._field.put(rows, points)
        refused: BoolArray | None = None
        for layer in self._layers:
            here = layer.refused[rows]
            refused = here if refused is None else refused | here
        if refused is not None:
            is_news = refused != self._refused_by_layers.take(rows)
            if any_of(is_news):
                self._refused_by_layers[rows] = refused
                self._open_many(rows[is_news])
        self._follow_raws(rows)

    def _point_columns(self) -> list[IntArray]:
        """Of what the points in the field are the sum."""
        kept = [layer.points for layer in self._layers]
        return kept + [rescaled.counted for rescaled in self._rescaled]

    def _open(self, rows: IntArray) -> None:
        """Find out whether these can be chosen."""
        if len(rows) > _FEW:
            self._open_many(rows)
        else:
            for row in rows.tolist():
                self._open_one(row)

    def _open_one(self, row: int) -> None:
        passes = True
        for refused in self._refusal_cells:
            if refused[row]:
                passes = False
                break
        if self._field.open_one(row, passes):
            for rescaled in self._rescaled:
                if passes:
                    rescaled.entered(row)
                else:
                    rescaled.left(row)

    def _open_many(self, rows: IntArray) -> None:
        refused = self._refused_by_layers[rows]
        for column in self._ward_columns:
            refused |= column[rows]
        passes = ~refused
        news = self._field.open(rows, passes)
        if news is None or not self._rescaled:
            return
        entered, left = rows[news & passes], rows[news & refused]
        for rescaled in self._rescaled:
            if len(left):
                rescaled.many_left(left)
            if len(entered):
                rescaled.many_entered(entered)

    def _follow_raws(self, rows: IntArray) -> None:
        """Take over the points from layers that have to be rescaled."""
        for raw in self._raws:
            if not raw.matters:
                continue
            rescaled = self._rescaled_raws.get(raw.plugin.name)
            if rescaled is None:
                size = len(raw.points)
                rescaled = Rescaled(raw.plugin, self._field, size)
                self._rescaled_raws[raw.plugin.name] = rescaled
                self._rescaled.append(rescaled)
                rows = np.arange(size)
            points = raw.points[rows]
            changed = (points != rescaled.points[rows]).nonzero()[0]
            if len(changed):
                rescaled.change(rows[changed], points[changed])

    # --- what is asked for every pod -----------------------------------------------------------

    def _grade(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Points by topology domain."""
        for scorer in self._graders_pre_scores:
            if scorer.name not in state.skip_score:
                self._answers.pre_score(scorer, state, pod, nodes)
        for plugin, grades, rescaled in self._graders:
            tables: Any = {}
            if plugin.name not in state.skip_score:
                ask = plugin.score_by_domain
                tables = self._answers.guard.call(plugin, "Score", ask, state, pod, nodes)
            rows, points = grades.follow(tables, self._touched, self._moved, nodes)
            if len(rows):
                rescaled.change(rows, points)
        self._touched.clear()
        self._moved.clear()

    def _settle(self, rescaled: Rescaled, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        def rescale(rows: IntArray, points: IntArray) -> IntArray:
            some = nodes if len(rows) == len(nodes) else nodes.take(rows)
            return self._answers.weighted(rescaled.plugin, state, pod, some, points)

        rescaled.settle(rescale)

    def _refused_besides(
        self, state: CycleState, pod: Pod, nodes: Nodes, claims: Claims
    ) -> BoolArray | None:
        """Who is left, if somebody refuses nodes of whom nothing is kept; else None."""
        passed: BoolArray | None = None
        slow = []
        for plugin in self._live_filters:
            if plugin.name in state.skip_filter:
                continue
            if not is_vectorised(plugin):
                slow.append(plugin)
                continue
            refused = self._answers.refused(plugin, state, pod, nodes)
            if refused is not None:
                passed = self._passed(nodes, passed) & ~refused
        for plugin in slow:
            passed = self._passed(nodes, passed)
            for row in np.flatnonzero(passed).tolist():
                status = self._answers.status(
                    plugin, "Filter", plugin.filter, state, pod, nodes[row]
                )
                if not status.ok:
                    if not status.rejected:
                        raise Unsure(f"{plugin.name} broke")
                    passed[row] = False
        for row, status in claims(state, pod, nodes):
            if not status.rejected:
                raise Unsure("a claim could not be judged")
            passed = self._passed(nodes, passed)
            passed[row] = False
        return passed

    def _passed(self, nodes: Nodes, passed: BoolArray | None) -> BoolArray:
        if passed is None:
            passed = np.zeros(len(nodes), dtype=np.bool_)
            passed[self._field.rows] = True
        return passed

    def _choose_apart(self, state: CycleState, pod: Pod, nodes: Nodes, passed: BoolArray) -> Chosen:
        """The best of fewer nodes than those in the field, whose rescaled points are others."""
        rows = passed.nonzero()[0]
        if len(rows) < 2:
            return Chosen(len(rows), int(rows[0]) if len(rows) else -1)
        feasible = nodes.take(rows)
        for scorer in (*self._graders_pre_scores, *self._live_pre_scores):
            self._answers.pre_score(scorer, state, pod, feasible)
        points: IntArray = np.zeros(len(nodes), dtype=np.int64)
        for layer in self._layers:
            points += layer.points
        for raw in self._raws:
            if raw.matters:
                points[rows] += self._answers.weighted(
                    raw.plugin, state, pod, feasible, raw.points[rows]
                )
        extra = self._live_points(state, pod, feasible, [one for one, _, _ in self._graders])
        points[rows] += extra.on(feasible)
        listing = nodes.listing
        listing = listing[passed[listing]]
        return Chosen(len(rows), int(listing[pick(points[listing])]))

    def _live_points(
        self, state: CycleState, pod: Pod, feasible: Nodes, also: Iterable[contract.Score] = ()
    ) -> Extra:
        """Points of scorers of whom nothing is kept."""
        extra = Extra()
        for plugin in (*self._live_scorers, *also):
            if plugin.name in state.skip_score:
                continue
            by_label = self._answers.weighted_by_label(plugin, state, pod, feasible)
            if by_label is not None:
                extra.add_by_label(by_label)
            else:
                points = self._answers.points(plugin, state, pod, feasible)
                extra.add(self._answers.weighted(plugin, state, pod, feasible, points))
        return extra


def _is_easy(plugin: contract.Score) -> bool:
    """Whether points that are equal for all nodes need not be looked at."""
    return not isinstance(plugin, contract.NormalizeScore) or plugin.by_extremes
