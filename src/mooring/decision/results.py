"""The cached results of one plugin for all nodes and one cache key.

Pods with equal cache keys share them. Filter results are a number per row and the statuses behind
the numbers, as in `Verdicts`; Score results are raw scores.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cache.internals import changed_since, mark_of
from mooring.cache.snapshot import Mark as Mark
from mooring.framework import (
    MAX_SCORE,
    OK,
    Code,
    CycleState,
    Filter,
    IntArray,
    Node,
    Nodes,
    OnlyNodes,
    Pod,
    PreFilter,
    PreScore,
    Score,
    Status,
    Verdicts,
)
from mooring.framework.plugin import Base
from mooring.framework.scores import MIN_SCORE
from mooring.runtime import (
    DecisionCaller,
    PluginFault,
    extremes,
    is_in_range,
    is_vectorised,
    normalizes,
    out_of_range,
    overrides_normalize_score,
)

FEW: Final = 2  # up to this many changed rows, the per-node form is called
_MOST_STATUSES: Final = 64  # beyond it, statuses that no row has any more are dropped


Column = NDArray[np.int64] | NDArray[np.uint8]
"""Raw scores; a byte each if they need no normalization, being 0 to 100."""


class StaleColumns(Exception):
    """Nodes were added or removed, or the journal does not reach back: columns are made anew."""


class ChangedRows:
    """The rows that changed since a mark: `rows` all, `nodes` those whose node object changed."""

    __slots__ = ("_array", "nodes", "rows")

    def __init__(self, rows: set[int], nodes: set[int]) -> None:
        self.rows: set[int] = rows
        self.nodes: set[int] = nodes
        self._array: IntArray | None = None

    @property
    def array(self) -> IntArray:
        """All of them, ascending."""
        if self._array is None:
            self._array = np.fromiter(self.rows, np.int64, len(self.rows))
            self._array.sort()
        return self._array


class Changes:
    """The changed rows since any mark; results with equal marks share them."""

    __slots__ = ("_known", "_some", "_views", "nodes", "now")

    def __init__(self, nodes: Nodes) -> None:
        self.nodes: Nodes = nodes
        self.now: Mark = mark_of(nodes)
        self._known: dict[Mark, ChangedRows] = {}
        self._views: dict[int, Node] = {}
        self._some: tuple[IntArray, Nodes] | None = None

    def since(self, mark: Mark) -> ChangedRows:
        """Raises StaleColumns."""
        found = self._known.get(mark)
        if found is None:
            changes = changed_since(self.nodes, mark)
            if changes is None:
                raise StaleColumns
            nodes = set(changes.nodes)
            found = self._known[mark] = ChangedRows(nodes.union(changes.pods), nodes)
        return found

    def some(self, rows: IntArray) -> Nodes:
        """The nodes of these rows; kept, because plugins mostly need the same ones in turn."""
        found = self._some
        if found is None or found[0] is not rows:
            found = self._some = (rows, self.nodes.take(rows))
        return found[1]

    def node(self, row: int) -> Node:
        found = self._views.get(row)
        if found is None:
            found = self._views[row] = self.nodes[row]
        return found


class Shape(msgspec.Struct):
    """Counts how often any results got their first refusal, or scores that differ."""

    first_refusals: int = 0
    first_differences: int = 0  # of scores


class Results:
    """The results of one plugin at PreFilter, Filter, PreScore and Score.

    `sees_pods` if they depend on the pods of a node, not only on the node object.
    """

    def __init__(
        self,
        plugin: Base,
        caller: DecisionCaller,
        shape: Shape,
        *,
        sees_pods: bool,
    ) -> None:
        self.plugin: Base = plugin
        self.sees_pods: bool = sees_pods
        self.state: CycleState = CycleState()  # what this plugin stored
        self.pre_filter: Status | OnlyNodes = OK
        self.verdicts: Verdicts | None = None  # None: no Filter, or not needed
        self.verdict_cells: memoryview | None = None  # None: no row was ever refused
        self.skips_score: bool = False  # SKIP at PreScore
        self.scores: Column | None = None  # raw; None: no Score, or not needed
        self.score_cells: memoryview | None = None
        self.varies: bool = False  # whether scores were ever different
        self.normalizes: bool = normalizes(plugin)
        # An override may depend on anything; a declared normalizer depends on the scores alone.
        self._normalizes_itself = isinstance(plugin, Score) and overrides_normalize_score(plugin)
        self._caller = caller
        self._shape = shape
        self._filter: Filter | None = None
        self._score: Score | None = None
        self.mark: Mark | None = None  # up to which the columns are current; None: not made

    # --- first evaluation ----------------------------------------------------------------------

    def run_pre_filter(self, pod: Pod, nodes: Nodes) -> None:
        plugin = self.plugin
        assert isinstance(plugin, PreFilter)
        self.pre_filter = self._caller.pre_filter(plugin, self.state, pod, nodes)

    def run_pre_score(self, pod: Pod, nodes: Nodes) -> None:
        """Raises PluginFault."""
        plugin = self.plugin
        assert isinstance(plugin, PreScore)
        self.skips_score = self._caller.pre_score(plugin, self.state, pod, nodes).skipped

    def make_verdicts(self, pod: Pod, nodes: Nodes) -> None:
        """Ask about every node. Raises PluginFault."""
        plugin = self.plugin
        assert isinstance(plugin, Filter)
        self._filter = plugin
        verdicts = self._ask_filter(pod, nodes)
        self.verdicts = verdicts
        if verdicts.index is not None:
            self._own_index()

    def make_scores(self, pod: Pod, nodes: Nodes) -> None:
        """Ask about every node. Raises PluginFault."""
        plugin = self.plugin
        assert isinstance(plugin, Score)
        self._score = plugin
        scores = self._ask_score(pod, nodes)
        self.scores = scores = scores.astype(np.int64 if self.normalizes else np.uint8)
        self.score_cells = scores.data
        least, most = extremes(scores)
        self.varies = least != most

    def _ask_filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        plugin, state = self._filter, self.state
        assert plugin is not None
        if is_vectorised(plugin):
            verdicts = self._caller.filter_all(plugin, state, pod, nodes)
            for status in verdicts.statuses:
                if not status.rejected:
                    # Perhaps of a node that another plugin refuses: then it does not matter.
                    raise PluginFault(status, raised=True)
            return verdicts
        verdicts = Verdicts.passing(nodes)
        rows = range(len(nodes))
        for row, status in self._caller.filter_rows(plugin, state, pod, nodes, rows):
            verdicts.set(row, status)
        return verdicts

    def _ask_score(self, pod: Pod, nodes: Nodes) -> IntArray:
        plugin = self._score
        assert plugin is not None
        scores = self._caller.score_all(plugin, self.state, pod, nodes)
        if not self.normalizes and not is_in_range(scores):
            # Perhaps of a node that another plugin refuses: then it does not matter.
            raise PluginFault(out_of_range(plugin, scores), raised=True)
        return scores

    @property
    def has_failed(self) -> bool:
        """Whether PreFilter failed: a failure is the result for one pod and is not cached."""
        answer = self.pre_filter
        return isinstance(answer, Status) and answer.code is Code.ERROR

    @property
    def matters(self) -> bool:
        """Whether the scores can decide: equal raw scores stay equal after normalization."""
        return self.varies or self._normalizes_itself

    @property
    def passes_all_nodes(self) -> bool:
        """Whether no node was ever refused, and none would be if it had other pods."""
        return not self.sees_pods and self.verdict_cells is None

    @property
    def has_columns(self) -> bool:
        """Whether there are verdicts or scores to update."""
        return self.verdicts is not None or self.scores is not None

    # --- updates -------------------------------------------------------------------------------

    def is_current(self, now: Mark) -> bool:
        """Whether nothing has changed that these results depend on."""
        mark = self.mark
        if mark is None or not self.has_columns:
            return mark is not None
        return mark == now if self.sees_pods else mark.nodes == now.nodes

    def follow(self, pod: Pod, changes: Changes) -> None:
        """Call the plugin again for changed rows. Raises PluginFault, StaleColumns."""
        mark = self.mark
        if mark is None:  # an update for another class failed half way
            raise StaleColumns
        if mark == changes.now:
            return
        if self.sees_pods:
            changed = changes.since(mark)
            rows = changed.rows
        elif mark.nodes == changes.now.nodes:
            self.mark = changes.now
            return
        else:
            changed = changes.since(Mark(changes.now.pods, mark.nodes))
            rows = changed.nodes
        self.ask_again(pod, changes, changed, rows)

    def ask_again(
        self, pod: Pod, changes: Changes, changed: ChangedRows, rows: Collection[int]
    ) -> None:
        """Call the plugin for these changed rows. Raises PluginFault."""
        self.mark = None  # if the update fails half way, the columns are made anew
        if len(rows) <= FEW:
            for row in rows:
                self._update_one(pod, changes, row)
        else:
            self._update(pod, changes, changed.array)
        self.mark = changes.now

    def _update_one(self, pod: Pod, changes: Changes, row: int) -> None:
        node = changes.node(row)
        if self._filter is not None:
            status = self._caller.filter(self._filter, self.state, pod, node)
            if status is not OK:
                self._refuse(row, status)
                return  # its score does not matter
            if self.verdict_cells is not None:
                self.verdict_cells[row] = 0
        if self._score is not None:
            score = self._caller.score(self._score, self.state, pod, node)
            if not self.normalizes and not MIN_SCORE <= score <= MAX_SCORE:
                odd = np.array([score])
                raise PluginFault(out_of_range(self._score, odd), raised=True)
            cells = self.score_cells
            assert cells is not None
            if not self.varies and cells[row] != score:
                self.varies = True
                self._shape.first_differences += 1
            cells[row] = score

    def _update(self, pod: Pod, changes: Changes, rows: IntArray) -> None:
        some = changes.some(rows)
        if self._filter is not None:
            found = self._ask_filter(pod, some)
            verdicts = self.verdicts
            assert verdicts is not None
            self._drop_unused(verdicts)
            verdicts.replace(rows, found)
            if self.verdict_cells is None and verdicts.index is not None:
                self._own_index()
                self._shape.first_refusals += 1
        if self._score is not None:
            scores, kept = self._ask_score(pod, some), self.scores
            assert kept is not None
            if not self.varies and (scores != kept[0]).any():
                self.varies = True
                self._shape.first_differences += 1
            kept[rows] = scores

    def _refuse(self, row: int, status: Status) -> None:
        verdicts = self.verdicts
        assert verdicts is not None
        self._drop_unused(verdicts)
        verdicts.set(row, status)
        if self.verdict_cells is None:
            self._own_index()
            self._shape.first_refusals += 1

    @staticmethod
    def _drop_unused(verdicts: Verdicts) -> None:
        if len(verdicts.statuses) > _MOST_STATUSES:
            verdicts.drop_unused()

    def _own_index(self) -> None:
        verdicts = self.verdicts
        assert verdicts is not None
        assert verdicts.index is not None
        # A copy, because the plugin may keep the array that it returned.
        verdicts.index = verdicts.index.astype(np.int64)
        self.verdict_cells = verdicts.index.data
