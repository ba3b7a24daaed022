"""The life of a scheduler process: assembled, started, leading or waiting, stopped in order.

    informers synced ─┐
    lease held ───────┴─▶ deciding ── SIGTERM ─▶ no further pod ─▶ binds ended ─▶ lease released
         ▲                   │
         └── lease lost ◀────┘   nothing is sent any more; caches stay warm for the next term

When the API server is away, the process stays and waits for it. It ends on SIGTERM or SIGINT, or
when one of its tasks fails with an unexpected error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import random
import signal
import socket
from typing import TYPE_CHECKING, Final

from mooring import __version__
from mooring.api import core
from mooring.cli.run.component import component_health, reviewer_for
from mooring.cli.run.settings import Settings
from mooring.client.client import ApiClient
from mooring.client.endpoint import Endpoint
from mooring.client.errors import Forbidden
from mooring.client.events import EventSink
from mooring.client.flowcontrol import RateLimiter
from mooring.client.http import HttpTransport
from mooring.client.informer import Informers
from mooring.client.lease import STOPPED, LeaderElection, default_identity
from mooring.client.permissions import Permission, PermissionCheck
from mooring.client.transport import Fence
from mooring.extender.calling.connecting import connect, documents_for
from mooring.observe import garbage_collection
from mooring.observe.metrics import Metrics
from mooring.observe.process import add_process_metrics
from mooring.observe.signals import handle_signals
from mooring.runtime.guard import Watchdog
from mooring.scheduler import rbac
from mooring.scheduler.clock import SystemClock
from mooring.scheduler.cluster import CONGESTED, Writer
from mooring.scheduler.conflicts import Conflict
from mooring.runtime.recorder import EventRecorder
from mooring.scheduler.scheduler import Scheduler
from mooring.scheduler.watching import informers_for, kinds_to_watch

if TYPE_CHECKING:
    from mooring.cli.run.endpoints import ComponentEndpoints

log = logging.getLogger(__name__)

_SYNCING: Final = "informers are not synced"
_WAITING: Final = "another replica is the leader"
_WRITTEN: Final = (core.Pod, core.PersistentVolume, core.PersistentVolumeClaim)  # by a leader
_EVENTS_WAITING: Final = 5_000  # to be written; further ones are dropped and counted
_EVENTS_LAST: Final = 3.0  # seconds for Events still waiting at the end


class Process:
    """One `mooring run`."""

    def __init__(self, settings: Settings, endpoint: Endpoint) -> None:
        self._settings = settings
        config = settings.config
        self.metrics: Metrics = Metrics()
        add_process_metrics(self.metrics)
        self.metrics.before_scrape(self._measure)
        self._stop = asyncio.Event()
        self._leading = asyncio.Event()  # has been leader once
        self._took_over = asyncio.Event()  # a term has begun and caches may be behind
        self._transports: list[HttpTransport] = []
        # The requests of one transport wait for each other. The lease must be renewed whatever else
        # is going on, and a list must not wait behind slow binds: hence three transports.
        self.election: LeaderElection | None = self._make_election(self._connect(endpoint))
        writing, connection = self._connect(endpoint), config.client_connection
        self._client = self._make_client(
            writing,
            RateLimiter(connection.qps, connection.burst),
            self.election.fence if self.election is not None else None,
        )
        self._writer = Writer(
            self._client, on_conflict=self._count, on_congestion=self._on_congestion
        )
        self._events = EventSink(
            self._make_client(writing, RateLimiter(connection.qps, connection.burst)),
            host=socket.gethostname(),
            capacity=_EVENTS_WAITING,
            binds=self._writer.binds,
        )
        documents = documents_for(config.extenders)
        self._extenders = connect(
            config.extenders,
            documents,
            user_agent=_user_agent(),
            fence=self.election.fence if self.election is not None else None,
            scoring=self.metrics.goroutines.labels("prioritizing_extender"),
        )
        self.scheduler: Scheduler = Scheduler(
            config,
            client=self._writer,
            recorder=EventRecorder(self._events),
            clock=SystemClock(),
            rng=random.Random(),
            plugins=settings.plugins,
            metrics=self.metrics,
            max_in_unschedulable=settings.options.pod_max_in_unschedulable_pods_duration.seconds,
            extenders=self._extenders,
            check_share=settings.options.check_decisions,
        )
        self._reader = self._make_client(self._connect(endpoint))
        self.informers: Informers = informers_for(
            self.scheduler.handlers,
            kinds_to_watch(settings.plans),
            self._reader,
            settings.options.node_selector,
            documents,
        )
        self.permissions: PermissionCheck = PermissionCheck(
            self._reader,
            self._needed(),
            every=settings.options.permission_check_interval.seconds,
        )
        self._endpoints: ComponentEndpoints | None = None
        if settings.options.secure_port:
            # Half a second of imports that a scheduler without endpoints does not need.
            from mooring.cli.run.endpoints import ComponentEndpoints

            self._endpoints = ComponentEndpoints(
                settings.options,
                health=component_health(
                    election=self.election,
                    informers=self.informers,
                    permissions=self.permissions,
                    is_stopping=self._stop.is_set,
                ),
                metrics=self.metrics,
                reviewer=reviewer_for(settings.options, self._reader, self._connect),
                reader=self._reader,
                document=settings.to_document(),
            )

    # --- assembling ----------------------------------------------------------------------------

    def _make_client(
        self,
        transport: HttpTransport,
        limiter: RateLimiter | None = None,
        fence: Fence | None = None,
    ) -> ApiClient:
        return ApiClient(transport, limiter=limiter, fence=fence, on_forbidden=self._on_forbidden)

    def _make_election(self, transport: HttpTransport) -> LeaderElection | None:
        election = self._settings.config.leader_election
        if not election.leader_elect:
            return None
        return LeaderElection(
            self._make_client(transport),
            namespace=election.resource_namespace,
            name=election.resource_name,
            identity=default_identity(),
            lease_duration=election.lease_duration.seconds,
            renew_deadline=election.renew_deadline.seconds,
            retry_period=election.retry_period.seconds,
            on_started=self._on_leading,
            on_stopped=self._on_stopped_leading,
        )

    def _needed(self) -> list[Permission]:
        settings = self._settings
        serves = settings.options.secure_port != 0
        needed = rbac.cluster_permissions(settings.plans, reviews=serves)
        election = settings.config.leader_election
        if election.leader_elect:
            needed += rbac.lease_permissions(election.resource_namespace, election.resource_name)
        return needed

    def _connect(self, endpoint: Endpoint) -> HttpTransport:
        transport = HttpTransport(
            endpoint, user_agent=_user_agent(), on_answer=self.metrics.count_request
        )
        self._transports.append(transport)
        return transport

    # --- running --------------------------------------------------------------------------------

    async def run(self) -> int:
        """Until SIGTERM or SIGINT; the exit code."""
        handle_signals(self._on_signal)
        self.scheduler.hold(_SYNCING)
        garbage_collection.collect_rarely()
        try:
            if self._endpoints is not None:
                await self._endpoints.start()
            with Watchdog(self.scheduler.guard):
                async with asyncio.TaskGroup() as tasks:
                    await self._live(tasks)
        finally:
            if self._endpoints is not None:
                await self._endpoints.close()
            for transport in self._transports:
                await transport.close()
            await self._extenders.close()
        log.info("stopped", extra={"v": 0})
        return 0

    async def _live(self, tasks: asyncio.TaskGroup) -> None:
        background = [
            tasks.create_task(self._watch(), name="informers"),
            tasks.create_task(self._events.run(), name="events"),
            tasks.create_task(self.permissions.run(), name="permissions"),
        ]
        if self.election is None:
            self._leading.set()
        else:
            self.scheduler.hold(_WAITING)
            background.append(tasks.create_task(self.election.run(), name="leader election"))
            background.append(tasks.create_task(self._catch_up(self.election), name="catching up"))
        if self._endpoints is not None:
            background.append(tasks.create_task(self._endpoints.run(), name="client CA"))
        scheduling = tasks.create_task(self.scheduler.run(), name="scheduler")
        await self._stop.wait()
        await self._end_scheduling(scheduling)
        await self._events.drain(_EVENTS_LAST)
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        if self.election is not None:
            await self.election.release()

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            if self._settings.config.delay_cache_until_active:
                await self._leading.wait()
            watching = tasks.create_task(self.informers.run())
            await self.informers.wait_synced()
            garbage_collection.freeze_existing_objects()
            log.info("Handlers synced", extra={"v": 0, **self._sizes()})
            self.scheduler.release(_SYNCING)
            await watching

    async def _catch_up(self, election: LeaderElection) -> None:
        """Before a term begins, refresh what the last leader wrote: watches may be behind."""
        while True:
            await self._took_over.wait()
            self._took_over.clear()
            if self.informers.all_synced:  # else what is being listed is as new as our term
                await self.informers.refresh(_WRITTEN)
            if election.is_leader and not self._took_over.is_set():
                self.scheduler.release(_WAITING)

    async def _end_scheduling(self, scheduling: asyncio.Task[None]) -> None:
        """Decide no further pod; bindings under way have the grace period to end."""
        self.scheduler.stop()
        grace = self._settings.options.shutdown_grace_period.seconds
        done, _ = await asyncio.wait([scheduling], timeout=grace)
        if not done:
            log.warning("bindings did not end in time and are given up", extra={"grace": grace})
            scheduling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await scheduling

    def _on_signal(self, number: int) -> None:
        if self._stop.is_set():
            log.warning("asked twice to stop: going at once")
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        log.info("Requested to terminate, exiting", extra={"v": 0})
        self._stop.set()

    # --- what the parts report -----------------------------------------------------------------

    def _on_leading(self) -> None:
        self._leading.set()
        self._took_over.set()

    def _on_stopped_leading(self, reason: str) -> None:
        if reason != STOPPED:
            log.error("Leaderelection lost", extra={"reason": reason})
        self.scheduler.hold(_WAITING)

    def _on_congestion(self, is_congested: bool) -> None:
        if is_congested:
            self.scheduler.hold(CONGESTED)
        else:
            self.scheduler.release(CONGESTED)

    def _on_forbidden(self, error: Forbidden) -> None:
        self.permissions.poke()

    def _count(self, kind: Conflict) -> None:
        self.metrics.conflicts.labels(kind.value).add()

    def _measure(self) -> None:
        self.metrics.dropped_events.labels().set(self._events.dropped)
        for informer in self.informers:
            unreadable = self.metrics.undecodable_objects.labels(informer.resource)
            unreadable.set(informer.reflector.undecodable)
        if self.election is not None:
            lease = self._settings.config.leader_election.resource_name
            self.metrics.leader.labels(lease).set(int(self.election.is_leader))

    def _sizes(self) -> dict[str, int]:
        cache = self.scheduler.cache
        return {"nodes": len(cache.nodes), "pods": cache.pod_count}


def _user_agent() -> str:
    return f"mooring/{__version__} ({platform.system().lower()}/{platform.machine()})"
