"""All controllers of a cluster: they are notified of changes in order, and share one queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from mooring.cluster.apiserver.resources import PODS
from mooring.cluster.apiserver.store import StoreChange
from mooring.cluster.component import ComponentContext
from mooring.cluster.controllers.base import BuiltInController, ControllerContext
from mooring.cluster.controllers.cronjobs import CronJobController
from mooring.cluster.controllers.daemonsets import DaemonSetController
from mooring.cluster.controllers.deployments import DeploymentController
from mooring.cluster.controllers.device_driver import DeviceDriver
from mooring.cluster.controllers.disruption import DisruptionController
from mooring.cluster.controllers.endpoint_mirroring import EndpointMirroringController
from mooring.cluster.controllers.endpoints import EndpointsController
from mooring.cluster.controllers.ephemeral_volumes import EphemeralVolumeController
from mooring.cluster.controllers.garbage_collector import GarbageCollector
from mooring.cluster.controllers.jobs import JobController
from mooring.cluster.controllers.node_lifecycle import NodeLifecycleController, PodGarbageCollector
from mooring.cluster.controllers.node_pools import NodePoolController
from mooring.cluster.controllers.persistent_volumes import PersistentVolumeController
from mooring.cluster.controllers.quotas import ResourceQuotaController
from mooring.cluster.controllers.reconcile_queue import ReconcileQueue
from mooring.cluster.controllers.replicasets import ReplicaSetController, ReplicationManager
from mooring.cluster.controllers.resource_claims import (
    ClaimTemplateController,
    ResourceClaimController,
)
from mooring.cluster.controllers.service_accounts import (
    RootCertificatePublisher,
    ServiceAccountController,
)
from mooring.cluster.controllers.statefulsets import StatefulSetController
from mooring.cluster.controllers.taint_eviction import TaintEvictionController

log = logging.getLogger(__name__)

ALL: Final[Mapping[str, Callable[[ControllerContext], BuiltInController]]] = {
    "replicasets": ReplicaSetController,
    "replicationcontrollers": ReplicationManager,
    "deployments": DeploymentController,
    "statefulsets": StatefulSetController,
    "daemonsets": DaemonSetController,
    "jobs": JobController,
    "cronjobs": CronJobController,
    "budgets": DisruptionController,
    "volumes": PersistentVolumeController,
    "ephemeral": EphemeralVolumeController,
    "serviceaccounts": ServiceAccountController,
    "rootca": RootCertificatePublisher,
    "endpoints": EndpointsController,
    "mirroring": EndpointMirroringController,
    "quotas": ResourceQuotaController,
    "claimtemplates": ClaimTemplateController,
    "resourceclaims": ResourceClaimController,
    "devices": DeviceDriver,
    "taints": NodeLifecycleController,
    "evictions": TaintEvictionController,
    "pods": PodGarbageCollector,
    "pools": NodePoolController,
    "garbage": GarbageCollector,
}
"""The controllers by the names under which they can be left out."""


class Controllers:
    """The controllers of one cluster, or some of them."""

    def __init__(
        self,
        component: ComponentContext,
        *,
        only: Collection[str] | None = None,
        provision_any: bool = False,
    ) -> None:
        unknown = set(only or ()) - set(ALL)
        if unknown:
            raise ValueError(
                f"controllers: expected some of {', '.join(ALL)}, got {', '.join(sorted(unknown))}"
            )
        self._context = ControllerContext(**vars(component), provision_any=provision_any)
        self.queue: ReconcileQueue = self._context.queue
        self._names = [name for name in ALL if only is None or name in only]
        self._watchers: dict[str, list[BuiltInController]] = {}  # by key of a resource
        self._of_custom: list[BuiltInController] = []  # those that watch custom resources
        self._is_running = False

    def start(self) -> None:
        """Read the current objects and follow all changes; needs a running loop."""
        self.queue.start()
        for name in self._names:
            controller = ALL[name](self._context)
            for of in controller.watches:
                self._watchers.setdefault(of.key, []).append(controller)
            if controller.watches_custom:
                self._of_custom.append(controller)
        store, served = self._context.verbs.store, self._context.verbs.custom
        present = [
            StoreChange("ADDED", item.version, of.key, item, None)
            for of in served.all()
            for item in store.list(of)
        ]
        for change in present:  # the whole owner graph first: owners may come after dependents
            self._call(self._context.owner_graph.on_change, change)
        for change in present:
            self._notify(change)
        self._is_running = True
        store.listen(self._on_change)

    async def close(self) -> None:
        """Stop at once."""
        self._is_running = False
        await self.queue.close()

    def _on_change(self, change: StoreChange) -> None:
        if self._is_running:
            self._call(self._context.owner_graph.on_change, change)
            self._notify(change)

    def _notify(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            self._call(self._context.pods.on_change, change)
        for controller in self._watchers.get(change.resource, self._of_custom):
            self._call(controller.on_change, change)

    def _call(self, on_change: Callable[[StoreChange], None], change: StoreChange) -> None:
        """An error of a controller must not reach the caller that wrote the object."""
        try:
            on_change(change)
        except Exception:
            self.queue.unexpected_errors += 1
            extra = {"resource": change.resource, "object": change.new.name}
            log.exception("a controller failed on a change", extra=extra)
