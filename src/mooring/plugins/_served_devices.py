"""How many devices of a node serve an extended resource, for the scores of resource plugins.

As noderesources.calculateDRAResourceTotals: all devices of slices for the node that the class
selects count, also those of pools that are not usable.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial

import mooring.framework as fw
from mooring.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins._device_classes import ResourceClasses, is_servable
from mooring.plugins.dynamicresources.devices import Devices, devices_of
from mooring.plugins.dynamicresources.inventory import NodeIdentity

CountDevices = Callable[[fw.Node], tuple[int, int]]
"""The devices of a node that serve a resource, and how many of them are in use."""


class ServedDevices:
    """Devices behind the extended resources that a plugin scores."""

    def __init__(self, scored: Iterable[str], handle: fw.Handle, gates: frozenset[str]) -> None:
        self._resources = frozenset(filter(is_servable, scored))
        self._handle = handle
        self._gates = gates
        self._classes = ResourceClasses(lambda: handle.objects)

    def may_count(self, pod: fw.Pod) -> bool:
        """Whether devices may count in the scores of pods with such a spec."""
        return bool(self._resources) and any(map(pod.requests, self._resources))

    def key(self, pod: fw.Pod) -> Hashable:
        """What scores of such a pod depend on besides the node."""
        version = self._handle.objects.version(DeviceClass)
        if not any(self.of(pod, name) is not None for name in self._resources):
            return version
        devices = self._devices
        devices.follow(self._handle.nodes)
        return version, devices.shared_version

    def of(self, pod: fw.Pod, resource: str) -> CountDevices | None:
        """What counts devices for a resource that a pod asks for; None: devices do not serve it."""
        if resource not in self._resources or not pod.requests(resource):
            return None
        objects = self._handle.objects
        if not (objects.is_declared(ResourceSlice) and objects.is_declared(ResourceClaim)):
            return None  # no plugin allocates devices
        name = self._classes.class_of(resource)
        found = objects.get(DeviceClass, name) if name is not None else None
        return partial(self._count, found) if found is not None else None

    @property
    def _devices(self) -> Devices:
        return devices_of(self._handle.objects, self._gates)

    def _count(self, device_class: DeviceClass, node: fw.Node) -> tuple[int, int]:
        devices = self._devices
        expressions = [one.cel.expression for one in device_class.spec.selectors if one.cel]
        total = in_use = 0
        for device in devices.inventory.every_device(NodeIdentity(node.name, node.labels)):
            for expression in expressions:
                selected = device.selected_by(expression)
                if isinstance(selected, str):
                    return 0, 0  # it cannot be told
                if not selected:
                    break
            else:
                total += 1
                in_use += device.id[2] in devices.ledger.used.get(device.id[:2], ())
        return total, in_use
