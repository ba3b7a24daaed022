"""The handle of a plugin: nodes, objects, clock, client, Events, waiting and nominated pods.

The protocols here are implemented by `runtime`, `queue` and `scheduler`; `Client` is implemented by
the simulator, in process, and by the API client, over the network.
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
    """The time; tests use a clock that they move themselves."""

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
        """Delete this pod, by uid; succeeds if the pod is already gone."""
        ...

    async def update(self, value: Object) -> None:
        """Update an object to this state; fails if it changed since `value` was read.

        Fields that the structs of `mooring.api` do not have are left unchanged.
        """
        ...


class Recorder(Protocol):
    """Kubernetes Events, as `kubectl describe` shows them. Never blocks, never raises."""

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        """Record an Event about `pod`; `related` is the Event's related object."""
        ...


class WaitingPod(Protocol):
    """A pod that waits at Permit. The first `reject` or last `allow` decides."""

    @property
    def pod(self) -> Pod: ...

    @property
    def node_name(self) -> str: ...

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of one plugin; it is bound once all its plugins have."""
        ...

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod, which returns to the queue; False if it was decided already."""
        ...


class WaitingPods(Protocol):
    """All pods that wait at Permit, of every profile."""

    def __iter__(self) -> Iterator[WaitingPod]: ...

    def get(self, uid: str) -> WaitingPod | None: ...


class Nominator(Protocol):
    """The pending pods that are nominated for a node, usually after a preemption."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]: ...

    def nominated_nodes(self) -> Sequence[str]: ...


class WhatIf(Protocol):
    """The profile's filters on a hypothetical node.

    Clone the state, take a changed node (`node.with_pod`, `node.without_pod`), update the state
    with `add_pod`/`remove_pod`, then call `fits`.
    """

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status: ...

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status: ...

    def fits(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """All Filter plugins on this node, with and without the pods nominated for it."""
        ...

    def is_ours(self, pod: Pod) -> bool:
        """Whether this process schedules such pods; others belong to another scheduler."""
        ...


class Handle(Protocol):
    """The services that a scheduler offers its plugins. A twelfth member needs an ADR; see 0007."""

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
        """The objects of the kinds in `reads`: services, claims, storage classes and so on."""
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
