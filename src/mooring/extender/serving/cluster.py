"""Nodes and pods of an extender: from its own informers, or from the requests.

With informers, node names are enough: the nodes and their pods are in the cache. Without them only
the content of a request is known: whole nodes, or nothing but names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from mooring.api import core
from mooring.api.codec import KINDS, decode
from mooring.api.meta import Object, ObjectMeta
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.client.client import ApiClient
from mooring.client.component import Component
from mooring.client.informer import Informer, Informers, nodes_and_pods
from mooring.errors import ApiError

log = logging.getLogger(__name__)

_PATIENCE: Final = 0.5  # seconds for our watch to show a node that the scheduler knows already
_MANY_NAMES: Final = 50_000  # limit of nodes known by name only, and of nodes that never appeared


class WatchedCluster:
    """Nodes, pods and the kinds that plugins read, from informers of a component, if any."""

    def __init__(self, component: Component | None, kinds: Iterable[type[Object]] = ()) -> None:
        self.cache: Cache = Cache()
        self.client: ApiClient | None = None
        self.informers: Informers = Informers()
        self._pods: Informer[core.Pod] | None = None
        self._bare = Cache()
        self._missing_nodes: set[str] = set()
        self._node_added: asyncio.Future[None] | None = None  # resolved when a node appears
        if component is not None:
            self.client, self.informers = component.reader, component.informers
            nodes, self._pods = nodes_and_pods(component.reader, self)
            self.informers.add(nodes, self._pods)
            objects = self.cache.objects
            for kind in sorted(set(kinds) - {core.Node, core.Pod}, key=KINDS.index):
                self.informers.add(
                    Informer(self.client, kind, on_put=objects.put, on_remove=objects.remove)
                )

    @property
    def is_connected(self) -> bool:
        return self.client is not None

    def problem(self) -> str:
        """Why the extender is not ready; empty if it is."""
        unsynced = self.informers.unsynced()
        return f"still listing {', '.join(unsynced)}" if unsynced else ""

    # --- nodes ---------------------------------------------------------------------------------

    async def known(self, names: Sequence[str]) -> Cache:
        """The cache that holds the nodes of these names.

        The scheduler may see a node a moment before our watch does: unknown nodes are waited for,
        briefly and once.
        """
        if not self.is_connected:
            return self._with_bare(names)
        row_of = self.cache.table.row_of
        if not all(map(row_of.__contains__, names)):
            await self._wait_for(names)
        return self.cache

    async def described(self, nodes: Sequence[msgspec.Raw], names: Sequence[str]) -> Cache:
        """The cache that holds these nodes, which were sent in full.

        Our own cache also holds their pods, so the JSON is only decoded if a node is unknown.
        """
        if self.is_connected:
            await self.known(names)
            row_of = self.cache.table.row_of
            if all(map(row_of.__contains__, names)):
                return self.cache
        return self.copy(names, nodes)

    def copy(self, names: Sequence[str], nodes: Sequence[msgspec.Raw] = ()) -> Cache:
        """A cache of some nodes, with their known pods, that does not follow the cluster.

        Nodes are decoded from JSON where it is given, else taken from our cache or made of a name.
        """
        made, own = Cache(), self.cache.nodes
        given = [decode(bytes(raw), core.Node) for raw in nodes]
        for name in names if not given else ():
            node = own.get(name)
            given.append(node.api if node is not None else _bare(name))
        for api in given:
            made.put_node(api)
            known = own.get(api.metadata.name)
            for pod in known.pods if known is not None else ():
                made.put_pod(pod)
        return made

    def is_live(self, seen: Cache) -> bool:
        """Whether a cache changes with the cluster, or with other requests."""
        return seen is self.cache or seen is self._bare

    async def _wait_for(self, names: Sequence[str]) -> None:
        row_of = self.cache.table.row_of
        missing = {name for name in names if name not in row_of} - self._missing_nodes
        try:
            async with asyncio.timeout(_PATIENCE):
                while missing:
                    if self._node_added is None:
                        self._node_added = asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._node_added)
                    missing = {name for name in missing if name not in row_of}
        except TimeoutError:
            if len(self._missing_nodes) + len(missing) > _MANY_NAMES:
                self._missing_nodes.clear()
            self._missing_nodes |= missing
            log.info(
                "a request names nodes that the watch has not shown",
                extra={"nodes": len(missing), "first": min(missing)},
            )

    def _with_bare(self, names: Sequence[str]) -> Cache:
        row_of = self._bare.table.row_of
        if len(row_of) > _MANY_NAMES:
            self._bare = Cache()
            row_of = self._bare.table.row_of
        for name in names:
            if name not in row_of:
                self._bare.put_node(_bare(name))
        return self._bare

    # --- pods ----------------------------------------------------------------------------------

    async def find_pod(self, namespace: str, name: str, uid: str) -> Pod:
        """A pod from the informers, if it is this one and unbound; else from the API server.

        Raises ApiError if there is none of this name, or no cluster.
        """
        if self.client is None or self._pods is None:
            raise ApiError("this extender is not connected to a cluster")
        known = self._pods.get(f"{namespace}/{name}")
        if known is not None and known.metadata.uid == uid and not known.spec.node_name:
            return Pod(known)
        return Pod(await self.client.get(core.Pod, name, namespace))

    # --- informer handlers ---------------------------------------------------------------------

    def put_node(self, node: core.Node) -> None:
        self.cache.put_node(node)
        self._missing_nodes.discard(node.metadata.name)
        if self._node_added is not None:
            self._node_added.set_result(None)
            self._node_added = None

    def remove_node(self, node: core.Node) -> None:
        self.cache.remove_node(node.metadata.name)

    def put_pod(self, api: core.Pod) -> None:
        if api.spec.node_name:
            self.cache.put_pod(Pod(api))

    def remove_pod(self, api: core.Pod) -> None:
        self.cache.remove_pod(Pod(api))


def _bare(name: str) -> core.Node:
    """A node with nothing but a name."""
    return core.Node(metadata=ObjectMeta(name=name))
