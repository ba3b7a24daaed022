"""Node lifecycle: taints for the state of nodes, and deletion of pods on deleted nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.pods import set_condition
from mooring.cluster.apiserver.resources import NODES, PODS, Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController
from mooring.cluster.controllers.reconcile_queue import Key

QUARANTINE: Final = 40.0  # seconds from a node's deletion to that of its pods
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_NODE_IS_GONE: Final[Mapping[str, str]] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}
_OURS: Final = (_UNSCHEDULABLE, _NOT_READY, _UNREACHABLE)


class NodeLifecycleController(BuiltInController):
    """Taints nodes that are cordoned or not ready."""

    watches: ClassVar[tuple[Resource, ...]] = (NODES,)
    name: ClassVar[str] = "node-controller"

    def on_change(self, change: StoreChange) -> None:
        if change.type != "DELETED":
            self.enqueue(change.new.key)

    def reconcile(self, key: Key) -> float | None:
        node = self.read(NODES, key)
        if node is None:
            return None
        known_taints = (node.get("spec") or {}).get("taints") or []
        wanted = _wanted(node)
        present = {one["key"] for one in known_taints if one.get("effect") == "NoSchedule"}
        missing = [name for name in wanted if name not in present]
        surplus = [name for name in _OURS if name in present and name not in wanted]
        if not missing and not surplus:
            return None

        def change(current: Object) -> None:
            spec: dict[str, Any] = current.setdefault("spec", {})
            kept = [
                one
                for one in spec.get("taints") or ()
                if not (one["key"] in surplus and one.get("effect") == "NoSchedule")
            ]
            time = self.verbs.now()
            more = [{"key": name, "effect": "NoSchedule", "timeAdded": time} for name in missing]
            spec["taints"] = [*kept, *more]
            if not spec["taints"]:
                del spec["taints"]

        self.verbs.modify(NODES, "", key[1], change)
        return None


class PodGarbageCollector(BuiltInController):
    """Deletes pods of nodes that no longer exist. Its keys are nodes."""

    watches: ClassVar[tuple[Resource, ...]] = (NODES,)
    name: ClassVar[str] = "pod-garbage-collector"

    def on_change(self, change: StoreChange) -> None:
        if change.type == "DELETED":
            self.enqueue(change.new.key, QUARANTINE)

    def reconcile(self, key: Key) -> float | None:
        _, node = key
        if self.verbs.store.get(NODES, "", node) is not None:
            return None
        for pod in [pod for pod in self.pods if pod.spec.node_name == node]:
            meta = pod.metadata
            try:
                if not pod.is_finished:
                    self._fail(meta.namespace, meta.name)
                self.verbs.delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0)
            except (NotFound, ConflictError):
                continue  # already deleted, or replaced by another pod of this name
        return None

    def _fail(self, namespace: str, name: str) -> None:
        def change(current: Object) -> None:
            status: dict[str, Any] = current.setdefault("status", {})
            status["phase"] = "Failed"
            set_condition(status, dict(_NODE_IS_GONE), self.verbs.now())

        self.verbs.modify(PODS, namespace, name, change, subresource="status")


def _wanted(node: Object) -> list[str]:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((one["status"] for one in conditions if one["type"] == "Ready"), "True")
    found = {"True": [], "False": [_NOT_READY]}.get(ready, [_UNREACHABLE])
    if (node.get("spec") or {}).get("unschedulable"):
        found = [_UNSCHEDULABLE, *found]
    return found
