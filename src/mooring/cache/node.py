"""Node: the read-only view of one node, real or hypothetical. For many at once see `snapshot`."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api import core
from mooring.api.requests import CPU, HostPort
from mooring.cache.columns import wrapped
from mooring.cache.indexes import ips_conflict
from mooring.cache.nodes import NodeTable
from mooring.cache.pods import Pod


class Node:
    """One node, read-only; a hypothetical one has pods added or removed."""

    __slots__ = ("_added", "_moves", "_removed", "_row", "_table", "api", "name")

    def __init__(
        self,
        table: NodeTable,
        row: int,
        added: tuple[Pod, ...] = (),
        removed: Mapping[str, Pod] | None = None,
        moves: tuple[tuple[bool, Pod], ...] = (),
    ) -> None:
        self._table = table
        self._row = row
        self._added = added
        self._removed = removed or {}
        self._moves = moves  # hypothetical changes, in order: (is added, pod)
        self.api: core.Node = table.api[row]
        self.name: str = table.names[row]

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    @property
    def labels(self) -> Mapping[str, str]:
        return self.api.metadata.labels

    def label_code(self, key: str) -> int:
        """The small number for the value of a label, as in `Nodes.label_codes`; 0: absent."""
        code: int = self._table.label(key).codes.cells[self._row]
        return code

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.api.metadata.annotations

    @property
    def taints(self) -> tuple[core.Taint, ...]:
        return self.api.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.api.spec.unschedulable

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods on this node, in no particular order."""
        here = self._table.pods[self._row]
        removed = self._removed
        if not removed:
            return (*here.values(), *self._added)
        kept = (pod for uid, pod in here.items() if uid not in removed)
        return (*kept, *self._added)

    @property
    def pod_count(self) -> int:
        return len(self._table.pods[self._row]) + len(self._added) - len(self._removed)

    def allocatable(self, resource: str) -> int:
        column = self._table.resources.allocatable.get(resource)
        return column.cells[self._row] if column is not None else 0

    def requested(self, resource: str) -> int:
        """What its pods occupy; of "pods", their number."""
        column = self._table.resources.requested.get(resource)
        here: int = column.cells[self._row] if column is not None else 0
        if self._added or self._removed:
            for pod in self._added:
                here += pod.usage_of(resource)
            for pod in self._removed.values():
                here -= pod.usage_of(resource)
            return wrapped(here)
        return here

    def spare(self, resource: str) -> int:
        return wrapped(self.allocatable(resource) - self.requested(resource))

    def nonzero_requested(self, resource: str) -> int:
        column = self._table.resources.nonzero_requested.get(resource)
        if column is None:
            return self.requested(resource)
        here: int = column.cells[self._row]
        if self._added or self._removed:
            which = 0 if resource == CPU else 1
            for pod in self._added:
                here += pod.nonzero_usage[which]
            for pod in self._removed.values():
                here -= pod.nonzero_usage[which]
            return wrapped(here)
        return here

    def image_size(self, name: str) -> int | None:
        """The size of an image that lies on this node."""
        state = self._table.images.get(name)
        return state.size if state is not None and self._row in state.rows else None

    def port_taken(self, port: HostPort) -> bool:
        if self._moves:
            return any(
                other.port == port.port
                and other.protocol == port.protocol
                and ips_conflict(other.ip, port.ip)
                for other in self._ports_after_moves()
            )
        ips = self._table.ports.holders(port).get(self._row, {})
        return any(ips_conflict(ip, port.ip) for ip in ips)

    def _ports_after_moves(self) -> set[HostPort]:
        """The host ports held on a hypothetical node.

        As in kube-scheduler, where a node's ports are a set: of two pods that hold the same port,
        which can't both run, the first to go gives it back.
        """
        held = {port for pod in self._table.pods[self._row].values() for port in pod.host_ports}
        for comes, pod in self._moves:
            if comes:
                held.update(pod.host_ports)
            else:
                held.difference_update(pod.host_ports)
        return held

    def with_pod(self, pod: Pod) -> Node:
        """This node as if the pod were on it too; a pod that is there already is replaced."""
        if self._removed.get(pod.uid) is pod:
            removed = {uid: other for uid, other in self._removed.items() if uid != pod.uid}
            return Node(self._table, self._row, self._added, removed, (*self._moves, (True, pod)))
        without = self.without_pod(pod)
        added, moves = (*without._added, pod), (*without._moves, (True, pod))
        return Node(self._table, self._row, added, without._removed, moves)

    def without_pod(self, pod: Pod) -> Node:
        """This node as if the pod were gone."""
        for place, other in enumerate(self._added):
            if other.uid == pod.uid:
                kept = (*self._added[:place], *self._added[place + 1 :])
                moves = (*self._moves, (False, other))
                return Node(self._table, self._row, kept, self._removed, moves)
        here = self._table.pods[self._row].get(pod.uid)
        if here is None or pod.uid in self._removed:
            return self
        removed = {**self._removed, pod.uid: here}
        return Node(self._table, self._row, self._added, removed, (*self._moves, (False, here)))
