"""Place pods by the pods that are there: affinity and anti-affinity, of both sides.

The pod's own terms are counted by `nodes.count_pods_by`, those of the pods on nodes are found in
`nodes.count_features`. Both are kept current as pods come and go, so that nothing here looks at
pods or nodes one by one.
"""

from collections.abc import Hashable, Mapping

import numpy as np

import mooring.framework as fw
from mooring.api import core
from mooring.api.frozen import EMPTY
from mooring.plugins.interpodaffinity.args import InterPodAffinityArgs
from mooring.plugins.interpodaffinity.counts import Domains, Points, Surroundings
from mooring.plugins.interpodaffinity.terms import (
    NO_TERMS,
    Peers,
    Term,
    Wish,
    all_include,
    far_of,
    has_wishes,
    labels_of,
    meant_by_all,
    rules_about,
    rules_of,
    terms_of,
)

AROUND: fw.StateKey[Surroundings] = fw.StateKey(
    "InterPodAffinity/around",
    'error reading "PreFilterInterPodAffinity" from cycleState: not found',
)
POINTS: fw.StateKey[Points] = fw.StateKey(
    "InterPodAffinity/points",
    'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
)


class InterPodAffinity(
    fw.Plugin[InterPodAffinityArgs], fw.PreFilter, fw.Filter, fw.PreScore, fw.NormalizeScore
):
    """Refuse nodes with the wrong pods around; prefer those with more of the right ones."""

    name = "InterPodAffinity"
    scope = fw.Scope.CLUSTER
    by_extremes = True
    reads = (core.Namespace,)
    wakes_on = (
        fw.Event.POD_ADDED,
        fw.Event.POD_LABELS_CHANGED,
        fw.Event.POD_DELETED,
        fw.Event.NODE_ADDED,
        fw.Event.NODE_LABELS_CHANGED,
    )

    ALONE = fw.Status.unresolvable("node(s) didn't match pod affinity rules")
    CROWDED = fw.Status.unschedulable("node(s) didn't match pod anti-affinity rules")
    BANNED = fw.Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

    def scope_of(self, pod: fw.Pod) -> fw.Scope | None:
        alone = terms_of(pod) is NO_TERMS and self._is_left_alone(pod)
        return fw.Scope.OBJECT if alone else self.scope

    def stamp(self, pod: fw.Pod) -> Hashable:
        return self._is_left_alone(pod)

    # --- filter ----------------------------------------------------------------------------------

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        terms = terms_of(pod)
        if terms.problem:
            return fw.Status.unresolvable(f"parsing pod: {terms.problem}")
        namespace_labels = self._namespace_labels(pod)
        banned = self._banned(pod, namespace_labels, nodes)
        if not banned and not terms.near and not terms.far:
            return fw.SKIP
        near = tuple(Term(self._listed(term.peers), term.topology_key) for term in terms.near)
        together = tuple(term.peers for term in near)
        state[AROUND] = Surroundings(
            pod,
            namespace_labels,
            near,
            tuple(
                Domains(key, self._counted(nodes, key, together))
                for key in dict.fromkeys(term.topology_key for term in near)
            ),
            tuple(self._kept_away(nodes, term) for term in terms.far),
            banned,
        )
        return fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        return self._recounted(state, added, node, +1)

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        return self._recounted(state, removed, node, -1)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        around = state[AROUND]
        if around.lacks_company(node):
            return self.ALONE
        if around.meets_others(node):
            return self.CROWDED
        return self.BANNED if around.is_banned(node) else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        around = state[AROUND]
        verdicts = fw.Verdicts.passing(nodes)
        verdicts.reject(around.lacking_company(nodes), self.ALONE)
        verdicts.reject(around.meeting_others(nodes), self.CROWDED)
        return verdicts.reject(around.banning(nodes), self.BANNED)

    # --- score -----------------------------------------------------------------------------------

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if self.args.ignore_preferred_terms_of_existing_pods and not has_wishes(pod):
            return fw.SKIP
        terms = terms_of(pod)
        if terms.problem:
            return fw.Status.error(f"failed to parse pod: {terms.problem}")
        points = Points()
        for wish in terms.wishes:
            key = wish.term.topology_key
            pods = self._counted(nodes, key, (self._listed(wish.peers),))
            points.add(key, wish.weight or 0, pods)
        features = nodes.count_features((self.name, "wishes"), rules_of, labels_of)
        rules: list[Wish] = rules_about(pod, self._namespace_labels(pod), features.having)
        for wish in rules:
            weight = self.args.hard_pod_affinity_weight if wish.weight is None else wish.weight
            if weight or wish.weight is not None:
                key = wish.term.topology_key
                points.add(key, weight, features.per_domain(wish, key))
        if points.is_empty:
            return fw.SKIP
        state[POINTS] = points
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return state[POINTS].at(node)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return state[POINTS].on(nodes)

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        if not len(scores):
            return scores
        least = scores.min()
        width = float(scores.max() - least)
        if width <= 0:
            return np.zeros_like(scores)
        # In floats, in this order and cut off: as kube-scheduler, where 29 of 100 becomes 28.
        shares = (scores - least) / width
        normal: fw.IntArray = (fw.MAX_SCORE * shares).astype(np.int64)
        return normal

    # --- events ----------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if terms_of(pod).problem:
            return True
        if isinstance(new, core.Node):
            return helps_by_place(pod, old if isinstance(old, core.Node) else None, new)
        was = old if isinstance(old, fw.Pod) else None
        is_now = new if isinstance(new, fw.Pod) else None
        return helps_by_company(pod, was, is_now)

    # --- inside ----------------------------------------------------------------------------------

    def _is_left_alone(self, pod: fw.Pod) -> bool:
        """Whether no pod on any node has a rule that is about this one."""
        nodes, labels = self.handle.nodes, self._namespace_labels(pod)
        bans = nodes.count_features((self.name, "bans"), far_of, labels_of)
        wishes = nodes.count_features((self.name, "wishes"), rules_of, labels_of)
        return not (
            rules_about(pod, labels, bans.having) or rules_about(pod, labels, wishes.having)
        )

    def _namespace_labels(self, pod: fw.Pod) -> Mapping[str, str]:
        namespace = self.handle.objects.get(core.Namespace, pod.namespace)
        return EMPTY if namespace is None else namespace.metadata.labels

    def _listed(self, peers: Peers) -> Peers:
        """The same pods, known by the names of their namespaces."""
        if not peers.selects_namespaces:
            return peers
        return peers.in_namespaces(self.handle.objects.list(core.Namespace))

    def _counted(self, nodes: fw.Nodes, key: str, peers: tuple[Peers, ...]) -> fw.IntArray:
        """Pods that are meant by all of these, per label code."""
        question = (self.name, peers)
        return nodes.count_pods_by(key, question, meant_by_all(peers), peers[0].selector)

    def _kept_away(self, nodes: fw.Nodes, term: Term) -> tuple[Peers, Domains]:
        peers, key = self._listed(term.peers), term.topology_key
        return peers, Domains(key, self._counted(nodes, key, (peers,)))

    def _banned(
        self, pod: fw.Pod, namespace_labels: Mapping[str, str], nodes: fw.Nodes
    ) -> dict[str, Domains]:
        """The pods on nodes that keep away from this one, by topology key."""
        features = nodes.count_features((self.name, "bans"), far_of, labels_of)
        rules: list[Term] = rules_about(pod, namespace_labels, features.having)
        sums: dict[str, fw.IntArray] = {}
        for term in rules:
            key = term.topology_key
            pods = features.per_domain(term, key)
            sums[key] = sums[key] + pods if key in sums else pods
        found = {key: Domains(key, pods) for key, pods in sums.items()}
        return {key: domains for key, domains in found.items() if not domains.is_empty}

    def _recounted(
        self, state: fw.CycleState, other: fw.Pod, node: fw.Node, change: int
    ) -> fw.Status:
        state[AROUND].count(other, node, change)
        return fw.OK


def helps_by_place(pod: fw.Pod, old: core.Node | None, new: core.Node) -> bool:
    """Whether a node that came, or has other labels now, may be one where the pod is right."""
    terms = terms_of(pod)
    labels = new.metadata.labels
    if old is None:
        return bool(terms.far) or any(term.topology_key in labels for term in terms.near)
    before = old.metadata.labels
    entered = {term.topology_key for term in terms.near if term.topology_key in labels}
    left = {term.topology_key for term in terms.far if term.topology_key in before}
    return any(before.get(key) != labels.get(key) for key in entered | left)


def helps_by_company(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None) -> bool:
    """Whether a pod that came, changed or went may have opened a node to another.

    Namespaces are taken by name here: what a selector of them means may have changed since.
    """
    terms = terms_of(pod)
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    if any(other is not None and not other.node_name for other in (old, new)):
        return False
    if new is not None and old is not None:
        came = not all_include(terms.near, old) and all_include(terms.near, new)
        return came or (all_include(terms.far, old) and not all_include(terms.far, new))
    if new is not None:
        return all_include(terms.near, new)
    return old is not None and (all_include(terms.far, old) or all_include(far_of(old), pod))
