"""A server of Events in memory, slow or failing as a test wishes; and a rig for an EventSink."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from mooring.api.meta import ObjectReference
from mooring.client.client import ApiClient
from mooring.client.errors import Unreachable
from mooring.client.events import EventSink
from mooring.client.flowcontrol import BindsInProgress, RateLimiter
from mooring.client.transport import Fence, Request, Response, Stream
from mooring.simulator.clock import EPOCH, VirtualLoop

Fault = Callable[[Request], Response | Exception | None]


def refused(code: int, reason: str = "", message: str = "") -> Response:
    return Response(code, {}, json.dumps({"reason": reason, "message": message}).encode())


class EventServer:
    """`fault` looks at a request first: an answer or an error instead of the usual, or None."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}  # by path
        self.requests: list[Request] = []
        self.latency: float = 0.0
        self.fault: Fault = lambda _: None
        self.cuts_answers: bool = False

    @property
    def methods(self) -> str:
        return " ".join(request.method for request in self.requests)

    def only(self) -> dict[str, Any]:
        [event] = self.events.values()
        return event

    def seen(self) -> int:
        """How many events were seen, as far as the server was told."""
        return sum(e.get("series", {"count": 1})["count"] for e in self.events.values())

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        if fence is not None:
            fence()
        self.requests.append(request)
        if self.latency:
            await asyncio.sleep(self.latency)
        trouble = self.fault(request)
        if isinstance(trouble, Exception):
            raise trouble
        if trouble is not None:
            return trouble
        answer = self._answer(request)
        if self.cuts_answers:
            raise Unreachable("connection reset", sent=True)
        return answer

    def _answer(self, request: Request) -> Response:
        body = json.loads(request.body)
        if request.method == "POST":
            path = f"{request.path}/{body['metadata']['name']}"
            if path in self.events:
                return refused(409, "AlreadyExists")
            self.events[path] = body
            return Response(201, {}, request.body)
        assert request.method == "PATCH"
        if request.path not in self.events:
            return refused(404, "NotFound")
        self.events[request.path] |= body
        return Response(200, {}, json.dumps(self.events[request.path]).encode())

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError(f"nobody watches Events: {request.path}")

    async def close(self) -> None:
        """Nothing is held."""


class EventSinkRig:
    """A sink that runs on a virtual loop, and its server."""

    def __init__(
        self, capacity: int = 1000, limiter: RateLimiter | None = None, fence: Fence | None = None
    ) -> None:
        self.loop = VirtualLoop()
        self.server = EventServer()
        self.binds = BindsInProgress()
        self.sink = EventSink(
            ApiClient(self.server, limiter=limiter, fence=fence),
            host="host",
            clock=lambda: EPOCH + self.loop.time(),
            capacity=capacity,
            rng=random.Random(1),
            binds=self.binds,
        )
        self.task = self.loop.create_task(self.sink.run())
        self.loop.settle()

    def emit(
        self,
        name: str = "web",
        *,
        type_: str = "Warning",
        reason: str = "FailedScheduling",
        action: str = "Scheduling",
        note: str = "no room",
        related: ObjectReference | None = None,
    ) -> None:
        self.sink.emit(
            pod(name), type_, reason, action, note, related, controller="default-scheduler"
        )
        self.loop.settle()

    def stop(self) -> None:
        self.task.cancel()
        self.loop.settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.loop.close()


def pod(name: str, namespace: str = "shop") -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", namespace=namespace, name=name, uid="u")
