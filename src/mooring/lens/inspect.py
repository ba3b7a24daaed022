"""The explanation of one pod, read from an evaluation of it.

`Inspector` works on whatever cache its evaluator works on: that of a running scheduler, without
copying it, or a private copy. It changes nothing and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Final

from msgspec import structs

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.framework.explaining import Fact, listed
from mooring.framework.results import Candidate
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.lens import explanation as told
from mooring.lens.choice import Ranking
from mooring.lens.explanation import Explanation, Kind, NodeGroup
from mooring.lens.groups import Grouping, ask_more, refusal_of
from mooring.lens.snapshot import QueuedState
from mooring.lens.waking import in_words
from mooring.preemption.candidates import PreemptionReport
from mooring.runtime.runner import PostFilterOutcome, Runner
from mooring.scheduler import diagnosis as diagnoses
from mooring.scheduler.cycle import NO_NODES

_MOST_CANDIDATES: Final = 10
AT_PERMIT: Final = "waiting at Permit"  # as the queue of a running scheduler calls it

PostFilterCall = Callable[[CycleState, Pod, Nodes, Verdicts], PostFilterOutcome | None]
"""As `Runner.post_filter_alone`."""

_UNDER_WAY: Final = "not eligible due to a terminating pod on the nominated node"


def unbound(pod: Pod) -> Pod:
    """The pod as it was before it had a node."""
    if not pod.node_name:
        return pod
    spec = structs.replace(pod.api.spec, node_name="")
    status = structs.replace(pod.api.status, nominated_node_name="")
    return Pod(structs.replace(pod.api, spec=spec, status=status))


class Inspector:
    """Explains pods of one profile on the nodes of one cache."""

    def __init__(self, evaluator: PodEvaluator, runner: Runner, cache: Cache) -> None:
        self._evaluator = evaluator
        self._runner = runner
        self._cache = cache

    def explain(
        self,
        pod: Pod,
        *,
        ask: Sequence[str] = (),
        preemption: bool = True,
        post_filter: PostFilterCall | None = None,
        queue: QueuedState | None = None,
    ) -> Explanation:
        """Why the pod is where it is, or is not; `ask` are nodes to say more about.

        A bound pod is looked at as if it were on no node yet. `post_filter` answers instead of the
        plugins of that point.
        """
        if post_filter is None and preemption:
            post_filter = self._runner.post_filter_alone
        bound = pod.node_name
        lifted = self._cache.without_pod(pod) if bound else nullcontext()
        with lifted:
            return self._explain(unbound(pod), self._cache.nodes, bound, ask, post_filter, queue)

    def _explain(
        self,
        pod: Pod,
        nodes: Nodes,
        bound: str,
        ask: Sequence[str],
        post_filter: PostFilterCall | None,
        queue: QueuedState | None,
    ) -> Explanation:
        profile = self._runner.profile
        found = Explanation(
            pod=pod.key,
            kind=told.ERROR,
            summary="",
            nodes=len(nodes),
            feasible=0,
            profile=profile.scheduler_name,
            node=bound,
            nominated=pod.nominated_node_name,
            queue=queue,
        )
        problems: list[str] = []
        gate = self._runner.pre_enqueue(pod)
        if not gate.ok:
            facts = self._facts(problems, gate, CycleState(), pod, nodes)
            found = structs.replace(found, before=refusal_of(gate, facts))
        if not len(nodes):
            found = structs.replace(found, message=NO_NODES.message, kind=told.WAITS_FOR_ROOM)
        else:
            found = self._evaluated(found, pod, nodes, ask, post_filter, problems)
        if not gate.ok and found.kind != told.ERROR:
            found = structs.replace(found, kind=told.GATED, message=gate.message)
        elif bound and found.kind == told.FITS:
            found = structs.replace(found, kind=told.SCHEDULED)
        if queue is not None and queue.queue == AT_PERMIT:
            found = structs.replace(found, kind=told.WAITS_FOR_OTHERS)
        found = structs.replace(
            found, notes=tuple(problems), wakes_on=self._wakes_on(found) if not bound else ()
        )
        return structs.replace(found, summary=summary_of(found))

    # --- the evaluation ------------------------------------------------------------------------

    def _evaluated(
        self,
        found: Explanation,
        pod: Pod,
        nodes: Nodes,
        ask: Sequence[str],
        post_filter: PostFilterCall | None,
        problems: list[str],
    ) -> Explanation:
        state = CycleState(exhaustive=True)
        evaluation = self._evaluator.begin(state, pod, nodes)
        before = evaluation.outcome
        if before.status.ok:
            evaluation.filter()
        elif before.status.rejected:
            return self._refused_before(found, evaluation, post_filter, problems)
        status = evaluation.status if before.status.ok else before.status
        if not status.ok:
            return structs.replace(found, message=status.message, before=refusal_of(status))
        grouping = Grouping(evaluation, self._evaluator.what_if, self._runner.profile.plugins)
        groups = tuple(grouping.groups())
        problems += grouping.problems
        found = structs.replace(found, groups=groups, feasible=evaluation.count)
        if not evaluation.count:
            found = structs.replace(found, kind=kind_of(groups))
            found = self._followed(found, evaluation, post_filter)
            asked = self._answers(evaluation, grouping, None, ask)
            return structs.replace(found, asked=asked)
        evaluation.choose()
        scores = evaluation.scores()
        if scores is None or not evaluation.status.ok:
            return structs.replace(found, message=evaluation.status.message)
        ranking = Ranking(evaluation, scores)
        also = [name for name in (*ask, found.node) if name]
        return structs.replace(
            found,
            kind=told.FITS,
            choice=ranking.choice(also),
            asked=self._answers(evaluation, grouping, ranking, ask),
        )

    def _refused_before(
        self,
        found: Explanation,
        evaluation: Evaluation,
        post_filter: PostFilterCall | None,
        problems: list[str],
    ) -> Explanation:
        """PreFilter refuses the pod on all nodes alike."""
        nodes, before = evaluation.nodes, evaluation.outcome
        status = before.status
        if not status.plugin:
            status = status.by(" ".join(before.restricted_by))
        facts = self._facts(problems, status, evaluation.state, evaluation.pod, nodes)
        refusal = refusal_of(status, facts)
        waits_for = next((fact.waits_for for fact in facts if fact.waits_for), None)
        group = NodeGroup(
            nodes=len(nodes),
            examples=nodes.names[:3],
            said=refusal,
            waits_for=waits_for or ("room" if refusal.code == "Unschedulable" else "nothing"),
        )
        found = structs.replace(found, before=refusal, groups=(group,), kind=kind_of((group,)))
        return self._followed(found, evaluation, post_filter)

    def _followed(
        self,
        found: Explanation,
        evaluation: Evaluation,
        post_filter: PostFilterCall | None,
    ) -> Explanation:
        """What PostFilter adds."""
        verdicts = evaluation.verdicts()
        diagnosis = diagnoses.of_refusals(evaluation.outcome, verdicts)
        if post_filter is None:
            return structs.replace(found, message=diagnosis.message)
        after = post_filter(evaluation.state, evaluation.pod, evaluation.nodes, verdicts)
        if after is None:
            return structs.replace(found, message=diagnosis.message)
        message = diagnosis.followed_by(after.status.message).message
        kind: Kind = told.WAITS_FOR_OTHERS if _UNDER_WAY in after.status.message else found.kind
        return structs.replace(found, message=message, preemption=_preemption(after), kind=kind)

    def _answers(
        self,
        evaluation: Evaluation,
        grouping: Grouping,
        ranking: Ranking | None,
        ask: Iterable[str],
    ) -> tuple[told.NodeAnswer, ...]:
        answers = []
        for name in ask:
            row = evaluation.nodes.index_of(name)
            if row is None:
                continue
            score = None
            if ranking is not None and evaluation.feasible[row]:
                score = ranking.score_of(row)
            refusals = grouping.told_at(row)
            answers.append(told.NodeAnswer(node=name, refusals=refusals, score=score))
        return tuple(answers)

    def _facts(
        self, problems: list[str], status: Status, state: CycleState, pod: Pod, nodes: Nodes
    ) -> list[Fact]:
        plugin = self._runner.profile.plugins.get(status.plugin.partition(" ")[0])
        if plugin is None:
            return []
        return ask_more(problems, plugin, lambda: plugin.facts(state, pod, nodes, status), Fact)

    def _wakes_on(self, found: Explanation) -> tuple[str, ...]:
        """The events that the plugins behind the first refusals wait for."""
        names = [] if found.feasible else [g.said.plugin for g in found.groups if g.said]
        if found.before is not None:
            names = [found.before.plugin]
        plugins = map(self._runner.profile.plugins.get, " ".join(names).split())
        return in_words(
            event for plugin in plugins if plugin is not None for event in plugin.wakes_on or ()
        )


# --- in words -------------------------------------------------------------------------------------


def kind_of(groups: Sequence[NodeGroup]) -> Kind:
    """What the pod waits for: the nearest of what could open any group of nodes."""
    found = {group.waits_for for group in groups}
    if "room" in found:
        return told.WAITS_FOR_ROOM
    return told.WAITS_FOR_OTHERS if "others" in found else told.MISCONFIGURED


def _preemption(after: PostFilterOutcome) -> told.Preemption:
    reports = (one for one in after.reports.values() if isinstance(one, PreemptionReport))
    report = next(reports, None)
    if report is None or report.chosen is None or not after.status.ok:
        return told.Preemption(helps=False, message=after.status.message)
    best = report.chosen
    others = [one for one in report.candidates if one is not best]
    criterion = report.decided_by
    decided = ""
    if criterion is not None:
        decided = f"{criterion.name}: {_number(criterion.best)} against {_number(criterion.next)}"
    victims = listed(pod.key for pod in best.victims)
    return told.Preemption(
        helps=True,
        message=f"would evict {victims} from {best.node_name}",
        node=best.node_name,
        decided_by=decided,
        candidates=tuple(map(_candidate, [best, *others][:_MOST_CANDIDATES])),
        count=len(report.candidates),
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _candidate(one: Candidate) -> told.EvictionCandidate:
    return told.EvictionCandidate(
        node=one.node_name,
        victims=tuple(pod.key for pod in one.victims),
        pdb_violations=one.pdb_violations,
    )


def summary_of(found: Explanation) -> str:
    """One sentence."""
    count = f"{found.nodes:,} node{'' if found.nodes == 1 else 's'}"
    queue = found.queue
    if queue is not None and queue.queue == AT_PERMIT:
        return f"{found.pod} waits at Permit for {queue.node}: held by {listed(queue.plugins)}"
    if found.kind == told.GATED and found.before is not None:
        opened = (
            f"would fit {found.feasible:,} of {count} once open"
            if found.feasible
            else f"would fit no node of {found.nodes:,} once open either"
        )
        return f"{found.pod} is gated: {found.message}; {opened}"
    if found.kind == told.ERROR:
        return f"{found.pod} could not be evaluated: {found.message}"
    if found.kind == told.FITS and found.choice is not None:
        return f"{found.pod} fits {found.feasible:,} of {count}; {found.choice.node} is the best"
    if found.kind == told.SCHEDULED and found.choice is not None:
        if found.choice.node == found.node:
            return f"{found.pod} is on {found.node}, and would be put there again now"
        return f"{found.pod} is on {found.node}; now {found.choice.node} would be chosen"
    if found.node:
        return f"{found.pod} is on {found.node}; now it would fit no node of {found.nodes:,}"
    if not found.nodes:
        return f"{found.pod} is pending: there are no nodes"
    return f"{found.pod} is pending: no node of {found.nodes:,}"
