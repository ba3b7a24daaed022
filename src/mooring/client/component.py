"""A process on an API server: its connections, and the life cycle around its work.

    informers synced ─┐
    lease held ───────┴─▶ at work ── stop ─▶ nothing new begins ─▶ work under way has ended
         ▲                   │                   ─▶ Events are sent ─▶ the lease is released
         └── lease lost ◀────┘   nothing is written any more; stores stay current

The work is that of a scheduler, a controller or an extender. While the API server is down, a
component waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec

from mooring.api import core
from mooring.client.client import ApiClient
from mooring.client.endpoint import Endpoint
from mooring.client.errors import Fenced, Forbidden
from mooring.client.events import EventSink
from mooring.client.flowcontrol import RateLimiter, WritesInProgress
from mooring.client.http import HttpTransport
from mooring.client.informer import Informers
from mooring.client.lease import STOPPED, Election, LeaderElection, default_identity, uptime
from mooring.client.lease_stand_in import renew_for
from mooring.client.permissions import Permission, PermissionCheck, lease_permissions
from mooring.client.reachability import Reachability
from mooring.client.transport import Fence, NewFence, Transport
from mooring.observe.component import ComponentMetrics

log = logging.getLogger(__name__)

SYNCING: Final = "informers are not synced"
STANDING_BY: Final = "another replica is the leader"
MAX_EVENTS: Final = 5_000  # waiting to be written; further ones are dropped and counted
GRACE: Final = 20.0  # seconds for work under way at the end
_EVENTS_LAST: Final = 3.0  # seconds for Events still waiting at the end
# Written by leaders, and listed again when a term begins.
_WRITTEN: Final = (core.Pod, core.PersistentVolume, core.PersistentVolumeClaim)


class Work(Protocol):
    """What a component is there for: `run` returns when all work under way has ended after `stop`.

    While there are holds, nothing new is begun.
    """

    async def run(self) -> None: ...

    def stop(self) -> None: ...

    def hold(self, why: str) -> None: ...

    def release(self, why: str) -> None: ...


class _Closable(Protocol):
    async def close(self) -> None: ...


_C = TypeVar("_C", bound=_Closable)


class Component:
    """Clients, leader election, Events, permissions and informers of a process.

    Add to `informers`, make the work of `reader`, `writer` and `events`, then `await run(work)`
    until `stop()`. `connect` makes a new transport each time; `reading` is one for the reader, if
    there is one already. Writes and Events have a rate limit
    of `qps` and `burst` each; 0 means none. `needed` are the permissions to check, besides those
    for the lease. `delay_informers` lists nothing before this process is the leader. `clock` is
    the wall clock, `uptime` one that only goes forward.
    """

    def __init__(
        self,
        connect: Callable[[], Transport],
        metrics: ComponentMetrics,
        *,
        reading: Transport | None = None,
        qps: float = 0.0,
        burst: int = 0,
        election: Election | None = None,
        needed: Sequence[Permission] = (),
        permission_check: float = 60.0,
        delay_informers: bool = False,
        grace: float = GRACE,
        max_events: int = MAX_EVENTS,
        host: str = "",
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = uptime,
        rng: random.Random | None = None,
    ) -> None:
        self._metrics = metrics
        self.renew_deadline: float = (election or Election(name="")).renew_deadline  # seconds
        self._grace = grace
        self._delay_informers = delay_informers
        self._to_close: list[_Closable] = []
        self._stop = asyncio.Event()
        self._leading = asyncio.Event()  # has been leader once
        self._term_began = asyncio.Event()  # and stores may be behind
        self._work: Work
        # The requests of one transport wait for each other. The lease must be renewed whatever else
        # is going on, and a list must not wait behind slow binds: hence three transports.
        self.reader: ApiClient = self._make_client(self.close_at_end(reading or connect()))
        self.election: LeaderElection | None = None
        # Renews the lease in a copy of this process, told how long this one has stood still.
        self.stand_in: Callable[[Callable[[], float]], Coroutine[Any, Any, None]] | None = None
        self._term: object | None = None  # in which the work may write
        fence: NewFence | None = None
        needed = list(needed)
        if election is not None:
            self.election = LeaderElection(
                self._make_client(self.close_at_end(connect())),
                **msgspec.structs.asdict(election),
                identity=default_identity(),
                on_started=self._on_started_leading,
                on_stopped=self._on_stopped_leading,
                now=uptime,
                wall=clock,
                rng=rng,
            )
            self.stand_in = partial(renew_for, self.election, connect)
            fence = partial(self._new_fence, self.election)
            needed += lease_permissions(election.namespace, election.name)
        writing = self.close_at_end(connect())
        self.fence: NewFence | None = fence  # that of `writer`
        self.writer: ApiClient = self._make_client(writing, _limiter(qps, burst), fence)
        self.writes: WritesInProgress = WritesInProgress()  # Events wait for them
        self.events: EventSink = EventSink(
            self._make_client(writing, _limiter(qps, burst)),
            host=host or socket.gethostname(),
            clock=clock,
            capacity=max_events,
            rng=rng,
            writes=self.writes,
        )
        self.informers: Informers = Informers(self.reader)
        self.permissions: PermissionCheck = PermissionCheck(
            self.reader, needed, every=permission_check
        )
        metrics.before_scrape(self._measure)

    def _make_client(
        self,
        transport: Transport,
        limiter: RateLimiter | None = None,
        fence: NewFence | None = None,
    ) -> ApiClient:
        return ApiClient(transport, limiter=limiter, fence=fence, on_forbidden=self._on_forbidden)

    def close_at_end(self, value: _C) -> _C:
        """Close it when `run` ends."""
        self._to_close.append(value)
        return value

    # --- running -------------------------------------------------------------------------------

    async def run(self, work: Work, on_synced: Callable[[], None] | None = None) -> None:
        """Work until `stop`; `on_synced` is called once, before the work begins."""
        self._work = work
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._live(tasks, on_synced)
        finally:
            for value in self._to_close:
                await value.close()

    def stop(self) -> None:
        """Begin nothing new; `run` returns when work under way has ended."""
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def _live(self, tasks: asyncio.TaskGroup, on_synced: Callable[[], None] | None) -> None:
        self._work.hold(SYNCING)
        background = [
            tasks.create_task(self._watch(on_synced), name="informers"),
            tasks.create_task(self.events.run(), name="events"),
            tasks.create_task(self.permissions.run(self.informers.wait_synced), name="permissions"),
        ]
        if self.election is None:
            self._leading.set()
        else:
            self._work.hold(STANDING_BY)
            background += [
                tasks.create_task(self.election.run(), name="leader election"),
                tasks.create_task(self._catch_up(self.election), name="catching up"),
            ]
        working = tasks.create_task(self._work.run(), name="work")
        await self._stop.wait()
        await self._end(working)
        await self.events.drain(_EVENTS_LAST)
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        if self.election is not None:
            await self.election.release()

    async def _watch(self, on_synced: Callable[[], None] | None) -> None:
        if self._delay_informers:
            await self._leading.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informers.run())
            await self.informers.wait_synced()
            if on_synced is not None:
                on_synced()
            self._work.release(SYNCING)

    async def _catch_up(self, election: LeaderElection) -> None:
        """Before a term begins, refresh what the last leader wrote: watches may be behind."""
        while True:
            await self._term_began.wait()
            self._term_began.clear()
            if self.informers.all_synced:  # else what is being listed is as new as our term
                await self.informers.refresh(_WRITTEN)
            if election.is_leader and not self._term_began.is_set():
                self._term = object()
                self._work.release(STANDING_BY)

    async def _end(self, working: asyncio.Task[None]) -> None:
        """Begin nothing new; work under way has the grace period to end."""
        self._work.stop()
        done, _ = await asyncio.wait([working], timeout=self._grace)
        if not done:
            extra = {"grace": self._grace}
            log.warning("bindings did not end in time and are given up", extra=extra)
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    # --- what the parts report -----------------------------------------------------------------

    def _on_started_leading(self) -> None:
        self._leading.set()
        self._term_began.set()

    def _on_stopped_leading(self, reason: str) -> None:
        if reason != STOPPED:
            log.error("Leaderelection lost", extra={"reason": reason})
        self._term = None
        self._work.hold(STANDING_BY)

    def _new_fence(self, election: LeaderElection) -> Fence:
        """For one write: it must be sent in the term in which it was decided.

        Another leader may have had the next one, and this process may lead again since.
        """
        term = self._term

        def fence() -> None:
            election.fence()
            if term is None or term is not self._term:
                raise Fenced("this process has lost the lease since this was decided")

        return fence

    def _on_forbidden(self, error: Forbidden) -> None:
        self.permissions.poke()

    def _measure(self) -> None:
        self._metrics.dropped_events.labels().set(self.events.dropped)
        for informer in self.informers:
            unreadable = self._metrics.undecodable_objects.labels(informer.resource)
            unreadable.set(informer.reflector.undecodable)
        if self.election is not None:
            self._metrics.leader.labels(self.election.name).set(int(self.election.is_leader))


def connector(
    endpoint: Endpoint, metrics: ComponentMetrics, user_agent: str
) -> Callable[[], HttpTransport]:
    """Transports to a real API server, for a Component."""
    reachability = Reachability(endpoint.url)  # one for all of them
    return lambda: HttpTransport(
        endpoint,
        user_agent=user_agent,
        on_answer=metrics.count_request,
        reachability=reachability,
    )


def _limiter(qps: float, burst: int) -> RateLimiter | None:
    return RateLimiter(qps, burst) if qps > 0 else None
