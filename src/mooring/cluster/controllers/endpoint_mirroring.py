"""EndpointSlices of Endpoints that are written by hand, for Services without a selector.

One slice for each set of ports and each family of addresses, as kube-controller-manager's
endpointslice-mirroring-controller makes them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, NamedTuple

from mooring.client.errors import ConflictError, Forbidden, NotFound
from mooring.cluster.apiserver.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Resource
from mooring.cluster.apiserver.store import Item, Object, StoreChange
from mooring.cluster.controllers.base import (
    BuiltInController,
    ControllerContext,
    owner_reference,
)
from mooring.cluster.controllers.endpoints import MANAGED_BY, SERVICE_NAME
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.event_writer import WARNING

MIRRORED_BY: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"  # a label
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"  # an annotation
_NOT_COPIED: Final = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)
_MAX_ADDRESSES: Final = 1000  # of a subset


class _Port(NamedTuple):
    name: str
    port: int
    protocol: str
    app_protocol: str


class _Group(NamedTuple):
    """What one slice has in common."""

    address_type: str
    ports: tuple[_Port, ...]


class EndpointMirroringController(BuiltInController):
    """Writes the slices of Endpoints. Its keys are Endpoints, and Services of the same name."""

    watches: ClassVar[tuple[Resource, ...]] = (SERVICES, ENDPOINTS, ENDPOINT_SLICES)
    name: ClassVar[str] = "endpointslice-mirroring-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._slices: dict[Key, set[str]] = {}  # the names of those that are ours

    def on_change(self, change: StoreChange) -> None:
        item = change.new
        if change.resource == ENDPOINT_SLICES.key:
            if change.old is not None:
                self._note_slice(change.old, is_there=False)
            if change.type != "DELETED":
                self._note_slice(item, is_there=True)
        elif (
            change.resource == ENDPOINTS.key or not _has_selector(item) or item.key in self._slices
        ):
            self.enqueue(item.key)

    def _note_slice(self, item: Item, *, is_there: bool) -> None:
        if item.labels.get(MANAGED_BY) != MIRRORED_BY:
            return
        key = (item.namespace, item.labels.get(SERVICE_NAME, ""))
        known = self._slices.setdefault(key, set())
        if is_there:
            known.add(item.name)
        else:
            known.discard(item.name)
        if not known:
            del self._slices[key]
        self.enqueue(key)

    def reconcile(self, key: Key) -> float | None:
        endpoints = self.read(ENDPOINTS, key)
        wanted: dict[_Group, list[Object]] = {}
        if endpoints is not None and self._is_mirrored(key, endpoints):
            wanted = self._wanted(endpoints)
        names = self._slices.get(key, ())
        found = (self.read(ENDPOINT_SLICES, (key[0], name)) for name in sorted(names))
        present: dict[_Group, Object] = {}
        surplus: list[Object] = []
        for one in found:
            if one is None:
                continue
            group = _Group(one["addressType"], _ports(one.get("ports") or ()))
            if group in wanted and group not in present:
                present[group] = one
            else:
                surplus.append(one)
        try:
            for group, content in wanted.items():
                assert endpoints is not None
                self._write(endpoints, group, content, present.get(group))
            for one in surplus:
                self.verbs.delete(ENDPOINT_SLICES, key[0], one["metadata"]["name"])
        except (ConflictError, Forbidden, NotFound):
            return None  # the namespace goes away, or the slice has gone
        return None

    def _is_mirrored(self, key: Key, endpoints: Object) -> bool:
        meta = endpoints["metadata"]
        if (meta.get("labels") or {}).get(_SKIP) == "true":
            return False
        if _LEADER in (meta.get("annotations") or {}):
            return False
        service = self.verbs.store.get(SERVICES, *key)
        return service is not None and not _has_selector(service)

    def _wanted(self, endpoints: Object) -> dict[_Group, list[Object]]:
        """The endpoints of every slice."""
        found: dict[_Group, list[Object]] = {}
        skipped = 0
        for ports, addresses in _repacked(endpoints.get("subsets") or ()):
            skipped += max(len(addresses) - _MAX_ADDRESSES, 0)
            for address, is_ready in addresses[:_MAX_ADDRESSES]:
                ip = _parsed(address["ip"])
                group = _Group(f"IPv{ip.version}", ports)
                found.setdefault(group, []).append(_endpoint(address, str(ip), is_ready))
        if skipped:
            self.record_event(
                endpoints,
                "TooManyAddressesToMirror",
                f"A max of {_MAX_ADDRESSES} addresses can be mirrored to EndpointSlices per "
                f"Endpoints subset. {skipped} addresses were skipped",
                WARNING,
            )
        return found

    def _write(
        self, endpoints: Object, group: _Group, content: list[Object], old: Object | None
    ) -> None:
        meta = endpoints["metadata"]
        name = meta["name"]
        labels = {**(meta.get("labels") or {}), SERVICE_NAME: name, MANAGED_BY: MIRRORED_BY}
        annotations = {
            key: value
            for key, value in (meta.get("annotations") or {}).items()
            if key not in _NOT_COPIED
        }
        wanted_meta: Object = {"labels": labels, "ownerReferences": [owner_reference(endpoints)]}
        if annotations:
            wanted_meta["annotations"] = annotations
        if old is None:
            value: Object = {
                "metadata": {"generateName": f"{name}-", **wanted_meta},
                "addressType": group.address_type,
                "endpoints": content,
                "ports": [_written(port) for port in group.ports],
            }
            self.verbs.create(ENDPOINT_SLICES, value, namespace=meta["namespace"])
            return
        parts = ("labels", "annotations", "ownerReferences")
        known = {part: old["metadata"][part] for part in parts if part in old["metadata"]}
        if known == wanted_meta and old.get("endpoints") == content:
            return

        def change(current: Object) -> None:
            for part in parts:
                current["metadata"].pop(part, None)
            current["metadata"] |= wanted_meta
            current["endpoints"] = content

        self.verbs.modify(ENDPOINT_SLICES, meta["namespace"], old["metadata"]["name"], change)


def _has_selector(service: Item) -> bool:
    return bool((service.decoded().get("spec") or {}).get("selector"))


def _repacked(
    subsets: Iterable[Object],
) -> list[tuple[tuple[_Port, ...], list[tuple[Object, bool]]]]:
    """Ports that have the same addresses, together; not ready beats ready.

    As endpoints.RepackSubsets of kube-controller-manager.
    """
    addresses: dict[tuple[str, str], Object] = {}
    by_port: dict[_Port | None, dict[tuple[str, str], bool]] = {}
    for subset in subsets:
        ports: tuple[_Port | None, ...] = _ports(subset.get("ports") or ()) or (None,)
        for part, is_ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(part) or ():
                key = (address["ip"], (address.get("targetRef") or {}).get("uid", ""))
                addresses.setdefault(key, address)
                for port in ports:
                    known = by_port.setdefault(port, {})
                    known[key] = known.get(key, True) and is_ready
    groups: dict[frozenset[tuple[tuple[str, str], bool]], list[_Port]] = {}
    for port, states in by_port.items():
        found = groups.setdefault(frozenset(states.items()), [])
        if port is not None:
            found.append(port)
    return [
        (
            tuple(sorted(found)),
            [(addresses[key], is_ready) for key, is_ready in sorted(states, key=_ready_first)],
        )
        for states, found in groups.items()
    ]


def _ready_first(state: tuple[tuple[str, str], bool]) -> tuple[bool, tuple[str, str]]:
    key, is_ready = state
    return not is_ready, key


def _endpoint(address: Object, ip: str, is_ready: bool) -> Object:
    found: Object = {"addresses": [ip], "conditions": {"ready": is_ready}}
    for field in ("hostname", "targetRef", "nodeName"):
        if address.get(field):
            found[field] = address[field]
    return found


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address; octets may begin with zeros, which the API server accepts."""
    if ":" not in text:
        return ipaddress.IPv4Address(".".join(str(int(octet)) for octet in text.split(".")))
    found = ipaddress.IPv6Address(text)
    return found.ipv4_mapped or found


def _ports(ports: Iterable[Mapping[str, object]]) -> tuple[_Port, ...]:
    found = (
        _Port(
            str(one.get("name", "")),
            int(str(one.get("port", 0))),
            str(one.get("protocol", "TCP")),
            str(one.get("appProtocol", "")),
        )
        for one in ports
    )
    return tuple(sorted(found))


def _written(port: _Port) -> Object:
    found: Object = {"name": port.name, "port": port.port, "protocol": port.protocol}
    return {**found, "appProtocol": port.app_protocol} if port.app_protocol else found
