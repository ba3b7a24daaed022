"""The cluster as a pod controller sees it: nodes with their pods, and its own pending pods.

Informers call `put_*` and `remove_*`. What has changed is found by comparing with the state before,
so that a repeated or a missed event does no harm.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api import core
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes


class ClusterView:
    """All nodes and the pods on them, and which pods of one schedulerName wait for a node.

    `on_pod` gets the key of a pod that is to be placed, `on_gone` of one that is not any more, and
    `on_room` is called when a refused pod may find a node now.
    """

    def __init__(
        self,
        scheduler_name: str,
        *,
        on_pod: Callable[[str], None],
        on_gone: Callable[[str], None],
        on_room: Callable[[], None],
    ) -> None:
        self.cache: Cache = Cache()
        self._scheduler_name = scheduler_name
        self._on_pod = on_pod
        self._on_gone = on_gone
        self._on_room = on_room
        self._pending: dict[str, Pod] = {}  # key -> latest state of our pods without a node

    @property
    def nodes(self) -> Nodes:
        """All nodes as they are now, with assumed pods."""
        return self.cache.nodes

    def waiting(self, key: str) -> Pod | None:
        """The latest state of a pending pod that is not assumed."""
        pod = self._pending.get(key)
        return None if pod is None or self.cache.is_assumed(pod.uid) else pod

    @property
    def waiting_count(self) -> int:
        return sum(1 for key in self._pending if self.waiting(key) is not None)

    def put_node(self, node: core.Node) -> None:
        old = self.cache.put_node(node)
        if old is None or _has_changed(old, node):
            self._on_room()

    def remove_node(self, node: core.Node) -> None:
        self.cache.remove_node(node.metadata.name)

    def put_pod(self, api: core.Pod) -> None:
        pod = Pod(api)
        if pod.is_finished:
            self._remove(pod)
        elif pod.node_name:
            self._drop_pending(pod.key)
            self.cache.put_pod(pod)
        elif pod.scheduler_name == self._scheduler_name:
            self._put_pending(pod)

    def remove_pod(self, api: core.Pod) -> None:
        self._remove(Pod(api))

    def _put_pending(self, pod: Pod) -> None:
        old = self._pending.get(pod.key)
        if old is not None and old.uid != pod.uid:
            self._remove(old)  # its deletion was missed: this is another pod of the same name
            old = None
        if pod.is_terminating:  # the server binds it no more
            self._remove(pod)
            return
        if pod.spec.scheduling_gates:
            return
        self._pending[pod.key] = pod
        if self.cache.is_assumed(pod.uid):
            return
        if old is None or _needs_new_decision(old, pod):
            self._on_pod(pod.key)

    def _remove(self, pod: Pod) -> None:
        known = self._pending.get(pod.key)
        if known is not None and known.uid == pod.uid:
            self._drop_pending(pod.key)
        if self.cache.remove_pod(pod) is not None:
            self._on_room()

    def _drop_pending(self, key: str) -> None:
        if self._pending.pop(key, None) is not None:
            self._on_gone(key)


def _has_changed(old: core.Node, new: core.Node) -> bool:
    """Whether a change of a node may matter; a heartbeat does not."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
        or old.status.allocatable != new.status.allocatable
        or _conditions(old) != _conditions(new)
    )


def _conditions(node: core.Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _needs_new_decision(old: Pod, new: Pod) -> bool:
    """Whether a change of a pod may lead to another decision; its status does not."""
    return old.spec != new.spec or old.labels != new.labels or old.annotations != new.annotations
