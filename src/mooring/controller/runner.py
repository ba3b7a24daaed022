"""Runs a pod controller on an API server, as the work of a `Component`."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from mooring.client.component import GRACE, Component
from mooring.client.flowcontrol import Backoff, TokenBucket
from mooring.client.informer import nodes_and_pods
from mooring.client.lease import Election, LeaderElection, uptime
from mooring.client.permissions import binding_permissions
from mooring.client.pod_binder import PodBinder
from mooring.client.transport import Transport
from mooring.controller.chooser import NodeChooser
from mooring.controller.metrics import ControllerMetrics
from mooring.controller.placing import Placer
from mooring.controller.reconciler import Reconciler
from mooring.controller.recorder import Recorder
from mooring.controller.view import ClusterView
from mooring.controller.workqueue import WorkQueue
from mooring.runtime.guard import DEFAULT_BUDGET, Guard

if TYPE_CHECKING:
    from mooring.controller.app import Controller

log = logging.getLogger(__name__)

_RETRIES: Final = (100.0, 500)  # a second, and at once: of pods that were put off


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run a controller."""

    workers: int = 16  # pods that are bound at once
    qps: float = 50.0  # requests a second; Events have as many of their own
    burst: int = 100
    node_selector: str = ""  # labels of the nodes to choose from, e.g. "pool=gpu"
    election: Election | None = None
    grace: float = GRACE  # seconds for binds under way at the end
    budget: float = DEFAULT_BUDGET  # seconds that one call of the function may keep us busy
    reviews: bool = False  # whether the process has endpoints that authenticate callers
    permission_check: float = 60.0  # seconds between two looks whether all rights are there


class Runner:
    """Runs one controller; `await run()` until `stop()`.

    `connect` makes a new transport each time: neither the lease nor a list may wait for binds.
    `clock` is the wall clock, `uptime` one that only goes forward.
    """

    def __init__(
        self,
        controller: Controller,
        connect: Callable[[], Transport],
        options: Options | None = None,
        *,
        metrics: ControllerMetrics | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime,
        rng: random.Random | None = None,
        host: str = "",
    ) -> None:
        options = options or Options()
        rng = rng or random.Random()
        self.name: str = controller.scheduler_name
        self.metrics: ControllerMetrics = metrics or ControllerMetrics()
        self.component: Component = Component(
            connect,
            self.metrics,
            qps=options.qps,
            burst=options.burst,
            election=options.election,
            needed=binding_permissions(reviews=options.reviews),
            permission_check=options.permission_check,
            grace=options.grace,
            host=host,
            clock=clock,
            uptime=uptime,
            rng=rng,
        )
        self.election: LeaderElection | None = self.component.election
        queue: WorkQueue[str] = WorkQueue(
            self.name,
            backoff=Backoff(controller.first_retry, controller.longest_retry, rng=rng),
            rate=TokenBucket(*_RETRIES),
            metrics=self.metrics,
        )
        chooser = NodeChooser(controller.function, budget=options.budget)
        self.guard: Guard = chooser.guard  # for a `Watchdog`
        self.view: ClusterView = ClusterView(
            self.name,
            on_pod=queue.add,
            on_gone=lambda key: placer.forget(key),
            on_room=lambda: placer.wake(),
        )
        placer = Placer(
            chooser,
            name=self.name,
            view=self.view,
            queue=queue,
            binder=PodBinder(self.component.writer),
            recorder=Recorder(self.component.events, self.name),
            metrics=self.metrics,
            at_once=controller.at_once,
        )
        self._reconciler = Reconciler(
            self.component.reader,
            placer.reconcile,
            name=self.name,
            workers=options.workers,
            queue=queue,
            metrics=self.metrics,
        )
        selector, reader = options.node_selector, self.component.reader
        self.component.informers.add(
            *nodes_and_pods(reader, self.view, node_selector=selector, rng=rng)
        )

    async def run(self) -> None:
        """Place pods until `stop`, then wait for binds and Events."""
        await self.component.run(self._reconciler, self._on_synced)

    def stop(self) -> None:
        """Begin no further pod, and end `run`."""
        self.component.stop()

    def _on_synced(self) -> None:
        sizes = {"nodes": len(self.view.nodes), "pods": self.view.cache.pod_count}
        log.info("Handlers synced", extra={"v": 0, "controller": self.name, **sizes})
