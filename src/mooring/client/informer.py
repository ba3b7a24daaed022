"""A local store of one kind, kept current by a watch; handlers are called for each change.

`on_put` gets an object's latest state, `on_remove` the state that was last put. A change that fell
into a gap of the watch is found by comparing with the next list. Intermediate states may be
missed, deletions never: an object that was deleted and created again is removed before it is put.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, Generic, NoReturn, Protocol

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.client._decoding import O, is_older
from mooring.client.client import ApiClient
from mooring.client.listing import FirstList
from mooring.client.liveness_probe import LivenessProbe
from mooring.client.raw_objects import RawObjects
from mooring.client.watch import Reflector
from mooring.errors import InternalError

log = logging.getLogger(__name__)

UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector: a finished pod occupies nothing; the server reports it as deleted."""


class Informer(Generic[O]):
    """All objects of one kind, by `namespace/name`; it is the sink of its reflector.

    `on_put_all`, if given, is called instead of `on_put` with what a list brought; if it raises,
    `on_put` is called for each. `raw_objects` keeps the JSON of objects beside the store. A handler
    that raises is logged, and the informer goes on.
    """

    def __init__(
        self,
        client: ApiClient,
        kind: type[O],
        *,
        on_put: Callable[[O], None],
        on_remove: Callable[[O], None],
        on_put_all: Callable[[list[O]], None] | None = None,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        page_size: int | None = None,
        raw_objects: RawObjects[O] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.kind: type[O] = kind
        self.synced: asyncio.Event = asyncio.Event()  # the handlers were called for a complete list
        self.reflector: Reflector[O] = Reflector(
            client,
            kind,
            self,
            namespace=namespace,
            labels=labels,
            fields=fields,
            page_size=page_size,
            on_read=raw_objects.put if raw_objects is not None else None,
            rng=rng,
        )
        self.after: tuple[Informer[Any], ...] = ()  # whose first lists come before its own
        self._raw_objects = raw_objects
        self._on_put = on_put
        self._on_put_all = on_put_all
        self._on_remove = on_remove
        self._store: dict[str, O] = {}

    @property
    def resource(self) -> str:
        """The kind as RBAC rules name it, such as `pods` or `storageclasses.storage.k8s.io`."""
        return self.reflector.resource

    @property
    def problem(self) -> str:
        """Why the store may be out of date; empty if it is not."""
        return self.reflector.problem

    async def run(self) -> NoReturn:
        for other in self.after:
            await other.synced.wait()
        await self.reflector.run()

    def get(self, key: str) -> O | None:
        return self._store.get(key)

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[O]:
        return iter(self._store.values())

    def replace(self, objects: list[O], unread: list[O]) -> None:
        # A list is newer than all events before it, so any other version is a change, even a lower
        # one: after a restored backup versions begin again further down.
        listed = {value.key: value for value in objects}
        bare = {value.key: value for value in unread}
        for key, known in list(self._store.items()):
            successor = listed.get(key) or bare.get(key)
            if successor is None or successor.metadata.uid != known.metadata.uid:
                self._drop(key, known)
        changed: list[O] = []
        for key, value in listed.items():
            before = self._store.get(key)
            if before is None or _version(before) != _version(value):
                self._store[key] = value
                changed.append(value)
        self._call_for_all(changed)
        self.synced.set()

    def put(self, value: O) -> None:
        key = value.key
        known = self._store.get(key)
        if known is not None:
            if _version(value) == _version(known) or is_older(_version(value), _version(known)):
                return
            if value.metadata.uid != known.metadata.uid:
                self._drop(key, known)  # its deletion was missed
            else:
                value = _sharing(value, known)
        self._accept(key, value)

    def put_unread(self, value: O) -> None:
        known = self._store.get(value.key)
        if known is not None and value.metadata.uid != known.metadata.uid:
            self._drop(value.key, known)

    def remove(self, value: O) -> None:
        if self._raw_objects is not None:
            self._raw_objects.drop(value.metadata.uid)  # even if it was never put
        known = self._store.get(value.key)
        if known is None or is_older(_version(value), _version(known)):
            return
        # Also under another uid: then the deletion of this one was missed.
        self._drop(value.key, known)

    def _accept(self, key: str, value: O) -> None:
        self._store[key] = value
        self._call(self._on_put, value)

    def _drop(self, key: str, known: O) -> None:
        del self._store[key]
        if self._raw_objects is not None:
            self._raw_objects.drop(known.metadata.uid)
        self._call(self._on_remove, known)

    def _call_for_all(self, values: list[O]) -> None:
        if self._on_put_all is not None:
            try:
                self._on_put_all(values)
            except Exception:
                extra = {"resource": self.resource, "objects": len(values)}
                log.exception("a handler of a list failed, going on one by one", extra=extra)
            else:
                return
        for value in values:
            self._call(self._on_put, value)

    def _call(self, handler: Callable[[O], None], value: O) -> None:
        try:
            handler(value)
        except Exception:
            extra = {"resource": self.resource, "object": value.key}
            log.exception("a handler failed, going on", extra=extra)


class NodeAndPodHandlers(Protocol):
    """What follows the nodes and pods of a cluster."""

    def put_node(self, node: core.Node, /) -> None: ...

    def remove_node(self, node: core.Node, /) -> None: ...

    def put_pod(self, api: core.Pod, /) -> None: ...

    def remove_pod(self, api: core.Pod, /) -> None: ...


def nodes_and_pods(
    client: ApiClient,
    handlers: NodeAndPodHandlers,
    *,
    put_nodes: Callable[[list[core.Node]], None] | None = None,
    put_pods: Callable[[list[core.Pod]], None] | None = None,
    node_selector: str = "",
    raw_nodes: RawObjects[core.Node] | None = None,
    raw_pods: RawObjects[core.Pod] | None = None,
    rng: random.Random | None = None,
) -> tuple[Informer[core.Node], Informer[core.Pod]]:
    """Informers for the nodes with some labels, and for all pods that occupy a node or may.

    A node that loses the labels is deleted as far as the handlers can see. `put_nodes` and
    `put_pods` get what a list brought, if given.
    """
    nodes = Informer(
        client,
        core.Node,
        on_put=handlers.put_node,
        on_put_all=put_nodes,
        on_remove=handlers.remove_node,
        labels=node_selector,
        raw_objects=raw_nodes,
        rng=rng,
    )
    pods = Informer(
        client,
        core.Pod,
        on_put=handlers.put_pod,
        on_put_all=put_pods,
        on_remove=handlers.remove_pod,
        fields=UNFINISHED_PODS,
        raw_objects=raw_pods,
        rng=rng,
    )
    return nodes, pods


class Informers:
    """A group of informers that run, become ready and fail together.

    With a `client` they share a liveness probe of the server.
    """

    def __init__(self, client: ApiClient | None = None) -> None:
        self._client = client
        self._informers: list[Informer[Any]] = []
        self._is_running = False

    def add(self, *informers: Informer[Any]) -> None:
        """Take informers in, before the group runs."""
        for informer in informers:
            if self._is_running:
                raise InternalError(f"informer of {informer.resource} added while the group runs")
            self._informers.append(informer)

    def begin_with(self, first: FirstList[Any]) -> None:
        """Let the informer of the same objects begin with a list that is under way."""
        for informer in self._informers:
            if informer.kind is first.query.kind:
                informer.reflector.begin_with(first)

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(self._informers)

    async def run(self) -> None:
        self._is_running = True
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run(), name=f"informer of {informer.resource}")
            if self._client is not None and self._informers:
                probe = LivenessProbe(self._client, [one.reflector for one in self._informers])
                group.create_task(probe.run(), name="liveness probe")

    async def wait_synced(self) -> None:
        """Wait until the handlers were called for a complete list of every kind."""
        for informer in self._informers:
            await informer.synced.wait()

    async def refresh(self, kinds: Collection[type[Object]]) -> None:
        """Wait until the stores of some kinds are at least as new as this call."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                if informer.kind in kinds:
                    group.create_task(informer.reflector.refresh())

    @property
    def all_synced(self) -> bool:
        return not self.unsynced()

    def unsynced(self) -> list[str]:
        """The kinds whose first list is not complete yet."""
        return [one.resource for one in self._informers if not one.synced.is_set()]

    def problems(self) -> list[str]:
        """What keeps stores from being current."""
        return [one.problem for one in self._informers if one.problem]


def _sharing(value: O, known: O) -> O:
    """An object, with the parts of its last state that are equal: most updates change little.

    It saves memory, and comparing the states later on.
    """
    meta, before = value.metadata, known.metadata
    if meta.labels == before.labels and meta.annotations == before.annotations:
        meta = structs.replace(meta, labels=before.labels, annotations=before.annotations)
    spec, spec_before = getattr(value, "spec", None), getattr(known, "spec", None)
    if spec is None or spec != spec_before:
        return structs.replace(value, metadata=meta)
    return structs.replace(value, metadata=meta, spec=spec_before)


def _version(value: Object) -> str:
    return value.metadata.resource_version
