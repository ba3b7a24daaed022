"""Keep pods off cordoned nodes."""

from collections.abc import Iterable

from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.taints import NO_SCHEDULE, taint_text, tolerates
from mooring.framework._internal import InternalPlugin
from mooring.framework.explaining import LAST_RESORT

# A cordoned node is refused as if it carried this taint, so that a toleration lets a pod through.
CORDON = core.Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
OF_CONDITIONS = "node.kubernetes.io/"  # what the taints of cordoned and unwell nodes begin with


class NodeUnschedulable(InternalPlugin, fw.Filter):
    """Refuse nodes with `spec.unschedulable`, unless the pod tolerates that."""

    name = "NodeUnschedulable"
    key_from_spec = True
    depends_on = fw.NODE
    wakes_on = (fw.Event.NODE_ADDED, fw.Event.NODE_TAINTS_CHANGED, fw.Event.POD_TOLERATIONS_CHANGED)

    CORDONED = fw.Status.unresolvable("node(s) were unschedulable")

    def cache_key(self, pod: fw.Pod) -> bool:
        return tolerates_cordon(pod)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return self.CORDONED if node.unschedulable and not tolerates_cordon(pod) else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        if tolerates_cordon(pod):
            return verdicts
        return verdicts.reject(nodes.unschedulable, self.CORDONED)

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        yield fw.Fact(text="cordoned", waits_for="others")

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        if node is not None:
            yield uncordon(node.name)
        yield tolerate(CORDON)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, fw.Pod):
            return new.uid == pod.uid and tolerates_cordon(new)
        was_open = isinstance(old, core.Node) and not old.spec.unschedulable
        return isinstance(new, core.Node) and not new.spec.unschedulable and not was_open


def uncordon(name: str) -> fw.Edit:
    """As `kubectl uncordon`, with the taint that the node controller then takes away."""

    def to(node: core.Node) -> core.Node:
        kept = tuple(taint for taint in node.spec.taints if taint.key != CORDON.key)
        return structs.replace(
            node, spec=structs.replace(node.spec, unschedulable=False, taints=kept)
        )

    one_of = "uncordon one of {count}, e.g. {node}"
    return fw.Edit.of_node(f"uncordon {name}", name, to, family="uncordon", one_of=one_of)


def tolerate(taint: core.Taint) -> fw.Edit:
    """A toleration of one taint; those of conditions are there for a reason."""
    more = core.Toleration(
        key=taint.key,
        operator="Equal" if taint.value else "Exists",
        value=taint.value,
        effect=taint.effect,
    )

    def to(pod: core.Pod) -> core.Pod:
        spec = structs.replace(pod.spec, tolerations=(*pod.spec.tolerations, more))
        return structs.replace(pod, spec=spec)

    text = f"tolerate {taint_text(taint)}"
    cost = LAST_RESORT if taint.key.startswith(OF_CONDITIONS) else 0
    return fw.Edit.of_pod(text, to, family=text, cost=cost)


def tolerates_cordon(pod: fw.Pod) -> bool:
    return any(tolerates(toleration, CORDON) for toleration in pod.spec.tolerations)
