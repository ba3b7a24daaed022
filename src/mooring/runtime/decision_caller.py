"""Calls of the plugins that take part in a decision, with all checks of their results.

The decision engine calls plugins only through `DecisionCaller`. If a plugin raises, overruns or
returns something that its extension point does not allow, a `PluginFault` holds the status that the
pod gets, with kube-scheduler's text.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.cache.arrays import IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework._internal import InternalPlugin, ScoreByLabel, ScoresByCode, ScoresByLabel
from mooring.framework.results import OnlyNodes
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts
from mooring.observe.family import MetricValue
from mooring.runtime.guard import Guard
from mooring.runtime.plugin_caller import PluginCaller, accident, as_error, normalizes, running
from mooring.runtime.profile import Profile

_PRE_FILTER_CODES: Final = frozenset(
    {Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
)


class PluginFault(Exception):
    """A plugin failed; `status` says how. `raised`: by an exception, not by a wrong answer."""

    def __init__(self, status: Status, *, raised: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.raised = raised

    @property
    def plugin(self) -> str:
        return self.status.plugin


class DecisionCaller(PluginCaller):
    """Calls the plugins of one profile at the points of a decision."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        super().__init__(profile, guard)
        self._pre_filtered = self.evaluations(contract.PreFilter)
        self.pre_score_seconds: float = 0.0  # spent in PreScore since the last reset
        self.filtered: Mapping[str, MetricValue] = self.evaluations(contract.Filter)
        self._pre_scored = self.evaluations(contract.PreScore)
        self._scored = self.evaluations(contract.Score)
        scorers = profile.at(contract.Score)
        # Only plugins of this project are known to return a new array each time.
        others = [one for one in scorers if not isinstance(one, InternalPlugin)]
        self._may_keep_scores = frozenset(one.name for one in others)
        self._by_label = {one.name: one for one in scorers if isinstance(one, ScoreByLabel)}

    # --- PreFilter and PreScore ----------------------------------------------------------------

    def pre_filter(
        self, plugin: contract.PreFilter, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Status | OnlyNodes:
        answer: Status | OnlyNodes = self.ask(
            plugin, "PreFilter", plugin.pre_filter, state, pod, nodes, accept=(OnlyNodes,)
        )
        if isinstance(answer, Status):
            if answer.skipped:
                return answer
            if answer.code not in _PRE_FILTER_CODES:
                answer = as_error(running("PreFilter", plugin), answer)
        self._pre_filtered[plugin.name].add()
        return answer

    def pre_score(
        self, plugin: contract.PreScore, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Status:
        """OK or SKIP. Raises PluginFault."""
        is_timed = self.guard.record_plugins
        started = self.guard.timer() if is_timed else 0.0
        status: Status = self.ask(plugin, "PreScore", plugin.pre_score, state, pod, nodes)
        if is_timed:
            self.pre_score_seconds += self.guard.timer() - started
        if status is OK:
            self._pre_scored[plugin.name].add()
            return OK
        if status.skipped:
            return status
        self._pre_scored[plugin.name].add()
        if not status.ok:
            raise PluginFault(as_error(running("PreScore", plugin), status))
        return status

    # --- Filter --------------------------------------------------------------------------------

    def filter(self, plugin: contract.Filter, state: CycleState, pod: Pod, node: Node) -> Status:
        """OK or a signed refusal. Raises PluginFault."""
        try:
            answer: Any = self.guard.call(plugin, "Filter", plugin.filter, state, pod, node)
            if answer is not OK and not isinstance(answer, Status):
                expected = f"a Status (node {node.name})"
                raise self.guard.wrong_answer(plugin, "Filter", answer, expected)
        except PluginError as error:
            raise PluginFault(accident(running("Filter", plugin), error), raised=True) from error
        status: Status = answer
        return OK if status.ok else self._signed_refusal(plugin, status)

    def filter_rows(
        self,
        plugin: contract.Filter,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        rows: Sequence[int],
    ) -> list[tuple[int, Status]]:
        """The refusals among these rows, by the per-node form. Raises PluginFault."""

        def ask() -> list[tuple[int, Status]]:
            """Every status but OK, up to the first that is not a refusal."""
            found = []
            for row in rows:
                answer: Any = plugin.filter(state, pod, nodes[row])
                self.guard.check_budget(plugin, "Filter")
                if answer is OK:
                    continue
                if not isinstance(answer, Status):
                    expected = f"a Status (node {nodes[row].name})"
                    raise self.guard.wrong_answer(plugin, "Filter", answer, expected)
                if not answer.ok:
                    found.append((row, answer))
                    if not answer.rejected:
                        break
            return found

        self.filtered[plugin.name].add(len(rows))
        try:
            found = self.guard.call(plugin, "Filter", ask)
        except PluginError as error:
            raise PluginFault(accident(running("Filter", plugin), error), raised=True) from error
        return [(row, self._signed_refusal(plugin, status)) for row, status in found]

    def filter_all(
        self, plugin: contract.Filter, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Verdicts:
        """Signed verdicts, by the vectorised form. Raises PluginFault.

        A status that is not a refusal becomes an error among them: it counts only for nodes that no
        earlier plugin refused.
        """
        self.filtered[plugin.name].add(len(nodes))
        try:
            answer: Any = self.guard.call(plugin, "Filter", plugin.filter_all, state, pod, nodes)
            fits = isinstance(answer, Verdicts) and answer.size == len(nodes)
            if not fits or not answer.is_well_formed:
                expected = f"Verdicts for {len(nodes)} nodes"
                error = self.guard.wrong_answer(plugin, "Filter", answer, expected)
                raise PluginFault(accident(running("Filter", plugin), error)) from error
        except PluginError as error:
            raise PluginFault(accident(running("Filter", plugin), error), raised=True) from error
        verdicts: Verdicts = answer
        if verdicts.index is not None:
            statuses = verdicts.statuses
            counts = verdicts.counts()
            verdicts.statuses = [
                self._signed_verdict(plugin, status) if count else status
                for status, count in zip(statuses, counts, strict=True)
            ]
        return verdicts

    def _signed_verdict(self, plugin: contract.Filter, status: Status) -> Status:
        signed = status.by(plugin.name)
        return signed if signed.rejected else as_error(running("Filter", plugin), signed)

    def _signed_refusal(self, plugin: contract.Filter, status: Status) -> Status:
        signed = self._signed_verdict(plugin, status)
        if not signed.rejected:
            raise PluginFault(signed)
        return signed

    # --- Score ---------------------------------------------------------------------------------

    def score(self, plugin: contract.Score, state: CycleState, pod: Pod, node: Node) -> int:
        """The raw score of one node. Raises PluginFault."""
        try:
            answer: Any = self.guard.call(plugin, "Score", plugin.score, state, pod, node)
            return answer if type(answer) is int else self._checked_score(plugin, answer, node)
        except PluginError as error:
            raise PluginFault(accident(running("Score", plugin), error), raised=True) from error

    def score_all(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> IntArray:
        """The raw scores of all these nodes, in an array of its own. Raises PluginFault."""
        self._scored[plugin.name].add(len(nodes))
        call = self.guard.call
        try:
            if type(plugin).score_all is contract.Score.score_all:
                return call(plugin, "Score", self._score_each, plugin, state, pod, nodes)
            answer: Any = call(plugin, "Score", plugin.score_all, state, pod, nodes)
            scores = self._checked_scores(plugin, "Score", answer, len(nodes))
        except PluginError as error:
            raise PluginFault(accident(running("Score", plugin), error), raised=True) from error
        return scores.copy() if plugin.name in self._may_keep_scores else scores

    def _score_each(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> IntArray:
        scores = np.empty(len(nodes), dtype=np.int64)
        for row, node in enumerate(nodes):
            scores[row] = self._checked_score(plugin, plugin.score(state, pod, node), node)
            self.guard.check_budget(plugin, "Score")
        return scores

    def normalized(
        self,
        plugin: contract.Score,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        scores: IntArray,
    ) -> IntArray:
        """The scores from 0 to 100, possibly the same array. Raises PluginFault."""
        if normalizes(plugin):
            point, call = "ScoreExtensionNormalize", plugin.normalize_score
            try:
                answer = self.guard.call(plugin, point, call, state, pod, nodes, scores)
                scores = self._checked_scores(plugin, point, answer, len(scores)).copy()
            except PluginError as error:
                raise PluginFault(accident(running(point, plugin), error), raised=True) from error
        if not is_in_range(scores):
            raise PluginFault(out_of_range(plugin, scores))
        return scores

    def normalized_by_label(
        self, plugin: contract.Score, state: CycleState, pod: Pod, nodes: Nodes
    ) -> ScoresByLabel | ScoresByCode | None:
        """The normalized scores if they depend on one label or code. Raises PluginFault."""
        by_label = self._by_label.get(plugin.name)
        if by_label is None:
            return None
        try:
            found: ScoresByLabel | ScoresByCode | None = self.guard.call(
                plugin, "Score", by_label.normalized_by_label, state, pod, nodes
            )
        except PluginError as error:
            raise PluginFault(accident(running("Score", plugin), error), raised=True) from error
        if found is not None and not is_in_range(found.points):
            raise PluginFault(out_of_range(plugin, found.points), raised=True)
        return found

    def _checked_score(self, plugin: contract.Score, answer: Any, node: Node) -> int:
        try:
            score = operator.index(answer)  # an int of Python or NumPy
        except TypeError:
            raise self.guard.wrong_answer(
                plugin, "Score", answer, f"an int (node {node.name})"
            ) from None
        if not INT64_MIN <= score <= INT64_MAX:
            raise self.guard.wrong_answer(plugin, "Score", answer, f"an int64 (node {node.name})")
        return score

    def _checked_scores(
        self, plugin: contract.Score, point: str, answer: Any, size: int
    ) -> IntArray:
        expected = f"an int64 array of {size} scores"
        if not isinstance(answer, np.ndarray) or answer.shape != (size,):
            raise self.guard.wrong_answer(plugin, point, answer, expected)
        if answer.dtype.kind not in "iu":
            raise self.guard.wrong_answer(plugin, point, f"{answer.dtype} array", expected)
        scores: IntArray = answer.astype(np.int64, copy=False)
        return scores


def is_in_range(scores: IntArray) -> bool:
    """Whether all scores are from 0 to 100."""
    least, most = extremes(scores)
    return least >= MIN_SCORE and most <= MAX_SCORE


def extremes(scores: NDArray[np.integer[Any]]) -> tuple[int, int]:
    """The lowest and the highest; `min()` and `max()` take three times as long."""
    if not len(scores):
        return MIN_SCORE, MIN_SCORE
    return scores.item(scores.argmin()), scores.item(scores.argmax())


def out_of_range(plugin: contract.Score, scores: IntArray) -> Status:
    least, most = int(scores.min()), int(scores.max())
    extreme = least if least < MIN_SCORE else most
    return Status.error(
        f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an'
        f" invalid score {extreme}, it should in the range of [{MIN_SCORE}, {MAX_SCORE}] after"
        " normalizing"
    ).by(plugin.name)
