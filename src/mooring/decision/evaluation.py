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

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision import scoring
from mooring.decision.columns import Columns
from mooring.decision.feasible import ExtraScores
from mooring.decision.filtering import NOTHING_KEPT, Filtering
from mooring.decision.memory import ClassMemory, PodClass
from mooring.decision.plugins import DecisionPlugins
from mooring.decision.prefilter import PreFilterOutcome, run_pre_filter
from mooring.decision.results import Results
from mooring.decision.scoring import Scores
from mooring.decision.whatif import WhatIfs
from mooring.framework.handle import Nominator
from mooring.framework.results import LabelScores
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.caller import PluginCaller, PluginFault
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile


class PodEvaluator:
    """Evaluates the pods of one profile; with `objects`, it has a memory."""

    def __init__(
        self,
        profile: Profile,
        guard: Guard,
        nominator: Nominator,
        objects: Objects | None = None,
    ) -> None:
        self.caller: PluginCaller = PluginCaller(profile, guard)
        self.plugins: DecisionPlugins = DecisionPlugins(profile, self.caller)
        self.what_if: WhatIfs = WhatIfs(profile, self.caller, nominator)
        self.memory: ClassMemory | None = None
        if objects is not None:
            self.memory = ClassMemory(self.plugins, objects)

    @property
    def has_scorers(self) -> bool:
        return bool(self.plugins.scorers)

    def begin(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        *,
        among: Nodes | None = None,
        use_memory: bool = True,
    ) -> Evaluation:
        """PreFilter for one pod; `evaluation.outcome` says what came of it.

        With `among`, no other nodes than these are looked at afterwards.
        """
        memory = self.memory if use_memory and among is None else None
        known = memory.class_of(pod, nodes) if memory is not None else None
        return Evaluation(self, state, pod, nodes, nodes if among is None else among, known)


class Evaluation:
    """One pod on the nodes. `status` is OK as long as nothing failed."""

    def __init__(
        self,
        evaluator: PodEvaluator,
        state: CycleState,
        pod: Pod,
        everywhere: Nodes,
        nodes: Nodes,
        known: PodClass | None,
    ) -> None:
        self._evaluator = evaluator
        self._everywhere = everywhere
        self._plugins = evaluator.plugins
        self.state = state
        self.pod = pod
        self.nodes = nodes
        self.status: Status = OK
        self.count: int = 0  # of feasible nodes
        self.row: int = -1  # of the node that was chosen
        self._known = known
        self._columns: Columns | None = None
        self._kept: Mapping[str, Results] = NOTHING_KEPT
        self._feasible: BoolArray | None = None  # None: as in the columns, or all
        self._verdicts: Verdicts | None = None
        self._nominated: list[tuple[int, Status]] = []
        self._scores: Scores | None = None
        self._asked: dict[str, tuple[IntArray, IntArray]] = {}  # raw and normalized scores
        if known is not None:
            if known.previous is not None:
                known.previous.earlier = None
                state.earlier = known.previous
            self._kept = known.results
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
        return self.outcome.status.ok

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
            self._forget_columns()
            self._filter_only(self.outcome.only)
            return
        if self._known is not None and self._plugins.totals_fit:
            self._bring_columns_up_to_date(self._known)
        if self._columns is not None:
            self._filter_by_class(self._columns, limit, start)
        elif self.passed_pre_filter:
            self._forget_columns()
            self._run_filters(limit, start)

    def _forget_columns(self) -> None:
        self._columns = None
        self._kept = NOTHING_KEPT

    def _start_over(self, fault: PluginFault) -> None:
        """A plugin failed somewhere among all nodes: ask as if nothing were kept."""
        memory, known = self._evaluator.memory, self._known
        assert memory is not None
        assert known is not None
        memory.forget(known, fault.status.plugin)
        self._known = None
        self._nominated = []
        self._feasible = None
        self.state.begin_like(CycleState())
        self.outcome = self._pre_filter_anew()

    def _bring_columns_up_to_date(self, known: PodClass) -> None:
        memory = self._evaluator.memory
        assert memory is not None
        try:
            self._columns = memory.columns(known, self.state, self.pod, self.nodes)
        except PluginFault as fault:
            self._start_over(fault)
        else:
            known.previous = self.state

    def _filter_by_class(self, columns: Columns, limit: int | None, start: int) -> None:
        state, pod, nodes = self.state, self.pod, self.nodes
        self.count = columns.feasible.count
        if columns.asks_filters(state):
            if self.count:
                self._run_filters(limit, start, columns.feasible.count)
            return
        what_if = self._evaluator.what_if
        if not what_if.has_nominated:
            return
        for row, status in what_if.refused_for_nominated(state, pod, nodes):
            self._nominated.append((row, status))
            if not status.rejected:
                self.status = status
                return
            if self._feasible is None:
                self._feasible = columns.feasible.mask
            if self._feasible[row]:
                self._feasible[row] = False
                self.count -= 1

    def _run_filters(self, limit: int | None, start: int, expected: int | None = None) -> None:
        """Find the feasible nodes plugin by plugin; `expected` is how many there are at most."""
        try:
            self._verdicts = self._walk(self.nodes, limit, start)
        except PluginFault as fault:
            self.status = fault.status
            return
        if self._verdicts.index is None:
            self.count = len(self.nodes)
            return
        feasible = self._verdicts.passed
        self.count = int(np.count_nonzero(feasible))
        if self.count != expected:
            self._feasible = feasible

    def _filter_only(self, names: frozenset[str]) -> None:
        """Where PreFilter allows no others, only these nodes are looked at."""
        nodes = self.nodes
        found = [row for name in names if (row := nodes.index_of(name)) is not None]
        rows = np.array(sorted(found), dtype=np.int64)
        try:
            within = self._walk(nodes.take(rows), None, 0)
        except PluginFault as fault:
            self.status = fault.status
            return
        outside = np.ones(len(nodes), dtype=np.bool_)
        outside[rows] = False
        self._verdicts = Verdicts.passing(nodes).reject(outside, self.outcome.elsewhere)
        self._verdicts.replace(rows, within)
        self._feasible = self._verdicts.passed
        self.count = int(np.count_nonzero(self._feasible))

    def _walk(self, nodes: Nodes, limit: int | None = None, start: int = 0) -> Verdicts:
        """The first refusal of every node. Raises PluginFault."""
        state, pod = self.state, self.pod
        filters = self._evaluator.what_if.active_filters(state)
        walk = Filtering(self._plugins.caller, filters, state, pod, nodes, self._kept)
        walk.run_vectorised()
        for row, status in self._evaluator.what_if.refused_for_nominated(state, pod, nodes):
            walk.refuse_for_nominated(row, status)
        walk.run_per_node(limit, start)
        return walk.verdicts

    # --- what the answers are ------------------------------------------------------------------

    def verdicts(self) -> Verdicts:
        """The first refusal of every node. Sets `status` if a plugin fails."""
        if self._verdicts is None:
            known, columns = self._known, self._columns
            if known is not None and columns is not None and not self._nominated:
                self._verdicts = known.refusals(columns, self.state, self.nodes)
        if self._verdicts is None:
            try:
                self._verdicts = self._walk(self.nodes)
            except PluginFault as fault:
                self.status = fault.status
                return Verdicts.passing(self.nodes)
        return self._verdicts

    def filter_verdicts(self) -> Verdicts:
        """What the Filter plugins say of every node, also of those that PreFilter rules out."""
        if self.outcome.only is None:
            return self.verdicts()
        try:
            return self._walk(self.nodes)
        except PluginFault as fault:
            self.status = fault.status
            return Verdicts.passing(self.nodes)

    def keep(self, feasible: BoolArray, verdicts: Verdicts | None = None) -> None:
        """Only these of the feasible nodes are left, by reasons beyond the plugins: `verdicts`."""
        self._feasible = feasible
        self._verdicts = verdicts if verdicts is not None else self._verdicts
        self.count = int(np.count_nonzero(feasible))
        self._scores = None
        self._asked.clear()

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
        columns = self._columns if self._feasible is None else None
        if self.count == 1:
            self.row = int(self.rows[0]) if columns is None else columns.feasible.first
            return
        if columns is not None:
            try:
                columns.refresh_scores(self.state, self.pod, self.nodes)
            except PluginFault as fault:
                self._score_anew(fault)
            else:
                if columns.asks_scorers(self.state):
                    self._choose_with_uncached(columns)
                else:
                    self.row = columns.feasible.best()
                return
        scores = self.scores()
        if scores is not None:
            self.row = scoring.best_row(self.nodes, self.rows, scores.totals)

    def _choose_with_uncached(self, columns: Columns) -> None:
        try:
            self.row = self._best_with_uncached(columns)
        except PluginFault as fault:
            self.status = fault.status

    def _best_with_uncached(self, columns: Columns) -> int:
        """The best node with the scores that are asked for this very pod. Raises PluginFault."""
        state, pod, nodes = self.state, self.pod, self.nodes
        caller = self._plugins.caller
        rows = None if self.count == len(nodes) else self.rows
        feasible = nodes if rows is None else nodes.take(rows)
        for pre_scorer in columns.uncached_pre_scorers:
            if pre_scorer.name in state.skip_score:
                continue
            if caller.pre_score(pre_scorer, state, pod, feasible).skipped:
                state.skip_score.add(pre_scorer.name)
        extra = ExtraScores()
        for scorer in columns.uncached_scorers:
            if scorer.name in state.skip_score:
                continue
            weight = self._plugins.weights[scorer.name]
            by_label = caller.final_by_label(scorer, state, pod, feasible)
            if by_label is not None:
                points = by_label.points if weight == 1 else by_label.points * weight
                extra.add_by_label(LabelScores(by_label.key, points))
                continue
            raw = caller.score_all(scorer, state, pod, feasible)
            scores = caller.normalized(scorer, state, pod, feasible, raw)
            self._asked[scorer.name] = (raw, scores)
            extra.add(scores if weight == 1 else scores * weight)
        return columns.feasible.best_with(extra, nodes, rows)

    def scores(self) -> Scores | None:
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

    def _score_anew(self, fault: PluginFault) -> None:
        """A plugin failed, perhaps over a node that is not feasible: ask about the others."""
        self._feasible = self.feasible
        feasible, count = self._feasible, self.count
        self._start_over(fault)
        self._forget_columns()
        self._feasible, self.count = feasible, count
