"""Every node and every plugin of one evaluation, as columns: smaller than an object per node."""

from __future__ import annotations

import msgspec
import numpy as np

from mooring.decision.evaluation import Evaluation
from mooring.framework import IntArray, Verdicts


class Refusals(msgspec.Struct, frozen=True, rename="camel"):
    """One plugin's answers: 0 where it does not refuse, else the number of a reason, from 1."""

    reasons: tuple[str, ...]
    nodes: list[int]  # one for each node


class Points(msgspec.Struct, frozen=True, rename="camel"):
    """One plugin's points, for each feasible node; one number if all have the same."""

    weight: int
    raw: list[int]
    normalized: list[int]


class Matrix(msgspec.Struct, frozen=True, rename="camel"):
    """What each plugin says of each node. Plugins that refuse no node are left out."""

    nodes: tuple[str, ...]
    said: Refusals | None  # the first refusal of each node; None: all are feasible
    refusals: dict[str, Refusals]  # by plugin, whatever the others say
    feasible: list[int]  # places in `nodes`
    totals: list[int]  # of the feasible nodes; empty if there is no choice
    points: dict[str, Points]


def matrix_of(evaluation: Evaluation) -> Matrix:
    """Read from an evaluation whose nodes were filtered."""
    passed = evaluation.outcome.status.ok
    refusals: dict[str, Refusals] = {}
    if passed:
        for name, verdicts in evaluation.refusals_by_plugin().items():
            found = _refusals(verdicts)
            if found is not None:
                refusals[name] = found
        said = _refusals(evaluation.verdicts())
    else:
        status = evaluation.outcome.status
        said = Refusals((status.message,), [1] * len(evaluation.nodes))
    has_choice = passed and evaluation.status.ok and evaluation.count > 1
    scores = evaluation.scores() if has_choice else None
    return Matrix(
        nodes=evaluation.nodes.names,
        said=said,
        refusals=refusals,
        feasible=evaluation.rows.tolist() if passed and evaluation.count else [],
        totals=scores.totals.tolist() if scores is not None else [],
        points={
            one.plugin: Points(one.weight, _column(one.raw), _column(one.scores))
            for one in (scores.plugins if scores is not None else ())
        },
    )


def _refusals(verdicts: Verdicts) -> Refusals | None:
    if verdicts.index is None or not verdicts.index.any():
        return None
    reasons = tuple(status.message for status in verdicts.statuses)
    return Refusals(reasons, verdicts.index.tolist())


def _column(points: IntArray) -> list[int]:
    same = len(points) and bool(np.all(points == points[0]))
    found: list[int] = (points[:1] if same else points).tolist()
    return found
