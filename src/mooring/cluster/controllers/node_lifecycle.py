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
_READY_EFFECTS: Final = ("NoSchedule", "NoExecute")
_NODE_IS_GONE: Final[Mapping[str, str]] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}
# Conditions and the taints that they bring.
_PRESSURES: Final[Mapping[str, str]] = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS: Final = frozenset(
    (
        (_UNSCHEDULABLE, "NoSchedule"),
        *((key, effect) for key in (_NOT_READY, _UNREACHABLE) for effect in _READY_EFFECTS),
        *((key, "NoSchedule") for key in _PRESSURES.values()),
    )
)


class NodeLifecycleController(BuiltInController):
    """Taints nodes that are cordoned, not ready or short of something."""

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
        present = {(one["key"], one.get("effect", "")) for one in known_taints}
        missing = [taint for taint in wanted if taint not in present]
        surplus = _OURS & present - set(wanted)
        if not missing and not surplus:
            return None

        def change(current: Object) -> None:
            spec: dict[str, Any] = current.setdefault("spec", {})
            kept = [
                one
                for one in spec.get("taints") or ()
                if (one["key"], one.get("effect", "")) not in surplus
            ]
            time = self.verbs.now()
            more = [{"key": name, "effect": effect, "timeAdded": time} for name, effect in missing]
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


def _wanted(node: Object) -> list[tuple[str, str]]:
    """The keys and effects of the taints for the state of a node."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    states = {one["type"]: one["status"] for one in conditions}
    found = []
    if (node.get("spec") or {}).get("unschedulable"):
        found.append((_UNSCHEDULABLE, "NoSchedule"))
    ready = states.get("Ready", "True")
    if ready != "True":
        key = _NOT_READY if ready == "False" else _UNREACHABLE
        found += [(key, effect) for effect in _READY_EFFECTS]
    found += [(key, "NoSchedule") for kind, key in _PRESSURES.items() if states.get(kind) == "True"]
    return found
