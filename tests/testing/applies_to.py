"""Plugins that apply to some pods only, and say something for the others, each in one way."""

from typing import ClassVar

from tests.testing.declarations import NOT_HERE
from tests.testing.named import Named

import mooring.framework as fw


class ForApps(
    Named, fw.PreFilter, fw.Filter, fw.PreScore, fw.Score, fw.Reserve, fw.Permit, fw.PreBind
):
    """Honest: has nothing to say for pods without the label app, at any point.

    A subclass gives those pods another answer at one point.
    """

    wakes_on = ()
    pre_filter_others: ClassVar[fw.Status] = fw.OK
    pre_score_others: ClassVar[fw.Status] = fw.OK
    reserve_others: ClassVar[fw.Status] = fw.OK
    permit_others: ClassVar[fw.Status | fw.Wait] = fw.OK
    pre_flight_others: ClassVar[fw.Status] = fw.SKIP

    def applies_to(self, pod: fw.Pod) -> bool:
        return "app" in pod.labels

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.Status | fw.OnlyNodes:
        return fw.OK if "app" in pod.labels else self.pre_filter_others

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if "app" in pod.labels and node.unschedulable else fw.OK

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.OK if "app" in pod.labels else self.pre_score_others

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(node.pod_count, 100) if "app" in pod.labels else 7

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK if "app" in pod.labels else self.reserve_others

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None: ...

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.Wait:
        return fw.Wait(10.0) if "app" in pod.labels else self.permit_others

    def pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK if "app" in pod.labels else self.pre_flight_others

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK


class SkipsOthers(ForApps):
    """Honest: says so at PreFilter and PreScore as well."""

    pre_filter_others = fw.SKIP
    pre_score_others = fw.SKIP


class KeptForApps(Named, fw.Filter):
    """Honest: for the pods that it applies to, nothing of the pod matters."""

    depends_on = fw.NODE
    wakes_on = ()

    def applies_to(self, pod: fw.Pod) -> bool:
        return "app" in pod.labels

    def cache_key(self, pod: fw.Pod) -> None:
        return None

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if "app" in pod.labels and node.unschedulable else fw.OK


# --- something to say -----------------------------------------------------------------------------


class RefusesOthers(ForApps):
    """Refuses the pods that it does not apply to."""

    pre_filter_others = NOT_HERE


class RestrictsOthers(ForApps):
    """Has nodes for the pods that it does not apply to."""

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.Status | fw.OnlyNodes:
        return fw.OK if "app" in pod.labels else fw.OnlyNodes(frozenset(nodes.names))


class FiltersOthers(ForApps):
    """Refuses cordoned nodes to all pods."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if node.unschedulable else fw.OK


class FailsOthers(ForApps):
    """Can't prepare scores for the pods that it does not apply to."""

    pre_score_others = fw.Status.error("no app")


class ScoresOthers(ForApps):
    """Prefers some nodes for all pods."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(node.pod_count, 100)


class ReservesOthers(ForApps):
    """Refuses to reserve for the pods that it does not apply to."""

    reserve_others = NOT_HERE


class DelaysOthers(ForApps):
    """Makes all pods wait."""

    permit_others = fw.Wait(10.0)


class PreparesOthers(ForApps):
    """Has something to prepare for all pods."""

    pre_flight_others = fw.OK


class TrustsAppliesTo(ForApps):
    """Counts on not being asked."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return len(pod.labels["app"])


# --- which pods -----------------------------------------------------------------------------------


class AppliesToText(ForApps):
    """Answers with something that is merely true."""

    def applies_to(self, pod: fw.Pod) -> bool:
        return pod.labels.get("app")  # type: ignore[return-value]  # what an untyped plugin does


class AppliesToNames(ForApps):
    """Looks at the pod's name."""

    def applies_to(self, pod: fw.Pod) -> bool:
        return len(pod.name) < 8


class AppliesAtFirst(ForApps):
    """Looks at the clock."""

    def applies_to(self, pod: fw.Pod) -> bool:
        return self.handle.clock.now() % 7_200 < 3_600


class AppliesToSmallClusters(ForApps):
    """Looks at the nodes."""

    def applies_to(self, pod: fw.Pod) -> bool:
        return len(self.handle.nodes) < 4
