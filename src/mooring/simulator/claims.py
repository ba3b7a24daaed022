"""What an evaluation says of claims: the devices they would get, and what would be written.

`mooring evaluate` calls this; writes are recorded in the format of kube-scheduler's recordings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import structs

from mooring.api.codec import to_builtins
from mooring.api.core import Pod as ApiPod
from mooring.api.meta import Object, format_time
from mooring.api.resource import AllocationResult, ResourceClaim
from mooring.cache.node import Node
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.paths import resource_of
from mooring.framework import PreBind, Reserve
from mooring.framework._internal import MERGE, AllocatesClaims
from mooring.framework.plugin import Base
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.lens.private import Waits
from mooring.runtime.profile import Profile
from mooring.simulator.cluster import LocalCluster
from mooring.simulator.scenario import InFlightClaim

O = TypeVar("O", bound=Object)  # noqa: E741 - an object
Result = dict[str, Any]

GENERATED = "<generated>"  # stands for a random part
NOW = "<now>"


class WriteRecorder(LocalCluster):
    """Records writes of objects instead of making them; later reads see them."""

    def __init__(self, objects: Objects, now: float) -> None:
        super().__init__()
        self._now = format_time(now)
        self.writes: list[Result] = []
        self._known = objects
        self._changed: list[tuple[Object | None, Object]] = []
        self._later: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def find(self, kind: type[O], name: str, namespace: str) -> O | None:
        return self._known.get(kind, name, namespace)

    def store(self, value: O) -> O:
        if not isinstance(value, ApiPod):
            self._changed.append((self._known.put(value), value))
        return value

    def drop(self, value: Object) -> None:
        self._record("delete", value, {})
        self._changed.append((self._known.remove(value), value))

    def undo(self) -> None:
        """As if nothing had been written: the next pod finds the cluster as it was."""
        for before, value in reversed(self._changed):
            if before is not None:
                self._known.put(before)
            else:
                self._known.remove(value)
        self._changed.clear()
        self._later.clear()
        self.writes.clear()
        self.events.clear()

    async def create(self, value: O) -> O:
        builtins = to_builtins(value)
        kept = {"metadata": _without(builtins["metadata"], "name", "namespace", "uid")}
        meta = value.metadata
        named = structs.replace(meta, name=f"{meta.generate_name}{GENERATED}", uid=GENERATED)
        created = structs.replace(value, metadata=named)
        self._record("create", created, {**kept, "spec": builtins.get("spec", {})})
        return self.store(created)

    async def change(
        self, value: O, change: Mapping[str, Any], *, subresource: str = "", kind: str = MERGE
    ) -> O:
        if isinstance(value, ApiPod):
            self._record("patch", value, _without(change, "metadata"), subresource)
            return value
        written = await super().change(value, change, subresource=subresource, kind=kind)
        shown = to_builtins(written)
        if kind != MERGE:
            self._record("patch", written, change, subresource)
        elif subresource:
            self._record(
                "update",
                written,
                {"status": _shown(shown.get("status", {}), self._now)},
                subresource,
            )
        else:
            finalizers = {"finalizers": list(written.metadata.finalizers)}
            self._record("update", written, {"metadata": finalizers})
        return written

    def soon(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._later.append(write)

    def finish(self) -> list[Result]:
        """Make the writes that were put off: what was written since the last time."""
        for write in self._later:
            asyncio.run(write())
        self._later.clear()
        found, self.writes = self.writes, []
        return found

    def _record(
        self, verb: str, value: Object, shown: Mapping[str, Any], subresource: str = ""
    ) -> None:
        write: Result = {"verb": verb, "resource": resource_of(type(value))}
        if subresource:
            write["subresource"] = subresource
        write |= {"namespace": value.namespace, "name": value.name}
        if shown:
            write["object"] = shown
        self.writes.append(write)


class ClaimTrial:
    """The plugins of a profile that allocate claims, on one scenario."""

    def __init__(
        self,
        profile: Profile,
        recorder: WriteRecorder,
        in_flight: Sequence[InFlightClaim],
        objects: Objects,
    ) -> None:
        self._plugins = allocating(profile)
        self._recorder = recorder
        assume_in_flight(self._plugins, in_flight, objects)

    def bind(self, state: CycleState, pod: Pod, feasible: Sequence[Node], best: str) -> Result:
        """What would be allocated on each feasible node, and what happens on the best."""
        result: Result = {}
        for plugin in self._plugins:
            if plugin.name in state.skip_filter:
                continue
            found = {node.name: plugin.allocate(state, pod, node) for node in feasible}
            shown = {name: list(map(_allocated, one)) for name, one in found.items() if one}
            if shown:
                result["allocations"] = shown
            result["bind"] = self._bound(plugin, state, pod, best)
        return result

    def _bound(
        self, plugin: AllocatesClaims, state: CycleState, pod: Pod, node_name: str
    ) -> Result:
        result: Result = {"node": node_name}
        assert isinstance(plugin, Reserve)
        assert isinstance(plugin, PreBind)
        status = plugin.reserve(state, pod, node_name)
        result["reserve"] = status_of(status.by(plugin.name))
        if status.ok and plugin.pre_flight(state, pod, node_name).ok:
            try:
                status = asyncio.run(_finished(plugin.pre_bind(state, pod, node_name)))
                result["preBind"] = status_of(status.by(plugin.name))
            except Waits:
                result["waiting"] = True
        events = [f"{one.type} {one.reason} {one.note}" for one in self._recorder.events]
        if events:
            result["events"] = events
        writes = self._recorder.finish()
        if writes:
            result["writes"] = writes
        plugin.unreserve(state, pod, node_name)
        self._recorder.undo()
        return result

    def free(self, state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts) -> Result:
        """The claims of which PostFilter gives one back."""
        names = [
            claim.key
            for plugin in self._plugins
            for claim in plugin.deallocatable(state, pod, nodes, verdicts)
        ]
        return {"deallocatable": sorted(names)} if names else {}

    def writes_of_post_filter(self) -> Result:
        writes = self._recorder.finish()
        self._recorder.undo()
        return {"writes": writes} if writes else {}


def allocating(profile: Profile) -> list[AllocatesClaims]:
    """The plugins that allocate claims, at whichever points they are."""
    points: tuple[Base, ...] = (*profile.at(Reserve), *profile.at(PreBind))
    found = {one.name: one for one in points if isinstance(one, AllocatesClaims)}
    return list(found.values())


def assume_in_flight(
    plugins: Sequence[AllocatesClaims], in_flight: Sequence[InFlightClaim], objects: Objects
) -> None:
    """Tell plugins of allocations for other pods that are not written yet."""
    for one in in_flight:
        claim = objects.get(ResourceClaim, one.name, one.namespace)
        if claim is not None:
            status = structs.replace(claim.status, allocation=one.allocation)
            for plugin in plugins:
                plugin.assume_in_flight(structs.replace(claim, status=status))


async def _finished(work: Awaitable[Any]) -> Any:
    return await work


def status_of(status: Status) -> Result:
    """A status as recordings have it."""
    result: Result = {"code": status.code.label}
    if status.plugin and not status.ok:
        result["plugin"] = status.plugin
    if status.reasons:
        result["reasons"] = list(status.reasons)
    return result


def _allocated(found: tuple[ResourceClaim, AllocationResult]) -> Result:
    claim, allocation = found
    return {"claim": claim.key, "allocation": _shown(to_builtins(allocation))}


def _shown(value: Any, now: str = "") -> Any:
    """With random parts and the present time left out."""
    if isinstance(value, Mapping):
        return {
            key: GENERATED if key == "shareID" else _shown(one, now) for key, one in value.items()
        }
    if isinstance(value, list):
        return [_shown(one, now) for one in value]
    return NOW if value == now and now else value


def _without(value: Mapping[str, Any], *keys: str) -> Result:
    return {key: one for key, one in value.items() if key not in keys}
