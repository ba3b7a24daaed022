"""Find pods of lower priority whose eviction would make a node feasible."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import mooring.framework as fw
from mooring.api.policy import PodDisruptionBudget
from mooring.framework._internal import InternalPlugin, what_if_of
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.candidates import PreemptionReport, pick, search, worth_trying
from mooring.preemption.known_victims import KnownVictims
from mooring.preemption.ranks import Ranks
from mooring.preemption.victims import BY_SCHEDULER, DISRUPTION_TARGET, PreemptionRequest

NEVER: Final = "Never"


class DefaultPreemptionArgs(fw.Args, frozen=True):
    """How many candidates to look for, and which pods may be evicted.

    The search may end when the larger of the two numbers of candidates is known.
    `preemptForeignPods` is mooring's: without it, pods of other schedulers are never evicted.
    """

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    preempt_foreign_pods: bool = False

    def __post_init__(self) -> None:
        percentage = self.min_candidate_nodes_percentage
        absolute = self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            raise _invalid("minCandidateNodesPercentage", percentage, "not in valid range [0, 100]")
        if absolute < 0:
            raise _invalid("minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)")
        if percentage == absolute == 0:
            text = "cannot be zero at the same time as minCandidateNodesAbsolute"
            raise _invalid("minCandidateNodesPercentage", 0, text)


def _invalid(field: str, value: int, text: str) -> ValueError:
    return ValueError(f"{field}: Invalid value: {value}: {text}")


class DefaultPreemption(
    fw.Plugin[DefaultPreemptionArgs], InternalPlugin, fw.PreEnqueue, fw.PostFilter
):
    """Nominate the node where evictions do least harm. The scheduler carries them out."""

    name = "DefaultPreemption"
    reads = (PodDisruptionBudget,)
    wakes_on = (fw.Event.POD_DELETED,)
    reports_waiting = False  # the condition of the pod and the Events of its victims say more

    IS_NEVER = fw.Status.unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
    IS_UNDER_WAY = fw.Status.unschedulable(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )

    def __init__(self, args: DefaultPreemptionArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._ranks = Ranks()
        self._known = KnownVictims()
        self._budgets = DisruptionBudgets()
        self._budgets_version = 0

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
        # The scheduler gates a preemptor while its victims are evicted, in the name of this plugin;
        # PreEnqueue is here so that `wakes_on` is registered.
        return fw.OK

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status | fw.Nominate:
        if pod.spec.preemption_policy == NEVER:
            return self.IS_NEVER
        if self._is_under_way(pod, nodes, verdicts):
            return self.IS_UNDER_WAY
        rows = worth_trying(verdicts)
        if not len(rows):
            return _no_candidate(PreemptionReport(nodes=len(nodes)))
        request = self._request(state, pod)
        report = self._search(request, nodes, rows)
        if report.chosen is not None:
            return fw.Nominate(
                report.chosen.node_name,
                victims=report.chosen.victims,
                report=report,
                candidates=report.candidates,
                choose=partial(_choose, request, report),
            )
        return _no_candidate(report)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        # The plugins that refused the pod know whether this eviction helped it.
        return False

    # --- inside ----------------------------------------------------------------------------------

    def _request(self, state: fw.CycleState, pod: fw.Pod) -> PreemptionRequest:
        handle = self.handle
        return PreemptionRequest(
            state=state,
            pod=pod,
            what_if=what_if_of(handle),
            budgets=self._current_budgets(),
            spares=self._spares,
            now=handle.clock.now(),
            fixed=what_if_of(handle).fixed(pod),
            ranks=self._ranks,
            known=self._known,
        )

    def _current_budgets(self) -> DisruptionBudgets:
        objects = self.handle.objects
        version = objects.version(PodDisruptionBudget)
        if version != self._budgets_version:
            self._budgets.update(objects.list(PodDisruptionBudget))
            self._budgets_version = version
        return self._budgets

    def _search(
        self, request: PreemptionRequest, nodes: fw.Nodes, rows: fw.IntArray
    ) -> PreemptionReport:
        if request.state.exhaustive:
            return search(request, nodes, rows)
        # From a random node, so that the nodes that are not tried differ from time to time.
        start = self.handle.random.randrange(len(rows))
        return search(request, nodes, rows, wanted=self._wanted(len(rows)), start=start)

    def _wanted(self, count: int) -> int:
        """How many of these nodes have to be candidates before the search may end."""
        share = count * self.args.min_candidate_nodes_percentage // 100
        return min(max(share, self.args.min_candidate_nodes_absolute), count)

    def _spares(self, other: fw.Pod) -> bool:
        return not (self.args.preempt_foreign_pods or self.handle.what_if.is_ours(other))

    def _is_under_way(self, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts) -> bool:
        """Whether a victim is terminating on the nominated node already."""
        row = nodes.index_of(pod.nominated_node_name) if pod.nominated_node_name else None
        if row is None:
            return False
        if verdicts.status(row).code is fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return False  # evictions will not help there
        return any(
            other.priority < pod.priority and is_leaving(other) and not self._spares(other)
            for other in nodes[row].pods
        )


def _no_candidate(report: PreemptionReport) -> fw.Nominate:
    return fw.Nominate("", report.refusal, report=report)


def _choose(
    request: PreemptionRequest, report: PreemptionReport, agreed: Sequence[fw.Candidate] | fw.Status
) -> fw.Nominate:
    """The best of the candidates that the extenders accepted."""
    if isinstance(agreed, fw.Status):
        text = f"preemption: {agreed.message}"
        return fw.Nominate("", fw.Status.error(text, cause=agreed.cause), report=report)
    best = pick(agreed, request.now)
    if not best:
        status = fw.Status.unschedulable("preemption: no candidate node for preemption")
        return fw.Nominate("", status, report=report)
    return fw.Nominate(best[0].node_name, victims=best[0].victims, report=report)


def is_leaving(pod: fw.Pod) -> bool:
    if not pod.is_terminating:
        return False
    target = next((c for c in pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    return target is not None and (target.status, target.reason) == ("True", BY_SCHEDULER)
