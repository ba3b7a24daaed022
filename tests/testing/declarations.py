"""Plugins that say their answers depend on less than they do, each in one way."""

from collections.abc import Hashable

from tests.testing.named import Named

import mooring.framework as fw
from mooring.api import core
from mooring.framework._internal import InternalPlugin
from mooring.framework.depends_on import DependsOn

NOT_HERE = fw.Status.unschedulable("node(s) are not for this pod")


def digits(text: str) -> int:
    """Some points out of a text."""
    return sum(text.encode()) % 101


# --- pods of one class ----------------------------------------------------------------------------


class ByName(Named, fw.Score):
    """Every pod has favourites of its own."""

    depends_on = fw.NODE_AND_PODS

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return digits(pod.name + node.name)


class ByAge(Named, fw.Filter):
    """Pods that came late have to wait."""

    depends_on = fw.NODE
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if (pod.api.metadata.creation_timestamp or "") > "2026-01-01" else fw.OK


class ByLuck(Named, fw.PreScore, fw.Score):
    """Rolls dice, once for every pod."""

    depends_on = fw.NODE_AND_PODS
    ROLLED: fw.StateKey[int] = fw.StateKey("rolled")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.ROLLED] = self.handle.random.randint(0, 100)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return state[self.ROLLED]


class ByClock(Named, fw.Score):
    """Looks at the clock."""

    depends_on = fw.NODE_AND_PODS

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(self.handle.clock.now() // 60) % 101


class ByAttempts(Named, fw.PreFilter):
    """Pods that were refused before are refused again."""

    depends_on = fw.NODE
    wakes_on = ()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return NOT_HERE if pod.status.conditions else fw.OK


class ByVolumes(Named, fw.PreScore, fw.Score):
    """Counts volumes, those with a token too."""

    depends_on = fw.NODE

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.OK if pod.spec.volumes else fw.SKIP

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 1


class ByBest(Named, fw.Filter, fw.PreScore, fw.Score):
    """Compares with the best of the nodes that fit."""

    depends_on = fw.NODE
    wakes_on = ()
    BEST: fw.StateKey[int] = fw.StateKey("best")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if node.allocatable("memory") > 2**34 else fw.OK

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.BEST] = max(int(nodes.allocatable("memory").max()), 1)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 * node.allocatable("memory") // state[self.BEST]


class ByFeasible(Named, fw.Filter, fw.PreScore, fw.Score):
    """Looks at which nodes fit."""

    depends_on = fw.NODE
    wakes_on = ()
    ALL_FIT: fw.StateKey[bool] = fw.StateKey("all fit")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if node.name == "node-0" else fw.OK

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.ALL_FIT] = "node-0" not in nodes.names
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if state[self.ALL_FIT] else 0


class FailsElsewhere(Named, fw.Filter, fw.Score):
    """Fails for nodes that it refuses itself, which are scored as well when scores are kept."""

    depends_on = fw.NODE
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if "topology.kubernetes.io/zone" in node.labels else NOT_HERE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return len(node.labels["topology.kubernetes.io/zone"])


class UsesUp(Named, fw.PreScore, fw.Score):
    """Changes what the pods of a class share."""

    depends_on = fw.NODE
    SEEN: fw.StateKey[set[str]] = fw.StateKey("seen")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.SEEN] = set()
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        if node.name in state[self.SEEN]:
            return 0
        state[self.SEEN].add(node.name)
        return 100


# --- what happens elsewhere -----------------------------------------------------------------------


class CountsPods(Named, fw.Score):
    """Looks at the pods of the node, and says that it does not."""

    depends_on = fw.NODE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return max(0, 100 - node.pod_count)


class LooksAround(Named, fw.Score):
    """Compares with the pods of other nodes."""

    depends_on = fw.NODE_AND_PODS

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        total = int(self.handle.nodes.pod_counts.sum())
        return 100 * node.pod_count // max(total, 1)


class ComparesNodes(Named, fw.Filter):
    """Compares with the labels of other nodes, of which its key says nothing but their names."""

    depends_on = fw.NODE
    wakes_on = ()

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return self.handle.nodes.names

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        pool = node.labels.get("pool")
        is_alone = sum(other.labels.get("pool") == pool for other in self.handle.nodes) == 1
        return NOT_HERE if is_alone else fw.OK


class CountsNodes(Named, fw.PreScore, fw.Score):
    """Has something to say in large clusters only."""

    depends_on = fw.NODE_AND_PODS

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.SKIP if len(self.handle.nodes) < 4 else fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 1


class CountsRunning(Named, fw.Score):
    """Looks at the status of other pods."""

    depends_on = fw.NODE_AND_PODS

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, sum(other.status.phase == "Running" for other in node.pods))


class StoresCounts(Named, fw.PreFilter, fw.Filter):
    """Counts the pods of nodes beforehand, when they are not yet what they will be."""

    depends_on = fw.NODE_AND_PODS
    wakes_on = ()
    COUNTS: fw.StateKey[dict[str, int]] = fw.StateKey("counts")

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.COUNTS] = {node.name: node.pod_count for node in nodes}
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if state[self.COUNTS][node.name] < 2 else NOT_HERE

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        return self._recount(state, node)

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        return self._recount(state, node)

    def _recount(self, state: fw.CycleState, node: fw.Node) -> fw.Status:
        counts = {**state[self.COUNTS], node.name: node.pod_count}
        state[self.COUNTS] = counts
        return fw.OK


class ReadsNamespaces(Named, fw.Score):
    """Reads objects, and says so."""

    depends_on = fw.NODE
    reads = (core.Namespace,)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        namespace = self.handle.objects.get(core.Namespace, pod.namespace)
        return 0 if namespace is None else 50 + len(namespace.metadata.labels)


class ReadsBySpec(InternalPlugin, ReadsNamespaces):
    """Reads objects, and says that its key looks at nothing but the pod's spec."""

    key_from_spec = True


class Sometimes(Named, InternalPlugin, fw.Score):
    """Declares depends_on for some pods only, and is wrong about one of them."""

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        return {"web": fw.NODE, "db": fw.NODE_AND_PODS}.get(pod.labels.get("app", ""))

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, node.pod_count) if "app" in pod.labels else digits(pod.name)


class ByWord(Named, fw.Score):
    """Names what it depends on by a word."""

    depends_on = "node"  # type: ignore[assignment]  # what an untyped plugin does

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


class Undeclared(Named, fw.Score):
    """Honest: says nothing about what matters."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return digits(pod.name + node.name)


class BySpread(Named, fw.Score):
    """Honest: what it needs to know of others is in its key."""

    depends_on = fw.NODE

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return self._share()

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return self._share() if node.unschedulable else 0

    def _share(self) -> int:
        return 100 * int(self.handle.nodes.unschedulable.sum()) // max(len(self.handle.nodes), 1)


class KeyByPods(Named, fw.Score):
    """Counts all pods; its key is not asked for again when they come or go."""

    depends_on = fw.NODE

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return int(self.handle.nodes.pod_counts.sum())

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, int(self.handle.nodes.pod_counts.sum()))


class DependsByPods(Named, InternalPlugin, fw.Score):
    """Declares depends_on as long as there are few pods, which goes unnoticed as well."""

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        return fw.NODE if self.handle.nodes.pod_counts.sum() < 3 else fw.NODE_AND_PODS

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, node.pod_count)


class OldVersion(InternalPlugin, BySpread):
    """Says that its key stays the same as long as no node comes or goes."""

    def key_version(self) -> Hashable:
        return len(self.handle.nodes)


class SpecKeyByNodes(Named, InternalPlugin, fw.Score):
    """Puts the cordoned nodes into a key that is said to look at the pod's spec only."""

    depends_on = fw.NODE
    key_from_spec = True

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return int(self.handle.nodes.unschedulable.sum())

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, int(self.handle.nodes.unschedulable.sum()))


class KeyByName(Named, fw.Score):
    """Puts the pod's name into its key, which is not asked for again for other names."""

    depends_on = fw.NODE

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.name

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return digits(pod.name)


# --- cache keys -----------------------------------------------------------------------------------


class ByRequests(Named, fw.Filter, fw.Score):
    """Honest: nothing of the pod matters but what it requests."""

    depends_on = fw.NODE_AND_PODS
    wakes_on = ()

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.requests("cpu"), pod.requests("memory")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if pod.requests("memory") <= node.spare("memory") else NOT_HERE

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if pod.requests("cpu") <= node.spare("cpu") else 0


class ForgetsMemory(ByRequests):
    """Leaves out one of the two things that matter."""

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.requests("cpu")


class ForgetsTolerations(ByRequests):
    """Asks about something that it does not mention."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if node.taints and not pod.spec.tolerations else fw.OK


class SkipsByLabel(ByRequests, fw.PreFilter):
    """Has nothing to say about some pods, and does not mention which."""

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.SKIP if pod.labels.get("tier") == "back" else fw.OK


class StoresLabels(ByRequests, fw.PreScore):
    """Stores more of the pod than its key holds."""

    LABELS: fw.StateKey[int] = fw.StateKey("labels")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[self.LABELS] = len(pod.labels)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return state[self.LABELS]


class ListsKeys(ByRequests):
    """Has a key that can't be hashed."""

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return [pod.requests("cpu")]  # type: ignore[return-value]  # what an untyped plugin does


class KeyFails(ByRequests):
    """Has no key for some pods."""

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.labels["app"], super().cache_key(pod)


class ByTolerations(Named, fw.Filter):
    """Honest: nothing of the pod matters but its tolerations, and no pods on nodes do."""

    depends_on = fw.NODE
    wakes_on = ()

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return NOT_HERE if node.taints and not pod.spec.tolerations else fw.OK


class ForgetsSelector(ByTolerations):
    """Also asks about the node selector."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        is_strict = bool(pod.spec.node_selector)
        return NOT_HERE if is_strict and node.taints else super().filter(state, pod, node)


class BySpec(InternalPlugin, ByTolerations):
    """Honest: a key that says more than it has to."""

    key_from_spec = True

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.spec


class SpecKeyByLabels(Named, InternalPlugin, fw.Score):
    """Looks at labels for a key that is said to look at the pod's spec only."""

    depends_on = fw.NODE
    key_from_spec = True

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return len(pod.labels)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return len(pod.labels)


class ByPod(Named, InternalPlugin, fw.Score):
    """Honest: equal keys of pods with another `depends_on` are different things."""

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        return fw.NODE_AND_PODS if "app" in pod.labels else fw.NODE

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(100, node.pod_count) if "app" in pod.labels else 7


# --- equal points ---------------------------------------------------------------------------------


class ByLabels(Named, fw.Score):
    """Honest: normalised as usual."""

    depends_on = fw.NODE
    normalizer = fw.BEST_IS_100

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 1 + len(node.labels)
