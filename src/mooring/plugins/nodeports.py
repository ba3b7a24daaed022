"""Host ports: two pods cannot hold the same one on a node."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.requests import HostPort
from mooring.cache.indexes import ANY_IP, ips_conflict
from mooring.framework._internal import InternalPlugin, is_assigned_or_nominated
from mooring.framework.explaining import listed

HOST_PORTS: fw.StateKey[tuple[HostPort, ...]] = fw.StateKey(
    "NodePorts/host ports", 'reading "PreFilterNodePorts" from cycleState: not found'
)


_MOST_NODES: Final = 20  # whose holders of a port are looked for, to name them


class NodePorts(InternalPlugin, fw.PreFilter, fw.Filter):
    """Refuse nodes where another pod holds a host port that the pod asks for."""

    name = "NodePorts"
    key_from_spec = True
    depends_on = fw.NODE_AND_PODS
    wakes_on = (fw.Event.NODE_ADDED, fw.Event.POD_DELETED)

    TAKEN = fw.Status.unschedulable("node(s) didn't have free ports for the requested pod ports")

    def cache_key(self, pod: fw.Pod) -> tuple[HostPort, ...]:
        return pod.host_ports

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if not pod.host_ports:
            return fw.SKIP
        state[HOST_PORTS] = pod.host_ports
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        wanted = state[HOST_PORTS]
        return self.TAKEN if any(map(node.port_taken, wanted)) else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        taken = np.zeros(len(nodes), dtype=np.bool_)
        for port in state[HOST_PORTS]:
            taken |= nodes.port_taken(port)
        return fw.Verdicts.passing(nodes).reject(taken, self.TAKEN)

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        for wanted in state[HOST_PORTS]:
            taken = np.flatnonzero(nodes.port_taken(wanted))
            found: dict[str, str] = {}
            nearest = -1  # where the port is free on other addresses
            for place in taken[:_MOST_NODES].tolist():
                held_here = holders(wanted, nodes[place])
                for other, held in held_here:
                    where = "all addresses" if held.ip == ANY_IP else held.ip
                    found[other.key] = f"{other.key} on {where} of {nodes[place].name}"
                if nearest < 0 and all(held.ip != ANY_IP for _, held in held_here):
                    nearest = place
            if found:
                names = listed(found.values(), 3)
                yield fw.Fact(
                    text=f"port {wanted.port}/{wanted.protocol} is held by {names}",
                    nodes=len(taken),
                    node=nodes[nearest if nearest >= 0 else int(taken[0])].name,
                    pods=tuple(found),
                )

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        for wanted in pod.host_ports if node is not None else ():
            assert node is not None
            found = holders(wanted, node)
            if not found:
                continue
            ips = {held.ip for _, held in found}
            number = wanted.port
            if wanted.ip == ANY_IP and ANY_IP not in ips:
                free = next(ip for ip in (f"127.0.0.{n}" for n in range(1, 255)) if ip not in ips)
                text = f"bind {number} to another address than {listed(sorted(ips))}, e.g. {free}"
                yield moved_port(text, wanted, wanted._replace(ip=free), cost=0)
            others = range(number + 1, min(number + 100, 65_536))
            moved = (wanted._replace(port=other) for other in others)
            free_port = next((port for port in moved if not node.port_taken(port)), None)
            if free_port is not None:
                text = f"use another host port than {number}, e.g. {free_port.port}"
                yield moved_port(text, wanted, free_port, cost=1)
            pods = list({other.uid: other for other, _ in found}.values())
            names = listed(other.key for other in pods)
            text = f"{names} ends, or moves away from {node.name}"
            yield fw.Edit.end_pods(text, pods, family="ports")
            return

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if not isinstance(old, fw.Pod):
            return True  # a new node, with all its ports
        return is_assigned_or_nominated(old) and any(
            ports_conflict(held, wanted) for held in old.host_ports for wanted in pod.host_ports
        )


def holders(wanted: HostPort, node: fw.Node) -> list[tuple[fw.Pod, HostPort]]:
    """The pods of a node that hold a port in the way, with that port."""
    return [
        (other, held)
        for other in node.pods
        for held in other.host_ports
        if ports_conflict(held, wanted)
    ]


def moved_port(text: str, wanted: HostPort, other: HostPort, cost: int) -> fw.Edit:
    """The pod with one host port replaced by another."""

    def of_container(container: core.Container) -> core.Container:
        ports = tuple(
            structs.replace(port, host_port=other.port, host_ip=other.ip)
            if (port.host_port, port.protocol or "TCP", port.host_ip or ANY_IP)
            == (wanted.port, wanted.protocol, wanted.ip)
            else port
            for port in container.ports
        )
        return structs.replace(container, ports=ports)

    def to(pod: core.Pod) -> core.Pod:
        spec = structs.replace(
            pod.spec,
            containers=tuple(map(of_container, pod.spec.containers)),
            init_containers=tuple(map(of_container, pod.spec.init_containers)),
        )
        return structs.replace(pod, spec=spec)

    return fw.Edit.of_pod(text, to, family=f"port {wanted.port}", cost=cost)


def ports_conflict(a: HostPort, b: HostPort) -> bool:
    return a.port == b.port and a.protocol == b.protocol and ips_conflict(a.ip, b.ip)
