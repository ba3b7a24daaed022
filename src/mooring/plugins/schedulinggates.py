"""Keep pods with `spec.schedulingGates` out of the active queue."""

from collections.abc import Iterable
from functools import partial

from msgspec import structs

import mooring.framework as fw
from mooring.api import core


class SchedulingGates(fw.PreEnqueue):
    """Gate a pod until its last scheduling gate is removed."""

    name = "SchedulingGates"
    wakes_on = (fw.Event.POD_GATES_REMOVED,)
    reports_waiting = False  # the API server has written a condition

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
        gates = pod.spec.scheduling_gates
        if not gates:
            return fw.OK
        names = " ".join(gate.name for gate in gates)
        return fw.Status.unresolvable(f"waiting for scheduling gates: [{names}]")

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        for gate in pod.spec.scheduling_gates:
            yield fw.Fact(text=f"scheduling gate {gate.name}")

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        for gate in pod.spec.scheduling_gates[:1]:
            text = f"remove the scheduling gate {gate.name}"
            yield fw.Edit.of_pod(text, partial(opened, gate), family=text)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        return isinstance(new, fw.Pod) and new.uid == pod.uid


def opened(gate: core.PodSchedulingGate, pod: core.Pod) -> core.Pod:
    """The pod without one of its gates."""
    kept = tuple(other for other in pod.spec.scheduling_gates if other != gate)
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduling_gates=kept))
