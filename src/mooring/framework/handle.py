"""What a plugin may ask its scheduler for, and the seams to the world behind it.

The protocols here are implemented further up (`runtime`, `queue`, `scheduler`) and by whoever
talks to a cluster: the simulator in process, later a client over the network.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mooring.api import core
from mooring.api.meta import Condition
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes


class Clock(Protocol):
    """Time, handed in so that tests can move it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Client(Protocol):
    """Writes to the cluster. Failures are raised as `mooring.errors.ApiError`."""

    async def bind(self, binding: core.Binding) -> None: ...

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        """Set the PodScheduled condition and, unless None, status.nominatedNodeName."""
        ...


class Recorder(Protocol):
    """Kubernetes Events, as `kubectl describe` shows them. Never blocks, never raises."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...


class WaitingPod(Protocol):
    """A pod held at Permit. The first signal wins."""

    @property
    def pod(self) -> Pod: ...

    @property
    def node_name(self) -> str: ...

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that still hold it."""
        ...

    def allow(self, plugin: str) -> None:
        """Withdraw one plugin's hold; the pod goes on when nobody holds it any more."""
        ...

    def reject(self, plugin: str, reason: str) -> bool:
        """Send the pod back to the queue; False if it was decided already."""
        ...


class WaitingPods(Protocol):
    """All pods held at Permit, of every profile."""

    def __iter__(self) -> Iterator[WaitingPod]: ...

    def get(self, uid: str) -> WaitingPod | None: ...


class Nominator(Protocol):
    """Which pending pods have a claim on which node, after preemption made room for them."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]: ...

    def nominated_nodes(self) -> Iterable[str]: ...


class Handle(Protocol):
    """The few things a plugin may ask for. An eleventh member needs an ADR."""

    @property
    def scheduler_name(self) -> str:
        """The profile this plugin instance belongs to."""
        ...

    @property
    def nodes(self) -> Nodes:
        """All nodes as they are now."""
        ...

    @property
    def objects(self) -> Objects:
        """Everything that is neither pod nor node: services, claims, classes and so on."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> random.Random: ...

    @property
    def client(self) -> Client: ...

    @property
    def recorder(self) -> Recorder: ...

    @property
    def waiting(self) -> WaitingPods: ...

    @property
    def nominator(self) -> Nominator: ...

    def activate(self, pods: Iterable[str]) -> None:
        """Move these pods ("namespace/name") to the active queue now."""
        ...
