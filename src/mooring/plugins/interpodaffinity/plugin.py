"""Inter-pod affinity and anti-affinity, by the terms of the incoming and of existing pods.

Pods that match the incoming pod's terms are counted by `nodes.count_pods_by`, the terms of existing
pods by `count_features`. The cache keeps both current, so that nothing here looks at pods or nodes
one by one.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np

import mooring.framework as fw
from mooring.api import core
from mooring.api.frozen import EMPTY
from mooring.cache.hypothetical import HypotheticalNodes
from mooring.cache.internals import count_features, features_version
from mooring.cache.snapshot import Features
from mooring.framework._internal import (
    DomainFilter,
    DomainScore,
    DomainTable,
    WhatIfBasis,
    earlier_value,
    is_assigned_or_nominated,
)
from mooring.framework.depends_on import DependsOn
from mooring.plugins.interpodaffinity.counts import (
    AffinityCounts,
    Counted,
    Counts,
    TopologyScores,
    refused_on,
)
from mooring.plugins.interpodaffinity.explaining import (
    Repulsion,
    affinity_edits,
    anti_affinity_edits,
    facts_of,
)
from mooring.plugins.interpodaffinity.hypothetical import HypotheticalCounts
from mooring.plugins.interpodaffinity.matched_terms import MatchedTerms, PodCounts
from mooring.plugins.interpodaffinity.terms import (
    NO_TERMS,
    Peers,
    Rule,
    all_include,
    has_preferred_terms,
    labels_of,
    rules_about,
    rules_of,
    terms_of,
)

C = TypeVar("C", bound=Counted)

MATCHED_TERMS: fw.StateKey[MatchedTerms] = fw.StateKey("InterPodAffinity/matched terms")
AFFINITY_COUNTS: fw.StateKey[AffinityCounts] = fw.StateKey(
    "InterPodAffinity/affinity counts",
    'error reading "PreFilterInterPodAffinity" from cycleState: not found',
)
TOPOLOGY_SCORES: fw.StateKey[TopologyScores] = fw.StateKey(
    "InterPodAffinity/topology scores",
    'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
)


class InterPodAffinityArgs(fw.Args, frozen=True):
    """How much the terms of existing pods count when another pod is placed."""

    hard_pod_affinity_weight: int = 1  # of each affinity term that an existing pod requires
    ignore_preferred_terms_of_existing_pods: bool = False  # unless the incoming pod has some too

    def __post_init__(self) -> None:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            text = f"Invalid value: {weight}: not in valid range [0, 100]"
            raise ValueError(f"hardPodAffinityWeight: {text}")


class InterPodAffinity(
    fw.Plugin[InterPodAffinityArgs], fw.PreFilter, DomainFilter, fw.PreScore, DomainScore
):
    """Filter nodes by required terms, score them by preferred terms."""

    name = "InterPodAffinity"
    answers_what_ifs = True
    normalizer = fw.MIN_MAX
    reads = (core.Namespace,)
    wakes_on = (
        fw.Event.POD_ADDED,
        fw.Event.POD_LABELS_CHANGED,
        fw.Event.POD_DELETED,
        fw.Event.NODE_ADDED,
        fw.Event.NODE_LABELS_CHANGED,
    )

    AFFINITY_NOT_MET = fw.Status.unresolvable("node(s) didn't match pod affinity rules")
    ANTI_AFFINITY_NOT_MET = fw.Status.unschedulable("node(s) didn't match pod anti-affinity rules")
    EXISTING_ANTI_AFFINITY_NOT_MET = fw.Status.unschedulable(
        "node(s) didn't satisfy existing pods anti-affinity rules"
    )

    def __init__(self, args: InterPodAffinityArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        # The latest pod, and the rules that select it at that version.
        self._latest: tuple[fw.Pod | None, tuple[int, int], list[Rule]] = (None, (0, 0), [])

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        alone = terms_of(pod) is NO_TERMS and not self._rules_about(pod, self.handle.nodes)
        return fw.NODE if alone else None

    def cache_key(self, pod: fw.Pod) -> Hashable:
        about = self._rules_about(pod, self.handle.nodes)
        terms = terms_of(pod)
        if terms is NO_TERMS and not about:
            return None
        # Pods with the same rules affect each other if a rule selects the pod itself.
        means_itself = tuple([rule.peers.selector.matches(pod.labels) for rule in terms.rules])
        others = frozenset(about).difference(terms.rules)
        return pod.namespace, pod.spec.affinity, means_itself, others

    def key_version(self) -> Hashable:
        return self._version(self.handle.nodes)

    # --- filter ----------------------------------------------------------------------------------

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        matched = self._matched_terms(state, pod, nodes)
        if matched.terms.problem:
            return fw.Status.unresolvable(f"parsing pod: {matched.terms.problem}")
        return self._count(
            state, AFFINITY_COUNTS, matched, matched.for_filter, nodes, AffinityCounts.of
        )

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        return self._recounted(state, pod, added, node, +1)

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        return self._recounted(state, pod, removed, node, -1)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        counts = state[AFFINITY_COUNTS]
        if counts.violates_affinity(node):
            return self.AFFINITY_NOT_MET
        if counts.violates_anti_affinity(node):
            return self.ANTI_AFFINITY_NOT_MET
        if counts.violates_existing_anti_affinity(node):
            return self.EXISTING_ANTI_AFFINITY_NOT_MET
        return fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        counts = state[AFFINITY_COUNTS]
        verdicts = fw.Verdicts.passing(nodes)
        if isinstance(nodes, HypotheticalNodes):
            what_if = HypotheticalCounts(counts, pod, nodes)
            verdicts.reject(what_if.violate_affinity(), self.AFFINITY_NOT_MET)
            verdicts.reject(what_if.violate_anti_affinity(), self.ANTI_AFFINITY_NOT_MET)
            return verdicts.reject(
                what_if.violate_existing_anti_affinity(), self.EXISTING_ANTI_AFFINITY_NOT_MET
            )
        verdicts.reject(refused_on(nodes, counts.affinity_tests()), self.AFFINITY_NOT_MET)
        verdicts.reject(refused_on(nodes, counts.anti_affinity_tests()), self.ANTI_AFFINITY_NOT_MET)
        return verdicts.reject(
            refused_on(nodes, counts.existing_anti_affinity_tests()),
            self.EXISTING_ANTI_AFFINITY_NOT_MET,
        )

    def what_if_basis(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> WhatIfBasis | None:
        key = (self.cache_key(pod), self._version(nodes))
        return WhatIfBasis(key, state[AFFINITY_COUNTS].on(nodes))

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, DomainTable[np.bool_]]:
        return state[AFFINITY_COUNTS].refused_domains()

    # --- score -----------------------------------------------------------------------------------

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if self.args.ignore_preferred_terms_of_existing_pods and not has_preferred_terms(pod):
            return fw.SKIP
        matched = self._matched_terms(state, pod, nodes)
        if matched.terms.problem:
            return fw.Status.error(f"failed to parse pod: {matched.terms.problem}")
        return self._count(
            state, TOPOLOGY_SCORES, matched, matched.for_score, nodes, TopologyScores
        )

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return state[TOPOLOGY_SCORES].at(node)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return state[TOPOLOGY_SCORES].on(nodes)

    def score_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, DomainTable[np.int64]]:
        return state[TOPOLOGY_SCORES].by_domain()

    # --- why, and what would help ----------------------------------------------------------------

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        matched = state.get(MATCHED_TERMS)
        if matched is None or matched.terms.problem:
            return ()
        repulsion = Repulsion(matched, self.handle.nodes, self._rules)
        is_affinity = status.reasons == self.AFFINITY_NOT_MET.reasons
        return facts_of(repulsion, matched, nodes, is_affinity=is_affinity)

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        matched = state.get(MATCHED_TERMS)
        if matched is None or node is None:
            return ()
        if status.reasons == self.AFFINITY_NOT_MET.reasons:
            return affinity_edits()
        repulsion = Repulsion(matched, self.handle.nodes, self._rules)
        is_own = status.reasons == self.ANTI_AFFINITY_NOT_MET.reasons
        return anti_affinity_edits(repulsion, node, is_own=is_own)

    # --- events ----------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if terms_of(pod).problem:
            return True
        if isinstance(new, core.Node):
            return node_change_helps(pod, old if isinstance(old, core.Node) else None, new)
        was = old if isinstance(old, fw.Pod) else None
        is_now = new if isinstance(new, fw.Pod) else None
        return pod_change_helps(pod, was, is_now)

    # --- inside ----------------------------------------------------------------------------------

    def _matched_terms(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> MatchedTerms:
        """Computed once per attempt, and shared by the pods of a class until a rule changes."""
        known = state.get(MATCHED_TERMS)
        if known is not None:
            return known
        known = earlier_value(state, MATCHED_TERMS)
        if known is None or known.version != self._version(nodes):
            about = self._rules_about(pod, nodes)  # first: it may change the version
            known = MatchedTerms.of(
                self._version(nodes),
                pod,
                self._namespace_labels(pod),
                self._resolve_namespaces,
                about,
                self.args.hard_pod_affinity_weight,
            )
        state[MATCHED_TERMS] = known
        return known

    def _count(
        self,
        state: fw.CycleState,
        key: fw.StateKey[C],
        matched: MatchedTerms,
        pod_counts: PodCounts,
        nodes: fw.Nodes,
        make: Callable[[MatchedTerms, Counts], C],
    ) -> fw.Status:
        """Store what `make` builds, or what an earlier pod of the class left if it still holds."""
        if pod_counts.is_empty:
            return fw.SKIP
        counts = pod_counts.counts(nodes, self._rules)
        found = earlier_value(state, key)
        if found is None or not found.is_made_of(matched, counts):
            found = make(matched, counts)
        if found.is_empty:
            return fw.SKIP
        state[key] = found
        return fw.OK

    def _rules_about(self, pod: fw.Pod, nodes: fw.Nodes) -> list[Rule]:
        """The rules of existing pods that select this one."""
        version = self._version(nodes)
        latest, known_at, known = self._latest
        if latest is not pod or known_at != version:
            known = rules_about(pod, self._namespace_labels(pod), self._rules(nodes).having)
            self._latest = (pod, version, known)
        return known

    def _rules(self, nodes: fw.Nodes) -> Features:
        return count_features(nodes, self.name, rules_of, labels_of)

    def _version(self, nodes: fw.Nodes) -> tuple[int, int]:
        """Changes with any rule or namespace."""
        return features_version(nodes, self.name), self.handle.objects.version(core.Namespace)

    def _namespace_labels(self, pod: fw.Pod) -> Mapping[str, str]:
        namespace = self.handle.objects.get(core.Namespace, pod.namespace)
        return EMPTY if namespace is None else namespace.metadata.labels

    def _resolve_namespaces(self, peers: Peers) -> Peers:
        """The same pods, with their namespaces by name."""
        if not peers.selects_namespaces:
            return peers
        return peers.in_namespaces(self.handle.objects.list(core.Namespace))

    def _recounted(
        self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.Node, change: int
    ) -> fw.Status:
        state[AFFINITY_COUNTS] = state[AFFINITY_COUNTS].counting(pod, other, node, change)
        return fw.OK


def node_change_helps(pod: fw.Pod, old: core.Node | None, new: core.Node) -> bool:
    """Whether a node that was added or relabelled may be feasible for the pod now."""
    terms = terms_of(pod)
    labels = new.metadata.labels
    if old is None:
        return bool(terms.anti_affinity) or any(
            term.topology_key in labels for term in terms.affinity
        )
    before = old.metadata.labels
    entered = {term.topology_key for term in terms.affinity if term.topology_key in labels}
    left = {term.topology_key for term in terms.anti_affinity if term.topology_key in before}
    return any(before.get(key) != labels.get(key) for key in entered | left)


def pod_change_helps(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None) -> bool:
    """Whether another pod that was added, changed or deleted may make a node feasible.

    Namespaces are taken by name here: what a namespace selector matches may have changed since.
    """
    terms = terms_of(pod)
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    if any(other is not None and not is_assigned_or_nominated(other) for other in (old, new)):
        return False
    if new is not None and old is not None:
        came = not all_include(terms.affinity, old) and all_include(terms.affinity, new)
        return came or (
            all_include(terms.anti_affinity, old) and not all_include(terms.anti_affinity, new)
        )
    if new is not None:
        return all_include(terms.affinity, new)
    return old is not None and (
        all_include(terms.anti_affinity, old) or all_include(terms_of(old).anti_affinity, pod)
    )
