"""The driver of simulated devices: publishes ResourceSlices for nodes that are said to have some.

The annotation `mooring.dev/devices` of a node says which (`cluster/simulated_devices.py`). Each
type has a DeviceClass of its name.
"""

from __future__ import annotations

from typing import ClassVar, Final

from mooring.client.errors import ConflictError
from mooring.cluster.apiserver.resources import NODES, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController, ControllerContext
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import meta_of
from mooring.cluster.event_writer import WARNING
from mooring.cluster.simulated_devices import DEVICES, devices_of, read_devices

DRIVER: Final = "devices.mooring.dev"
SLICES: Final = known("resourceslices", "resource.k8s.io")
CLASSES: Final = known("deviceclasses", "resource.k8s.io")

_PER_SLICE: Final = 128  # devices, by the API


class DeviceDriver(BuiltInController):
    """Publishes devices. Its keys are nodes."""

    watches: ClassVar[tuple[Resource, ...]] = (NODES, SLICES)
    name: ClassVar[str] = DRIVER

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._asked: dict[str, str] = {}  # by node: its annotation, if it has one

    def on_change(self, change: StoreChange) -> None:
        if change.resource == NODES.key:
            now = meta_of(change).annotations.get(DEVICES, "")
            if change.type == "DELETED":
                self._asked.pop(change.new.name, None)
            elif now != self._asked.get(change.new.name, ""):
                self._asked[change.new.name] = now
                self.enqueue(change.new.key)
        elif change.type == "DELETED":
            spec = change.new.decoded()["spec"]
            if spec["driver"] == DRIVER:
                self.enqueue(("", spec["nodeName"]))

    def reconcile(self, key: Key) -> float | None:
        node = self.read(NODES, key)
        if node is None or "deletionTimestamp" in node["metadata"]:
            return None  # its slices go with it
        try:
            types = read_devices((node["metadata"].get("annotations") or {}).get(DEVICES, ""))
        except ValueError as error:
            text = f"annotation {DEVICES}: {error}"
            self.record_event(node, "InvalidDevices", text, WARNING)
            return None
        for name in types:
            self._make_class(name)
        wanted = list(devices_of(types))
        known = [
            value
            for item in self.items(SLICES)
            if (value := item.decoded())["spec"]["driver"] == DRIVER
            and value["spec"].get("nodeName") == key[1]
        ]
        published = [device for value in known for device in value["spec"].get("devices") or ()]
        if published != wanted:
            generation = max((one["spec"]["pool"]["generation"] for one in known), default=0)
            self._publish(node, wanted, generation + 1)
            for value in known:
                self.verbs.delete(SLICES, "", value["metadata"]["name"])
        return None

    def _publish(self, node: Object, devices: list[Object], generation: int) -> None:
        name = node["metadata"]["name"]
        parts = [devices[at : at + _PER_SLICE] for at in range(0, len(devices), _PER_SLICE)]
        pool = {"name": name, "generation": generation, "resourceSliceCount": len(parts)}
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        for part in parts:
            value = {
                "metadata": {"generateName": f"{name}-{DRIVER}-", "ownerReferences": [owner]},
                "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": part},
            }
            self.verbs.create(SLICES, value)

    def _make_class(self, name: str) -> None:
        if self.verbs.store.get(CLASSES, "", name) is not None:
            return
        expression = (
            f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "{name}"'
        )
        selectors = [{"cel": {"expression": expression}}]
        try:
            self.verbs.create(
                CLASSES, {"metadata": {"name": name}, "spec": {"selectors": selectors}}
            )
        except ConflictError:
            return  # there is one by now
