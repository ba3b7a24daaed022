"""Plugins that break the contract, each in one way that is easy to get wrong."""

from typing import Any

import numpy as np
from tests.testing.headroom import Headroom
from tests.testing.named import Named

import mooring.framework as fw

NEVER = fw.Status.unschedulable("node(s) are not for this pod")


class VectorDisagrees(Headroom):
    """`<=` for `<`: a pod that fits exactly is refused by one form only."""

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        kept = nodes.spare(self.args.resource) - pod.requests(self.args.resource)
        floor = self.args.reserve * nodes.allocatable(self.args.resource)
        return fw.Verdicts.passing(nodes).reject(kept <= floor, self.TOO_FULL)


class OtherReason(Headroom):
    """Both forms refuse the same nodes, with different words."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        status = super().filter(state, pod, node)
        return status if status.ok else fw.Status.unschedulable("too full")


class ScoreFormsDisagree(Named, fw.Score):
    """The order of operations differs, and with it the rounding."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, 7 * (node.requested("cpu") // 1000))

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return np.minimum(100, 7 * nodes.requested("cpu") // 1000)


class OrderMatters(Named, fw.Score):
    """Prefers nodes that came early: rows, not facts."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 - (self.handle.nodes.index_of(node.name) or 0)


class SubsetMatters(Named, fw.PreScore, fw.Score):
    """Compares with the best of the nodes it was handed instead of the best it prepared for."""

    BEST: fw.StateKey[int] = fw.StateKey("best")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.BEST] = max(int(nodes.allocatable("memory").max()), 1)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 * node.allocatable("memory") // state[self.BEST]

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        memory = nodes.allocatable("memory")
        return 100 * memory // max(int(memory.max(initial=0)), 1)


class NormalizesForAll(Named, fw.Score):
    """Answers for the whole cluster, whichever nodes it is asked about."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return node.pod_count

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return fw.BEST_IS_100.normalize(self.handle.nodes.pod_counts)


class WritesToColumn(Named, fw.Score):
    """Works in place on what it was given to read."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        free = nodes.take(np.ones(len(nodes), np.bool_)).spare("cpu")
        free *= 0
        return free


class ForcesColumn(Named, fw.Score):
    """Lifts the protection of a column first."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        for key in ("pool", "disk"):
            codes = self.handle.nodes.label_codes(key)
            codes.flags.writeable = True
            codes[:] = 0
        return np.zeros(len(nodes), dtype=np.int64)


class ForcesColumnPerNode(Named, fw.Score):
    """The same where only the per-node form shows it."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        codes = self.handle.nodes.label_codes("disk")
        codes.flags.writeable = True
        codes[:] = 0
        return 0

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return np.zeros(len(nodes), dtype=np.int64)


class ScoresNonePerNode(Named, fw.Score):
    """Answers well in its vectorised form alone."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return None  # type: ignore[return-value]

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return np.zeros(len(nodes), dtype=np.int64)


class SpoilsForOthers(Named, fw.Score):
    """Clears a column, and remembers what was in it."""

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._points: dict[str, int] = {}

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int("disk" in node.labels)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        for name, code in zip(nodes.names, nodes.label_codes("disk").tolist(), strict=True):
            self._points.setdefault(name, int(code > 0))
        codes = self.handle.nodes.label_codes("disk")
        codes.flags.writeable = True
        codes[:] = 0
        return np.array([self._points[name] for name in nodes.names], dtype=np.int64)


class WritesToPod(Named, fw.PreFilter):
    """Leaves a note on the pod."""

    wakes_on = ()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        pod.priority = 7
        return fw.OK


class FloatScores(Named, fw.Score):
    """Divides with `/`."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 50

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        scores: Any = np.full(len(nodes), 100) / 2
        return scores  # type: ignore[no-any-return]  # what an untyped plugin does


class NotANumber(Named, fw.Score):
    """Zero of zero pods."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return float("nan")  # type: ignore[return-value]  # what an untyped plugin does


class TooGood(Named, fw.Score):
    """One point more than there is."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 101


class Speechless(Named, fw.Filter):
    """Refuses without a reason."""

    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable() if node.unschedulable else fw.OK


class SpeechlessGate(Named, fw.PreEnqueue):
    """Refuses with an empty reason."""

    wakes_on = ()

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
        return fw.Status.unresolvable(" ") if pod.spec.scheduling_gates else fw.OK


class NeverWakes(Named, fw.Filter):
    """Does not say what could change its mind."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


class NeverWakesPreemptors(Named, fw.PostFilter):
    """Its pods are gated while victims leave, and no event is said to end that."""

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status:
        return fw.Status.unschedulable("no pod can be evicted")


class SaysNone(Named, fw.Filter):
    """Falls off the end of the method."""

    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if node.unschedulable:
            return NEVER
        return None  # type: ignore[return-value]  # what an untyped plugin does


class WrongLength(Named, fw.Filter):
    """Answers for one node too few."""

    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        return fw.Verdicts(max(len(nodes) - 1, 0))


class Raises(Named, fw.Filter):
    """Counts on a label that not every node has."""

    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if node.labels["topology.kubernetes.io/zone"] == "a" else NEVER


class LooseArgs(fw.Args, frozen=True, forbid_unknown_fields=False):
    """Takes whatever comes."""


class AcceptsAnything(Named, fw.Plugin[LooseArgs], fw.Score):
    """A misspelt argument goes unnoticed."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class StubbornArgs(fw.Args, frozen=True):
    """Refuses its own default."""

    shards: int = 0

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError("shards must be positive")


class CannotBeBuilt(Named, fw.Plugin[StubbornArgs], fw.Score):
    """Has defaults that it refuses."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class FailsToStart(Named, fw.Score):
    """Raises while it is built."""

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        raise OSError("no such device")

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class Nameless(fw.Score):
    """Has no name."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class Remembers(Named, fw.Score):
    """Keeps what belongs to one attempt in itself."""

    asked = 0

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        self.asked = min(self.asked + 1, 100)
        return self.asked


class NotStrict(Named, fw.QueueSort):
    """`<=`: equal pods come before each other."""

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.timestamp <= b.timestamp


class NotTransitive(Named, fw.QueueSort):
    """Rock, paper, scissors."""

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return (len(a.pod.labels) - len(b.pod.labels)) % 3 == 1


class TiesDisagree(Named, fw.QueueSort):
    """Times that differ by less than a minute count as equal."""

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.timestamp + 59.8 < b.timestamp


class NoOrder(Named, fw.QueueSort):
    """Forgets to answer."""

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return None  # type: ignore[return-value]  # that is the fault


class KeyDisagrees(Named, fw.QueueSort):
    """The key forgets that high priorities go first."""

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.priority > b.pod.priority

    def sort_key(self, queued: fw.QueuedPod) -> object:
        return queued.pod.priority


class _Neighbours(Named, fw.PreFilter, fw.Filter):
    """At most four pods in the cluster; the count is kept in the state."""

    wakes_on = (fw.Event.POD_DELETED,)
    COUNT: fw.StateKey[list[int]] = fw.StateKey("count")

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.COUNT] = [int(nodes.pod_counts.sum())]
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if state[self.COUNT][0] <= 4 else NEVER


class ForgetsWhatIfs(_Neighbours):
    """Does not hear of pods moved in thought."""


class LeaksWhatIfs(_Neighbours):
    """Hears of them, but its state can't be cloned: the thought stays."""

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        state[self.COUNT][0] += 1
        return fw.OK

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        state[self.COUNT][0] -= 1
        return fw.OK


class AddsOnly(_Neighbours):
    """Hears of pods that come in thought, and not of those that leave."""

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        state[self.COUNT] = [state[self.COUNT][0] + 1]
        return fw.OK


class HintTrusts(Headroom):
    """Takes for granted that there always was a node before."""

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        return bool(old.status != new.status)  # type: ignore[union-attr]  # the point of it


class HintMumbles(Headroom):
    """Answers with something that is merely true."""

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        return pod.name  # type: ignore[return-value]  # what an untyped plugin does


class UnreserveTrusts(Named, fw.Reserve):
    """Takes for granted that `reserve` was called."""

    wakes_on = ()

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.held: dict[str, str] = {}

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        self.held[pod.uid] = node_name
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        del self.held[pod.uid]


class NormalizesTooFar(Named, fw.Score):
    """Normalises to something else than 0 to 100."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 1

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return 200 * scores


class SkipsAtFilter(Named, fw.Filter):
    """Says SKIP where only yes or no is an answer."""

    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.SKIP


class SkipsReserve(Named, fw.Reserve):
    """Says SKIP where there is nothing to skip."""

    wakes_on = ()

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.SKIP

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None: ...


class FullOfFaults(Named, fw.Filter, fw.Score):
    """Breaks the contract in several ways at once."""

    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable() if node.unschedulable else fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(node.pod_count, 100)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return np.full(len(nodes), 1, dtype=np.int64)


class RaisesAndCounts(Named, fw.Score):
    """Fails for pods without labels, and is wrong about the others."""

    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        if not pod.labels:
            raise KeyError("no labels")
        return min(node.pod_count, 100)
