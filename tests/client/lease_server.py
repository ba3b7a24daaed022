"""One lease on a server, and processes that want it, each with its own clocks, loop and wire.

True time belongs to the `World`. A process sees it through clocks that may run fast or slow and
whose wall time may be stepped. A paused process runs nothing, while its clock goes on.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from mooring.client.client import ApiClient
from mooring.client.errors import Unreachable
from mooring.client.lease import LeaderElection
from mooring.client.transport import Fence, Request, Response, Stream
from mooring.simulator.clock import EPOCH, VirtualLoop

NAMESPACE, NAME = "kube-system", "mooring"
COLLECTION = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PATH = f"{COLLECTION}/{NAME}"


class LeaseServer:
    """Keeps one lease, or none; a write must name the version it is based on."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.requests: list[Request] = []
        self._version = 100

    def put(self, *, holder: str, duration: int | None = 15, transitions: int = 3) -> None:
        """A lease as somebody else would leave it."""
        spec: dict[str, Any] = {"holderIdentity": holder, "leaseTransitions": transitions}
        if duration is not None:
            spec["leaseDurationSeconds"] = duration
        self._store({"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    @property
    def holder(self) -> str:
        return str(self.spec["holderIdentity"]) if self.lease else ""

    def answer(self, request: Request) -> Response:
        self.requests.append(request)
        body = json.loads(request.body) if request.body else {}
        match request.method, request.path:
            case "POST", path if path == COLLECTION:
                if self.lease is not None:
                    return status(409, "AlreadyExists")
                return self._store(body)
            case _, path if path != PATH or self.lease is None:
                return status(404, "NotFound")
            case "PUT", _:
                if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                    return status(409, "Conflict")
                return self._store(body)
            case "GET", _:
                return Response(200, {}, json.dumps(self.lease).encode())
        return status(405, "MethodNotAllowed")

    def _store(self, lease: dict[str, Any]) -> Response:
        # A write that changes nothing is not stored, and has no new version, as in etcd.
        if self.lease is None or self.lease["spec"] != lease["spec"]:
            self._version += 1
        lease["metadata"]["resourceVersion"] = str(self._version)
        self.lease = lease
        return Response(200, {}, json.dumps(lease).encode())


def status(code: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(code, headers or {}, json.dumps({"reason": reason, "message": reason}).encode())


class FaultyTransport:
    """What lies between a process and the server; `fault` says what is wrong with it.

    refused: no connection. hang: nothing arrives, nothing comes back. lost: it arrives, nothing
    comes back. cut: it arrives, and the connection breaks. late: it arrives `delay` seconds after
    the process stopped caring. error, busy: the server answers 500, or 429. slow: `delay` seconds
    each way. garbled: it arrives, and what comes back is `garbage`.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.fault: str = ""
        self.delay: float = 0.0
        self.garbage: bytes = b""

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        assert fence is None, "leases are written by a client without a fence"
        match self.fault:
            case "refused":
                raise Unreachable("connection refused", sent=False)
            case "hang":
                return await forever()
            case "lost":
                self._world.server.answer(request)
                return await forever()
            case "cut":
                self._world.server.answer(request)
                raise Unreachable("connection reset", sent=True)
            case "late":
                self._world.deliver(request, self.delay)
                return await forever()
            case "garbled":
                self._world.server.answer(request)
                return Response(200, {}, self.garbage)
            case "error":
                return status(500, "InternalError")
            case "busy":
                return status(429, "TooManyRequests", {"retry-after": "1"})
            case "slow":
                await asyncio.sleep(self.delay)
                answer = self._world.server.answer(request)
                await asyncio.sleep(self.delay)
                return answer
        return self._world.server.answer(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError(f"nobody watches a lease: {request.path}")

    async def close(self) -> None:
        """Nothing is held."""


async def forever() -> Response:
    nothing: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    return await nothing


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
        self.transport = FaultyTransport(world)
        self.transport.fault, self.transport.delay = "slow" if delay else "", delay
        self.wall_step: float = 0.0
        self.is_paused: bool = False
        self.told: list[str] = []
        self._suspended = 0.0  # seconds on our clock that the loop's has not counted
        self._started = world.time
        self._paused_at = 0.0
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

    def now(self) -> float:
        return self._offset + self._passed()

    def _passed(self) -> float:
        return (self.world.time - self._started) * self.rate

    def catch_up(self) -> None:
        self.loop.jump(self._passed() - self._suspended)

    def next_timer(self) -> float | None:
        """True time of the next thing this process will do by itself."""
        timer = self.loop.next_timer
        if self.is_paused or timer is None:
            return None
        return self._started + (timer + self._suspended) / self.rate

    def pause(self) -> None:
        self.is_paused, self._paused_at = True, self._passed()

    def resume(self, *, suspended: bool = False) -> None:
        """Go on; after a suspension of the machine, the loop's clock has not counted it."""
        self.is_paused = False
        if suspended:
            self._suspended += self._passed() - self._paused_at
        self.catch_up()

    def shut_down(self) -> None:
        """End in good order: stop the election, then give the lease back."""
        self.task.cancel()
        self.loop.settle()
        self.task = self.loop.create_task(self.election.release())
        self.loop.settle()

    def close(self) -> None:
        """End at once, as a crash would, but leave no task behind."""
        self.task.cancel()
        self.loop.settle()
        self.loop.close()


class World:
    """True time, one server and the processes of it."""

    def __init__(self) -> None:
        self.time: float = 0.0
        self.server = LeaseServer()
        self.processes: list[Process] = []
        self.on_step: Callable[[], None] = lambda: None
        self._underway: list[tuple[float, Request]] = []

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

    def leaders(self) -> list[str]:
        """Who would write if asked to now; a paused process would, if it woke up."""
        return [p.election.identity for p in self.processes if p.election.is_leader]

    def deliver(self, request: Request, delay: float) -> None:
        self._underway.append((self.time + delay, request))

    def advance(self, seconds: float) -> None:
        """Let true time pass, from one thing that happens to the next."""
        end = self.time + seconds
        while (due := self._next()) is not None and due <= end:
            self.time = max(self.time, due)
            self._arrive()
            for process in self.processes:
                if not process.is_paused:
                    process.catch_up()
                    self.on_step()
        self.time = end
        self._arrive()
        self.on_step()

    def _next(self) -> float | None:
        times = [t for p in self.processes if (t := p.next_timer()) is not None]
        return min(times + [at for at, _ in self._underway], default=None)

    def _arrive(self) -> None:
        for parcel in [p for p in self._underway if p[0] <= self.time]:
            self._underway.remove(parcel)
            self.server.answer(parcel[1])
