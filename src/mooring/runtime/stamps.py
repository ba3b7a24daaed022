"""Whether answers that were kept for a class of pods still hold, whatever the nodes say."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework import plugin as contract
from mooring.framework.scope import is_steady


class Stamps:
    """Those of some plugins for one class, as they were when the answers were given."""

    def __init__(
        self, plugins: Sequence[contract.Base], objects: Objects, pod: Pod, nodes: Nodes
    ) -> None:
        own = [plugin for plugin in plugins if _has_own(plugin)]
        self._objects = objects
        # What the stamps of all others are made of.
        self._read = {kind for plugin in plugins if not _has_own(plugin) for kind in plugin.reads}
        self._steady = [plugin for plugin in own if is_steady(type(plugin).stamp)]
        self._restless = [plugin for plugin in own if not is_steady(type(plugin).stamp)]
        self._slow = self._slow_ones(pod)
        self._quick = self._quick_ones(pod)
        self._moment = (objects.changes, nodes.structure)

    def hold(self, pod: Pod, nodes: Nodes) -> bool:
        """Whether they are the same for another pod of the class."""
        moment = (self._objects.changes, nodes.structure)
        if moment != self._moment:
            if self._slow_ones(pod) != self._slow:
                return False
            self._moment = moment
        return not self._restless or self._quick_ones(pod) == self._quick

    def _slow_ones(self, pod: Pod) -> list[Hashable]:
        versions = [self._objects.version(kind) for kind in self._read]
        return [*versions, *(plugin.stamp(pod) for plugin in self._steady)]

    def _quick_ones(self, pod: Pod) -> list[Hashable]:
        return [plugin.stamp(pod) for plugin in self._restless]


def _has_own(plugin: contract.Base) -> bool:
    """Whether it takes more than the objects that the plugin reads to know its stamp."""
    return type(plugin).stamp is not contract.Base.stamp
