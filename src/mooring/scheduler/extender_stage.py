"""The extenders' part of a decision: translates between node names, which they use, and rows.

The cycle calls them after the plugins: extenders see only nodes that all plugins accepted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from mooring.cache.arrays import BoolArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.scoring import PluginScores, Scores
from mooring.extender.calling.caller import NAME
from mooring.extender.calling.chain import Extenders
from mooring.framework.results import Candidate
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts

# A node that was left out without a reason: it is not known whether evictions would help.
_NO_REASON: Final = Status.unresolvable().by(NAME)


class ExtenderStage:
    """The extenders of a scheduler, as its cycles see them."""

    def __init__(self, extenders: Extenders, rng: random.Random) -> None:
        self._extenders = extenders
        self._random = rng
        self.has_opinions: bool = extenders.has_filters or extenders.has_scorers

    async def filter(
        self, pod: Pod, nodes: Nodes, passed: BoolArray | None, verdicts: Verdicts
    ) -> BoolArray | Status:
        """The nodes that are left; the refusals of the others are added to the verdicts."""
        if passed is None:
            passed = np.ones(len(nodes), dtype=np.bool_)
        if not self._extenders.has_filters:
            return passed
        feasible = nodes if passed.all() else nodes.take(passed)
        answer = await self._extenders.ask_filters(pod, feasible)
        if isinstance(answer, Status):
            return answer
        if len(answer.left) == len(feasible):
            return passed
        names = nodes.names
        left = passed.copy()
        for row in np.flatnonzero(passed).tolist():
            if names[row] not in answer.left:
                left[row] = False
                verdicts.set(row, answer.refused.get(names[row], _NO_REASON))
        return left

    async def score(self, pod: Pod, nodes: Nodes, scores: Scores) -> tuple[Scores, str | None]:
        """The scores with those of the extenders, and the best node if an extender scored any.

        Among nodes with equal totals, one that an extender scored is chosen, at random.
        """
        given = await self._extenders.ask_scores(pod, nodes)
        if not given:
            return scores, None
        totals = scores.totals.copy()
        for points in given:
            totals += points.scores * points.weight
        ours = tuple(
            PluginScores(points.extender, points.weight, points.scores, points.scores)
            for points in given
        )
        scores = msgspec.structs.replace(scores, plugins=scores.plugins + ours, totals=totals)
        names = nodes.names
        best = [names[place] for place in np.flatnonzero(totals == totals.max()).tolist()]
        named = [name for name in best if any(name in points.named for points in given)]
        return scores, self._random.choice(named) if named else None

    async def review(
        self, pod: Pod, candidates: Sequence[Candidate], nodes: Nodes
    ) -> Sequence[Candidate] | Status:
        """The candidates that the extenders accept."""
        return await self._extenders.review(pod, candidates, nodes)
