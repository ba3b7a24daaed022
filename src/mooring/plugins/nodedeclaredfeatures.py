"""Features that pods need of a kubelet, and that nodes declare."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.framework._internal import InternalPlugin
from mooring.framework.events import POD

RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"

REQUIRED: fw.StateKey[frozenset[str]] = fw.StateKey(
    "NodeDeclaredFeatures/required",
    'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
)


class NodeDeclaredFeatures(InternalPlugin, fw.PreFilter, fw.Filter):
    """Refuse nodes that do not declare every feature the pod needs."""

    name = "NodeDeclaredFeatures"
    key_from_spec = True
    depends_on = fw.NODE
    wakes_on = (
        fw.Event.NODE_ADDED,
        fw.Event.NODE_FEATURES_CHANGED,
        fw.ClusterEvent(POD, fw.Action.UPDATE),
    )

    LACKING = fw.Status.unresolvable("node(s) didn't match Pod's required features")

    def cache_key(self, pod: fw.Pod) -> frozenset[str]:
        return features_of(pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        required = features_of(pod)
        if not required:
            return fw.SKIP
        state[REQUIRED] = required
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if state[REQUIRED] <= declared(node) else self.LACKING

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        required = state[REQUIRED]
        lacks = (not required <= declared(node) for node in nodes)
        refused = np.fromiter(lacks, np.bool_, len(nodes))
        return fw.Verdicts.passing(nodes).reject(refused, self.LACKING)

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        required: frozenset[str] = state[REQUIRED]
        for feature in sorted(required):
            lacking = [node.name for node in nodes if feature not in declared(node)]
            if lacking:
                text = f"they do not declare {feature}"
                yield fw.Fact(text=text, nodes=len(lacking), node=lacking[0])

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        lacking = features_of(pod) - (declared(node) if node is not None else frozenset())
        if RESTART_ALL in lacking:
            text = "do without rules that restart all containers"
            yield fw.Edit.of_pod(text, without_restart_rules, family=text, cost=1)
        if USER_NAMESPACES_ON_HOST_NETWORK in lacking:
            text = "do without a user namespace (hostUsers: true)"
            yield fw.Edit.of_pod_spec(text, family=text, cost=1, host_users=True)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(old, core.Node) and isinstance(new, core.Node):
            return old.status.declared_features != new.status.declared_features
        if isinstance(old, fw.Pod) and isinstance(new, fw.Pod):
            return new.uid == pod.uid and features_of(new) != features_of(old)
        return True  # a new node


def features_of(pod: fw.Pod) -> frozenset[str]:
    """The features that a pod needs, of those that nodes declare in Kubernetes 1.36.

    The other features it knows (ExtendWebSocketsToKubelet and those of in-place resizing) matter
    when a running pod is changed or attached to, not where it is placed.
    """
    spec = pod.spec
    found = set()
    rules = [c.restart_policy_rules for c in (*spec.containers, *spec.init_containers)]
    if any(rule.action == "RestartAllContainers" for some in rules for rule in some):
        found.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        found.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(found)


def without_restart_rules(pod: core.Pod) -> core.Pod:
    """The pod without rules that restart all of its containers."""

    def of_container(container: core.Container) -> core.Container:
        rules = container.restart_policy_rules
        kept = tuple(rule for rule in rules if rule.action != "RestartAllContainers")
        return structs.replace(container, restart_policy_rules=kept)

    spec = structs.replace(
        pod.spec,
        containers=tuple(map(of_container, pod.spec.containers)),
        init_containers=tuple(map(of_container, pod.spec.init_containers)),
    )
    return structs.replace(pod, spec=spec)


def declared(node: fw.Node) -> frozenset[str]:
    return frozenset(node.api.status.declared_features)
