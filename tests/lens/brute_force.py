"""All single edits of the known kinds, written down without any plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import structs

from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import ResourceList
from mooring.api.quantity import Quantity
from mooring.cache.pods import Pod
from mooring.lens.private import PrivateCluster
from mooring.lens.snapshot import ClusterState
from mooring.runtime.profile import ProfilePlan

Changed = tuple[ClusterState, core.Pod]


def one_edit_helps(plan: ProfilePlan, state: ClusterState, pod: Pod) -> bool:
    """Whether any single edit makes the pod fit."""
    for changed, api in _edits(state, pod.api):
        if PrivateCluster(plan, changed).fits(Pod(api)) is not None:
            return True
    return False


def _edits(state: ClusterState, pod: core.Pod) -> Iterator[Changed]:
    for api in _pod_edits(state, pod):
        yield state, api
    for place, node in enumerate(state.nodes):
        for other in _node_edits(node, pod):
            nodes = (*state.nodes[:place], other, *state.nodes[place + 1 :])
            yield structs.replace(state, nodes=nodes), pod
    for place in range(len(state.pods)):
        kept = (*state.pods[:place], *state.pods[place + 1 :])
        yield structs.replace(state, pods=kept), pod
    for node in state.nodes:
        kept = tuple(one for one in state.pods if one.spec.node_name != node.name)
        yield structs.replace(state, pods=kept), pod


def _pod_edits(state: ClusterState, pod: core.Pod) -> Iterator[core.Pod]:
    spec = pod.spec

    def with_spec(**fields: Any) -> core.Pod:
        return structs.replace(pod, spec=structs.replace(spec, **fields))

    for taint in {taint for node in state.nodes for taint in node.spec.taints}:
        toleration = core.Toleration(key=taint.key, operator="Exists", effect=taint.effect)
        yield with_spec(tolerations=(*spec.tolerations, toleration))
    for resource in {name for c in spec.containers for name in c.resources.requests}:
        less = Quantity(1) if resource in ("cpu", "memory") else Quantity.ZERO
        lower = _lowering(resource, less)
        init = tuple(map(lower, spec.init_containers))
        yield with_spec(containers=tuple(map(lower, spec.containers)), init_containers=init)
    for place, one in enumerate(spec.topology_spread_constraints):
        for fields in ({"max_skew": 100}, {"min_domains": 1 if one.min_domains else None}):
            constraints = list(spec.topology_spread_constraints)
            constraints[place] = structs.replace(one, **fields)
            yield with_spec(topology_spread_constraints=tuple(constraints))
    for key in spec.node_selector:
        kept = {name: value for name, value in spec.node_selector.items() if name != key}
        yield with_spec(node_selector=FrozenDict(kept))
    if spec.affinity is not None:
        for field in ("node_affinity", "pod_affinity", "pod_anti_affinity"):
            yield with_spec(affinity=structs.replace(spec.affinity, **{field: None}))
    for gate in spec.scheduling_gates:
        gates = tuple(one for one in spec.scheduling_gates if one != gate)
        yield with_spec(scheduling_gates=gates)
    if any(port.host_port for c in spec.containers for port in c.ports):
        yield with_spec(containers=tuple(structs.replace(c, ports=()) for c in spec.containers))


def _lowering(resource: str, to: Quantity) -> Callable[[core.Container], core.Container]:
    def lower(container: core.Container) -> core.Container:
        asked = container.resources
        if resource not in asked.requests:
            return container
        requests = ResourceList({**asked.requests, resource: to})
        return structs.replace(container, resources=structs.replace(asked, requests=requests))

    return lower


def _node_edits(node: core.Node, pod: core.Pod) -> Iterator[core.Node]:
    for taint in node.spec.taints:
        kept = tuple(one for one in node.spec.taints if one is not taint)
        yield structs.replace(node, spec=structs.replace(node.spec, taints=kept))
    if node.spec.unschedulable:
        yield structs.replace(node, spec=structs.replace(node.spec, unschedulable=False))
    if pod.spec.node_selector:
        labels = FrozenDict({**node.metadata.labels, **pod.spec.node_selector})
        yield structs.replace(node, metadata=structs.replace(node.metadata, labels=labels))
