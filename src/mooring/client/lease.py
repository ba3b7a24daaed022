"""Leader election with a Lease, and the fence that keeps a former leader from writing.

The holder renews the Lease; another replica takes it once it has not changed for its duration. As
in client-go every replica measures that with a clock of its own, so no two clocks need to agree.

    candidate ── a write with our name was accepted ──────────────────────▶ leader
        ▲                                                                     │
        └── renew_deadline since the last renewal, or another name is in it ──┘

A leader may write until `renew_deadline` after the *start* of its last accepted renewal, and others
wait `lease_duration` from when they *observed* it: the difference is the time that a write may be
in flight, and what clocks may differ in speed. `fence` checks that at each write, so that a process
that was stopped and goes on finds out before any task has run. While the loop of a leader stands
still, a copy of the process may renew the lease for it: see `lease_stand_in`.

The lease is replaced (PUT with its resourceVersion), not patched: roles written for leader election
grant get, create and update, and a Lease has no field that our struct would lose.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from mooring.api.coordination import Lease, LeaseSpec
from mooring.api.meta import ObjectMeta, format_time
from mooring.client.client import ApiClient
from mooring.client.errors import ConflictError, Fenced, NotFound
from mooring.client.lease_stand_in import Renewals
from mooring.errors import ApiError, Problem

log = logging.getLogger(__name__)

STOPPED: Final = "the election was stopped"  # the reason of an end that was asked for
JITTER: Final = 1.2  # a candidate looks again after one to this many retry periods
_SHORTEST_PAUSE: Final = 0.01  # seconds; a clock that disagrees with the loop's must not spin it
_TOLERATED: Final = 20.0  # seconds past the lease's end until a leader is unhealthy, as kube does
_FAILURES: Final = (ApiError, TimeoutError)
_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def uptime() -> float:
    """Seconds on a clock that only goes forward; on Linux and macOS also while suspended."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """The lease by which replicas elect a leader; times in seconds."""

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class LeaderElection:
    """One candidate for one lease; `client` is its own, without limiter and fence.

    The callbacks are plain functions, called in turn: `on_started`, `on_stopped` with the reason,
    `on_new_leader` with an identity, ours included. `is_leader` may end before `on_stopped` is
    called, and never begins before `on_started`.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_started: Callable[[], None] | None = None,
        on_stopped: Callable[[str], None] | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        now: Callable[[], float] = uptime,
        wall: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        if not identity:
            raise ValueError("identity: expected a name that no other replica has, got none")
        if not lease_duration > renew_deadline > JITTER * retry_period > 0:
            raise ValueError(
                f"expected lease_duration > renew_deadline > {JITTER} * retry_period > 0, "
                f"got {lease_duration:g}, {renew_deadline:g} and {retry_period:g} seconds"
            )
        self.identity: str = identity
        self._client = client
        self._namespace = namespace
        self.name: str = name
        self._lock = f"{namespace}/{name}"
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self.retry_period: float = retry_period
        # One request that hangs must leave time for another, as client-go arranges it.
        self._request_timeout = max(renew_deadline / 2, 1.0)
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._on_new_leader = on_new_leader
        self._now = now
        self._wall = wall
        self._rng = rng or random.Random()

        self._observed: Lease | None = None  # as last read or written
        self._observed_at = 0.0  # our clock, when that record was new
        self._reported = ""  # the last leader that `on_new_leader` was told
        self._leading = False
        self._renewals = Renewals()
        self._stopped_at: float | None = None  # our clock, when we last ceased to lead
        self._may_hold = False  # a write of ours may have put our name into the lease
        self._last_error = ""  # logged once

    # --- what others ask -----------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self._leading and self._now() < self._deadline

    @property
    def leader(self) -> str:
        """The holder of the lease when it was last observed; empty if none."""
        return _holder(self._observed)

    def fence(self) -> None:
        """Raise `Fenced` unless this process is the leader in this moment."""
        if self.is_leader:
            return
        ended = self._deadline if self._leading else self._stopped_at
        if ended is None:
            raise Fenced(f"this process has never been the leader of the lease {self._lock}")
        ago = self._now() - ended
        since = format_time(self._wall() - ago)
        raise Fenced(
            f"this process is not the leader of the lease {self._lock} since {since} "
            f"({ago:.1f} s ago)"
        )

    def check(self) -> str:
        """Why a health check should fail; empty if it should not.

        A leader whose task is stuck can't stop itself: then its kubelet has to.
        """
        lapsed = self._renewals.latest + self._lease_duration
        if self._leading and self._now() > lapsed + _TOLERATED:
            return f"failed election to renew leadership on lease {self._lock}"
        return ""

    # --- the life of a candidate ---------------------------------------------------------------

    async def run(self) -> None:
        """Acquire the lease, renew it, and again after losing it; until cancelled."""
        log.info("attempting to acquire the lease", extra={"v": 0, **self._named()})
        try:
            while True:
                await self._acquire()
                self._start()
                self._stop(await self._renew())
        finally:
            if self._leading:
                self._stop(STOPPED)

    async def release(self) -> None:
        """Take our name out of the lease, so that the next leader need not wait; never raises.

        To be called when `run` has ended and all work that the lease guards is done.
        """
        self._leading = False
        if not self._may_hold:
            return
        try:
            async with asyncio.timeout(self._renew_deadline):
                # Read it first: a renewal may have been carried out without an answer.
                lease = await self._read()
                self._observe(lease)
                if _holder(lease) == self.identity:
                    time_ = self._time_of_writing(lease.spec)
                    freed = replace(
                        lease.spec,
                        holder_identity="",
                        lease_duration_seconds=1,
                        acquire_time=time_,
                        renew_time=time_,
                    )
                    given = replace(lease, spec=freed)
                    self._observe(await self._client.replace(given, fenced=False))
                    log.info("released the lease", extra={"v": 0, **self._named()})
            self._may_hold = False
        except NotFound:
            self._may_hold = False
        except _FAILURES as error:
            extra = self._named(error=_text(error))
            log.warning("could not release the lease; others wait until it lapses", extra=extra)

    # --- in a copy of the process ----------------------------------------------------------------

    def needs_stand_in(self, silence: float) -> bool:
        """Whether to renew the lease for a loop that has stood still for so long; 0: it runs.

        Once for each standstill, and never after the deadline: another may have had it since.
        """
        now = self._now()
        return silence > 0 and self._renewals.stand_in < now - silence and now < self._deadline

    async def renew_as_stand_in(self, client: ApiClient, silence: Callable[[], float]) -> bool:
        """Renew the lease if it is still ours, and still needed; whether that was done."""
        lease = await self._in_time(client.get(Lease, self.name, self._namespace))
        if _holder(lease) != self.identity or not self.needs_stand_in(silence()):
            return False
        started = self._now()
        await self._in_time(client.replace(self._renewed(lease), fenced=False))
        self._renewals.stand_in = started
        return True

    # --- acquiring and renewing ------------------------------------------------------------------

    async def _acquire(self) -> None:
        """Try until a write of our name is accepted in time."""
        while True:
            if await self._try_to_hold(self._renew_deadline) and self._now() < self._deadline:
                return
            pause = self.retry_period * self._rng.uniform(1.0, JITTER)
            remaining = self._held_by_other_for()
            if remaining > 0:
                pause = min(pause, remaining)  # be there when it lapses
            await asyncio.sleep(max(pause, _SHORTEST_PAUSE))

    async def _renew(self) -> str:
        """Renew until that fails; the reason."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self.retry_period
        while True:
            left = self._deadline - self._now()
            await asyncio.sleep(max(min(due - loop.time(), left), 0.0))
            deadline = self._deadline
            left = deadline - self._now()
            if left > 0:
                due = loop.time() + self.retry_period
                await self._try_to_hold(left)
                if self.leader != self.identity:
                    return f"the lease is held by {self.leader or 'no replica'}"
            # A write that began after our deadline may follow the term of another leader.
            if self._renewals.own >= deadline or self._now() >= self._deadline:
                return f"the lease was not renewed within {self._renew_deadline:g} s"

    def _start(self) -> None:
        self._leading = True
        log.info("became leader", extra={"v": 0, **self._named()})
        if self._on_started is not None:
            self._on_started()

    def _stop(self, reason: str) -> None:
        self._leading = False
        self._stopped_at = min(self._now(), self._deadline)
        log.info("stopped leading", extra=self._named(reason=reason))
        if self._on_stopped is not None:
            self._on_stopped(reason)

    # --- one try -------------------------------------------------------------------------------

    async def _try_to_hold(self, seconds: float) -> bool:
        """Write our name into the lease if we may; whether that was accepted, and in time."""
        try:
            async with asyncio.timeout(seconds):
                accepted = await self._acquire_or_renew()
        except _FAILURES as error:
            text = _text(error)
            # Not the same warning every two seconds.
            is_known = text == self._last_error or getattr(error, "is_logged", False)
            level = logging.DEBUG if is_known else logging.WARNING
            log.log(level, "could not acquire or renew the lease", extra=self._named(error=text))
            self._last_error = text
            return False
        self._last_error = ""
        return accepted

    async def _acquire_or_renew(self) -> bool:
        if self._observed is not None and self.leader == self.identity:
            try:
                return await self._write(self._observed)
            except (ConflictError, NotFound):  # what we know is old
                log.debug("the lease has changed since it was read", extra=self._named())
        try:
            return await self._acquire_if_free()
        except ConflictError:  # another replica was faster
            return await self._acquire_if_free()

    async def _acquire_if_free(self) -> bool:
        """Read the lease, and write our name into it unless another replica holds it."""
        try:
            lease = await self._read()
        except NotFound:
            # Deleted by hand, perhaps; its holder does not know yet, so wait for its deadline.
            return self._held_by_other_for() <= 0 and await self._create()
        self._observe(lease)
        if self._leading and self.leader != self.identity:
            return False  # lost: even if it is free now, there may have been another leader
        return self._held_by_other_for() <= 0 and await self._write(lease)

    def _held_by_other_for(self) -> float:
        """Seconds for which another replica still holds the lease; none if not positive."""
        if self._observed is None or self.leader in ("", self.identity):
            return 0.0
        duration = self._observed.spec.lease_duration_seconds or self._lease_duration
        return self._observed_at + duration - self._now()

    async def _read(self) -> Lease:
        return await self._in_time(self._client.get(Lease, self.name, self._namespace))

    async def _create(self) -> bool:
        meta = ObjectMeta(name=self.name, namespace=self._namespace)
        spec = replace(self._ours(LeaseSpec()), lease_transitions=0)
        return await self._send(self._client.create(Lease(metadata=meta, spec=spec)))

    async def _write(self, lease: Lease) -> bool:
        return await self._send(self._client.replace(self._renewed(lease), fenced=False))

    async def _send(self, write: Awaitable[Lease]) -> bool:
        started = self._now()
        self._may_hold = True
        lease = await self._in_time(write)
        self._renewals.own = started
        self._observe(lease)
        return True

    async def _in_time(self, asked: Awaitable[Lease]) -> Lease:
        async with asyncio.timeout(self._request_timeout):
            return await asked

    def _renewed(self, lease: Lease) -> Lease:
        return replace(lease, spec=self._ours(lease.spec))

    def _ours(self, spec: LeaseSpec) -> LeaseSpec:
        time_ = self._time_of_writing(spec)
        kept = spec.holder_identity == self.identity
        return replace(
            spec,
            holder_identity=self.identity,
            # Rounded up: others may wait longer than asked, never shorter.
            lease_duration_seconds=math.ceil(self._lease_duration),
            acquire_time=spec.acquire_time if kept else time_,
            renew_time=time_,
            lease_transitions=(spec.lease_transitions or 0) + (not kept),
        )

    def _time_of_writing(self, spec: LeaseSpec) -> str:
        """The wall clock's time, but never that of the record before.

        A renewal that changes nothing would not be noticed, and the lease would lapse.
        """
        seconds = self._wall()
        text = format_time(seconds, micros=True)
        return format_time(seconds + 2e-6, micros=True) if text == spec.renew_time else text

    def _observe(self, lease: Lease) -> None:
        """Note the record, and since when it is unchanged: since the response, not the request."""
        if self._observed is None or lease.spec != self._observed.spec:
            self._observed_at = self._now()
        self._observed = lease
        if self.leader and self.leader != self._reported:
            self._reported = self.leader
            if self.leader != self.identity:
                log.info("new leader", extra={"v": 0, **self._named(leader=self.leader)})
            if self._on_new_leader is not None:
                self._on_new_leader(self.leader)

    @property
    def _deadline(self) -> float:
        return self._renewals.latest + self._renew_deadline

    def _named(self, **more: str) -> dict[str, str]:
        return {"lease": self._lock, "identity": self.identity, **more}


def default_identity() -> str:
    """A name that is unique, also among replicas on one host."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def refuse_foreign_lease(namespace: str, name: str) -> Problem | None:
    """A problem if the lease is that of kube-scheduler, which would stop."""
    if (namespace, name) != ("kube-system", "kube-scheduler"):
        return None
    return Problem(
        "leaderElection.resourceName",
        "the lease kube-system/kube-scheduler belongs to kube-scheduler; "
        "set leaderElection.resourceName or --leader-elect-resource-name",
    )


def _holder(lease: Lease | None) -> str:
    return (lease.spec.holder_identity or "") if lease is not None else ""


def _text(error: BaseException) -> str:
    return str(error) or "no answer in time"
