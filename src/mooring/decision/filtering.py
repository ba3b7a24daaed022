"""The Filter plugins over some nodes, one verdict per node: the refusal of the first that objects.

Answers that are kept for the pod's class are read, all others are asked for. Vectorised plugins go
first, then nominated pods, then the plugins with only a per-node form, for the nodes that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from mooring.cache.arrays import any_of
from mooring.cache.internals import listing_of
from mooring.decision.plugins import NOTHING_KEPT, Kept
from mooring.framework import BoolArray, CycleState, Filter, IntArray, Nodes, Pod, Status, Verdicts
from mooring.runtime import DecisionCaller, PluginFault, is_vectorised


class Filtering:
    """One pass over the nodes. Its methods raise PluginFault.

    `by[row]` is the place, among the plugins, of the one that refused a row.
    """

    def __init__(
        self,
        caller: DecisionCaller,
        plugins: Sequence[Filter],
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        kept: Kept = NOTHING_KEPT,
    ) -> None:
        self._caller = caller
        self._plugins = plugins
        self._state = state
        self._pod = pod
        self._nodes = nodes
        self._kept = kept
        self.verdicts: Verdicts = Verdicts.passing(nodes)
        self._by: IntArray | None = None
        self._done: set[int] = set()  # places of per-node plugins that were asked already

    def run_vectorised(self) -> None:
        for place, plugin in enumerate(self._plugins):
            kept = self._kept.get(plugin.name)
            if kept is not None:
                if kept.verdicts is not None:
                    self._merge(place, kept.verdicts)
            elif is_vectorised(plugin):
                self._run_vectorised(place, plugin)

    def run_in_order(self, at_once_only: Collection[str] = ()) -> None:
        """One plugin after the other, for nodes that are few or not real.

        The per-node form of `at_once_only` would not know how the nodes differ from the real ones.
        """
        for place, plugin in enumerate(self._plugins):
            if plugin.name in at_once_only:
                verdicts = self._caller.filter_all(plugin, self._state, self._pod, self._nodes)
                self._merge(place, verdicts)
            elif is_vectorised(plugin):
                self._run_vectorised(place, plugin)
            else:
                self._run_per_node(place, plugin, np.flatnonzero(self.verdicts.passed).tolist())

    def refuse_for_nominated(self, refused: Verdicts) -> None:
        """Beside the pods that are nominated for these nodes the pod does not fit.

        That answer comes first: it stands whatever the filters say about the node without them.
        """
        error = first_error(refused)
        if error is not None:
            raise PluginFault(error)
        verdicts = refused.copy()
        verdicts.add(self.verdicts)
        self.verdicts = verdicts
        if self._by is not None:
            self._by[~refused.passed] = -1

    def run_per_node(self, limit: int | None = None, start: int = 0) -> None:
        """The plugins with only a per-node form, for the nodes that passed the others.

        With a `limit` they stop once that many nodes passed, in listing order from `start`. If no
        node passes, they are also asked about nodes that a later plugin has refused.
        """
        per_node = self._per_node()
        if not per_node:
            return
        found = 0
        for rows in self._portions(limit, start):
            passing = rows
            for place, plugin in per_node:
                self._run_per_node(place, plugin, passing)
                passing = [row for row in passing if self._passes(row)]
            found += len(passing)
            if limit is not None and found >= limit:
                return
        if not any_of(self.verdicts.passed):
            self._complete_the_record(per_node)

    def _per_node(self) -> list[tuple[int, Filter]]:
        """The plugins that are still to be asked node by node, with their places."""
        return [
            (place, plugin)
            for place, plugin in enumerate(self._plugins)
            if plugin.name not in self._kept
            and not is_vectorised(plugin)
            and place not in self._done
        ]

    def _portions(self, limit: int | None, start: int) -> Iterator[list[int]]:
        passing = self.verdicts.passed
        if limit is None:
            yield np.flatnonzero(passing).tolist()
            return
        order = np.roll(listing_of(self._nodes), -start)
        candidates = order[passing[order]].tolist()
        for begin in range(0, len(candidates), limit):
            yield candidates[begin : begin + limit]

    def _passes(self, row: int) -> bool:
        index = self.verdicts.index
        return index is None or not index[row]

    def _complete_the_record(self, per_node: list[tuple[int, Filter]]) -> None:
        """No node passes, so the reasons will be read: ask the plugins before the refusing one.

        A node is refused by the first plugin in order that objects, and the per-node ones were
        spared the nodes that a later, vectorised one had refused already.
        """
        for place, plugin in per_node:
            if self._by is not None:
                self._run_per_node(place, plugin, np.flatnonzero(self._by > place).tolist())

    def _run_vectorised(self, place: int, plugin: Filter) -> None:
        try:
            verdicts = self._caller.filter_all(plugin, self._state, self._pod, self._nodes)
        except PluginFault as fault:
            if not fault.raised:
                raise
            # It may have failed over nodes that others refuse before it: ask about the rest.
            self._run_earlier(place)
            self._run_per_node(place, plugin, np.flatnonzero(self.verdicts.passed).tolist())
            return
        if not all(status.rejected for status in verdicts.statuses):
            self._run_earlier(place)
        self._merge(place, verdicts)

    def _run_earlier(self, place: int) -> None:
        """The per-node plugins before this place, which are otherwise asked last."""
        for earlier, plugin in self._per_node():
            if earlier < place:
                self._done.add(earlier)
                passing = np.flatnonzero(self.verdicts.passed).tolist()
                self._run_per_node(earlier, plugin, passing)

    def _run_per_node(self, place: int, plugin: Filter, rows: Sequence[int]) -> None:
        caller = self._caller
        refused = caller.filter_rows(plugin, self._state, self._pod, self._nodes, rows)
        for row, status in refused:
            self.verdicts.set(row, status)
            self._places()[row] = place

    def _places(self) -> IntArray:
        if self._by is None:
            self._by = np.full(len(self._nodes), -1, dtype=np.int64)
        return self._by

    def _merge(self, place: int, answers: Verdicts) -> None:
        """Take over the refusals of nodes that were not refused before."""
        fresh = self.verdicts.add(answers)
        if fresh is None:
            return
        np.copyto(self._places(), place, where=fresh)
        error = first_error(answers, fresh)
        if error is not None:
            raise PluginFault(error)


def first_error(answers: Verdicts, among: BoolArray | None = None) -> Status | None:
    """The first status of these rows that is no refusal."""
    index = answers.index
    if index is None or all(status.rejected for status in answers.statuses):
        return None
    statuses = answers.statuses
    numbers: list[int] = (index if among is None else index[among]).tolist()
    errors = (statuses[it - 1] for it in numbers if it and not statuses[it - 1].rejected)
    return next(errors, None)
