"""Runs a pod controller on an API server, from the first list to the end.

    informers synced ─┐
    lease held ───────┴─▶ placing pods ── stop ─▶ no further pod ─▶ binds ended ─▶ lease released
         ▲                     │
         └──── lease lost ◀────┘   nothing is sent any more; the cache is kept current

While the API server is down, the runner waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from mooring.api import core
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden
from mooring.client.events import EventSink
from mooring.client.flowcontrol import Backoff, RateLimiter, TokenBucket
from mooring.client.informer import UNFINISHED_PODS, Informer, Informers
from mooring.client.lease import STOPPED, LeaderElection, default_identity, uptime
from mooring.client.permissions import Permission, PermissionCheck
from mooring.client.pod_binder import PodBinder
from mooring.client.transport import Fence, Transport
from mooring.controller import rbac
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

_WAITING: Final = "another replica is the leader"
_RETRIES: Final = (100.0, 500)  # a second, and at once: of pods that were put off
_EVENTS_WAITING: Final = 5_000  # to be written; further ones are dropped and counted
_EVENTS_LAST: Final = 3.0  # seconds for Events that are still in line at the end


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """The lease by which replicas elect a leader; times in seconds."""

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run a controller."""

    workers: int = 16  # pods that are bound at once
    qps: float = 50.0  # requests a second; Events have as many of their own
    burst: int = 100
    node_selector: str = ""  # labels of the nodes to choose from, e.g. "pool=gpu"
    election: Election | None = None
    grace: float = 20.0  # seconds for binds under way at the end
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
        self._clock = clock
        self._uptime = uptime
        self._options = options = options or Options()
        self._connect_to = connect
        self._transports: list[Transport] = []
        self._rng = rng or random.Random()
        self._stop = asyncio.Event()
        self._took_over = asyncio.Event()  # a term has begun
        self.name: str = controller.scheduler_name
        self.metrics: ControllerMetrics = metrics or ControllerMetrics()
        self.metrics.before_scrape(self._measure)
        self.election: LeaderElection | None = self._make_election()
        self.reader: ApiClient = self._make_client(self._connect())  # changes nothing
        self.permissions: PermissionCheck = PermissionCheck(
            self.reader, self.needed(), every=options.permission_check
        )
        writing = self._connect()
        fence = self.election.fence if self.election is not None else None
        self._events = EventSink(
            self._make_client(writing, self._limiter()),
            host=host or socket.gethostname(),
            clock=clock,
            capacity=_EVENTS_WAITING,
            rng=self._rng,
        )
        queue: WorkQueue[str] = WorkQueue(
            self.name,
            backoff=Backoff(controller.first_retry, controller.longest_retry, rng=self._rng),
            rate=TokenBucket(*_RETRIES),
            metrics=self.metrics,
        )
        chooser = NodeChooser(controller.function, budget=options.budget)
        self.guard: Guard = chooser.guard  # for a `Watchdog`
        self.view: ClusterView = ClusterView(
            self.name,
            on_pod=queue.add,
            on_gone=lambda key: self._placer.forget(key),
            on_room=lambda: self._placer.wake(),
        )
        self._placer = Placer(
            chooser,
            name=self.name,
            view=self.view,
            queue=queue,
            binder=PodBinder(self._make_client(writing, self._limiter(), fence)),
            recorder=Recorder(self._events, self.name),
            metrics=self.metrics,
            at_once=controller.at_once,
        )
        self._reconciler = Reconciler(
            self.reader,
            self._placer.reconcile,
            name=self.name,
            workers=options.workers,
            queue=queue,
            metrics=self.metrics,
        )
        self.informers: Informers = self._reconciler.informers
        self._add_informers()

    def _connect(self) -> Transport:
        transport = self._connect_to()
        self._transports.append(transport)
        return transport

    def _limiter(self) -> RateLimiter:
        return RateLimiter(self._options.qps, self._options.burst)

    def _make_client(
        self, transport: Transport, limiter: RateLimiter | None = None, fence: Fence | None = None
    ) -> ApiClient:
        return ApiClient(transport, limiter=limiter, fence=fence, on_forbidden=self._on_forbidden)

    def _make_election(self) -> LeaderElection | None:
        election = self._options.election
        if election is None:
            return None
        return LeaderElection(
            self._make_client(self._connect()),
            **msgspec.structs.asdict(election),
            identity=default_identity(),
            on_started=self._took_over.set,
            on_stopped=self._on_stopped_leading,
            now=self._uptime,
            wall=self._clock,
            rng=self._rng,
        )

    def _add_informers(self) -> None:
        view, client, selector = self.view, self.reader, self._options.node_selector
        nodes = Informer(
            client,
            core.Node,
            on_put=view.put_node,
            on_remove=view.remove_node,
            labels=selector,
            rng=self._rng,
        )
        pods = Informer(
            client,
            core.Pod,
            on_put=view.put_pod,
            on_remove=view.remove_pod,
            fields=UNFINISHED_PODS,
            rng=self._rng,
        )
        self.informers.add(nodes)
        self.informers.add(pods)

    def needed(self) -> list[Permission]:
        """The permissions it needs."""
        found = rbac.cluster_permissions(reviews=self._options.reviews)
        if self._options.election is not None:
            election = self._options.election
            found += rbac.lease_permissions(election.namespace, election.name)
        return found

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def run(self) -> None:
        """Place pods until `stop`, then wait for binds and Events."""
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._live(tasks)
        finally:
            for transport in self._transports:
                await transport.close()

    def stop(self) -> None:
        """Begin no further pod, and end `run`."""
        self._stop.set()

    async def _live(self, tasks: asyncio.TaskGroup) -> None:
        background = [
            tasks.create_task(self._events.run(), name="events"),
            tasks.create_task(self.permissions.run(), name="permissions"),
            tasks.create_task(self._say_when_synced(), name="first list"),
        ]
        if self.election is not None:
            self._reconciler.hold(_WAITING)
            background.append(tasks.create_task(self.election.run(), name="leader election"))
            background.append(tasks.create_task(self._catch_up(self.election), name="catching up"))
        working = tasks.create_task(self._reconciler.run(), name=f"controller {self.name}")
        await self._stop.wait()
        await self._end(working)
        await self._events.drain(_EVENTS_LAST)
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        if self.election is not None:
            await self.election.release()

    async def _say_when_synced(self) -> None:
        await self.informers.wait_synced()
        sizes = {"nodes": len(self.view.nodes), "pods": self.view.cache.pod_count}
        log.info("Handlers synced", extra={"v": 0, "controller": self.name, **sizes})

    async def _catch_up(self, election: LeaderElection) -> None:
        """List pods before a term begins: watches may be behind what the last leader did."""
        while True:
            await self._took_over.wait()
            self._took_over.clear()
            if self.informers.all_synced:  # else the first list is new enough
                await self.informers.refresh((core.Pod,))
            if election.is_leader and not self._took_over.is_set():
                self._reconciler.release(_WAITING)

    async def _end(self, working: asyncio.Task[None]) -> None:
        self._reconciler.stop()
        done, _ = await asyncio.wait([working], timeout=self._options.grace)
        if not done:
            extra = {"controller": self.name, "grace": self._options.grace}
            log.warning("binds did not end in time and are given up", extra=extra)
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    def _on_stopped_leading(self, reason: str) -> None:
        if reason != STOPPED:
            log.error("Leaderelection lost", extra={"controller": self.name, "reason": reason})
        self._reconciler.hold(_WAITING)

    def _on_forbidden(self, error: Forbidden) -> None:
        self.permissions.poke()

    def _measure(self) -> None:
        self.metrics.dropped_events.labels().set(self._events.dropped)
        for informer in self.informers:
            unreadable = self.metrics.undecodable_objects.labels(informer.resource)
            unreadable.set(informer.reflector.undecodable)
        if self.election is not None and self._options.election is not None:
            leads = int(self.election.is_leader)
            self.metrics.leader.labels(self._options.election.name).set(leads)
