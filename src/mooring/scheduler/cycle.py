"""One pod in, one decision out: filter, score, pick.

Pure: the same nodes, the same pod and the same plugins give the same decision. Nothing is written
anywhere; what follows from the decision is the scheduler's business. The only I/O is the calls to
extenders, and only they make a decision wait: whoever awaits it must see to it that the nodes stay
as they are.
"""

from __future__ import annotations

import msgspec
import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.classes import Classes
from mooring.runtime.evaluation import Evaluation, Scores
from mooring.runtime.picking import pick
from mooring.runtime.runner import PostFilterOutcome, PreFilterOutcome, Runner
from mooring.runtime.standing import Chosen
from mooring.scheduler import diagnosis as diagnoses
from mooring.scheduler.council import Council
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.doublecheck import DoubleCheck
from mooring.scheduler.sampling import nodes_to_find

_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)
NO_NODES = Status.unresolvable("no nodes available to schedule pods")


class Decision(msgspec.Struct, frozen=True):
    """Where a pod goes, or why it goes nowhere."""

    status: Status
    node_name: str = ""
    evaluated: int = 0  # nodes that were looked at
    names: tuple[str, ...] = ()  # of all nodes, in row order
    found: int = 0  # feasible nodes
    rows: IntArray = _NO_ROWS  # of the feasible nodes, ascending; none if decided by class
    scores: Scores | None = None  # aligned with `rows`; None if there was no choice
    verdicts: Verdicts | None = None  # of all nodes, when none was feasible
    diagnosis: Diagnosis | None = None
    after: PostFilterOutcome | None = None  # what PostFilter said, when none was feasible
    nominate: str | None = None  # None: the nomination stays; "": it is withdrawn

    @property
    def feasible(self) -> tuple[str, ...]:
        return tuple(self.names[row] for row in self.rows.tolist())


class Rotation:
    """Where in the listing the next sampled scan begins; all profiles of a scheduler share one."""

    __slots__ = ("start",)

    def __init__(self) -> None:
        self.start: int = 0


class Cycle:
    """Decides for the pods of one profile."""

    def __init__(
        self,
        runner: Runner,
        evaluation: Evaluation,
        percentage_of_nodes_to_score: int | None,
        rotation: Rotation,
        council: Council | None = None,
        classes: Classes | None = None,
        check: DoubleCheck | None = None,
    ) -> None:
        self._runner = runner
        self._evaluation = evaluation
        self._percentage = percentage_of_nodes_to_score
        self._rotation = rotation
        self._council = council
        # Classes know what plugins say, and nothing of what others would.
        self._classes = classes if council is None else None
        self._check = check
        ways = runner.guard.metrics.decisions
        self._by_class, self._in_full = ways.labels("class"), ways.labels("full")
        has_opinions = council is not None and council.has_opinions
        # Without anybody to compare them, the first that fits is as good as any.
        self._takes_first = not (evaluation.has_scorers or has_opinions)
        self._looks_at_all = percentage_of_nodes_to_score is None and not self._takes_first

    async def decide(self, state: CycleState, pod: Pod, nodes: Nodes) -> Decision:
        if not len(nodes):
            return Decision(NO_NODES, nominate="")
        looks_at_all = self._looks_at_all or self._limit(len(nodes)) is None
        if self._classes is not None and looks_at_all and not pod.nominated_node_name:
            chosen = self._classes.choose(state, pod, nodes)
            if chosen is not None:
                self._by_class.add()
                check = self._check
                if check is not None and check.is_due():
                    return await self._checked(check, chosen, state, pod, nodes)
                return await self._decided(chosen, state, pod, nodes)
        self._in_full.add()
        return await self._decide_in_full(state, pod, nodes)

    async def _decided(self, chosen: Chosen, state: CycleState, pod: Pod, nodes: Nodes) -> Decision:
        if chosen.verdicts is None:
            name = nodes.names[chosen.row]
            return Decision(OK, name, evaluated=len(nodes), found=chosen.feasible)
        found = diagnoses.of_verdicts(chosen.verdicts)
        return await self._refused(state, pod, nodes, chosen.verdicts, found)

    async def _checked(
        self, check: DoubleCheck, chosen: Chosen, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Decision:
        fresh = CycleState()
        full = await self._decide_in_full(fresh, pod, nodes)
        if chosen.verdicts is None:
            by_class, in_full = (
                (nodes.names[chosen.row], chosen.feasible),
                (full.node_name, full.found),
            )
            is_same = by_class == in_full
        else:
            reasons = diagnoses.of_verdicts(chosen.verdicts).message
            by_class, in_full = (reasons, 0), (full.node_name or full.status.message, full.found)
            is_same = chosen.verdicts == full.verdicts
        check.report(pod, is_same, by_class, in_full)
        if is_same and full.status.ok:
            return await self._decided(chosen, state, pod, nodes)
        state.begin_like(fresh)
        return full  # PostFilter has had its say, and is asked once

    async def _decide_in_full(self, state: CycleState, pod: Pod, nodes: Nodes) -> Decision:
        before = self._runner.pre_filter(state, pod, nodes)
        if before.status.rejected:
            return await self._refused_before(state, pod, nodes, before)
        if not before.status.ok:
            return Decision(before.status, nominate="")

        nominated = await self._try_nominated(state, pod, nodes)
        if nominated is not None:
            return nominated

        verdicts, status = self._filter(state, pod, nodes, before)
        if not status.ok:
            return Decision(status, nominate="")
        passed = self._first_passed(nodes, verdicts, before.only)
        if passed is not None and not passed.any():
            found = diagnoses.of_verdicts(verdicts, before.restricted_by)
            return await self._refused(state, pod, nodes, verdicts, found)
        if self._council is not None:
            agreed = await self._council.filter(pod, nodes, passed, verdicts)
            if isinstance(agreed, Status):
                return Decision(agreed, nominate="")
            passed = agreed
            if not passed.any():
                found = diagnoses.of_verdicts(verdicts, before.restricted_by)
                return await self._refused(state, pod, nodes, verdicts, found)
        return await self._choose(state, pod, nodes, passed)

    # --- filter --------------------------------------------------------------------------------

    async def _try_nominated(self, state: CycleState, pod: Pod, nodes: Nodes) -> Decision | None:
        """Room was made on this node for this pod: if it fits there, look no further."""
        node = nodes.get(pod.nominated_node_name) if pod.nominated_node_name else None
        if node is None:
            return None
        status = self._evaluation.filter_node_with_nominated(state, pod, node)
        if status.ok and await self._is_agreed(pod, nodes, node):
            rows = np.array([nodes.index_of(node.name)], dtype=np.int64)
            return Decision(OK, node.name, evaluated=1, names=nodes.names, found=1, rows=rows)
        return None  # whatever is wrong there, the full scan will say it

    async def _is_agreed(self, pod: Pod, nodes: Nodes, node: Node) -> bool:
        if self._council is None:
            return True
        row = np.array([nodes.index_of(node.name)], dtype=np.int64)
        one = nodes.take(row)
        agreed = await self._council.filter(pod, one, None, Verdicts.passing(one))
        return not isinstance(agreed, Status) and bool(agreed.any())

    def _filter(
        self, state: CycleState, pod: Pod, nodes: Nodes, before: PreFilterOutcome
    ) -> tuple[Verdicts, Status]:
        if before.only is None:
            limit = self._limit(len(nodes))
            start = self._rotation.start % len(nodes)
            return self._evaluation.filter(state, pod, nodes, limit, start)
        rows = [row for name in before.only if (row := nodes.index_of(name)) is not None]
        places = np.array(sorted(rows), dtype=np.int64)
        within, status = self._evaluation.filter(state, pod, nodes.take(places))
        outside = np.ones(len(nodes), dtype=np.bool_)
        outside[places] = False
        verdicts = Verdicts.passing(nodes).reject(outside, before.elsewhere)
        for place, row in enumerate(places.tolist()):
            verdicts.set(row, within.status(place))
        return verdicts, status

    def _limit(self, count: int) -> int | None:
        """How many nodes that fit are enough; None: all are to be looked at."""
        return 1 if self._takes_first else nodes_to_find(count, self._percentage)

    def _first_passed(
        self, nodes: Nodes, verdicts: Verdicts, only: frozenset[str] | None
    ) -> BoolArray | None:
        """Who passed; None: everybody. With a limit, the first so many in listing order."""
        limit = self._limit(len(nodes) if only is None else len(only))
        if limit is None:
            return None if verdicts.index is None else verdicts.passed
        start = self._rotation.start % len(nodes)
        listed = np.roll(nodes.listing, -start)
        found = np.flatnonzero(verdicts.passed[listed])[:limit]
        walked = int(found[-1]) + 1 if len(found) == limit else len(listed)
        self._rotation.start = (start + walked) % len(listed)
        passed = np.zeros(len(nodes), dtype=np.bool_)
        passed[listed[found]] = True
        return passed

    # --- nobody --------------------------------------------------------------------------------

    async def _refused_before(
        self, state: CycleState, pod: Pod, nodes: Nodes, before: PreFilterOutcome
    ) -> Decision:
        verdicts = Verdicts.passing(nodes).reject_all(before.status)
        found = diagnoses.of_pre_filter(before.status, len(nodes), before.restricted_by)
        return await self._refused(state, pod, nodes, verdicts, found)

    async def _refused(
        self, state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts, found: Diagnosis
    ) -> Decision:
        review = self._council.review if self._council is not None else None
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
            # Without anybody to nominate, no nomination can stand.
            nominate=after.nominate if after is not None else "",
        )

    # --- somebody ------------------------------------------------------------------------------

    async def _choose(
        self, state: CycleState, pod: Pod, nodes: Nodes, passed: BoolArray | None
    ) -> Decision:
        names = nodes.names
        rows = np.arange(len(nodes)) if passed is None else np.flatnonzero(passed)
        if len(rows) == 1:
            name = names[int(rows[0])]
            return Decision(OK, name, evaluated=len(nodes), names=names, found=1, rows=rows)
        feasible = nodes if len(rows) == len(nodes) else nodes.take(rows)
        status = self._runner.pre_score(state, pod, feasible)
        if not status.ok:
            return Decision(status, nominate="")
        scores, status = self._evaluation.score(state, pod, feasible)
        if scores is None:
            return Decision(status, nominate="")
        winner: str | None = None
        if self._council is not None:
            scores, winner = await self._council.score(pod, feasible, scores)
        if winner is None:
            winner = names[self._winner(nodes, rows, scores.totals)]
        return Decision(
            OK,
            winner,
            evaluated=len(nodes),
            names=names,
            found=len(rows),
            rows=rows,
            scores=scores,
        )

    @staticmethod
    def _winner(nodes: Nodes, rows: IntArray, totals: IntArray) -> int:
        """The row of the best node; ties fall by listing order."""
        first = int(totals.argmax())
        if np.count_nonzero(totals == totals[first]) == 1:
            return int(rows[first])
        points = np.full(len(nodes), -1, dtype=np.int64)
        points[rows] = totals
        listed = nodes.listing
        candidates = listed[points[listed] >= 0]
        return int(candidates[pick(points[candidates])])
