"""What CSINodes say, as columns over the nodes: volume limits, and migrated in-tree plugins.

A pod with volumes asks about every node, and CSINodes hardly ever change: each is read once.
VolumeBinding and NodeVolumeLimits have one of these each.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.storage import CSINode
from mooring.cache.internals import all_names, on_rows_of
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import migrated_plugins

NO_LIMIT: Final = 2**62


class _Facts(msgspec.Struct, frozen=True):
    """What one CSINode says."""

    csi_node: CSINode
    migrated: frozenset[str]
    limits: Mapping[str, int]


class _Columns(msgspec.Struct, frozen=True, eq=False):
    """What all of them say, by row."""

    names: tuple[str, ...]
    version: int
    has_csi_node: fw.BoolArray
    per_driver: Mapping[str, fw.IntArray]
    migrated: Mapping[str, fw.BoolArray]  # by plugin


class CSINodes:
    """The CSINodes, by the rows of their nodes."""

    def __init__(self) -> None:
        self._facts: dict[str, _Facts] = {}  # by node name
        self._columns: _Columns | None = None

    def exist(self, nodes: fw.Nodes, objects: Objects) -> fw.BoolArray:
        return on_rows_of(nodes, self._current(nodes, objects).has_csi_node)

    def limits(self, driver: str, nodes: fw.Nodes, objects: Objects) -> fw.IntArray | None:
        """The most volumes of a driver on each node; None: there is no limit anywhere."""
        found = self._current(nodes, objects).per_driver.get(driver)
        return None if found is None else on_rows_of(nodes, found)

    def migrated(self, plugin: str, nodes: fw.Nodes, objects: Objects) -> fw.BoolArray:
        """The nodes where a CSI driver has replaced an in-tree plugin."""
        found = self._current(nodes, objects).migrated.get(plugin)
        if found is None:
            return np.zeros(len(nodes), dtype=np.bool_)
        return on_rows_of(nodes, found)

    def _current(self, nodes: fw.Nodes, objects: Objects) -> _Columns:
        names, version = all_names(nodes), objects.version(CSINode)
        known = self._columns
        if known is None or known.names is not names or known.version != version:
            known = self._columns = self._made(names, version, objects)
        return known

    def _made(self, names: tuple[str, ...], version: int, objects: Objects) -> _Columns:
        facts: dict[str, _Facts] = {}
        has_csi_node = np.zeros(len(names), dtype=np.bool_)
        per_driver: dict[str, fw.IntArray] = {}
        migrated: dict[str, fw.BoolArray] = {}
        for row, name in enumerate(names):
            csi_node = objects.get(CSINode, name)
            if csi_node is None:
                continue
            has_csi_node[row] = True
            known = self._facts.get(name)
            if known is None or known.csi_node is not csi_node:
                known = _Facts(csi_node, migrated_plugins(csi_node), limits_of(csi_node))
            facts[name] = known
            for driver, limit in known.limits.items():
                if driver not in per_driver:
                    per_driver[driver] = np.full(len(names), NO_LIMIT, dtype=np.int64)
                per_driver[driver][row] = limit
            for plugin in known.migrated:
                if plugin not in migrated:
                    migrated[plugin] = np.zeros(len(names), dtype=np.bool_)
                migrated[plugin][row] = True
        self._facts = facts
        return _Columns(names, version, has_csi_node, per_driver, migrated)


def limits_of(csi_node: CSINode) -> dict[str, int]:
    """The most volumes per driver; no entry means no limit."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
