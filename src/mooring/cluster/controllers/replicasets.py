"""ReplicaSets and ReplicationControllers: as many pods as `spec.replicas`."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Final

from mooring.api.meta import parse_time
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.resources import PODS, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.adoption import PodAdoption
from mooring.cluster.controllers.base import (
    ControllerContext,
    WorkloadController,
    encode_template,
    replicas_of,
    with_condition,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import PodView

REPLICASETS: Final = known("replicasets", "apps")
REPLICATION_CONTROLLERS: Final = known("replicationcontrollers")

REPLICA_FAILURE: Final = "ReplicaFailure"
"""The condition of a ReplicaSet whose pods are refused."""
_BURST: Final = 200  # pods created or deleted per call
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSetController(WorkloadController):
    """Creates and deletes pods to match `spec.replicas`."""

    watches: ClassVar[tuple[Resource, ...]] = (REPLICASETS, PODS)
    name: ClassVar[str] = "replicaset-controller"
    of: ClassVar[Resource] = REPLICASETS

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._adoption = PodAdoption(self)

    def on_change(self, change: StoreChange) -> None:
        if change.resource != PODS.key:
            self._adoption.on_owner_change(change)
        else:
            self._adoption.on_pod_change()
        super().on_change(change)

    def reconcile(self, key: Key) -> float | None:
        found = self.read(self.of, key)
        if found is None:
            return None
        again: float | None = None
        failure: StatusError | None = None
        if "deletionTimestamp" not in found["metadata"]:
            self._adoption.adopt_and_release(found, key)
            try:
                again = self._manage_pods(found)
            except StatusError as error:
                failure = error
        next_in = self._update_status(found, failure)
        if failure is not None:
            raise failure  # tried again later
        return next_in if again is None else again

    def _manage_pods(self, owner: Object) -> float | None:
        """Create or delete pods; the seconds until the next attempt if some are left."""
        uid = owner["metadata"]["uid"]
        owned = self.pods.owned(uid)
        lack = replicas_of(owner) - owned.active
        if lack > 0:
            if owned.failed:
                pause = self._backoff.left((uid, ""), str(owned.failed), self.clock.now())
                if pause > 0:
                    return pause
            template = encode_template(owner["spec"].get("template") or {})
            for _ in range(min(lack, _BURST)):
                self.create_pod(owner, template)
        elif lack < 0:
            active = [pod for pod in owned.pods.values() if pod.is_active]
            for pod in in_order_of_deletion(active)[: min(-lack, _BURST)]:
                self.delete_pod(owner, pod)
        return 0.0 if abs(lack) > _BURST else None

    def _update_status(self, owner: Object, failure: StatusError | None = None) -> float | None:
        owned = self.pods.owned(owner["metadata"]["uid"])
        available, next_in = owned.ready, None
        wait = owner["spec"].get("minReadySeconds") or 0
        if wait:
            active = [pod for pod in owned.pods.values() if pod.is_active]
            available, next_in = self.available(active, wait)
        status = {
            "replicas": owned.active,
            # Pods are created with all labels; those of adopted ones are not checked.
            "fullyLabeledReplicas": owned.active or None,
            "readyReplicas": owned.ready or None,
            "availableReplicas": available or None,
            "observedGeneration": owner["metadata"].get("generation"),
        }
        self.write_status(
            self.of, owner, {**status, "conditions": self._conditions(owner, failure)}
        )
        return next_in

    def _conditions(self, owner: Object, failure: StatusError | None) -> list[Object] | None:
        known = (owner.get("status") or {}).get("conditions") or []
        if failure is None:
            return [one for one in known if one["type"] != REPLICA_FAILURE] or None
        if any(one["type"] == REPLICA_FAILURE for one in known):
            return known  # the message names another pod each time
        said = (REPLICA_FAILURE, "True", "FailedCreate", str(failure))
        return with_condition(known, *said, self.verbs.now())


class ReplicationManager(ReplicaSetController):
    """The same for ReplicationControllers."""

    watches: ClassVar[tuple[Resource, ...]] = (REPLICATION_CONTROLLERS, PODS)
    name: ClassVar[str] = "replication-controller"
    of: ClassVar[Resource] = REPLICATION_CONTROLLERS


def in_order_of_deletion(pods: list[PodView]) -> list[PodView]:
    """In the order of deletion, as ActivePodsWithRanks ranks pods."""
    neighbours = Counter(pod.spec.node_name for pod in pods)

    def rank(pod: PodView) -> tuple[bool, bool, bool, int, int, float, int, float]:
        born = pod.metadata.creation_timestamp
        return (
            bool(pod.spec.node_name),
            pod.status.phase == "Running",
            pod.is_ready,
            _cost(pod),
            -neighbours[pod.spec.node_name],
            -(pod.ready_since or 0.0),
            -pod.restarts,
            -parse_time(born) if born else 0.0,
        )

    return sorted(pods, key=rank)


def _cost(pod: PodView) -> int:
    try:
        return int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        return 0
