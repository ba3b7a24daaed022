"""Why one feasible node is better than the others: points, margin, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from mooring.cache.internals import ranks_of
from mooring.decision.evaluation import Evaluation
from mooring.decision.scoring import PluginScores, Scores, best_row
from mooring.framework import IntArray
from mooring.lens.explanation import (
    Choice,
    NodeScore,
    PluginMargin,
    PluginScore,
    WeightChange,
)

_BEST: Final = 10
LISTING_ORDER: Final = "by listing order"


class Ranking:
    """The feasible nodes of an evaluation by their points."""

    def __init__(self, evaluation: Evaluation, scores: Scores) -> None:
        self._evaluation = evaluation
        self._scores = scores
        self._rows: IntArray = evaluation.rows
        self._names = evaluation.nodes.names
        ranks = ranks_of(evaluation.nodes)[self._rows]
        self._order = np.lexsort((ranks, -scores.totals))  # places among rows, best first

    def choice(self, also: Iterable[str] = ()) -> Choice:
        """The chosen node against the others; `also` are nodes whose points are told too."""
        evaluation, totals = self._evaluation, self._scores.totals
        chosen = self._place_of(evaluation.row)
        runner_up = evaluation.runner_up()
        second = self._place_of(runner_up[0]) if runner_up is not None else None
        tied = self._order[totals[self._order] == totals[chosen]]
        best = [chosen, *(place for place in self._order[:_BEST].tolist() if place != chosen)]
        places = dict.fromkeys(best[:_BEST])
        for name in also:
            row = evaluation.nodes.index_of(name)
            if row is not None and evaluation.feasible[row]:
                places[self._place_of(row)] = None
        is_tied = len(tied) > 1
        return Choice(
            node=self._names[evaluation.row],
            total=int(totals[chosen]),
            runner_up=self._name(second) if second is not None else "",
            margin=runner_up[1] if runner_up is not None else None,
            difference=self._difference(chosen, second) if second is not None else (),
            ties=tuple(self._name(place) for place in tied[:_BEST].tolist()) if is_tied else (),
            tied=len(tied),
            tie_break=LISTING_ORDER if is_tied else "",
            flip=self._flip(chosen),
            nodes=tuple(self._score(place) for place in places),
        )

    def score_of(self, row: int) -> NodeScore:
        return self._score(self._place_of(row))

    def _place_of(self, row: int) -> int:
        return int(np.searchsorted(self._rows, row))

    def _name(self, place: int) -> str:
        return self._names[int(self._rows[place])]

    def _score(self, place: int) -> NodeScore:
        totals = self._scores.totals
        return NodeScore(
            node=self._name(place),
            total=int(totals[place]),
            place=1 + int(np.count_nonzero(totals > totals[place])),
            plugins=tuple(
                PluginScore(
                    plugin=one.plugin,
                    raw=int(one.raw[place]),
                    normalized=int(one.scores[place]),
                    weight=one.weight,
                    weighted=int(one.scores[place]) * one.weight,
                )
                for one in self._scores.plugins
            ),
        )

    def _difference(self, chosen: int, second: int) -> tuple[PluginMargin, ...]:
        found = []
        for one in self._scores.plugins:
            best, other = (int(one.scores[place]) * one.weight for place in (chosen, second))
            margin = PluginMargin(
                plugin=one.plugin, best=best, runner_up=other, points=best - other
            )
            found.append(margin)
        return tuple(sorted(found, key=lambda margin: -abs(margin.points)))

    def _flip(self, chosen: int) -> WeightChange | None:
        """Of all weights and all other nodes, the change that is smallest."""
        behind = self._scores.totals[chosen] - self._scores.totals  # by how much each node is
        found: list[tuple[int, bool, WeightChange]] = []
        for one in self._scores.plugins:
            gain = one.scores - one.scores[chosen]  # of each node, for each point of weight
            for sign in (1, -1):
                able = gain * sign > 0
                if not able.any():
                    continue
                level = -(-behind[able] // np.abs(gain[able]))  # there the totals are equal
                least = max(int(level.min()), 1)
                for step in (least, least + 1):  # a tie may fall either way
                    to = one.weight + sign * step
                    winner = self._winner(one, sign * step) if to >= 0 else self._evaluation.row
                    if winner != self._evaluation.row:
                        change = WeightChange(
                            plugin=one.plugin, weight=one.weight, to=to, node=self._names[winner]
                        )
                        found.append((step, not to, change))
                        break
        return min(found, key=lambda entry: entry[:2])[2] if found else None

    def _winner(self, one: PluginScores, more: int) -> int:
        """The row of the best node if the weight of one plugin were so much higher."""
        totals = self._scores.totals + more * one.scores
        return best_row(self._evaluation.nodes, self._rows, totals)
