"""Pass a word from one extension point to another through the state of the attempt."""

import mooring.framework as fw

WORD: fw.StateKey[str] = fw.StateKey("multipoint-communicating-plugin/word")


class Communicating(fw.Reserve, fw.PreBind):
    """Never let `my-test-pod` be bound: Reserve says so, PreBind reads it, Unreserve forgets it."""

    name = "multipoint-communicating-plugin"
    wakes_on = ()  # no event changes its mind

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        if pod.name == "my-test-pod":
            state[WORD] = "never bind"
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        del state[WORD]  # nothing happens if it is not there

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        if state.get(WORD) == "never bind":
            return fw.Status.unschedulable("pod is not permitted")
        return fw.OK
