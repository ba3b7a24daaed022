"""A cluster in memory: objects, the writes a scheduler makes, and a watch.

For a scheduler it behaves as an API server: it refuses to bind a bound, gated or terminating pod,
sets conditions, and reports changes after the write, not during it.
"""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from mooring.api import core
from mooring.api.meta import Condition, Object
from mooring.api.resource import ResourceClaim, ResourceClaimTemplate
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.client.errors import ConflictError, NotFound
from mooring.scheduler.handlers import Handlers
from mooring.simulator.claim_templates import claim_names, left_of, with_claims
from mooring.simulator.object_writes import O, ObjectWrites

AnyObject = Any  # any struct of mooring.api with metadata, or a Pod or Node view of one


class RecordedEvent(msgspec.Struct, frozen=True):
    """A Kubernetes Event about a pod."""

    pod: str  # "namespace/name"
    type: str
    reason: str
    action: str
    note: str


class LocalCluster(ObjectWrites):
    """Fulfils `framework.Client` and `framework.Recorder` for schedulers in the same process."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[RecordedEvent] = []
        self.bindings: list[tuple[str, str]] = []  # (pod key, node name), in order
        self._objects: dict[tuple[type[Any], str, str], Any] = {}
        self._watchers: list[Handlers] = []
        self._uids = itertools.count(1)
        self._versions = itertools.count(1)

    # --- reading -------------------------------------------------------------------------------

    def pod(self, key: str) -> core.Pod:
        """A pod by "namespace/name"; the namespace may be left out if it is default."""
        namespace, _, name = key.rpartition("/")
        try:
            found: core.Pod = self._objects[core.Pod, namespace or "default", name]
        except KeyError:
            raise KeyError(f"no pod {key}") from None
        return found

    def node(self, name: str) -> core.Node:
        found: core.Node = self._objects[core.Node, "", name]
        return found

    def pods(self) -> list[core.Pod]:
        return [value for (kind, _, _), value in self._objects.items() if kind is core.Pod]

    def nodes(self) -> list[core.Node]:
        return [value for (kind, _, _), value in self._objects.items() if kind is core.Node]

    # --- changing ------------------------------------------------------------------------------

    def watch(self, handlers: Handlers) -> None:
        """Send the current objects to `handlers`, and all changes from now on."""
        self._watchers.append(handlers)
        for _, values in itertools.groupby(self._objects.values(), type):
            _tell_put_all(handlers, list(values))

    def apply(self, *objects: AnyObject) -> None:
        """Create or replace objects: API structs, or what `mooring.testing` builds."""
        for kind, some in itertools.groupby(objects, type):
            given = list(some)
            values = [self._put(one.api if kind in (Pod, Node) else one) for one in given]
            for handlers in self._watchers:
                _tell_put_all(handlers, values)
            if kind is Node:
                self.apply(*(pod for node in given for pod in node.pods))

    def _put(self, given: Any) -> Any:
        """Store an object, and first the claims that are made for it if it is a pod."""
        value = self._stored(given)
        if isinstance(value, core.Pod) and value.spec.resource_claims:
            value, claims = self.with_claims(value)
            self.apply(*claims)
        self._objects[_key(value)] = value
        return value

    def delete(self, *objects: AnyObject) -> None:
        """Remove objects; missing ones are ignored."""
        for given in objects:
            value = given.api if isinstance(given, Pod | Node) else given
            known = self._objects.pop(_key(value), None)
            if known is not None:
                for handlers in self._watchers:
                    _tell_remove(handlers, known)
                if isinstance(known, core.Pod):
                    self._release_claims(known)

    def with_claims(self, pod: core.Pod) -> tuple[core.Pod, list[ResourceClaim]]:
        """A pod with the claims that templates make for it, and those claims."""
        return with_claims(pod, lambda name: self.find(ResourceClaimTemplate, name, pod.namespace))

    # --- framework.Client ----------------------------------------------------------------------

    async def bind(self, binding: core.Binding) -> None:
        pod = self._current(binding.metadata.namespace, binding.metadata.name)
        name = pod.metadata.name
        if binding.metadata.uid and pod.metadata.uid != binding.metadata.uid:
            raise _conflict(
                f"Precondition failed: UID in precondition: {binding.metadata.uid},"
                f" UID in object meta: {pod.metadata.uid}"
            )
        if pod.metadata.deletion_timestamp is not None:
            raise _conflict(f"pod {name} is being deleted, cannot be assigned to a host")
        if pod.spec.node_name:
            raise _conflict(f'pod {name} is already assigned to node "{pod.spec.node_name}"')
        if pod.spec.scheduling_gates:
            raise _conflict(f"pod {name} has non-empty .spec.schedulingGates")
        scheduled = Condition(type="PodScheduled", status="True")
        bound = structs.replace(
            pod,
            spec=structs.replace(pod.spec, node_name=binding.target.name),
            status=structs.replace(
                pod.status, conditions=_with(pod, scheduled), nominated_node_name=""
            ),
        )
        self.bindings.append((f"{pod.metadata.namespace}/{name}", binding.target.name))
        self._publish(bound)

    async def patch_pod_status(
        self, pod: Pod, condition: Condition | None, nominated_node: str | None
    ) -> None:
        current = self._current(pod.namespace, pod.name)
        status = current.status
        if condition is not None:
            status = structs.replace(status, conditions=_with(current, condition))
        if nominated_node is not None:
            status = structs.replace(status, nominated_node_name=nominated_node)
        self._publish(structs.replace(current, status=status))

    async def delete_pod(self, pod: Pod) -> None:
        known = self._objects.get((core.Pod, pod.namespace, pod.name))
        if known is None or known.metadata.uid != pod.uid:
            return
        del self._objects[_key(known)]
        loop = asyncio.get_running_loop()
        for handlers in self._watchers:
            loop.call_soon(_tell_remove, handlers, known)
        loop.call_soon(self._release_claims, known)

    async def update(self, value: Object) -> None:
        known = self._objects.get(_key(value))
        if known is None:
            text = f'{value.KIND} "{value.metadata.name}" not found'
            raise NotFound(text, code=404, reason="NotFound")
        if known.metadata.resource_version != value.metadata.resource_version:
            raise _conflict(
                f'Operation cannot be fulfilled on {value.KIND} "{value.metadata.name}": the object'
                " has been modified; please apply your changes to the latest version and try again"
            )
        self._publish(value)

    # --- object_writes ---------------------------------------------------------------------------

    def find(self, kind: type[O], name: str, namespace: str) -> O | None:
        namespace = (namespace or "default") if kind.NAMESPACED else ""
        found: O | None = self._objects.get((kind, namespace, name))
        return found

    def store(self, value: O) -> O:
        self._publish(value)
        found: O = self._objects[_key(value)]
        return found

    def drop(self, value: Object) -> None:
        known = self._objects.pop(_key(value), None)
        if known is not None:  # told after changes that were published before
            loop = asyncio.get_running_loop()
            for handlers in self._watchers:
                loop.call_soon(_tell_remove, handlers, known)

    # --- framework.Recorder --------------------------------------------------------------------

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        self.events.append(RecordedEvent(pod.key, type_, reason, action, note))

    # --- inside --------------------------------------------------------------------------------

    def _current(self, namespace: str, name: str) -> core.Pod:
        found = self._objects.get((core.Pod, namespace, name))
        if not isinstance(found, core.Pod):
            raise NotFound(f'pods "{name}" not found', code=404, reason="NotFound")
        return found

    def _release_claims(self, pod: core.Pod) -> None:
        """As the resourceclaim controller does it when a pod is gone."""
        for name in claim_names(pod):
            claim = self.find(ResourceClaim, name, pod.namespace)
            left = left_of(claim, pod.uid.__eq__) if claim is not None else None
            if claim is not None and left is None:
                self.delete(claim)
            elif left is not None and left is not claim:
                self.apply(left)

    def _stored(self, value: Any) -> Any:
        """As an API server stores it: with uid, resourceVersion and the default namespace."""
        meta, key = value.metadata, _key(value)
        known = self._objects.get(key)
        inherited = known.metadata.uid if known is not None else f"uid-{next(self._uids)}"
        filled = structs.replace(
            meta,
            namespace=key[1],
            uid=meta.uid or inherited,
            resource_version=str(next(self._versions)),
        )
        return structs.replace(value, metadata=filled)

    def _publish(self, value: Object) -> None:
        """Send a change to the watches, later and never within the call that made it."""
        stored = self._stored(value)
        self._objects[_key(stored)] = stored
        loop = asyncio.get_running_loop()
        for handlers in self._watchers:
            loop.call_soon(_tell_put, handlers, stored)


def _conflict(message: str) -> ConflictError:
    return ConflictError(message, code=409, reason="Conflict")


def _key(value: Any) -> tuple[type[Any], str, str]:
    namespace = (value.metadata.namespace or "default") if value.NAMESPACED else ""
    return type(value), namespace, value.metadata.name


def _with(pod: core.Pod, condition: Condition) -> tuple[Condition, ...]:
    others = (known for known in pod.status.conditions if known.type != condition.type)
    return (*others, condition)


def _tell(put: bool, handlers: Handlers, value: Any) -> None:
    if isinstance(value, core.Pod):
        (handlers.put_pod if put else handlers.remove_pod)(value)
    elif isinstance(value, core.Node):
        (handlers.put_node if put else handlers.remove_node)(value)
    else:
        (handlers.put_object if put else handlers.remove_object)(value)


def _tell_put_all(handlers: Handlers, values: list[Any]) -> None:
    """Objects of one kind; many nodes or pods are counted together."""
    if isinstance(values[0], core.Pod):
        handlers.put_pods(values)
    elif isinstance(values[0], core.Node):
        handlers.put_nodes(values)
    else:
        for value in values:
            handlers.put_object(value)


_tell_put = partial(_tell, True)
_tell_remove = partial(_tell, False)
