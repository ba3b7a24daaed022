"""Every node and every plugin of one evaluation as a table: what each refuses, what each gives."""

from __future__ import annotations

import csv
import io

from mooring.cache.internals import listing_of
from mooring.decision.evaluation import Evaluation


def as_csv(evaluation: Evaluation) -> str:
    """One line per node, in listing order: the refusal of each plugin, then weighted points."""
    nodes = evaluation.nodes
    verdicts = evaluation.verdicts()
    refusals = evaluation.refusals_by_plugin() if evaluation.outcome.status.ok else {}
    scores = evaluation.scores() if evaluation.count else None
    points = {one.plugin: one.scores * one.weight for one in scores.plugins} if scores else {}
    place_of = {row: place for place, row in enumerate(evaluation.rows.tolist())}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    filters = [f"{name} refuses" for name in refusals]
    writer.writerow(["node", "fits", "said", *filters, "total", *(f"{n} points" for n in points)])
    for row in listing_of(nodes).tolist():
        said = verdicts.status(row)
        place = place_of.get(row) if evaluation.count else None
        total: list[object] = [""] * (1 + len(points))
        if scores is not None and place is not None:
            total = [int(scores.totals[place]), *(int(one[place]) for one in points.values())]
        writer.writerow(
            [
                nodes.names[row],
                "yes" if place is not None else "no",
                said.message,
                *(one.status(row).message for one in refusals.values()),
                *total,
            ]
        )
    return text.getvalue()
