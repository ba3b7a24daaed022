"""What some plugins say about every node, kept in columns and brought up to date row by row.

A layer holds the filters and scorers of one scope. Layers of plugins that look at only a part of a
pod, such as what it requests, are shared by all classes that have that part in common: what one
class has found out about a node, the others need not ask again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray, any_of
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Changes, Mark, Nodes
from mooring.framework import plugin as contract
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.runtime.answers import Answers, Unsure
from mooring.runtime.asking import is_vectorised

_ONE_BY_ONE: Final = 2  # up to so many nodes are asked about in the per-node form


class Outdated(Exception):
    """Rows came or went, or it is too long ago to know what changed."""


class Touched:
    """The rows that changed between two moments."""

    __slots__ = ("_rows", "both", "changes", "now", "since")

    def __init__(self, since: Mark, now: Mark, changes: Changes) -> None:
        self.since: Mark = since
        self.now: Mark = now
        self.changes: Changes = changes
        self.both: set[int] = {*changes.pods, *changes.nodes}  # their pods, or they themselves
        self._rows: IntArray | None = None

    @classmethod
    def since_then(cls, since: Mark, nodes: Nodes) -> Touched:
        """Until now. Raises Outdated."""
        changes = nodes.changed_since(since)
        if changes is None:
            raise Outdated
        return cls(since, nodes.mark, changes)

    @property
    def rows(self) -> IntArray:
        """All of them, ascending."""
        if self._rows is None:
            self._rows = np.fromiter(self.both, np.int64, len(self.both))
            self._rows.sort()
        return self._rows


class Raw:
    """The points of a scorer that are rescaled for each choice."""

    def __init__(self, plugin: contract.NormalizeScore, size: int) -> None:
        self.plugin: contract.NormalizeScore = plugin
        self.points: IntArray = np.zeros(size, dtype=np.int64)
        self.same: int | None = None  # the points of all nodes, as long as they are equal
        self._is_empty = True  # no node has points so far

    @property
    def matters(self) -> bool:
        """Whether they can make a difference: rescaled, equal points may still be equal."""
        return self.same is None or not self.plugin.by_extremes

    def put(self, rows: IntArray, points: IntArray) -> None:
        self.points[rows] = points
        least, most = int(points.min()), int(points.max())
        if self._is_empty:
            self.same = least if least == most else None
            self._is_empty = False
        elif not least == most == self.same:
            self.same = None  # perhaps equal again some day, and not worth the looking


class Layer:
    """Filters and scorers, and what they say: who is refused, and weighted points of the others.

    `sees_pods` if answers depend on the pods of a node, and not only on its own object. Nodes that
    others refuse, `besides`, need not be asked about.
    """

    def __init__(
        self,
        filters: list[contract.Filter],
        scorers: list[contract.Score],
        *,
        answers: Answers,
        sees_pods: bool,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        besides: BoolArray | None = None,
    ) -> None:
        size = len(nodes)
        self._answers = answers
        self._sees_pods = sees_pods
        self._state = state
        self._besides = besides
        # The vectorised ones first: the others need not be asked about nodes those refuse.
        self._filters = sorted(filters, key=lambda plugin: not is_vectorised(plugin))
        self._plain = [one for one in scorers if not isinstance(one, contract.NormalizeScore)]
        self.raws: list[Raw] = [
            Raw(one, size) for one in scorers if isinstance(one, contract.NormalizeScore)
        ]
        self.refused: BoolArray = np.zeros(size, dtype=np.bool_)
        self.points: IntArray = np.zeros(size, dtype=np.int64)
        # The same memory, for one value at a time.
        self.refused_cells: memoryview = self.refused.data
        self.point_cells: memoryview = self.points.data
        self._mark: Mark = nodes.mark
        self._ask(pod, nodes, np.arange(size))

    def follow(self, pod: Pod, nodes: Nodes, touched: Touched | None = None) -> None:
        """Bring the columns up to date; with what changed since some moment, if that is known."""
        if touched is None or touched.since != self._mark:
            touched = Touched.since_then(self._mark, nodes)
        if self._sees_pods:
            count = len(touched.both)
            if count <= _ONE_BY_ONE and not self.raws:
                for row in touched.both:
                    self._ask_one(pod, nodes, row)
            elif count:
                self._ask(pod, nodes, touched.rows)
        elif touched.changes.nodes:
            self._ask(pod, nodes, np.array(sorted(set(touched.changes.nodes))))
        self._mark = touched.now  # last: what fails on the way has to be asked again

    # --- many nodes ----------------------------------------------------------------------------

    def _ask(self, pod: Pod, nodes: Nodes, rows: IntArray) -> None:
        some = nodes if len(rows) == len(nodes) else nodes.take(rows)
        refused: BoolArray | None = None  # None: nobody is
        if self._besides is not None:
            refused = self._besides[rows]
        for plugin in self._filters:
            if is_vectorised(plugin):
                found = self._answers.refused(plugin, self._state, pod, some)
                if found is not None:
                    refused = found if refused is None else refused | found
            else:
                if refused is None:
                    refused = np.zeros(len(rows), dtype=np.bool_)
                for place in np.flatnonzero(~refused).tolist():
                    refused[place] = self._refuses(plugin, pod, nodes, int(rows[place]))
        if refused is None:
            self.refused[rows] = False
        else:
            self.refused[rows] = refused
        if not self._plain and not self.raws:
            return
        if refused is not None and any_of(refused):
            rows = rows[~refused]
            if not len(rows):
                return
            some = nodes.take(rows)
        total: IntArray | None = None
        for scorer in self._plain:
            points = self._answers.points(scorer, self._state, pod, some)
            weighted = self._answers.weighted(scorer, self._state, pod, some, points)
            total = weighted if total is None else total + weighted
        if total is not None:
            self.points[rows] = total
        for raw in self.raws:
            raw.put(rows, self._answers.points(raw.plugin, self._state, pod, some))

    # --- one node ------------------------------------------------------------------------------

    def _ask_one(self, pod: Pod, nodes: Nodes, row: int) -> None:
        """What most pods need: the node that took the last one has another pod now."""
        if self._besides is not None and self._besides[row]:
            self.refused_cells[row] = True
            return
        call, state, node = self._answers.guard.call, self._state, nodes[row]
        for plugin in self._filters:
            status = call(plugin, "Filter", plugin.filter, state, pod, node)
            if status is not OK and _is_refusal(plugin, status):
                self.refused_cells[row] = True
                return
        self.refused_cells[row] = False
        total = 0
        for scorer in self._plain:
            points = call(scorer, "Score", scorer.score, state, pod, node)
            if type(points) is not int or not MIN_SCORE <= points <= MAX_SCORE:
                raise Unsure(f"{scorer.name} gives odd points")
            total += points * self._answers.weights[scorer.name]
        self.point_cells[row] = total

    def _refuses(self, plugin: contract.Filter, pod: Pod, nodes: Nodes, row: int) -> bool:
        call, node = self._answers.guard.call, nodes[row]
        status = call(plugin, "Filter", plugin.filter, self._state, pod, node)
        return status is not OK and _is_refusal(plugin, status)


def _is_refusal(plugin: contract.Filter, status: Any) -> bool:
    if not isinstance(status, Status) or not (status.ok or status.rejected):
        raise Unsure(f"{plugin.name} broke")
    return status.rejected
