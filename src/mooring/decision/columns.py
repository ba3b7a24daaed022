"""Feasibility and total scores of all nodes for one class of pods, as columns.

Made of the results of the plugins whose answers are kept, and of tables by topology domain of the
plugins that give some. Before each pod of the class the rows that changed are brought up to date;
for most pods that is the one node that took the pod before.

How an answer reaches the totals: scores without normalization are added, times their weight, as
they are; scores that are normalized are in `NormalizedScores`, which adds what follows from them.
Scores that are equal for all nodes change no order and are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mooring.decision.domains import DomainAnswers
from mooring.decision.feasible import ExtraScores as ExtraScores
from mooring.decision.feasible import FeasibleNodes
from mooring.decision.normalize import NormalizedScores
from mooring.decision.plugins import DecisionPlugins, Kept
from mooring.decision.results import ChangedRows, Changes, Column, Results, Shape
from mooring.framework import (
    OK,
    BoolArray,
    CycleState,
    IntArray,
    Nodes,
    Pod,
    PreScore,
    Score,
    Status,
    Verdicts,
)

FEW: Final = 12  # up to this many changed rows are combined one by one


class Columns:
    """What is known of all nodes for one class of pods.

    `results` are the kept answers by plugin. Plugins in `left_out` have nothing to say for the
    class. All others are asked for each pod.
    """

    def __init__(
        self,
        plugins: DecisionPlugins,
        results: Kept,
        left_out: Collection[str],
        nodes: Nodes,
        shape: Shape,
    ) -> None:
        size = len(nodes)
        self._plugins = plugins
        self._caller = plugins.caller
        self._shape = shape
        self.changes: Changes = Changes(nodes)  # until when the columns are up to date
        with_columns = [kept for kept in results.values() if kept.has_columns]
        self._following_pods = [kept for kept in with_columns if kept.sees_pods]
        self._following_nodes = [kept for kept in with_columns if not kept.sees_pods]
        known = results.keys() | left_out

        names = [one.name for one in plugins.filters]
        kept_filters = [results[name] for name in names if name in results]
        self._kept_filters = [kept for kept in kept_filters if kept.verdicts is not None]
        by_domain = plugins.domain_filters
        ask = self._caller.guard.call
        self._domain_filters = [
            (one, DomainAnswers(name, partial(ask, one, "Filter"), np.zeros(size, np.bool_)))
            for name, one in by_domain.items()
            if name not in known
        ]
        self.uncached_filters: list[str] = [
            name for name in names if name not in known and name not in by_domain
        ]

        kept_scorers = [results[one.name] for one in plugins.scorers if one.name in results]
        self._kept_scorers = [kept for kept in kept_scorers if kept.scores is not None]
        scoring = {name: one for name, one in plugins.domain_scorers.items() if name not in known}
        self._domain_scorers = list(scoring.values())
        known |= scoring.keys()
        self._uncached_scorers = [one for one in plugins.scorers if one.name not in known]
        self.uncached_scorers: list[str] = [one.name for one in self._uncached_scorers]
        self._domain_pre_scorers = [one for one in plugins.pre_scorers if one.name in scoring]
        self._uncached_pre_scorers = [
            one for one in plugins.pre_scorers if one.name in self.uncached_scorers
        ]

        self._domain_columns: list[BoolArray] = [each.column for _, each in self._domain_filters]
        # Rows that changed since tables of scores were last asked for, and those whose node did.
        self._changed: set[int] = set()
        self._relabelled: set[int] = set()
        self.feasible: FeasibleNodes = self._combine_all(nodes)

    # --- up to date ----------------------------------------------------------------------------

    def follow(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Take in what changed. Raises StaleColumns, PluginFault, PluginError."""
        mark = self.changes.now
        changes = Changes(nodes)
        changed = changes.since(mark)
        if changed.rows:
            for kept in self._following_pods:
                if kept.mark is mark:  # they were brought up to date together
                    kept.ask_again(pod, changes, changed, changed.rows)
                else:
                    kept.follow(pod, changes)
            if changed.nodes:
                for kept in self._following_nodes:
                    kept.follow(pod, changes)
        self.changes = changes
        shape = self._shape
        if shape.first_refusals != self._refusals_seen:
            self._list_refusals()  # rows that are refused now have changed
        if shape.first_differences != self._differences_seen:
            self.feasible = self._combine_all(nodes)
        elif changed.rows:
            self._combine(changed)
            if self._domain_scorers:
                self._changed |= changed.rows
                self._relabelled |= changed.nodes
        for plugin, answers in self._domain_filters:
            tables: Any = {}
            if plugin.name not in state.skip_filter:
                ask = plugin.filter_by_domain
                tables = self._caller.guard.call(plugin, "Filter", ask, state, pod, nodes)
            rows, refused = answers.follow(tables, changed.rows, changed.nodes, nodes)
            if len(rows):
                answers.column[rows] = refused
                self._set_feasible(rows)

    def _combine_all(self, nodes: Nodes) -> FeasibleNodes:
        """Make everything anew from the results; what tables say is asked for again."""
        size = len(nodes)
        self._differences_seen = self._shape.first_differences
        self._list_refusals()
        refused: BoolArray | None = None
        for column in self._refusals:
            refuses: BoolArray = column != 0
            refused = refuses if refused is None else refused | refuses
        totals: IntArray | None = None
        # Scores that vary, with their weights.
        self._plain: list[tuple[Column, int]] = []
        self._plain_cells: list[tuple[memoryview, int]] = []
        weights = self._plugins.weights
        for kept in self._kept_scorers:
            if kept.varies and not kept.normalizes:
                assert kept.scores is not None
                weight = weights[kept.plugin.name]
                self._plain.append((kept.scores, weight))
                self._plain_cells.append((kept.scores.data, weight))
                here = kept.scores.astype(np.int64)
                here *= weight
                totals = here if totals is None else totals + here
        feasible = FeasibleNodes(nodes, None if refused is None else ~refused, totals)
        self._normalized: dict[str, NormalizedScores] = {}
        self._normalizing = [one for one in self._kept_scorers if one.normalizes and one.matters]
        self._normalizing_by_pods = [one for one in self._normalizing if one.sees_pods]
        for kept in self._normalizing:
            assert isinstance(kept.plugin, Score)
            assert kept.scores is not None
            self._normalized[kept.plugin.name] = NormalizedScores(
                kept.plugin, feasible, kept.scores.astype(np.int64)
            )
        by_domain = [
            (one, NormalizedScores(one, feasible, np.zeros(size, dtype=np.int64)))
            for one in self._domain_scorers
        ]
        self._normalized |= {one.name: scores for one, scores in by_domain}
        ask = self._caller.guard.call
        self._domain_scores = [
            (one, DomainAnswers(one.name, partial(ask, one, "Score"), scores.raw), scores)
            for one, scores in by_domain
        ]
        self._changed.clear()
        self._relabelled.clear()
        return feasible

    def _list_refusals(self) -> None:
        """Find the columns that are not zero where a row is refused."""
        self._refusals_seen = self._shape.first_refusals
        self._refusals: list[NDArray[Any]] = list(self._domain_columns)
        for kept in self._kept_filters:
            assert kept.verdicts is not None
            if kept.verdict_cells is not None:
                assert kept.verdicts.index is not None
                self._refusals.append(kept.verdicts.index)
        # Here and below, cells are the same memory, for one row.
        self._refusal_cells = [column.data for column in self._refusals]

    def _combine(self, changed: ChangedRows) -> None:
        """Make one answer of the results for these rows."""
        if len(changed.rows) <= FEW:
            for row in changed.rows:
                total = 0
                for cells, weight in self._plain_cells:
                    total += cells[row] * weight
                for scores in self._normalized.values():
                    total += scores.counted_cells[row]
                self.feasible.set_total(row, total)
                self._set_one_feasible(row)
        else:
            self._combine_rows(changed.array)
        for kept in self._normalizing if changed.nodes else self._normalizing_by_pods:
            self._follow_raw(kept, changed.array)

    def _combine_rows(self, rows: IntArray) -> None:
        totals: IntArray | None = None
        for column, weight in self._plain:
            here = column[rows].astype(np.int64)
            if weight != 1:
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
        for refused in self._refusal_cells:
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
        if not self._refusals:
            return  # all rows are feasible, and were
        refused: BoolArray = self._refusals[0][rows] != 0
        for column in self._refusals[1:]:
            refused |= column[rows] != 0
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
        by_domain = [one.name for one, _ in self._domain_filters]
        return not self.asks_filters(state) and state.skip_filter.issuperset(by_domain)

    def refusals(self, nodes: Nodes) -> Verdicts:
        """The first refusal of every node, by the kept answers."""
        verdicts = Verdicts.passing(nodes)
        for kept in self._kept_filters:
            assert kept.verdicts is not None
            verdicts.add(kept.verdicts)
        return verdicts

    def refusal(self, row: int) -> Status:
        """The first refusal of a row, by the kept answers; OK if there is none."""
        for kept in self._kept_filters:
            if kept.verdict_cells is not None and kept.verdict_cells[row]:
                assert kept.verdicts is not None
                return kept.verdicts.status(row)
        return OK

    # --- the best node -------------------------------------------------------------------------

    def refresh_scores(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Bring tables and normalized scores up to date. Raises PluginFault, PluginError."""
        if self._domain_scores:
            self._follow_domain_scores(state, pod, nodes)
        for scores in self._normalized.values():
            scores.refresh(partial(self._normalize, scores.plugin, state, pod, nodes))

    def asks_filters(self, state: CycleState) -> bool:
        """Whether one of `uncached_filters` has to be asked about the nodes for this pod."""
        return not state.skip_filter.issuperset(self.uncached_filters)

    def asks_scorers(self, state: CycleState) -> bool:
        """Whether one of `uncached_scorers` has to be asked about the nodes for this pod."""
        return not state.skip_score.issuperset(self.uncached_scorers)

    def _follow_domain_scores(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        self._pre_score(self._domain_pre_scorers, state, pod, nodes)
        for plugin, answers, scores in self._domain_scores:
            tables: Any = {}
            if plugin.name not in state.skip_score:
                ask = plugin.score_by_domain
                tables = self._caller.guard.call(plugin, "Score", ask, state, pod, nodes)
            rows, raw = answers.follow(tables, self._changed, self._relabelled, nodes)
            if len(rows):
                scores.change(rows, raw)
        self._changed.clear()
        self._relabelled.clear()

    @property
    def normalizes(self) -> bool:
        """Whether totals depend on which nodes are feasible."""
        return bool(self._normalized)

    def uncached_scores(
        self, state: CycleState, pod: Pod, nodes: Nodes, rows: IntArray | None = None
    ) -> tuple[ExtraScores, Mapping[str, tuple[IntArray, IntArray]]]:
        """The scores that are asked for this very pod: weighted; by plugin, raw and normalized.

        Of the feasible rows, or of these. Raises PluginFault.
        """
        if rows is None and self.feasible.count < len(nodes):
            rows = self.feasible.rows
        some = nodes if rows is None else nodes.take(rows)
        self._pre_score(self._uncached_pre_scorers, state, pod, some)
        extra = ExtraScores()
        asked: dict[str, tuple[IntArray, IntArray]] = {}
        for scorer in self._uncached_scorers:
            name = scorer.name
            if name in state.skip_score:
                continue
            weight = self._plugins.weights[name]
            table = self._caller.normalized_by_label(scorer, state, pod, some)
            if table is not None:
                extra.add_table(table, weight)
                continue
            raw = self._caller.score_all(scorer, state, pod, some)
            scores = self._caller.normalized(scorer, state, pod, some, raw)
            asked[name] = (raw, scores)
            extra.add(scores if weight == 1 else scores * weight)
        return extra, asked

    def _pre_score(
        self, plugins: Collection[PreScore], state: CycleState, pod: Pod, nodes: Nodes
    ) -> None:
        for one in plugins:
            if one.name in state.skip_score:
                continue
            if self._caller.pre_score(one, state, pod, nodes).skipped:
                state.skip_score.add(one.name)

    def _normalize(
        self,
        plugin: Score,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        rows: IntArray,
        raw: IntArray,
    ) -> IntArray:
        if plugin.normalizer is None and len(rows) < len(nodes):
            nodes = nodes.take(rows)  # a declared normalizer looks at scores alone
        scores = self._caller.normalized(plugin, state, pod, nodes, raw)
        weight = self._plugins.weights[plugin.name]
        return scores if weight == 1 else scores * weight
