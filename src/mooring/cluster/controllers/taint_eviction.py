"""Taint-based eviction: pods that do not tolerate a NoExecute taint of their node are deleted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Final

from mooring.api import codec, core
from mooring.api.placement import Taint, Toleration
from mooring.api.taints import NO_EXECUTE, tolerates
from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.pods import set_condition
from mooring.cluster.apiserver.resources import NODES, PODS, Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController, ControllerContext
from mooring.cluster.controllers.reconcile_queue import Key

_TAINTED: Final[Mapping[str, str]] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class TaintEvictionController(BuiltInController):
    """Deletes pods at once, or after the seconds of their tolerations. Its keys are pods."""

    watches: ClassVar[tuple[Resource, ...]] = (NODES, PODS)
    name: ClassVar[str] = "taint-eviction-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._taints: dict[str, tuple[Taint, ...]] = {}  # NoExecute, by node
        self._since: dict[str, float] = {}  # by uid of a pod: when its time began

    def on_change(self, change: StoreChange) -> None:
        if change.resource == NODES.key:
            self._on_node_change(change)
        elif self._taints:
            pod = self.pods.latest
            if pod is None:
                self._since.pop(change.new.uid, None)
            elif pod.spec.node_name in self._taints:
                self.enqueue(pod.key)

    def _on_node_change(self, change: StoreChange) -> None:
        name = change.new.name
        found: tuple[Taint, ...] = ()
        if change.type != "DELETED" and b'"NoExecute"' in change.new.raw:
            taints = codec.decode(change.new.raw, core.Node).spec.taints
            found = tuple(taint for taint in taints if taint.effect == NO_EXECUTE)
        if found == self._taints.get(name, ()):
            return
        if found:
            self._taints[name] = found
        else:
            del self._taints[name]
        for pod in self.pods:
            if pod.spec.node_name == name:
                self.enqueue(pod.key)

    def reconcile(self, key: Key) -> float | None:
        item = self.verbs.store.get(PODS, *key)
        if item is None:
            return None
        pod = codec.decode(item.raw, core.Pod)
        taints = self._taints.get(pod.spec.node_name, ())
        if pod.metadata.deletion_timestamp is not None or not taints:
            if self._since.pop(item.uid, None) is not None and not taints:
                self._say(item.decoded(), f"Cancelling deletion of Pod {'/'.join(key)}")
            return None
        patience = _patience(taints, pod.spec.tolerations)
        if patience == math.inf:
            self._since.pop(item.uid, None)
            return None
        now = self.clock.now()
        left = self._since.setdefault(item.uid, now) + patience - now
        if left > 0:
            return left
        self._evict(key, item.uid, item.decoded())
        return None

    def _evict(self, key: Key, uid: str, pod: Object) -> None:
        def mark(current: Object) -> None:
            set_condition(current.setdefault("status", {}), dict(_TAINTED), self.verbs.now())

        self._since.pop(uid, None)
        self._say(pod, f"Marking for deletion Pod {'/'.join(key)}")
        try:
            self.verbs.modify(PODS, *key, mark, subresource="status")
            self.verbs.delete(PODS, *key, uid=uid)
        except (NotFound, ConflictError):
            return  # already deleted, or replaced by another pod of this name

    def _say(self, pod: Object, message: str) -> None:
        self.record_event(pod, "TaintManagerEviction", message)


def _patience(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> float:
    """The seconds for which all taints are tolerated; infinite if no toleration is limited."""
    used: list[Toleration] = []
    for taint in taints:
        matching = [one for one in tolerations if tolerates(one, taint)]
        if not matching:
            return 0.0
        used += matching
    limits = [
        float(max(one.toleration_seconds, 0)) for one in used if one.toleration_seconds is not None
    ]
    return min(limits, default=math.inf)
