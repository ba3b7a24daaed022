"""Feasibility and total scores of all nodes for one class of pods, as columns.

Made of the results of the plugins whose answers are kept, and of tables by topology domain of the
plugins that give some. Before each pod of the class the rows that changed are brought up to date;
for most pods that is the one node that took the pod before.

How an answer reaches the totals: scores without normalization are added, times their weight, as
they are; scores that are normalized are in `NormalizedScores`, which adds what follows from them.
Scores that are equal for all nodes change no order and are left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Mark, Nodes
from mooring.decision.changes import ChangedRows, Changes
from mooring.decision.domains import DomainAnswers
from mooring.decision.feasible import FeasibleNodes
from mooring.decision.normalize import NormalizedScores
from mooring.decision.plugins import DecisionPlugins
from mooring.decision.results import Results, Shape
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.asking import accident
from mooring.runtime.caller import PluginFault

FEW: Final = 12  # up to this many changed rows are combined one by one


class Columns:
    """What is known of all nodes for one class of pods.

    `results` are the kept answers by plugin. Plugins in `left_out` have nothing to say for the
    class. All others are asked for each pod.
    """

    def __init__(
        self,
        plugins: DecisionPlugins,
        results: Mapping[str, Results],
        left_out: Collection[str],
        nodes: Nodes,
        shape: Shape,
    ) -> None:
        size = len(nodes)
        self._plugins = plugins
        self._caller = plugins.caller
        self._shape = shape
        self._shape_seen = shape.changes
        self.mark: Mark = nodes.mark
        self.results: Mapping[str, Results] = results
        with_columns = [kept for kept in results.values() if kept.has_columns]
        self._following_pods = [kept for kept in with_columns if kept.sees_pods]
        self._following_nodes = [kept for kept in with_columns if not kept.sees_pods]

        self.kept_filters: list[Results] = []
        self.domain_filters: list[tuple[contract.DomainFilter, DomainAnswers[np.bool_]]] = []
        self.uncached_filters: list[contract.Filter] = []
        for one in plugins.filters:
            kept = results.get(one.name)
            if one.name in left_out:
                continue
            if kept is not None:
                if kept.verdicts is not None:
                    self.kept_filters.append(kept)
            elif isinstance(one, contract.DomainFilter):
                nothing = np.zeros(size, dtype=np.bool_)
                self.domain_filters.append(
                    (one, DomainAnswers(one.name, self._calling(one, "Filter"), nothing))
                )
            else:
                self.uncached_filters.append(one)

        self._uncached_filter_names = [one.name for one in self.uncached_filters]

        self.kept_scorers: list[Results] = []
        self.domain_scorers: list[contract.DomainScore] = []
        self.uncached_scorers: list[contract.Score] = []
        for scorer in plugins.scorers:
            kept = results.get(scorer.name)
            if scorer.name in left_out:
                continue
            if kept is not None:
                if kept.scores is not None:
                    self.kept_scorers.append(kept)
            elif _has_domain_scores(scorer):
                assert isinstance(scorer, contract.DomainScore)
                self.domain_scorers.append(scorer)
            else:
                self.uncached_scorers.append(scorer)
        self._uncached_scorer_names = [one.name for one in self.uncached_scorers]
        by_domain = {scorer.name for scorer in self.domain_scorers}
        uncached = by_domain.union(self._uncached_scorer_names)
        pre_scorers = [one for one in plugins.pre_scorers if one.name in uncached]
        self.domain_pre_scorers: list[contract.PreScore] = [
            one for one in pre_scorers if one.name in by_domain
        ]
        self.uncached_pre_scorers: list[contract.PreScore] = [
            one for one in pre_scorers if one.name not in by_domain
        ]

        self._plain: list[tuple[memoryview, int]] = []  # scores that vary, with their weights
        self._refusals: list[memoryview] = []  # not zero where a row is refused
        self._domain_columns: list[BoolArray] = [each.column for _, each in self.domain_filters]
        self._normalized: dict[str, NormalizedScores] = {}
        self._domain_scores: list[
            tuple[contract.DomainScore, DomainAnswers[np.int64], NormalizedScores]
        ] = []
        # Rows that changed since tables of scores were last asked for, and those whose node did.
        self._changed: set[int] = set()
        self._relabelled: set[int] = set()
        self.feasible: FeasibleNodes = self._combine_all(nodes)

    # --- up to date ----------------------------------------------------------------------------

    def follow(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Take in what changed since the last pod. Raises StaleColumns, PluginFault."""
        changes = Changes(nodes)
        changed = changes.since(self.mark)
        if changed.rows:
            for kept in self._following_pods:
                kept.follow(pod, changes)
            if changed.nodes:
                for kept in self._following_nodes:
                    kept.follow(pod, changes)
        self.mark = changes.now
        if self._shape.changes != self._shape_seen:
            self.feasible = self._combine_all(nodes)
        elif changed.rows:
            self._combine(changed)
            if self.domain_scorers:
                self._changed |= changed.rows
                self._relabelled |= changed.nodes
        for plugin, answers in self.domain_filters:
            tables: Any = {}
            if plugin.name not in state.skip_filter:
                tables = self._call(plugin, "Filter", plugin.filter_by_domain, state, pod, nodes)
            rows, refused = answers.follow(tables, changed.rows, changed.nodes, nodes)
            if len(rows):
                answers.column[rows] = refused
                self._set_feasible(rows)

    def _combine_all(self, nodes: Nodes) -> FeasibleNodes:
        """Make everything anew from the results; what tables say is asked for again."""
        size = len(nodes)
        self._shape_seen = self._shape.changes
        refused: BoolArray | None = None
        self._refusals = [column.data for column in self._domain_columns]
        for kept in self.kept_filters:
            assert kept.verdicts is not None
            if kept.verdict_cells is not None:
                self._refusals.append(kept.verdict_cells)
                index = kept.verdicts.index
                assert index is not None
                refuses: BoolArray = index != 0
                refused = refuses if refused is None else refused | refuses
        for column in self._domain_columns:
            refused = column.copy() if refused is None else refused | column
        totals: IntArray | None = None
        self._plain = []
        weights = self._plugins.weights
        for kept in self.kept_scorers:
            if kept.varies and not kept.normalizes:
                assert kept.score_cells is not None
                assert kept.scores is not None
                weight = weights[kept.plugin.name]
                self._plain.append((kept.score_cells, weight))
                here = kept.scores.astype(np.int64)
                here *= weight
                totals = here if totals is None else totals + here
        feasible = FeasibleNodes(nodes, None if refused is None else ~refused, totals)
        self._normalized = {}
        for kept in self.kept_scorers:
            if kept.normalizes and _matters(kept):
                assert isinstance(kept.plugin, contract.Score)
                assert kept.scores is not None
                self._normalized[kept.plugin.name] = NormalizedScores(
                    kept.plugin, feasible, kept.scores.astype(np.int64)
                )
        self._domain_scores = []
        for scorer in self.domain_scorers:
            scores = NormalizedScores(scorer, feasible, np.zeros(size, dtype=np.int64))
            self._normalized[scorer.name] = scores
            answers = DomainAnswers(scorer.name, self._calling(scorer, "Score"), scores.raw)
            self._domain_scores.append((scorer, answers, scores))
        self._changed.clear()
        self._relabelled.clear()
        return feasible

    def _combine(self, changed: ChangedRows) -> None:
        """Make one answer of the results for these rows."""
        if len(changed.rows) <= FEW:
            for row in changed.rows:
                total = 0
                for cells, weight in self._plain:
                    total += cells[row] * weight
                for scores in self._normalized.values():
                    total += scores.counted_cells[row]
                self.feasible.set_total(row, total)
                self._set_one_feasible(row)
        else:
            self._combine_rows(changed.array)
        for kept in self.kept_scorers:
            if kept.normalizes and (changed.nodes or kept.sees_pods) and _matters(kept):
                self._follow_raw(kept, changed.array)

    def _combine_rows(self, rows: IntArray) -> None:
        totals: IntArray | None = None
        for cells, weight in self._plain:
            here = np.asarray(cells)[rows].astype(np.int64)
            here *= weight
            totals = here if totals is None else totals + here
        for scores in self._normalized.values():
            here = scores.counted[rows]
            totals = here if totals is None else totals + here
        if totals is not None:
            self.feasible.set_totals(rows, totals)
        self._set_rows_feasible(rows)

    def _follow_raw(self, kept: Results, rows: IntArray) -> None:
        """Take over raw scores that are normalized."""
        assert kept.scores is not None
        scores = self._normalized[kept.plugin.name]
        raw = kept.scores[rows]
        differs = (raw != scores.raw[rows]).nonzero()[0]
        if len(differs):
            scores.change(rows[differs], raw[differs])

    def _set_feasible(self, rows: IntArray) -> None:
        """Find out whether these rows are feasible."""
        if len(rows) > FEW:
            self._set_rows_feasible(rows)
        else:
            for row in rows.tolist():
                self._set_one_feasible(row)

    def _set_one_feasible(self, row: int) -> None:
        passes = True
        for refused in self._refusals:
            if refused[row]:
                passes = False
                break
        if self.feasible.set_feasible(row, passes):
            for scores in self._normalized.values():
                if passes:
                    scores.entered(row)
                else:
                    scores.left(row)

    def _set_rows_feasible(self, rows: IntArray) -> None:
        refused: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        for cells in self._refusals:
            refused |= np.asarray(cells)[rows] != 0
        passes = ~refused
        differs = self.feasible.set_feasible_rows(rows, passes)
        if differs is None or not self._normalized:
            return
        entered, left = rows[differs & passes], rows[differs & refused]
        for scores in self._normalized.values():
            if len(left):
                scores.many_left(left)
            if len(entered):
                scores.many_entered(entered)

    # --- why not -------------------------------------------------------------------------------

    def are_filters_kept(self, state: CycleState) -> bool:
        """Whether no filter is asked for this very pod."""
        skipped = state.skip_filter
        by_domain = (one.name for one, _ in self.domain_filters)
        return not self.asks_filters(state) and all(name in skipped for name in by_domain)

    def refusals(self, nodes: Nodes) -> Verdicts:
        """The first refusal of every node, by the kept answers."""
        verdicts = Verdicts.passing(nodes)
        for kept in self.kept_filters:
            assert kept.verdicts is not None
            verdicts.add(kept.verdicts)
        return verdicts

    def refusal(self, row: int) -> Status:
        """The first refusal of a row, by the kept answers; OK if there is none."""
        for kept in self.kept_filters:
            if kept.verdict_cells is not None and kept.verdict_cells[row]:
                assert kept.verdicts is not None
                return kept.verdicts.status(row)
        return OK

    # --- the best node -------------------------------------------------------------------------

    def refresh_scores(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Bring tables and normalized scores up to date. Raises PluginFault."""
        if self._domain_scores:
            self._follow_domain_scores(state, pod, nodes)
        for scores in self._normalized.values():
            scores.refresh(functools.partial(self._normalize, scores.plugin, state, pod, nodes))

    def asks_filters(self, state: CycleState) -> bool:
        """Whether some filter has to be asked about the nodes for this very pod."""
        names = self._uncached_filter_names
        return bool(names) and not state.skip_filter.issuperset(names)

    def asks_scorers(self, state: CycleState) -> bool:
        """Whether some scorer has to be asked about the nodes for this very pod."""
        names = self._uncached_scorer_names
        return bool(names) and not state.skip_score.issuperset(names)

    def _follow_domain_scores(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        for pre_scorer in self.domain_pre_scorers:
            if pre_scorer.name in state.skip_score:
                continue
            if self._caller.pre_score(pre_scorer, state, pod, nodes).skipped:
                state.skip_score.add(pre_scorer.name)
        for plugin, answers, scores in self._domain_scores:
            tables: Any = {}
            if plugin.name not in state.skip_score:
                tables = self._call(plugin, "Score", plugin.score_by_domain, state, pod, nodes)
            rows, raw = answers.follow(tables, self._changed, self._relabelled, nodes)
            if len(rows):
                scores.change(rows, raw)
        self._changed.clear()
        self._relabelled.clear()

    def _normalize(
        self,
        plugin: contract.Score,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        rows: IntArray,
        raw: IntArray,
    ) -> IntArray:
        some = nodes if len(rows) == len(nodes) else nodes.take(rows)
        scores = self._caller.normalized(plugin, state, pod, some, raw)
        weight = self._plugins.weights[plugin.name]
        return scores if weight == 1 else scores * weight

    # --- calls ---------------------------------------------------------------------------------

    def _call(
        self, plugin: contract.Base, point: str, function: Callable[..., Any], *args: Any
    ) -> Any:
        try:
            return self._caller.guard.call(plugin, point, function, *args)
        except PluginError as error:
            raise PluginFault(accident(plugin.name, error), raised=True) from error

    def _calling(self, plugin: contract.Base, point: str) -> Callable[..., Any]:
        return functools.partial(self._call, plugin, point)


def _matters(kept: Results) -> bool:
    """Whether raw scores can make a difference: equal ones are still equal once normalized."""
    return kept.varies or not (
        isinstance(kept.plugin, contract.NormalizeScore) and kept.plugin.by_extremes
    )


def _has_domain_scores(plugin: contract.Score) -> bool:
    """Whether equal scores of all nodes need not be looked at."""
    return isinstance(plugin, contract.DomainScore) and (
        not isinstance(plugin, contract.NormalizeScore) or plugin.by_extremes
    )
