"""One pass of the Filter plugins over the nodes.

Used by `evaluation` alone. Vectorised plugins go first, then the claims of nominated pods, then the
per-node plugins, for the nodes that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mooring.cache.arrays import BoolArray, IntArray, any_of
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts, tally
from mooring.observe.family import Value
from mooring.runtime.asking import accident, as_error, is_vectorised
from mooring.runtime.guard import Guard


class Abort(Exception):
    """A plugin broke while filtering; the attempt ends with this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class Search:
    """One pass over the nodes. `by[row]` is the place of the plugin that refused a row."""

    def __init__(
        self,
        guard: Guard,
        plugins: list[contract.Filter],
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        evaluations: Mapping[str, Value],
    ) -> None:
        self.guard = guard
        self.plugins = plugins
        self.state = state
        self.pod = pod
        self.nodes = nodes
        self.evaluations = evaluations  # how many nodes each plugin was asked about, ever
        self.verdicts: Verdicts = Verdicts.passing(nodes)
        self.by: IntArray | None = None

    def ask_vectorised(self) -> None:
        for place, plugin in enumerate(self.plugins):
            if is_vectorised(plugin):
                self._ask_all(place, plugin)

    def ask_in_order(self) -> None:
        """One plugin after the other, so that every refusal is that of the first to object."""
        for place, plugin in enumerate(self.plugins):
            if is_vectorised(plugin):
                self._ask_all(place, plugin)
            else:
                self._ask(place, plugin, np.flatnonzero(self.verdicts.passed).tolist())

    def ask_per_node(self, limit: int | None, start: int) -> None:
        """Per-node plugins, for nodes nobody has refused; then for the record if none is left."""
        slow = [
            (place, plugin)
            for place, plugin in enumerate(self.plugins)
            if not is_vectorised(plugin)
        ]
        if not slow:
            return
        found = 0
        for rows in self._portions(limit, start):
            passing = rows
            for place, plugin in slow:
                self._ask(place, plugin, passing)
                passing = [row for row in passing if self._passes(row)]
            found += len(passing)
            if limit is not None and found >= limit:
                return
        if not self.verdicts.passed.any():
            self._complete_the_record(slow)

    def refuse_for_claim(self, row: int, status: Status) -> None:
        """Others have a claim on this node, and beside them the pod would not fit.

        That answer comes first: it stands whatever the filters say about the node without them.
        """
        if not status.rejected:
            raise Abort(status)
        self.verdicts.set(row, status)
        if self.by is not None:
            self.by[row] = -1

    def _portions(self, limit: int | None, start: int) -> Iterator[list[int]]:
        passing = self.verdicts.passed
        if limit is None:
            yield np.flatnonzero(passing).tolist()
            return
        order = np.roll(self.nodes.listing, -start)
        candidates = order[passing[order]].tolist()
        for begin in range(0, len(candidates), limit):
            yield candidates[begin : begin + limit]

    def _passes(self, row: int) -> bool:
        index = self.verdicts.index
        return index is None or not index[row]

    def _complete_the_record(self, slow: list[tuple[int, contract.Filter]]) -> None:
        """Nobody passed, so the reasons will be read: ask the plugins that come before the refuser.

        A node is refused by the first plugin in order that objects, and the per-node ones were
        spared the nodes that a later, vectorised one had refused already.
        """
        for place, plugin in slow:
            if self.by is None:
                return
            later = np.flatnonzero(self.by > place).tolist()
            self._ask(place, plugin, later)

    def _ask_all(self, place: int, plugin: contract.Filter) -> None:
        self.evaluations[plugin.name].add(len(self.nodes))
        try:
            answer = self.guard.call(
                plugin, "Filter", plugin.filter_all, self.state, self.pod, self.nodes
            )
        except PluginError:
            # It may have broken over nodes that were refused before it: ask about the others.
            self._ask(place, plugin, np.flatnonzero(self.verdicts.passed).tolist())
            return
        fits = isinstance(answer, Verdicts) and answer.size == len(self.nodes)
        if not fits or not answer.is_well_formed:
            error = self.guard.wrong_answer(
                plugin, "Filter", answer, f"Verdicts for {len(self.nodes)} nodes"
            )
            raise Abort(accident(_running(plugin), error))
        if answer.index is not None:
            self._merge(place, plugin, answer.index, answer.statuses)

    def _ask(self, place: int, plugin: contract.Filter, rows: list[int]) -> None:
        self.evaluations[plugin.name].add(len(rows))
        for row, status in self._call(plugin, self._refusals, plugin, rows):
            self._refuse(place, plugin, row, status)

    def _refusals(self, plugin: contract.Filter, rows: list[int]) -> list[tuple[int, Status]]:
        """The nodes a plugin does not let pass; an answer that ends the attempt is the last."""
        found = []
        for row in rows:
            status: Any = plugin.filter(self.state, self.pod, self.nodes[row])
            self.guard.check_budget(plugin, "Filter")
            if status is OK:
                continue
            if not isinstance(status, Status):
                expected = f"a Status (node {self.nodes[row].name})"
                raise self.guard.wrong_answer(plugin, "Filter", status, expected)
            if not status.ok:
                found.append((row, status))
                if not status.rejected:
                    break
        return found

    def _call(self, plugin: contract.Filter, function: Any, *args: Any) -> Any:
        try:
            return self.guard.call(plugin, "Filter", function, *args)
        except PluginError as error:
            raise Abort(accident(_running(plugin), error)) from error

    def _signed(self, plugin: contract.Filter, status: Status) -> Status:
        signed = status.by(plugin.name)
        if not signed.rejected:
            raise Abort(as_error(_running(plugin), signed))
        return signed

    def _refuse(self, place: int, plugin: contract.Filter, row: int, status: Status) -> None:
        self.verdicts.set(row, self._signed(plugin, status))
        if self.by is None:
            self.by = np.full(len(self.nodes), -1, dtype=np.int64)
        self.by[row] = place

    def _merge(
        self, place: int, plugin: contract.Filter, index: IntArray, statuses: list[Status]
    ) -> None:
        verdicts = self.verdicts
        index = index.astype(np.int64)  # a copy
        fresh: BoolArray = index > 0
        if verdicts.index is not None:
            fresh &= verdicts.index == 0
            index *= fresh
        if not any_of(fresh):
            return
        offset = len(verdicts.statuses)
        verdicts.statuses += [
            self._signed(plugin, status) if count else status
            for status, count in zip(statuses, tally(index, len(statuses)), strict=True)
        ]
        if verdicts.index is None:
            verdicts.index = index
        else:
            index += offset
            np.copyto(verdicts.index, index, where=fresh)
        if self.by is None:
            self.by = np.full(len(self.nodes), -1, dtype=np.int64)
        np.copyto(self.by, place, where=fresh)


def _running(plugin: contract.Filter) -> str:
    return f'running "{plugin.name}" filter plugin'
