"""What a plugin may ask its scheduler for, and the seams to the world behind it.

The protocols here are implemented by `runtime`, `queue` and `scheduler`, and by what writes to a
cluster: the simulator in process, or a client over the network.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mooring.api import core
from mooring.api.meta import Condition, Object
from mooring.cache.node import Node
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.state import CycleState
from mooring.framework.status import Status


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
        """Set one condition and, unless None, status.nominatedNodeName."""
        ...

    async def delete_pod(self, pod: Pod) -> None:
        """Delete this pod, and no other of the same name; fine if it is gone already."""
        ...

    async def update(self, value: Object) -> None:
        """Bring an object to this state; fails if it changed since `value` was read.

        What our structs do not know of an object is left as it is.
        """
        ...


class Recorder(Protocol):
    """Kubernetes Events, as `kubectl describe` shows them. Never blocks, never raises."""

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        """Tell about `pod`; `related` is another pod that has to do with it."""
        ...


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
        """Withdraw one plugin's hold; the pod goes on when no plugin holds it any more."""
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

    def nominated_nodes(self) -> Sequence[str]: ...


class WhatIf(Protocol):
    """The profile's filters, asked about a node as it might be.

    Clone the state, change the node in thought (`node.with_pod`, `node.without_pod`), tell the
    plugins with `add_pod`/`remove_pod`, then ask `fits`.
    """

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status: ...

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status: ...

    def fits(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """All Filter plugins on this node, with and without the pods that have a claim on it."""
        ...

    def is_ours(self, pod: Pod) -> bool:
        """Whether this process schedules such pods; others belong to another scheduler."""
        ...


class Handle(Protocol):
    """The few things a plugin may ask for. A twelfth member needs an ADR; see 0007."""

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

    @property
    def what_if(self) -> WhatIf: ...

    def activate(self, pods: Iterable[str]) -> None:
        """Move these pods ("namespace/name") to the active queue now."""
        ...
