"""Nominated pods: pending pods and the nodes that are kept for them.

Preemption makes room for a pod that is not bound yet; until it is bound, pods of lower or equal
priority are filtered as if the nominated pod were on the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mooring.cache.pods import Pod

MOST_CHANGES: Final = 4_096  # that are remembered


class NominatedPods:
    """Pods by the node they are nominated for; at most one per pod. Fulfils `Nominator`."""

    __slots__ = ("_by_node", "_changed", "_forgotten", "_node_of")

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[Pod, ...]] = {}  # read often, changed rarely
        self._node_of: dict[str, str] = {}  # uid -> node
        self._changed: list[str] = []  # nodes whose nominated pods changed, the latest last
        self._forgotten = 0  # changes before these

    def __len__(self) -> int:
        return len(self._node_of)

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        return self._by_node.get(node_name, ())

    def nominated_nodes(self) -> Sequence[str]:
        return tuple(self._by_node)

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    @property
    def position(self) -> int:
        """The number of changes so far, for `changed_since`."""
        return self._forgotten + len(self._changed)

    def changed_since(self, position: int) -> Sequence[str] | None:
        """The nodes whose nominated pods changed; None if it is too long ago to tell."""
        return None if position < self._forgotten else self._changed[position - self._forgotten :]

    def nominate(self, pod: Pod, node_name: str | None) -> None:
        """Set the pod's nomination: "" withdraws it, None takes it from the pod's status.

        A bound pod is not nominated.
        """
        self.delete(pod)
        claimed = pod.nominated_node_name if node_name is None else node_name
        if claimed and not pod.node_name:
            self._node_of[pod.uid] = claimed
            self._by_node[claimed] = (*self._by_node.get(claimed, ()), pod)
            self._note(claimed)

    def update(self, old: Pod, new: Pod) -> None:
        """Take the nomination of a changed pod from its status.

        Updates that were sent before the nomination was written have none in their status: while
        neither old nor new status has one, the nomination made here stays.
        """
        kept = None
        if not old.nominated_node_name and not new.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.delete(old)
        self.nominate(new, kept)

    def delete(self, pod: Pod) -> None:
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is None:
            return
        others = tuple(other for other in self._by_node[node_name] if other.uid != pod.uid)
        if others:
            self._by_node[node_name] = others
        else:
            del self._by_node[node_name]
        self._note(node_name)

    def _note(self, node_name: str) -> None:
        self._changed.append(node_name)
        if len(self._changed) > MOST_CHANGES:
            self._forgotten += len(self._changed)
            self._changed.clear()
