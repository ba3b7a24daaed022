"""Host ports: two pods cannot hold the same one on a node."""

import numpy as np

import mooring.framework as fw
from mooring.api.requests import HostPort
from mooring.cache.indexes import ips_conflict
from mooring.framework._internal import InternalPlugin, is_assigned_or_nominated

HOST_PORTS: fw.StateKey[tuple[HostPort, ...]] = fw.StateKey(
    "NodePorts/host ports", 'reading "PreFilterNodePorts" from cycleState: not found'
)


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

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if not isinstance(old, fw.Pod):
            return True  # a new node, with all its ports
        return is_assigned_or_nominated(old) and any(
            ports_conflict(held, wanted) for held in old.host_ports for wanted in pod.host_ports
        )


def ports_conflict(a: HostPort, b: HostPort) -> bool:
    return a.port == b.port and a.protocol == b.protocol and ips_conflict(a.ip, b.ip)
