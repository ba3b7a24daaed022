"""Keep pods with `spec.schedulingGates` out of the active queue."""

import mooring.framework as fw


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

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        return isinstance(new, fw.Pod) and new.uid == pod.uid
