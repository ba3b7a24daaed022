"""Filter and Score over all nodes.

The cycle asks for verdicts and scores and does not loop over nodes itself; how the answers come
about is decided here. Plugins with a vectorised form answer for all nodes in one call. Plugins
with only the per-node form are asked afterwards, and only about nodes that the others let through.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Node, Nodes
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework.handle import Nominator
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.asking import Asker, accident, as_error
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile
from mooring.runtime.runner import Runner


class PluginScores(msgspec.Struct, frozen=True):
    """What one plugin gave each feasible node, normalised and before its weight."""

    plugin: str
    weight: int
    scores: IntArray


class Scores(msgspec.Struct, frozen=True):
    """The points of the feasible nodes, plugin by plugin and in total."""

    plugins: tuple[PluginScores, ...]
    totals: IntArray


class Evaluation(Asker):
    """Looks at every node on behalf of one profile."""

    def __init__(
        self, profile: Profile, guard: Guard, runner: Runner, nominator: Nominator
    ) -> None:
        super().__init__(profile, guard)
        self._runner = runner
        self._nominator = nominator
        self._filters = profile.at("filter", contract.Filter)
        self._scorers = profile.at("score", contract.Score)
        self._vectorised = {
            plugin.name: type(plugin).filter_all is not contract.Filter.filter_all
            for plugin in self._filters
        }

    @property
    def has_filters(self) -> bool:
        return bool(self._filters)

    @property
    def has_scorers(self) -> bool:
        return bool(self._scorers)

    # --- filter --------------------------------------------------------------------------------

    def filter(
        self, state: CycleState, pod: Pod, nodes: Nodes, limit: int | None = None, start: int = 0
    ) -> tuple[Verdicts, Status]:
        """One signed verdict per node; or an error that ends the attempt.

        With a `limit`, per-node plugins stop being asked once that many nodes passed, walking the
        nodes in listing order from `start`; nodes not reached count as refused by nobody.
        """
        started = self.guard.timer()
        search = _Search(self, state, pod, nodes)
        try:
            search.ask_vectorised()
            search.consider_nominated()
            search.ask_per_node(limit, start)
        except _Abort as abort:
            return search.verdicts, self.took("Filter", started, abort.status)
        passed = bool(search.verdicts.passed.any())
        self.took("Filter", started, OK if passed else Status.unschedulable())
        return search.verdicts, OK

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """All filters on one node, as it is handed in; an ERROR ends the attempt."""
        for plugin in self._active_filters(state):
            running = f'running "{plugin.name}" filter plugin'
            status: Status = self.ask(plugin, "Filter", running, plugin.filter, state, pod, node)
            if not status.ok:
                return status if status.rejected else as_error(running, status)
        return OK

    def filter_node_with_nominated(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """As `filter_node`, with and without the pods that have a claim on the node."""
        status = self.filter_beside_nominated(state, pod, node)
        if status is not None and not status.ok:
            return status
        return self.filter_node(state, pod, node)

    def filter_beside_nominated(self, state: CycleState, pod: Pod, node: Node) -> Status | None:
        """The filters' answer as if the nominated pods were there; None if there are none."""
        claims = [
            other
            for other in self._nominator.nominated_on(node.name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        if not claims:
            return None
        imagined = state.clone()
        for other in claims:
            node = node.with_pod(other)
            status = self._runner.add_pod(imagined, pod, other, node)
            if not status.ok:
                return status
        return self.filter_node(imagined, pod, node)

    def nominated_rows(self, nodes: Nodes) -> Iterator[int]:
        for name in self._nominator.nominated_nodes():
            row = nodes.index_of(name)
            if row is not None:
                yield row

    def _active_filters(self, state: CycleState) -> Iterator[contract.Filter]:
        return (plugin for plugin in self._filters if plugin.name not in state.skip_filter)

    def is_vectorised(self, plugin: contract.Filter) -> bool:
        return self._vectorised[plugin.name]

    def active_filters(self, state: CycleState) -> list[contract.Filter]:
        return list(self._active_filters(state))

    # --- score ---------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> tuple[Scores | None, Status]:
        """Points for the feasible nodes; or an error that ends the attempt."""
        started = self.guard.timer()
        totals = np.zeros(len(nodes), dtype=np.int64)
        tables: list[PluginScores] = []
        for plugin in self._scorers:
            if plugin.name in state.skip_score:
                continue
            scores, status = self._score_one(plugin, state, pod, nodes)
            if scores is None:
                return None, self.took("Score", started, status)
            weight = self.profile.weights[plugin.name]
            totals += scores * weight
            tables.append(PluginScores(plugin.name, weight, scores))
        self.took("Score", started, OK)
        return Scores(tuple(tables), totals), OK

    def _score_one(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> tuple[IntArray | None, Status]:
        running = f'running Score plugins: plugin "{plugin.name}" failed with'
        try:
            scores = self.guard.call(plugin, "Score", self._raw_scores, plugin, state, pod, nodes)
            if isinstance(plugin, contract.NormalizeScore):
                running = f'running Normalize on Score plugins: plugin "{plugin.name}" failed with'
                point = "ScoreExtensionNormalize"
                ask = plugin.normalize_score
                normal = self.guard.call(plugin, point, ask, state, pod, nodes, scores)
                scores = self._checked_scores(plugin, point, normal, nodes)
        except PluginError as error:
            return None, accident(running, error)
        outside = (scores < MIN_SCORE) | (scores > MAX_SCORE)
        if outside.any():
            text = (
                "applying score defaultWeights on Score plugins: plugin"
                f' "{plugin.name}" returns an invalid score {int(scores[outside][0])}, it should in'
                f" the range of [{MIN_SCORE}, {MAX_SCORE}] after normalizing"
            )
            return None, Status.error(text).by(plugin.name)
        return scores, OK

    def _raw_scores(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> IntArray:
        if type(plugin).score_all is not contract.Score.score_all:
            answer = plugin.score_all(state, pod, nodes)
            return self._checked_scores(plugin, "Score", answer, nodes)
        scores = np.empty(len(nodes), dtype=np.int64)
        for row, node in enumerate(nodes):
            scores[row] = self._checked_score(plugin, plugin.score(state, pod, node), node)
            self.guard.check_budget(plugin, "Score")
        return scores

    def _checked_score(self, plugin: contract.Score, answer: Any, node: Node) -> int:
        try:
            score = operator.index(answer)  # an int of Python or NumPy; no float, no None
        except TypeError:
            raise self.guard.wrong_answer(
                plugin, "Score", answer, f"an int (node {node.name})"
            ) from None
        if not INT64_MIN <= score <= INT64_MAX:
            raise self.guard.wrong_answer(plugin, "Score", answer, f"an int64 (node {node.name})")
        return score

    def _checked_scores(
        self, plugin: contract.Score, point: str, answer: Any, nodes: Nodes
    ) -> IntArray:
        expected = f"an int64 array of {len(nodes)} scores"
        if not isinstance(answer, np.ndarray) or answer.shape != (len(nodes),):
            raise self.guard.wrong_answer(plugin, point, answer, expected)
        if not np.issubdtype(answer.dtype, np.integer):
            got = f"{answer.dtype} array"
            raise self.guard.wrong_answer(plugin, point, got, expected)
        scores: IntArray = answer.astype(np.int64, copy=False)
        return scores


class _Abort(Exception):
    """A plugin broke while filtering; the attempt ends with this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class _Search:
    """One pass over the nodes. `by[row]` is the place of the plugin that refused a row."""

    def __init__(self, evaluation: Evaluation, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        self.evaluation = evaluation
        self.guard = evaluation.guard
        self.state = state
        self.pod = pod
        self.nodes = nodes
        self.plugins = evaluation.active_filters(state)
        self.verdicts = Verdicts.passing(nodes)
        self.by: IntArray | None = None

    def ask_vectorised(self) -> None:
        for place, plugin in enumerate(self.plugins):
            if not self.evaluation.is_vectorised(plugin):
                continue
            answer = self._call(plugin, plugin.filter_all, self.state, self.pod, self.nodes)
            fits = isinstance(answer, Verdicts) and answer.size == len(self.nodes)
            if not fits or not answer.is_well_formed:
                error = self.guard.wrong_answer(
                    plugin, "Filter", answer, f"Verdicts for {len(self.nodes)} nodes"
                )
                raise _Abort(accident(_running(plugin), error))
            if answer.index is not None:
                self._merge(place, plugin, answer.index, answer.statuses)

    def ask_per_node(self, limit: int | None, start: int) -> None:
        """Per-node plugins, for nodes nobody has refused; then for the record if none is left."""
        slow = [
            (place, plugin)
            for place, plugin in enumerate(self.plugins)
            if not self.evaluation.is_vectorised(plugin)
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

    def consider_nominated(self) -> None:
        """Where others have a claim, the pod must fit beside them as well as without them.

        Their answer comes first: it stands whatever the filters say about the node without them.
        """
        evaluation = self.evaluation
        for row in evaluation.nominated_rows(self.nodes):
            status = evaluation.filter_beside_nominated(self.state, self.pod, self.nodes[row])
            if status is not None and not status.ok:
                if not status.rejected:
                    raise _Abort(status)
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

    def _ask(self, place: int, plugin: contract.Filter, rows: list[int]) -> None:
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
            raise _Abort(accident(_running(plugin), error)) from error

    def _signed(self, plugin: contract.Filter, status: Status) -> Status:
        signed = status.by(plugin.name)
        if not signed.rejected:
            raise _Abort(as_error(_running(plugin), signed))
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
        fresh: BoolArray = index > 0
        if verdicts.index is not None:
            fresh &= verdicts.index == 0
        if not fresh.any():
            return
        used = set(np.unique(index[fresh]).tolist())
        offset = len(verdicts.statuses)
        verdicts.statuses += [
            self._signed(plugin, status) if number in used else status
            for number, status in enumerate(statuses, start=1)
        ]
        if verdicts.index is None:
            verdicts.index = np.zeros(len(self.nodes), dtype=np.int64)
        verdicts.index[fresh] = index[fresh] + offset
        if self.by is None:
            self.by = np.full(len(self.nodes), -1, dtype=np.int64)
        self.by[fresh] = place


def _running(plugin: contract.Filter) -> str:
    return f'running "{plugin.name}" filter plugin'
