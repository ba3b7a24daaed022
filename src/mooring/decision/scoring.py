"""The Score plugins over the feasible nodes: raw, normalized and weighted scores."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from mooring.cache.internals import listing_of
from mooring.decision.feasible import pick
from mooring.decision.plugins import NOTHING_KEPT, DecisionPlugins, Kept
from mooring.framework import CycleState, IntArray, Nodes, Pod

NOTHING_ASKED: Mapping[str, tuple[IntArray, IntArray]] = {}


class PluginScores(msgspec.Struct, frozen=True):
    """The scores of one plugin for the feasible nodes: raw, and normalized to 0..100."""

    plugin: str
    weight: int
    scores: IntArray
    raw: IntArray


class Scores(msgspec.Struct, frozen=True):
    """The scores of the feasible nodes, plugin by plugin and in total."""

    plugins: tuple[PluginScores, ...]
    totals: IntArray


def score(
    plugins: DecisionPlugins,
    state: CycleState,
    pod: Pod,
    feasible: Nodes,
    kept: Kept = NOTHING_KEPT,
    rows: IntArray | None = None,
    asked: Mapping[str, tuple[IntArray, IntArray]] = NOTHING_ASKED,
) -> Scores:
    """PreScore and Score for these nodes. Raises PluginFault.

    Cached scores are read; `rows` are the rows of these nodes there. `asked` are scores that were
    computed already, raw and normalized.
    """
    caller = plugins.caller
    for pre_scorer in plugins.pre_scorers:
        name = pre_scorer.name
        if name in state.skip_score or name in kept or name in asked:
            continue
        if caller.pre_score(pre_scorer, state, pod, feasible).skipped:
            state.skip_score.add(name)
    totals = np.zeros(len(feasible), dtype=np.int64)
    tables: list[PluginScores] = []
    for plugin in plugins.scorers:
        if plugin.name in state.skip_score:
            continue
        if plugin.name in asked:
            raw, scores = asked[plugin.name]
        else:
            column = kept[plugin.name].scores if plugin.name in kept else None
            if column is None:
                raw = caller.score_all(plugin, state, pod, feasible)
            else:
                raw = (column if rows is None else column[rows]).astype(np.int64)
            scores = caller.normalized(plugin, state, pod, feasible, raw)
        weight = plugins.weights[plugin.name]
        totals += scores if weight == 1 else scores * weight
        tables.append(PluginScores(plugin.name, weight, scores, raw))
    return Scores(tuple(tables), totals)


def best_row(nodes: Nodes, rows: IntArray, totals: IntArray) -> int:
    """The row with the highest of `totals`, one per row; ties are broken by listing order."""
    by_row = np.full(len(nodes), -1, dtype=np.int64)
    by_row[rows] = totals
    listing = listing_of(nodes)
    candidates = listing[by_row[listing] >= 0]
    return int(candidates[pick(by_row[candidates])])
