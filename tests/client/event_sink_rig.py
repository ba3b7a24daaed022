"""A sink of Events on a virtual loop, and the server that takes them."""

from __future__ import annotations

import random
from typing import Any

from tests.faulty_transport import FaultyServer
from tests.loop_rig import LoopRig

from mooring.api.core import Namespace
from mooring.api.meta import ObjectReference
from mooring.client.client import ApiClient
from mooring.client.events import EventSink
from mooring.client.flowcontrol import RateLimiter, WritesInProgress
from mooring.client.transport import NewFence
from mooring.cluster.apiserver.events import from_storage
from mooring.cluster.apiserver.resources import known
from mooring.simulator.clock import EPOCH

EVENTS = known("events", "events.k8s.io")


class EventSinkRig(LoopRig):
    """A sink that runs on a virtual loop, and its server."""

    def __init__(
        self,
        capacity: int = 1000,
        limiter: RateLimiter | None = None,
        fence: NewFence | None = None,
    ) -> None:
        super().__init__()
        self.server = FaultyServer(self._now)
        self.server.put(Namespace, "shop")
        self.writes = WritesInProgress()
        self.sink = EventSink(
            ApiClient(self.server, limiter=limiter, fence=fence),
            host="host",
            clock=self._now,
            capacity=capacity,
            rng=random.Random(1),
            writes=self.writes,
        )
        self.task = self.loop.create_task(self.sink.run())
        self.loop.settle()

    def _now(self) -> float:
        return EPOCH + self.loop.time()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the server has, oldest first."""
        items = sorted(self.server.store.items(EVENTS), key=lambda item: item.version)
        return [from_storage(EVENTS, item.decoded()) for item in items]

    def only(self) -> dict[str, Any]:
        [event] = self.events
        return event

    def regarding(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["regarding"]["name"] == name]

    def seen(self) -> int:
        """How many events were seen, as far as the server was told."""
        return sum(event.get("series", {"count": 1})["count"] for event in self.events)

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


def pod(name: str, namespace: str = "shop") -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", namespace=namespace, name=name, uid="u")
