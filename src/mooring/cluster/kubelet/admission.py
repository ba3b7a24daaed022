"""The resources of a simulated node, its pods, and admission of further pods.

The checks, their order and their messages are those of the kubelet's predicate admit handler.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mooring.api import codec, core
from mooring.api.placement import Taint
from mooring.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    HostPort,
    amount,
    host_ports,
    is_counted,
    is_extended,
    pod_requests,
)
from mooring.api.selectors import Selector, compile_node_selector
from mooring.api.taints import NO_EXECUTE, find_untolerated
from mooring.cluster.apiserver.store import Item

_ANY_ADDRESS: Final = "0.0.0.0"
_FIRST_CHECKED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


class PodRejection(msgspec.Struct, frozen=True):
    """Why a kubelet rejects a pod that is bound to its node."""

    reason: str
    message: str


class PodRequests(msgspec.Struct, frozen=True, gc=False):
    """The resources and host ports of a pod."""

    amounts: dict[str, int]  # milli-cpu, bytes, counts
    ports: tuple[HostPort, ...] = ()

    @classmethod
    def of(cls, pod: core.Pod) -> PodRequests:
        asked = pod_requests(pod)
        amounts = {name: amount(name, asked[name]) for name in asked if is_counted(name)}
        return cls(amounts, host_ports(pod))


class NodeInfo:
    """One node and the pods that its kubelet has admitted."""

    def __init__(self, item: Item, network: str) -> None:
        self.name: str = item.name
        self.address: str = ""
        self.is_alive: bool = True  # its kubelet reports
        self.is_reported: bool = False  # its status has all that a kubelet reports
        self._spare_network = network  # for pods, unless the node says which
        self._labels: Mapping[str, str] = {}
        self._taints: tuple[Taint, ...] = ()
        self._allocatable: dict[str, int] = {}
        self._requested: dict[str, int] = {}
        self._pods: dict[str, PodRequests] = {}  # by uid
        self._ports: set[HostPort] = set()
        self._network: ipaddress.IPv4Network | ipaddress.IPv6Network
        self._addresses: set[str] = set()
        self._last_address = 0
        self.update(item)

    def update(self, item: Item) -> None:
        node = codec.decode(item.raw, core.Node)
        value = item.decoded()
        self._labels = item.labels
        self._taints = node.spec.taints
        self._allocatable = {
            name: amount(name, quantity) for name, quantity in node.status.allocatable.items()
        }
        status = value.get("status", {})
        capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
        self.is_reported = bool(status.get("nodeInfo")) and (
            capacity.keys() == allocatable.keys() and bool(status.get("conditions"))
        )
        network = value.get("spec", {}).get("podCIDR")
        self._network = ipaddress.ip_network(network or self._spare_network)
        addresses = value.get("status", {}).get("addresses") or ()
        internal = (one["address"] for one in addresses if one["type"] == "InternalIP")
        self.address = next(internal, "")
        # A node without conditions was created by hand, and should work.
        ready = (found.status for found in node.status.conditions if found.type == "Ready")
        self.is_alive = next(ready, "True") == "True"

    # --- pods on it ----------------------------------------------------------------------------

    def add_pod(self, uid: str, requests: PodRequests) -> None:
        self._pods[uid] = requests
        for name, wanted in requests.amounts.items():
            self._requested[name] = self._requested.get(name, 0) + wanted
        self._ports.update(requests.ports)

    def remove_pod(self, uid: str) -> None:
        requests = self._pods.pop(uid, None)
        if requests is None:
            return
        for name, wanted in requests.amounts.items():
            self._requested[name] -= wanted
        self._ports.difference_update(requests.ports)

    def allocate_ip(self) -> str:
        """A pod IP; released ones are reused as late as possible."""
        size = max(self._network.num_addresses - 2, 1)
        for _ in range(size):
            self._last_address = self._last_address % size + 1
            found = str(self._network[self._last_address])
            if found not in self._addresses:
                self._addresses.add(found)
                return found
        return ""  # no address is left

    def release_ip(self, address: str) -> None:
        self._addresses.discard(address)

    # --- admission ----------------------------------------------------------------------------

    def rejection(self, pod: core.Pod, requests: PodRequests) -> PodRejection | None:
        """Why the kubelet would reject a pod; None if it admits it."""
        if pod.spec.os is not None and pod.spec.os.name not in ("", "linux"):
            return PodRejection(
                "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
            )
        insufficient = self._insufficient(requests)
        if insufficient is not None:
            return insufficient
        if not may_run_on(pod.spec, self.name, self._labels):
            return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
        if any(_conflicts(port, self._ports) for port in requests.ports):
            return _predicate(
                "NodePorts", "node(s) didn't have free ports for the requested pod ports"
            )
        if find_untolerated(self._taints, pod.spec.tolerations, (NO_EXECUTE,)) is not None:
            return _predicate("TaintToleration", "node(s) had untolerated taint(s)")
        return None

    def _insufficient(self, requests: PodRequests) -> PodRejection | None:
        pods, most = len(self._pods), self._allocatable.get(PODS, 0)
        if pods + 1 > most:
            return _out_of(PODS, 1, pods, most)
        scalars = (name for name in requests.amounts if name not in _FIRST_CHECKED)
        for name in (*_FIRST_CHECKED, *scalars):
            wanted = requests.amounts.get(name, 0)
            # A resource unknown to the node may be cluster-level.
            if wanted <= 0 or (name not in self._allocatable and is_extended(name)):
                continue
            used, allocatable = self._requested.get(name, 0), self._allocatable.get(name, 0)
            if wanted > allocatable - used:
                return _out_of(name, wanted, used, allocatable)
        return None


def may_run_on(spec: core.PodSpec, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a pod's node selector and required node affinity match a node."""
    if not Selector.from_map(spec.node_selector).matches(labels):
        return False
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return True
    required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or compile_node_selector(required).matches(labels, name)


def _out_of(resource: str, requested: int, used: int, capacity: int) -> PodRejection:
    return PodRejection(
        f"OutOf{resource}",
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used},"
        f" capacity: {capacity}",
    )


def _predicate(name: str, why: str) -> PodRejection:
    return PodRejection(name, f"Predicate {name} failed: {why}")


def _conflicts(port: HostPort, taken: Iterable[HostPort]) -> bool:
    return any(
        (port.protocol, port.port) == (other.protocol, other.port)
        and (port.ip == other.ip or _ANY_ADDRESS in (port.ip, other.ip))
        for other in taken
    )
