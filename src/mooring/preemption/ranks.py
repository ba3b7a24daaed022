"""The pods of each node by importance, kept from one search to the next.

Hundreds of nodes are tried for each preemptor, and hardly any of them has changed since the last
search: the order of a node's pods is the same for all preemptors, and so are the disruption budgets
that select them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from mooring.api.meta import parse_time
from mooring.cache.pods import Pod
from mooring.preemption.budgets import DisruptionBudgets, Matched

Rank = Callable[[Iterable[Pod]], Sequence[Pod]]

# The start times of pods are needed in every search.
_seconds: Final = lru_cache(maxsize=65_536)(parse_time)


def started_at(pod: Pod, now: float) -> float:
    """When a pod started, in seconds; now if it has not."""
    text = pod.status.start_time
    return now if text is None else _seconds(text)


class RankedPods:
    """The pods of a node that may be evicted, by importance, and their budgets."""

    __slots__ = ("_generation", "_matched", "by_importance", "pods")

    def __init__(self, pods: tuple[Pod, ...], by_importance: Sequence[Pod]) -> None:
        self.pods: tuple[Pod, ...] = pods  # of the node when they were ranked
        self.by_importance: Sequence[Pod] = by_importance
        self._matched: Sequence[Matched] = ()
        self._generation = -1  # of the budgets

    def below(self, priority: int) -> int:
        """From which place on pods are less important than that."""
        found = self.by_importance
        if not found or found[0].priority < priority:
            return 0
        return bisect_right(found, -priority, key=lambda other: -other.priority)

    def matched(self, budgets: DisruptionBudgets) -> Sequence[Matched]:
        """The budgets of each pod."""
        if self._generation != budgets.generation:
            self._matched = [budgets.matching(pod) for pod in self.by_importance]
            self._generation = budgets.generation
        return self._matched

    @property
    def depends_on_time(self) -> bool:
        """Whether only some have started: the others are compared with the current time."""
        return len({pod.status.start_time is None for pod in self.by_importance}) > 1


class Ranks:
    """The pods of nodes, ranked."""

    def __init__(self) -> None:
        self._known: dict[str, RankedPods] = {}

    def keep(self, most: int) -> None:
        """Clear the ranks if there are more than nodes: some nodes are gone."""
        if len(self._known) > most:
            self._known.clear()

    def of(self, node_name: str, pods: tuple[Pod, ...], rank: Rank) -> RankedPods:
        """The pods of this node in the order of `rank`, cached."""
        known = self._known.get(node_name)
        if known is not None and known.pods == pods:
            return known
        ranked = RankedPods(pods, rank(pods))
        if not ranked.depends_on_time:
            self._known[node_name] = ranked
        return ranked
