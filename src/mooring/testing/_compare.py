"""Two sets of answers side by side; the first difference becomes a `Fault` in words."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.framework.results import OnlyNodes
from mooring.framework.status import Status
from mooring.testing._attempt import Attempt, Fault, describe, same


def compare(found: Attempt, expected: Attempt, this: str, that: str) -> None:
    """All answers of two attempts; `this` and `that` say what differs between them.

    `{point}` in them stands for filter or score.
    """
    if not _same_pre_filter(found.pre_filter, expected.pre_filter):
        ours, theirs = describe(found.pre_filter), describe(expected.pre_filter)
        this, that = this.replace("{point}", "pre_filter"), that.replace("{point}", "pre_filter")
        raise Fault(f"pre_filter gives {ours} {this}, but {theirs} {that}")
    compare_statuses(found.statuses, expected.statuses, this, that)
    compare_scores(found.raw, expected.raw, this, that)
    compare_scores(found.scores, expected.scores, this, that, "normalised score")


def compare_statuses(
    found: Mapping[str, Status], expected: Mapping[str, Status], this: str, that: str
) -> None:
    this, that = this.replace("{point}", "filter"), that.replace("{point}", "filter")
    _same_nodes(found.keys(), expected.keys(), "filter", this)
    for name, status in expected.items():
        if not same(found[name], status):
            ours, theirs = describe(found[name]), describe(status)
            raise Fault(f"node {name}: filter gives {ours} {this}, but {theirs} {that}")


def compare_scores(
    found: Mapping[str, int],
    expected: Mapping[str, int],
    this: str,
    that: str,
    what: str = "score",
) -> None:
    this, that = this.replace("{point}", "score"), that.replace("{point}", "score")
    _same_nodes(found.keys(), expected.keys(), what, this)
    for name, score in expected.items():
        if found[name] != score:
            raise Fault(f"node {name}: {what} is {found[name]} {this}, but {score} {that}")


def _same_nodes(found: object, expected: object, what: str, this: str) -> None:
    # Cannot differ unless an earlier answer did, or pre_score skips in one attempt only.
    if found != expected:
        raise Fault(f"{what}: other nodes were looked at {this}: {found!r} instead of {expected!r}")


def _same_pre_filter(a: Status | OnlyNodes, b: Status | OnlyNodes) -> bool:
    if isinstance(a, OnlyNodes) or isinstance(b, OnlyNodes):
        return a == b
    return same(a, b)
