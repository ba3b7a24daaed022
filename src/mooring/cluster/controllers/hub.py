"""All controllers of a cluster: they hear of changes in order and work when there is time."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping
from typing import Final

from mooring.cluster.announcing import Announcer
from mooring.cluster.apiserver.resources import RESOURCES
from mooring.cluster.apiserver.store import Change
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.controllers.base import PODS, Controller, Shared
from mooring.cluster.controllers.budgets import Budgets
from mooring.cluster.controllers.daemonsets import DaemonSets
from mooring.cluster.controllers.deployments import Deployments
from mooring.cluster.controllers.ephemeral import EphemeralVolumes
from mooring.cluster.controllers.garbage import Garbage
from mooring.cluster.controllers.jobs import Jobs
from mooring.cluster.controllers.loop import WorkQueue
from mooring.cluster.controllers.namespaces import ServiceAccounts
from mooring.cluster.controllers.nodes import NodeTaints, PodCollector
from mooring.cluster.controllers.replicasets import ReplicaSets, ReplicationControllers
from mooring.cluster.controllers.statefulsets import StatefulSets
from mooring.cluster.controllers.volumes import Volumes
from mooring.framework.handle import Clock

log = logging.getLogger(__name__)

ALL: Final[Mapping[str, Callable[[Shared], Controller]]] = {
    "replicasets": ReplicaSets,
    "replicationcontrollers": ReplicationControllers,
    "deployments": Deployments,
    "statefulsets": StatefulSets,
    "daemonsets": DaemonSets,
    "jobs": Jobs,
    "budgets": Budgets,
    "volumes": Volumes,
    "ephemeral": EphemeralVolumes,
    "serviceaccounts": ServiceAccounts,
    "taints": NodeTaints,
    "pods": PodCollector,
    "garbage": Garbage,
}
"""The controllers by the names under which they can be left out."""


class Controllers:
    """The controllers of one cluster, or some of them."""

    def __init__(
        self,
        verbs: Verbs,
        *,
        clock: Clock,
        rng: random.Random,
        announcer: Announcer,
        only: Collection[str] | None = None,
        provision_any: bool = False,
    ) -> None:
        unknown = set(only or ()) - set(ALL)
        if unknown:
            raise ValueError(
                f"controllers: expected some of {', '.join(ALL)}, got {', '.join(sorted(unknown))}"
            )
        self._verbs = verbs
        self._clock = clock
        self._rng = rng
        self._announcer = announcer
        self._chosen = [name for name in ALL if only is None or name in only]
        self._provision_any = provision_any
        self._shared: Shared | None = None
        self._hearers: dict[str, list[Controller]] = {}  # by key of a resource
        self.queue: WorkQueue | None = None

    def start(self) -> None:
        """Look at what is there, and from now on at what changes; needs a running loop."""
        self.queue = WorkQueue(asyncio.get_running_loop())
        shared = self._shared = Shared(
            self._verbs,
            self.queue,
            clock=self._clock,
            rng=self._rng,
            announcer=self._announcer,
        )
        for name in self._chosen:
            if name == "volumes":
                controller: Controller = Volumes(shared, provision_any=self._provision_any)
            else:
                controller = ALL[name](shared)
            for of in controller.watches:
                self._hearers.setdefault(of.key, []).append(controller)
        store = self._verbs.store
        present = [
            Change("ADDED", item.version, of.key, item, None)
            for of in RESOURCES
            if not of.storage
            for item in store.list(of)
        ]
        for change in present:  # first all of it, or owners would be missed that come later
            self._guarded(shared.family.hear, change)
        for change in present:
            self._hear_one(change, shared)
        store.listen(self._hear)

    def close(self) -> None:
        """Stop at once."""
        self._shared = None
        if self.queue is not None:
            self.queue.close()

    def _hear(self, change: Change) -> None:
        if self._shared is not None:
            self._guarded(self._shared.family.hear, change)
            self._hear_one(change, self._shared)

    def _hear_one(self, change: Change, shared: Shared) -> None:
        if change.resource == PODS.key:
            self._guarded(shared.pods.hear, change)
        for controller in self._hearers.get(change.resource, ()):
            self._guarded(controller.hear, change)

    def _guarded(self, hear: Callable[[Change], None], change: Change) -> None:
        """Whoever wrote this must not suffer for what we can't read."""
        try:
            hear(change)
        except Exception:
            if self.queue is not None:
                self.queue.accidents += 1
            extra = {"resource": change.resource, "object": change.new.name}
            log.exception("a controller could not take in a change", extra=extra)
