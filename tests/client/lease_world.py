"""One lease on a server, and processes that want it, each with its own clocks, loop and wire.

True time belongs to the `World`. A process sees it through clocks that may run fast or slow and
whose wall time may be stepped. A paused process runs nothing, while its clock goes on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from tests.faulty_transport import Fault, FaultyTransport, Hang, Refuse, Vanish

from mooring.client.client import ApiClient
from mooring.client.lease import LeaderElection
from mooring.client.lease_stand_in import renew_for
from mooring.client.transport import Fence, Request, Response
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.transport import LocalTransport
from mooring.simulator.clock import EPOCH, VirtualLoop

NAMESPACE, NAME = "kube-system", "mooring"
SILENT_AFTER = 0.5  # seconds
LEASES = known("leases", "coordination.k8s.io")

FAULTS: dict[str, Fault] = {
    "refused": Vanish(sent=False),
    "hang": Hang(),
    "lost": Hang(done=True),
    "cut": Vanish("connection reset", done=True),
    "error": Refuse(500, "InternalError"),
    "busy": Refuse(429, "TooManyRequests", retry_after=1),
}


class LeaseServer(LocalTransport):
    """The shipped server, and a short way to the one lease on it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        server = ApiServer(clock=clock)
        super().__init__(server)
        self.store = server.store
        self.requests: list[Request] = []  # those that arrived

    @property
    def lease(self) -> dict[str, Any] | None:
        item = self.store.get(LEASES, NAMESPACE, NAME)
        return None if item is None else item.decoded()

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    @property
    def holder(self) -> str:
        return str(self.spec["holderIdentity"]) if self.lease else ""

    def put(self, *, holder: str, duration: int | None = 15, **fields: Any) -> None:
        """A lease as another holder would leave it."""
        meta = {"name": NAME, "namespace": NAMESPACE, "uid": "u", **fields.pop("metadata", {})}
        spec = {"holderIdentity": holder, "leaseTransitions": 3, **fields}
        if duration is not None:
            spec["leaseDurationSeconds"] = duration
        head = {"kind": LEASES.kind, "apiVersion": LEASES.api_version}
        self.store.put(LEASES, {**head, "metadata": meta, "spec": spec})

    def delete(self) -> None:
        self.store.remove(LEASES, NAMESPACE, NAME)

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        assert fence is None, "leases are written by a client without a fence"
        self.requests.append(request)
        return await super().send(request)


class StoppableLoop(VirtualLoop):
    """A loop that can be left standing; then it finds that much time has passed at once."""

    @property
    def next_timer(self) -> float | None:
        return self._next_timer

    def jump(self, to: float) -> None:
        self._virtual_now = max(to, self._virtual_now)
        self.settle()


class Process:
    """A replica: an election on a loop, behind a wire, under clocks of its own."""

    def __init__(
        self, world: World, identity: str, rate: float, delay: float, **periods: float
    ) -> None:
        self.world = world
        self.rate = rate
        self.transport = FaultyTransport(world.server)
        self.transport.latency = delay
        self.wall_step: float = 0.0
        self.is_paused: bool = False
        self.told: list[str] = []
        self._suspended = 0.0  # seconds on our clock that the loop's has not counted
        self._started = world.time
        self._paused_at = 0.0
        self._last_beat = 0.0
        self._offset = 1000.0 * (1 + len(identity))  # clocks begin anywhere
        self.election = LeaderElection(
            ApiClient(self.transport),
            namespace=NAMESPACE,
            name=NAME,
            identity=identity,
            on_started=lambda: self.told.append("started"),
            on_stopped=lambda reason: self.told.append(f"stopped: {reason}"),
            on_new_leader=lambda leader: self.told.append(f"leader: {leader}"),
            now=self.now,
            wall=lambda: EPOCH + world.time + self.wall_step,
            rng=random.Random(identity),
            **periods,
        )
        self.loop = StoppableLoop()
        self.task: asyncio.Task[None] = self.loop.create_task(self.election.run())
        self.loop.settle()
        self.stand_in: StandInLoop | None = None

    def start_stand_in(self) -> None:
        """From now on the lease is renewed for it while it is paused."""
        self.stand_in = StandInLoop(self)

    def break_wire(self, fault: str | Fault, delay: float = 0.0) -> None:
        """`late`: requests arrive, `delay` seconds after the process stopped caring."""
        self.heal_wire()
        if fault == "slow":
            self.transport.latency = delay
        elif fault == "late":
            self.transport.fault = lambda asked: self.world.deliver(asked.request, delay)
        else:
            met = FAULTS[fault] if isinstance(fault, str) else fault
            self.transport.fault = lambda asked: met

    def heal_wire(self) -> None:
        self.transport.calm()

    def now(self) -> float:
        return self._offset + self.passed()

    def catch_up(self) -> None:
        self.loop.jump(self.passed() - self._suspended)

    def next_timer(self) -> float | None:
        """True time of the next thing this process will do by itself."""
        timer = self.loop.next_timer
        if self.is_paused or timer is None:
            return None
        return self.true_time(timer + self._suspended)

    def true_time(self, passed: float) -> float:
        return self._started + passed / self.rate

    def passed(self) -> float:
        return (self.world.time - self._started) * self.rate

    def silence(self) -> float:
        """Seconds for which it has been paused, as the stand-in is told."""
        seconds = self.passed() - self._last_beat if self.is_paused else 0.0
        return seconds if seconds >= SILENT_AFTER else 0.0

    def pause(self, since_beat: float = 0.0) -> None:
        """Stand still, so many seconds after the last heartbeat."""
        self.is_paused, self._paused_at = True, self.passed()
        self._last_beat = self._paused_at - since_beat

    def resume(self, *, suspended: bool = False) -> None:
        """Go on; after a suspension of the machine, the loop's clock has not counted it."""
        self.is_paused = False
        if suspended:
            self._suspended += self.passed() - self._paused_at
        self.catch_up()

    def shut_down(self) -> None:
        """End in good order: stop the election, then give the lease back."""
        self.task.cancel()
        self.loop.settle()
        self.task = self.loop.create_task(self.election.release())
        self.loop.settle()

    def close(self) -> None:
        """End at once, as a crash would, but leave no task behind."""
        if self.stand_in is not None:
            self.stand_in.close()
        self.task.cancel()
        self.loop.settle()
        self.loop.close()


class StandInLoop:
    """The stand-in of a process: another loop with the same clock and wire, which never pauses."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._loop = StoppableLoop()
        self._loop.jump(process.passed())
        self._task = self._loop.create_task(
            renew_for(process.election, lambda: process.transport, process.silence)
        )
        self._loop.settle()

    def next_timer(self) -> float | None:
        """While the process runs it looks in vain."""
        timer = self._loop.next_timer
        if not self._process.is_paused or timer is None:
            return None
        return self._process.true_time(timer)

    def catch_up(self) -> None:
        self._loop.jump(self._process.passed())

    def close(self) -> None:
        self._task.cancel()
        self._loop.settle()
        self._loop.close()


class World:
    """True time, one server and the processes of it."""

    def __init__(self) -> None:
        self.time: float = 0.0
        self.server = LeaseServer(lambda: EPOCH + self.time)
        self.processes: list[Process] = []
        self.on_step: Callable[[], None] = lambda: None
        self._underway: list[tuple[float, Request]] = []
        self._loop = VirtualLoop()  # of what arrives without a process

    def start(
        self, identity: str, rate: float = 1.0, delay: float = 0.0, **periods: float
    ) -> Process:
        process = Process(self, identity, rate, delay, **periods)
        self.processes.append(process)
        self.on_step()
        return process

    def kill(self, process: Process) -> None:
        self.processes.remove(process)
        process.close()

    def close(self) -> None:
        while self.processes:
            self.kill(self.processes[0])
        self._loop.close()

    def leaders(self) -> list[str]:
        """Who would write if asked to now; a paused process would, if it woke up."""
        return [p.election.identity for p in self.processes if p.election.is_leader]

    def deliver(self, request: Request, delay: float) -> Fault:
        self._underway.append((self.time + delay, request))
        return Hang()

    def advance(self, seconds: float) -> None:
        """Let true time pass, from one thing that happens to the next."""
        end = self.time + seconds
        while (due := self._next()) is not None and due <= end:
            self.time = max(self.time, due)
            self._arrive()
            for process in self.processes:
                if process.stand_in is not None:
                    process.stand_in.catch_up()
                    self.on_step()
                if not process.is_paused:
                    process.catch_up()
                    self.on_step()
        self.time = end
        self._arrive()
        self.on_step()

    def _next(self) -> float | None:
        loops: list[Process | StandInLoop] = [*self.processes]
        loops += [p.stand_in for p in self.processes if p.stand_in is not None]
        times = [t for loop in loops if (t := loop.next_timer()) is not None]
        return min(times + [at for at, _ in self._underway], default=None)

    def _arrive(self) -> None:
        for parcel in [p for p in self._underway if p[0] <= self.time]:
            self._underway.remove(parcel)
            self._loop.create_task(self.server.send(parcel[1]))
            self._loop.settle()
