"""Keep pods off cordoned nodes."""

import mooring.framework as fw
from mooring.api import core
from mooring.api.taints import NO_SCHEDULE, tolerates
from mooring.framework._internal import InternalPlugin

# A cordoned node is refused as if it carried this taint, so that a toleration lets a pod through.
CORDON = core.Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


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

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, fw.Pod):
            return new.uid == pod.uid and tolerates_cordon(new)
        was_open = isinstance(old, core.Node) and not old.spec.unschedulable
        return isinstance(new, core.Node) and not new.spec.unschedulable and not was_open


def tolerates_cordon(pod: fw.Pod) -> bool:
    return any(tolerates(toleration, CORDON) for toleration in pod.spec.tolerations)
