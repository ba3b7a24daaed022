"""Node pools: as many nodes as the ConfigMap `mooring-pools` says, whenever it changes.

A node that is deleted by hand stays away until its pool is scaled again.
"""

from __future__ import annotations

import ipaddress
from typing import ClassVar, Final

from mooring.client.errors import NotFound
from mooring.cluster.apiserver.resources import CONFIG_MAPS, NODES, Resource
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.event_writer import WARNING
from mooring.cluster.node_pools import POOL, POOLS, NodePool, decode_pool
from mooring.cluster.node_templates import make_nodes

_BURST: Final = 100  # nodes created or deleted per call


class NodePoolController(BuiltInController):
    """Creates and deletes nodes. Its only key is that of the ConfigMap."""

    watches: ClassVar[tuple[Resource, ...]] = (CONFIG_MAPS,)
    name: ClassVar[str] = "node-pool-controller"

    def on_change(self, change: StoreChange) -> None:
        if change.new.key == POOLS and change.type != "DELETED":
            self.enqueue(POOLS)

    def reconcile(self, key: Key) -> float | None:
        config = self.read(CONFIG_MAPS, key)
        if config is None:
            return None
        left = _BURST
        for name, text in (config.get("data") or {}).items():
            try:
                left -= self._scale(decode_pool(name, text), left)
            except ValueError as error:
                self.record_event(config, "InvalidPool", str(error), WARNING)
            if left <= 0:
                return 0.0
        return None

    def _scale(self, pool: NodePool, most: int) -> int:
        """Create or delete up to `most` nodes; how many it were."""
        present = {item.name for item in self.items(NODES) if item.labels.get(POOL) == pool.name}
        wanted = make_nodes([pool.template], now=self.clock.now(), first=self._next_number())
        names = {node["metadata"]["name"] for node in wanted}
        surplus = sorted(present - names)[:most]
        for name in surplus:
            try:
                self.verbs.delete(NODES, "", name)
            except NotFound:
                continue
        missing = [node for node in wanted if not self._is_there(node)]
        missing = missing[: most - len(surplus)]
        for node in missing:
            self.verbs.create(NODES, node)
        return len(surplus) + len(missing)

    def _is_there(self, node: Object) -> bool:
        return self.verbs.store.get(NODES, "", node["metadata"]["name"]) is not None

    def _next_number(self) -> int:
        """After the nodes with the highest pod network, so that addresses differ."""
        highest = -1
        for item in self.items(NODES):
            network = (item.decoded().get("spec") or {}).get("podCIDR")
            if network and network.startswith("10."):
                place = int(ipaddress.ip_network(network).network_address)
                highest = max(highest, place >> 8 & 0xFFFF)
        return highest + 1
