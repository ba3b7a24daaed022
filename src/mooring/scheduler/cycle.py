"""One pod in, one decision out: filter, score, pick.

The same nodes, pod and plugins give the same decision. Nothing is written; the scheduler carries
the decision out. The only I/O is calls of extenders, and a decision awaits nothing else; its caller
keeps the nodes unchanged meanwhile.
"""

from __future__ import annotations

import random

import msgspec
import numpy as np

from mooring.cache.arrays import IntArray
from mooring.cache.internals import listing_of
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.scoring import Scores, best_row
from mooring.extender.calling.chain import Extenders
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.runner import PostFilterOutcome, Runner, at_once
from mooring.scheduler import diagnosis as diagnoses
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.doublecheck import DoubleCheck
from mooring.scheduler.sampling import nodes_to_find

_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)
NO_NODES = Status.unresolvable("no nodes available to schedule pods")


class Decision(msgspec.Struct, frozen=True):
    """The node of a pod, or why no node is feasible."""

    status: Status
    node_name: str = ""
    evaluated: int = 0  # number of evaluated nodes
    found: int = 0  # feasible nodes
    is_nominated: bool = False  # the node was the pod's nominated one, and no other was looked at
    names: tuple[str, ...] = ()  # of all nodes, in row order; if decisions are observed
    rows: IntArray = _NO_ROWS  # of the feasible nodes, ascending; likewise
    scores: Scores | None = None  # aligned with `rows`; None if there was no choice
    verdicts: Verdicts | None = None  # of all nodes, when none was feasible
    diagnosis: Diagnosis | None = None
    after: PostFilterOutcome | None = None  # the result of PostFilter, when none was feasible
    nominate: str | None = None  # None: the nomination stays; "": it is withdrawn

    @property
    def feasible(self) -> tuple[str, ...]:
        return tuple(self.names[row] for row in self.rows.tolist())


class Rotation(msgspec.Struct):
    """Where in the listing the next sampled scan begins; all profiles of a scheduler share one."""

    start: int = 0


class Cycle:
    """Decides for the pods of one profile.

    With `is_observed`, decisions carry the names, rows and scores of all feasible nodes.
    """

    def __init__(
        self,
        evaluator: PodEvaluator,
        runner: Runner,
        percentage_of_nodes_to_score: int | None,
        rotation: Rotation,
        extenders: Extenders | None,
        rng: random.Random,
        check: DoubleCheck | None = None,
        *,
        is_observed: bool = False,
    ) -> None:
        self._evaluator = evaluator
        self._nominator = evaluator.what_if.nominator
        self._runner = runner
        self._guard = runner.guard
        self._percentage = percentage_of_nodes_to_score
        self._rotation = rotation
        self._extenders = extenders
        self._random = rng
        self._check = check
        self._is_observed = is_observed
        ways = runner.guard.metrics.decisions
        self._by_class, self._in_full = ways.labels("class"), ways.labels("full")
        has_opinions = extenders is not None and extenders.have_opinions
        # Without Score plugins, the first feasible node is enough.
        self._takes_first = not (evaluator.plugins.scorers or has_opinions)
        self._looks_at_all = percentage_of_nodes_to_score is None and not self._takes_first
        self.latest: Evaluation | None = None  # behind the latest decision, until nodes change

    async def decide(self, state: CycleState, pod: Pod, nodes: Nodes) -> Decision:
        if not len(nodes):
            self.latest = None
            return Decision(NO_NODES, nominate="")
        is_timed = self._guard.record_plugins
        started = self._guard.timer() if is_timed else 0.0
        evaluation = self.latest = self._evaluator.begin(state, pod, nodes)
        if is_timed:
            self._runner.took("PreFilter", started, evaluation.outcome.status)
        decision = await self._decide(evaluation)
        (self._by_class if evaluation.by_class else self._in_full).add()
        return decision

    def decide_alone(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        """As `decide`, without extenders: for a forked copy of the process."""
        self._extenders = None
        at_once(self.decide(state, pod, nodes))

    async def _decide(self, evaluation: Evaluation) -> Decision:
        if evaluation.outcome.status is OK:
            pod = evaluation.pod
            name = pod.nominated_node_name or self._nominator.node_of(pod.uid)  # not yet written
            if name:
                nominated = await self._try_nominated(evaluation, name)
                if nominated is not None:
                    return nominated
            is_timed = self._guard.record_plugins
            started = self._guard.timer() if is_timed else 0.0
            if self._looks_at_all:
                evaluation.filter()
            else:
                evaluation.filter(*self._limits(evaluation))
            if is_timed:  # a refusal of every node is not a failure
                self._runner.took("Filter", started, evaluation.status)
            if self._check is not None and evaluation.by_class and self._check.is_due():
                self._compare(self._check, evaluation)
        status = evaluation.outcome.status
        if status is not OK:
            if status.rejected:
                return await self._refused(evaluation)
            return Decision(status, nominate="")
        if evaluation.status is not OK:
            return Decision(evaluation.status, nominate="")
        if not self._looks_at_all:
            self._keep_first(evaluation)
        if evaluation.count and self._extenders is not None:
            status = await self._ask_extenders(self._extenders, evaluation)
            if not status.ok:
                return Decision(status, nominate="")
        if not evaluation.count:
            return await self._refused(evaluation)
        if self._extenders is not None and evaluation.count > 1:
            return await self._choose_with_extenders(self._extenders, evaluation)
        self._choose(evaluation)
        if evaluation.status is not OK:
            return Decision(evaluation.status, nominate="")
        return self._decided(evaluation, evaluation.nodes.names[evaluation.row])

    def _compare(self, check: DoubleCheck, evaluation: Evaluation) -> None:
        """Evaluate again without the memory."""
        pod, nodes, begin = evaluation.pod, evaluation.nodes, self._evaluator.begin
        check.compare(
            evaluation,
            lambda: begin(CycleState(), pod, nodes, use_memory=False),
            *self._limits(evaluation),
        )

    # --- filter --------------------------------------------------------------------------------

    async def _try_nominated(self, evaluation: Evaluation, name: str) -> Decision | None:
        """Choose the node that the pod is nominated for, if it is feasible."""
        pod, nodes = evaluation.pod, evaluation.nodes
        row = nodes.index_of(name)
        if row is None or not self._evaluator.what_if.fits(evaluation.state, pod, nodes[row]).ok:
            return None  # the full evaluation will report it
        rows = np.array([row], dtype=np.int64)
        if self._extenders is not None:
            one = nodes.take(rows)
            passed = np.ones(1, dtype=np.bool_)
            agreed = await self._extenders.filter(pod, one, passed, Verdicts.passing(one))
            if isinstance(agreed, Status) or not agreed.any():
                return None
        return Decision(
            OK, name, evaluated=1, found=1, is_nominated=True, names=nodes.names, rows=rows
        )

    async def _ask_extenders(self, extenders: Extenders, evaluation: Evaluation) -> Status:
        verdicts = evaluation.verdicts().copy()
        if not evaluation.status.ok:
            return evaluation.status
        feasible = evaluation.feasible
        agreed = await extenders.filter(evaluation.pod, evaluation.nodes, feasible, verdicts)
        if isinstance(agreed, Status):
            return agreed
        evaluation.keep(agreed, verdicts)
        return OK

    def _limits(self, evaluation: Evaluation) -> tuple[int | None, int]:
        """The number of feasible nodes that are enough, None for all; and the start of the scan."""
        if self._looks_at_all:
            return None, 0
        only, count = evaluation.outcome.only, len(evaluation.nodes)
        start = self._rotation.start % count
        if self._takes_first:
            return 1, start
        return nodes_to_find(count if only is None else len(only), self._percentage), start

    def _keep_first(self, evaluation: Evaluation) -> None:
        """With a limit, only the first feasible nodes in listing order count."""
        limit, start = self._limits(evaluation)
        if limit is None:
            return
        nodes = evaluation.nodes
        listed = np.roll(listing_of(nodes), -start)
        found = np.flatnonzero(evaluation.feasible[listed])[:limit]
        walked = int(found[-1]) + 1 if len(found) == limit else len(listed)
        self._rotation.start = (start + walked) % len(listed)
        passed = np.zeros(len(nodes), dtype=np.bool_)
        passed[listed[found]] = True
        evaluation.keep(passed)

    # --- no node -------------------------------------------------------------------------------

    async def _refused(self, evaluation: Evaluation) -> Decision:
        verdicts = evaluation.verdicts()
        if not evaluation.status.ok:
            return Decision(evaluation.status, nominate="")
        found = diagnoses.of_refusals(evaluation.outcome, verdicts)
        state, pod, nodes = evaluation.state, evaluation.pod, evaluation.nodes
        review = self._extenders.review if self._extenders is not None else None
        after = await self._runner.post_filter(state, pod, nodes, verdicts, review)
        if after is not None:
            found = found.followed_by(after.status.message)
        return Decision(
            Status.unschedulable(found.message),
            evaluated=len(nodes),
            names=nodes.names,
            verdicts=verdicts,
            diagnosis=found,
            after=after,
            # Without a node to nominate, the nomination is withdrawn.
            nominate=after.nominate if after is not None else "",
        )

    # --- the best node -------------------------------------------------------------------------

    def _choose(self, evaluation: Evaluation) -> None:
        if evaluation.count == 1 or not self._guard.record_plugins:  # a single node needs no score
            evaluation.choose()
            return
        caller, timer = self._evaluator.plugins.caller, self._guard.timer
        caller.pre_score_seconds = 0.0
        started = timer()
        evaluation.choose()
        spent = caller.pre_score_seconds
        self._runner.took("PreScore", timer() - spent, evaluation.status)
        self._runner.took("Score", started + spent, evaluation.status)

    async def _choose_with_extenders(
        self, extenders: Extenders, evaluation: Evaluation
    ) -> Decision:
        scores = evaluation.scores()
        if scores is None:
            return Decision(evaluation.status, nominate="")
        nodes, rows = evaluation.nodes, evaluation.rows
        scores, scored = await extenders.score(evaluation.pod, nodes.take(rows), scores)
        # Of equally good nodes, one that an extender scored is chosen, at random.
        if scored:
            winner = self._random.choice(scored)
        else:
            winner = nodes.names[best_row(nodes, rows, scores.totals)]
        return self._decided(evaluation, winner, scores)

    def _decided(
        self, evaluation: Evaluation, winner: str, scores: Scores | None = None
    ) -> Decision:
        nodes = evaluation.nodes
        if not self._is_observed:
            return Decision(OK, winner, evaluated=len(nodes), found=evaluation.count)
        if scores is None and evaluation.count > 1:
            scores = evaluation.scores()
        return Decision(
            OK,
            winner,
            evaluated=len(nodes),
            names=nodes.names,
            found=evaluation.count,
            rows=evaluation.rows,
            scores=scores,
        )
