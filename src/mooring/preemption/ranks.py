"""The pods of each node by importance, kept from one search to the next.

Hundreds of nodes are tried for each preemptor, and hardly any of them has changed since the last
search: the order of a node's pods is the same for all preemptors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mooring.cache.node import Node
from mooring.cache.pods import Pod


class _Rank(NamedTuple):
    pods: tuple[Pod, ...]  # of the node when they were ranked
    by_importance: Sequence[Pod]


class Ranks:
    """The pods of nodes, ranked."""

    def __init__(self) -> None:
        self._known: dict[str, _Rank] = {}

    def keep(self, most: int) -> None:
        """Clear the ranks if there are more than nodes: some nodes are gone."""
        if len(self._known) > most:
            self._known.clear()

    def of(self, node: Node, rank: Callable[[Iterable[Pod]], Sequence[Pod]]) -> Sequence[Pod]:
        """The pods of this node in the order of `rank`, cached."""
        pods = node.pods
        known = self._known.get(node.name)
        if known is not None and known.pods == pods:
            return known.by_importance
        ranked = rank(pods)
        # If only some have started, the others are compared with the current time.
        if len({pod.status.start_time is None for pod in ranked}) < 2:
            self._known[node.name] = _Rank(pods, ranked)
        return ranked
