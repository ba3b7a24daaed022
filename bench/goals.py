"""What pods of certain workloads may cost at most, as a multiple of the cost of simpler pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NODES = 5_000


class Goal(NamedTuple):
    """The greatest multiple of the cost of `base` that is good enough."""

    most: float
    base: str = "basic"


GOALS: dict[str, Goal] = {
    "indexed job": Goal(1.3),
    "statefulset": Goal(1.3),
    "statefulset anti-affinity": Goal(3),
    "distinct requests": Goal(3.5),
    "1000 classes": Goal(2.5),
    "own affinity": Goal(5),
    "realistic mix": Goal(3),
    "index label + spread": Goal(1.3, "spread"),
}


def multiples(costs: Mapping[str, float]) -> list[str]:
    """The lines to print about costs by "workload @ nodes"; none where a cost is missing."""
    lines: list[str] = []
    for name, goal in GOALS.items():
        cost, base = (costs.get(f"{each} @ {NODES}") for each in (name, goal.base))
        if cost is None or base is None:
            continue
        ratio = cost / base
        verdict = "" if ratio <= goal.most else "  missed"
        lines.append(f"{name:<34}{ratio:>8.2f}x{goal.most:>8}x of {goal.base}{verdict}")
    title = f"{f'as a multiple of basic @ {NODES}':<34}{'cost':>9}{'goal':>9}"
    return ["", title, *lines] if lines else []
