"""Filter and Score over all nodes.

The cycle asks for verdicts and scores and does not loop over nodes itself; how the answers come
about is decided here. Plugins with a vectorised form answer for all nodes in one call. Plugins
with only the per-node form are asked afterwards, and only about nodes that the others let through.
"""

from __future__ import annotations

import operator
from typing import Any

import msgspec
import numpy as np

from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.cache.arrays import IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework.handle import Nominator
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.asking import accident
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile
from mooring.runtime.runner import Runner
from mooring.runtime.search import Abort, Search
from mooring.runtime.whatifs import WhatIfs


class PluginScores(msgspec.Struct, frozen=True):
    """What one plugin gave each feasible node, normalised and before its weight."""

    plugin: str
    weight: int
    scores: IntArray


class Scores(msgspec.Struct, frozen=True):
    """The points of the feasible nodes, plugin by plugin and in total."""

    plugins: tuple[PluginScores, ...]
    totals: IntArray


class Evaluation(WhatIfs):
    """Looks at every node on behalf of one profile."""

    def __init__(
        self, profile: Profile, guard: Guard, runner: Runner, nominator: Nominator
    ) -> None:
        super().__init__(profile, guard, runner, nominator)
        self._scorers = profile.at("score", contract.Score)
        self._scored = self.evaluations("Score", self._scorers)

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
        filters = self._active_filters(state)
        search = Search(self.guard, filters, state, pod, nodes, self._filtered)
        try:
            search.ask_vectorised()
            for row, status in self.refused_for_claims(state, pod, nodes):
                search.refuse_for_claim(row, status)
            search.ask_per_node(limit, start)
        except Abort as abort:
            return search.verdicts, self.took("Filter", started, abort.status)
        # A scan that refuses every node went well: only a broken one is no success.
        return search.verdicts, self.took("Filter", started, OK)

    # --- score ---------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> tuple[Scores | None, Status]:
        """Points for the feasible nodes; or an error that ends the attempt."""
        started = self.guard.timer()
        totals = np.zeros(len(nodes), dtype=np.int64)
        tables: list[PluginScores] = []
        for plugin in self._scorers:
            if plugin.name in state.skip_score:
                continue
            self._scored[plugin.name].add(len(nodes))
            scores, status = self._score_one(plugin, state, pod, nodes)
            if scores is None:
                return None, self.took("Score", started, status)
            weight = self.profile.weights[plugin.name]
            totals += scores if weight == 1 else scores * weight
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
        for extreme in (int(scores.min()), int(scores.max())):
            if not MIN_SCORE <= extreme <= MAX_SCORE:
                text = (
                    "applying score defaultWeights on Score plugins: plugin"
                    f' "{plugin.name}" returns an invalid score {extreme}, it should in'
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
