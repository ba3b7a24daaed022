"""The evaluation of one pod on the nodes: PreFilter, Filter, PreScore, Score, and the best node.

    evaluation = evaluator.begin(state, pod, nodes)      # PreFilter
    evaluation.filter()                                  # which nodes are feasible
    evaluation.choose()                                  # the best of them

With a memory, what is kept for the pod's class is brought up to date and the best node is read
from it; without one, all plugins are asked about all nodes. Verdicts and scores can be read after
either: they come from the same columns. They hold until the nodes change.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.decision import scoring
from mooring.decision.memory import ClassMemory, Columns, ExtraScores, PodClass
from mooring.decision.plugins import (
    NOTHING_KEPT,
    DecisionPlugins,
    Kept,
    PreFilterOutcome,
    run_pre_filter,
)
from mooring.decision.whatif import WhatIfs, first_error
from mooring.framework import OK, BoolArray, CycleState, IntArray, Nodes, Pod, Status, Verdicts
from mooring.runtime import PluginError, PluginFault


class Evaluation:
    """One pod on the nodes. `status` is OK as long as nothing failed."""

    status: Status = OK
    count: int = 0  # of feasible nodes
    row: int = -1  # of the node that was chosen
    _columns: Columns | None = None
    _kept: Kept = NOTHING_KEPT
    _feasible: BoolArray | None = None  # None: as in the columns, or all
    _verdicts: Verdicts | None = None
    _nominated: Verdicts | None = None  # refusals beside nominated pods, if any were asked for
    _scores: scoring.Scores | None = None
    _extra: ExtraScores | None = None  # on top of the columns, if the choice was made by them
    _asked: Mapping[str, tuple[IntArray, IntArray]] = scoring.NOTHING_ASKED  # raw and normalized

    def __init__(
        self,
        plugins: DecisionPlugins,
        what_if: WhatIfs,
        state: CycleState,
        pod: Pod,
        everywhere: Nodes,
        nodes: Nodes,
        memory: ClassMemory | None,
    ) -> None:
        self._plugins = plugins
        self._what_if = what_if
        self._memory = memory
        self._everywhere = everywhere
        self.state = state
        self.pod = pod
        self.nodes = nodes
        known = memory.class_of(pod, nodes) if memory is not None else None
        self._known: PodClass | None = known
        if known is not None:
            self.outcome: PreFilterOutcome = known.pre_filter(state, pod, nodes)
        else:
            self.outcome = self._pre_filter_anew()

    def _pre_filter_anew(self) -> PreFilterOutcome:
        plugins, state, pod = self._plugins, self.state, self.pod
        left_out = [one.name for one in plugins.all if not plugins.caller.applies(one, pod)]
        state.skip_filter.update(left_out)
        state.skip_score.update(left_out)
        return run_pre_filter(plugins, state, pod, self._everywhere, NOTHING_KEPT)

    @property
    def passed_pre_filter(self) -> bool:
        return self.outcome.status is OK

    @property
    def by_class(self) -> bool:
        """Whether the answers come from what was kept for the pod's class."""
        return self._columns is not None

    # --- Filter --------------------------------------------------------------------------------

    def filter(self, limit: int | None = None, start: int = 0) -> None:
        """Find the feasible nodes.

        With a `limit`, plugins that are asked node by node stop once so many nodes passed, in
        listing order from `start`; nodes not reached count as refused by no plugin.
        """
        if self.outcome.only is not None:
            self._filter_only(self.outcome.only)
            return
        if self._known is not None and self._plugins.totals_fit:
            self._bring_columns_up_to_date(self._known)
        if self._columns is not None:
            self._filter_by_class(self._columns, limit, start)
        elif self.passed_pre_filter:
            self._run_filters(limit, start)

    def _start_over(self, fault: PluginFault | PluginError) -> None:
        """A plugin failed somewhere among all nodes: ask as if nothing were kept."""
        memory, known = self._memory, self._known
        assert memory is not None
        assert known is not None
        memory.forget(known, fault.plugin)
        self._known = self._columns = None
        self._kept = NOTHING_KEPT
        self.state.begin_like(CycleState())
        self.outcome = self._pre_filter_anew()

    def _bring_columns_up_to_date(self, known: PodClass) -> None:
        memory = self._memory
        assert memory is not None
        try:
            self._columns = memory.columns(known, self.state, self.pod, self.nodes)
        except (PluginFault, PluginError) as fault:
            self._start_over(fault)
        else:
            known.previous = None if known.is_shared else self.state
            self._kept = known.results  # not before: they may be out of date

    def _filter_by_class(self, columns: Columns, limit: int | None, start: int) -> None:
        state, pod, nodes = self.state, self.pod, self.nodes
        self.count = columns.feasible.count
        if columns.uncached_filters and columns.asks_filters(state):
            if self.count:
                self._run_filters(limit, start, columns.feasible.count)
            return
        what_if, kept = self._what_if, self._kept
        nominated = self._nominated = what_if.refused_for_nominated(state, pod, nodes, kept)
        if nominated is None or nominated.index is None:
            return
        error = first_error(nominated)
        if error is not None:
            self.status = error
            return
        feasible = columns.feasible.mask & nominated.passed
        count = int(np.count_nonzero(feasible))
        if count != self.count:
            self._feasible, self.count = feasible, count

    def _run_filters(self, limit: int | None, start: int, expected: int | None = None) -> None:
        """Find the feasible nodes plugin by plugin; `expected` is how many there are at most."""
        verdicts = self._verdicts = self._refusals(self.nodes, limit, start)
        if verdicts is None:
            return
        if verdicts.index is None:
            self.count = len(self.nodes)
            return
        feasible = verdicts.passed
        self.count = int(np.count_nonzero(feasible))
        if self.count != expected:
            self._feasible = feasible

    def _filter_only(self, names: frozenset[str]) -> None:
        """Where PreFilter allows no others, only these nodes are looked at."""
        nodes = self.nodes
        found = [row for name in names if (row := nodes.index_of(name)) is not None]
        rows = np.array(sorted(found), dtype=np.int64)
        within = self._refusals(nodes.take(rows))
        if within is None:
            return
        self._verdicts = Verdicts.passing(nodes).reject_all(self.outcome.elsewhere)
        self._verdicts.replace(rows, within)
        self._feasible = self._verdicts.passed
        self.count = int(np.count_nonzero(self._feasible))

    def _refusals(self, nodes: Nodes, limit: int | None = None, start: int = 0) -> Verdicts | None:
        """The first refusal of each of these nodes; None, and a `status`, if a plugin fails."""
        state, pod, kept = self.state, self.pod, self._kept
        try:
            nominated = self._nominated if nodes is self.nodes else None
            return self._what_if.first_refusals(state, pod, nodes, kept, limit, start, nominated)
        except PluginFault as fault:
            self.status = fault.status
            return None

    # --- what the answers are ------------------------------------------------------------------

    def verdicts(self) -> Verdicts:
        """The first refusal of every node; PreFilter's, if it ended there.

        Sets `status` if a plugin fails.
        """
        if self._verdicts is None:
            known, columns, before = self._known, self._columns, self.outcome.status
            if before is not OK:
                self._verdicts = Verdicts.passing(self.nodes).reject_all(before)
            elif known is not None and columns is not None:
                self._verdicts = known.refusals(columns, self.state, self.nodes)
                if self._verdicts is not None and self._nominated is not None:
                    # Beside nominated pods comes first, as in `first_refusals`.
                    refusals, self._verdicts = self._verdicts, self._nominated.copy()
                    self._verdicts.add(refusals)
        if self._verdicts is None:
            self._verdicts = self._refusals(self.nodes)
        return self._verdicts or Verdicts.passing(self.nodes)

    def refusals_by_plugin(self) -> Mapping[str, Verdicts]:
        """What each Filter plugin says of every node, whatever the others say.

        A plugin that fails is left out; `status` says how.
        """
        found: dict[str, Verdicts] = {}
        for plugin in self._what_if.active_filters(self.state):
            kept = self._kept.get(plugin.name)
            if kept is not None and kept.verdicts is not None:
                found[plugin.name] = kept.verdicts
                continue
            try:
                found[plugin.name] = self._what_if.verdicts_of(
                    plugin, self.state, self.pod, self.nodes
                )
            except PluginFault as fault:
                self.status = fault.status
        return found

    def filter_verdicts(self) -> Verdicts:
        """What the Filter plugins say of every node, also of those that PreFilter rules out."""
        if self.outcome.only is None:
            return self.verdicts()
        return self._refusals(self.nodes) or Verdicts.passing(self.nodes)

    def keep(self, feasible: BoolArray, verdicts: Verdicts | None = None) -> None:
        """Restrict the feasible nodes to these, as limits and extenders do.

        With `verdicts`, those are the refusals from now on: of plugins and of extenders.
        """
        self._feasible = feasible
        self._verdicts = verdicts if verdicts is not None else self._verdicts
        self.count = int(np.count_nonzero(feasible))
        self._scores = None
        self._asked = scoring.NOTHING_ASKED

    @property
    def feasible(self) -> BoolArray:
        """Which nodes are feasible, by row."""
        if self._feasible is not None:
            return self._feasible
        if self._columns is not None:
            return self._columns.feasible.mask
        return np.ones(len(self.nodes), dtype=np.bool_)

    @property
    def rows(self) -> IntArray:
        """The feasible rows, ascending."""
        if self._feasible is None and self._columns is not None:
            return self._columns.feasible.rows
        found: IntArray = np.flatnonzero(self.feasible)
        return found

    # --- Score ---------------------------------------------------------------------------------

    def choose(self) -> None:
        """Take the best of the feasible nodes: its `row`. Sets `status` if a plugin fails."""
        assert self.count
        columns = self._columns
        if self.count == 1:
            if columns is not None and self._feasible is None:
                self.row = columns.feasible.first
            else:
                self.row = int(self.rows[0])
            return
        if columns is not None and (self._feasible is None or not columns.normalizes):
            try:
                columns.refresh_scores(self.state, self.pod, self.nodes)
            except (PluginFault, PluginError) as fault:
                self._score_anew(fault)
            else:
                self._choose_by_class(columns)
                return
        scores = self.scores()
        if scores is not None:
            self.row = scoring.best_row(self.nodes, self.rows, scores.totals)

    def _choose_by_class(self, columns: Columns) -> None:
        state, pod, nodes = self.state, self.pod, self.nodes
        rows = None if self._feasible is None else self.rows
        if rows is None and not (columns.uncached_scorers and columns.asks_scorers(state)):
            self.row = columns.feasible.best()
            return
        try:
            self._extra, self._asked = columns.uncached_scores(state, pod, nodes, rows)
            extra = self._extra
        except PluginFault as fault:
            self.status = fault.status
            return
        if rows is None:
            self.row = columns.feasible.best_with(extra, nodes)
        else:
            totals = columns.feasible.totals(rows) + extra.on(nodes.take(rows))
            self.row = scoring.best_row(nodes, rows, totals)

    def scores(self) -> scoring.Scores | None:
        """All scores of the feasible nodes, aligned with `rows`; None if a plugin fails."""
        if self._scores is None:
            state, pod, rows = self.state, self.pod, self.rows
            everywhere = len(rows) == len(self.nodes)
            feasible = self.nodes if everywhere else self.nodes.take(rows)
            try:
                self._scores = scoring.score(
                    self._plugins,
                    state,
                    pod,
                    feasible,
                    self._kept,
                    None if everywhere else rows,
                    self._asked,
                )
            except PluginFault as fault:
                self.status = fault.status
        return self._scores

    def runner_up(self) -> tuple[int, int] | None:
        """The row of the second best node, and how far the chosen one is ahead of it in total.

        None if there is no other, or a plugin fails.
        """
        scores = self.scores() if self.count > 1 else None
        if scores is None:
            return None
        others = self.rows != self.row
        rows, totals = self.rows[others], scores.totals[others]
        second = scoring.best_row(self.nodes, rows, totals)
        margin = scores.totals[~others] - totals[rows == second]
        return second, int(margin[0])

    def lead(self) -> tuple[int | None, str, int] | None:
        """The total of the chosen node, one of the next best, and how far that is behind.

        Read from what the choice was made by; None if there was no choice, or it is not kept. What
        is kept of a class leaves out points that all nodes have: then the total is None.
        """
        row, columns = self.row, self._columns
        if self.count < 2 or row < 0:
            return None
        if columns is not None and self._feasible is None and self._scores is None:
            second, margin = columns.feasible.lead(row, self._extra, self.nodes)
            return None, self.nodes.names[second], margin
        if self._scores is None:
            return None
        names = self.nodes.names
        rows, totals = self.rows, self._scores.totals.copy()
        place = int(rows.searchsorted(row))
        best = totals.item(place)
        totals[place] = -1
        other = int(totals.argmax())
        return best, names[rows.item(other)], best - totals.item(other)

    def _score_anew(self, fault: PluginFault | PluginError) -> None:
        """A plugin failed, perhaps over a node that is not feasible: ask about the others."""
        feasible, count = self.feasible, self.count
        self._start_over(fault)
        self._feasible, self.count = feasible, count
