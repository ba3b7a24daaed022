"""Keep pods of a kind evenly spread: refuse domains that have too many, prefer those with few."""

import math
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import apps, core
from mooring.api.selectors import Selector, SelectorError
from mooring.cache.hypothetical import HypotheticalNodes
from mooring.framework._internal import (
    COMPARES_TAINTS,
    DomainFilter,
    ScoreByLabel,
    ScoresByCode,
    ScoresByLabel,
    WhatIfBasis,
    earlier_value,
)
from mooring.framework.depends_on import DependsOn
from mooring.plugins._node_requirements import affinity_of
from mooring.plugins.podtopologyspread.args import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM,
    SYSTEM_CONSTRAINTS,
    PodTopologySpreadArgs,
)
from mooring.plugins.podtopologyspread.constraints import (
    Constraint,
    Constraints,
    NodeInclusion,
    own_constraints,
)
from mooring.plugins.podtopologyspread.counts import HardSpread, SoftSpread, normalized
from mooring.plugins.podtopologyspread.explaining import edits_for, facts_of
from mooring.plugins.podtopologyspread.owners import default_selector
from mooring.plugins.podtopologyspread.wakeups import concerns, node_change_helps, pod_change_helps

HARD: fw.StateKey[HardSpread] = fw.StateKey(
    "PodTopologySpread/hard", 'reading "PreFilterPodTopologySpread" from cycleState: not found'
)
SOFT: fw.StateKey[SoftSpread] = fw.StateKey(
    "PodTopologySpread/soft", 'error reading "PreScorePodTopologySpread" from cycleState: not found'
)


class PodTopologySpread(
    fw.Plugin[PodTopologySpreadArgs], fw.PreFilter, DomainFilter, fw.PreScore, ScoreByLabel
):
    """Refuse nodes that would make the spread too uneven; prefer those that make it more even.

    DoNotSchedule constraints filter, ScheduleAnyway constraints score. A pod without any gets the
    default ones, for the pods that its services and its controller select.
    """

    name = "PodTopologySpread"
    answers_what_ifs = True
    reads = (core.Service, core.ReplicationController, apps.ReplicaSet, apps.StatefulSet)
    wakes_on = (
        fw.Event.POD_ADDED,
        fw.Event.POD_LABELS_CHANGED,
        fw.Event.POD_TOLERATIONS_CHANGED,
        fw.Event.POD_DELETED,
        fw.Event.NODE_ADDED,
        fw.Event.NODE_DELETED,
        fw.Event.NODE_LABELS_CHANGED,
        fw.Event.NODE_TAINTS_CHANGED,
    )

    TOO_MANY = fw.Status.unschedulable("node(s) didn't match pod topology spread constraints")
    NO_DOMAIN = fw.Status.unresolvable(
        "node(s) didn't match pod topology spread constraints (missing required label)"
    )

    def __init__(self, args: PodTopologySpreadArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._is_system = args.defaulting_type == SYSTEM
        raw = SYSTEM_CONSTRAINTS if self._is_system else args.default_constraints
        self._defaults = {
            action: tuple(
                Constraint.by(constraint, Selector.NOTHING)
                for constraint in raw
                if constraint.when_unsatisfiable == action
            )
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        # The selector of default constraints for the latest pod, at that version of the objects.
        self._latest: tuple[fw.Pod | None, int, Selector] = (None, 0, Selector.NOTHING)

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        if pod.spec.topology_spread_constraints:
            return None
        is_spread = any(self._defaults.values()) and not self._selector(pod).is_empty
        return None if is_spread else fw.NODE

    def cache_key(self, pod: fw.Pod) -> Hashable:
        try:
            hard = self._constraints(pod, DO_NOT_SCHEDULE)
            soft = self._constraints(pod, SCHEDULE_ANYWAY)
        except SelectorError:
            return pod.labels, pod.spec
        if not hard and not soft:
            return None
        counts_itself = tuple([constraint.selector.matches(pod.labels) for constraint in hard])
        nodes = (pod.spec.tolerations, pod.spec.node_selector, affinity_of(pod))
        is_own = bool(pod.spec.topology_spread_constraints)
        return pod.namespace, is_own, tuple(hard), tuple(soft), counts_itself, nodes

    def key_version(self) -> Hashable:
        version = self.handle.objects.version
        return tuple([version(kind) for kind in self.reads])

    # --- filter ----------------------------------------------------------------------------------

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        # The selector of default constraints may have changed; own constraints stay the same.
        if pod.spec.topology_spread_constraints:
            before = earlier_value(state, HARD)
            recounted = before.recounted(nodes) if before is not None else None
            if recounted is not None:
                state[HARD] = recounted
                self._skip_score(state, pod)
                return fw.OK
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        except SelectorError as error:
            text = f"obtaining pod's hard topology spread constraints: {error}"
            return fw.Status.error(text, cause=error)
        if not constraints:
            return fw.SKIP
        state[HARD] = HardSpread.of(pod, constraints, self._inclusion(pod), nodes)
        self._skip_score(state, pod)
        return fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        state[HARD].count(pod, added, node, +1)
        return fw.OK

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        state[HARD].count(pod, removed, node, -1)
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        for domains in state[HARD].domains:
            code = node.label_code(domains.constraint.topology_key)
            if code == 0:
                return self.NO_DOMAIN
            if domains.counts[code] > domains.room:
                return self.TOO_MANY
        return fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        refusals = [self.NO_DOMAIN, self.TOO_MANY]
        index: fw.IntArray | None = None
        hard = state[HARD]
        for domains in hard.domains:
            codes = nodes.label_codes(domains.constraint.topology_key)
            if isinstance(nodes, HypotheticalNodes):
                here = np.where(domains.refused_if(hard.change(nodes, domains), codes), 2, 0)
                here[codes == 0] = 1
            else:
                answers = np.where(domains.refused_domains(), 2, 0)  # per label code
                answers[0] = 1
                here = answers[codes]
            index = here if index is None else np.where(index, index, here)
        if index is None:
            return fw.Verdicts.passing(nodes)
        return fw.Verdicts.coded(index, refusals)

    def what_if_basis(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> WhatIfBasis | None:
        columns: list[fw.IntArray | fw.BoolArray] = []
        for domains in state[HARD].domains:
            columns += domains.on(nodes.label_codes(domains.constraint.topology_key))
        return WhatIfBasis((self.cache_key(pod), self.key_version()), columns)

    def filter_by_domain(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> Mapping[str, fw.BoolArray]:
        refused: dict[str, fw.BoolArray] = {}
        for domains in state[HARD].domains:
            key = domains.constraint.topology_key
            table = domains.refused_domains()
            refused[key] = refused[key] | table if key in refused else table
        return refused

    # --- score -----------------------------------------------------------------------------------

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        is_own = bool(pod.spec.topology_spread_constraints)
        before = earlier_value(state, SOFT)  # of a pod with an equal `cache_key`
        if before is not None:
            if before.is_current(nodes, self.handle.nodes):
                state[SOFT] = before
                return fw.OK
            constraint_pods = before.constraint_pods
        else:
            try:
                constraints = self._constraints(pod, SCHEDULE_ANYWAY)
            except SelectorError as error:
                text = "calculating preScoreState: obtaining pod's soft topology spread constraints"
                return fw.Status.error(f"{text}: {error}", cause=error)
            constraint_pods = tuple(
                (constraint, constraint.pods(pod)) for constraint in constraints
            )
        if not constraint_pods or not len(self.handle.nodes):
            return fw.SKIP
        state[SOFT] = SoftSpread.of(
            pod,
            constraint_pods,
            self._inclusion(pod),
            nodes,
            self.handle.nodes,
            needs_all_keys=is_own or not self._is_system,
        )
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        soft = state[SOFT]
        if soft.ignores(node):
            return 0
        total = 0.0
        for topology_score in soft.topology_scores:
            if topology_score.constraint.topology_key in node.labels:
                total += topology_score.at(node)
        whole = math.floor(total)
        return whole + 1 if total - whole >= 0.5 else whole  # half away from zero; never negative

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        return state[SOFT].on(nodes)

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return normalized(scores, state[SOFT].scored(nodes))

    def normalized_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> ScoresByLabel | ScoresByCode | None:
        return state[SOFT].final(nodes, self.handle.nodes)

    # --- why, and what would help ----------------------------------------------------------------

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        hard = state.get(HARD)
        return () if hard is None else facts_of(hard, nodes)

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        hard = state.get(HARD)
        if node is None or hard is None:
            return ()
        return edits_for(pod, hard, node, self.handle.nodes, self.args)

    # --- events ----------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if any(isinstance(other, fw.Pod) and not concerns(other, pod) for other in (old, new)):
            return False
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        except SelectorError:
            return True
        if isinstance(old, core.Node) or isinstance(new, core.Node):
            before = old if isinstance(old, core.Node) else None
            after = new if isinstance(new, core.Node) else None
            return node_change_helps(constraints, before, after)
        return pod_change_helps(
            constraints,
            pod,
            old if isinstance(old, fw.Pod) else None,
            new if isinstance(new, fw.Pod) else None,
        )

    # --- inside ----------------------------------------------------------------------------------

    def _skip_score(self, state: fw.CycleState, pod: fw.Pod) -> None:
        own = pod.spec.topology_spread_constraints
        if own and all(raw.when_unsatisfiable == DO_NOT_SCHEDULE for raw in own):
            state.skip_score.add(self.name)

    def _selector(self, pod: fw.Pod) -> Selector:
        objects = self.handle.objects
        latest, known_at, known = self._latest
        if latest is not pod or known_at != objects.changes:
            known = default_selector(objects, pod)
            self._latest = (pod, objects.changes, known)
        return known

    def _inclusion(self, pod: fw.Pod) -> NodeInclusion:
        return NodeInclusion(pod, compares_taints=COMPARES_TAINTS in self.feature_gates)

    def _constraints(self, pod: fw.Pod, action: str) -> Constraints:
        """The pod's own constraints of one kind, or the default ones if it has none at all."""
        if pod.spec.topology_spread_constraints:
            return own_constraints(pod, action)
        defaults = self._defaults[action]
        if not defaults:
            return ()
        selector = self._selector(pod)
        if selector.is_empty:
            return ()
        return tuple(structs.replace(constraint, selector=selector) for constraint in defaults)
