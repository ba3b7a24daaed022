"""PostFilter in steps: some nodes at a time, so that decisions are made in between.

The default plugin tries evictions on every node that they might help, which takes long on many
nodes. It is asked about a few nodes at a time; the others are shown to it as hopeless.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

import numpy as np

from mooring.cache.internals import pods_of
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.decision.evaluation import Evaluation
from mooring.framework.plugin import PostFilter
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.preemption.all_victims import FEW_NODES
from mooring.preemption.candidates import PreemptionReport, merged, worth_trying
from mooring.runtime.profile import Profile
from mooring.runtime.runner import PostFilterOutcome, Runner

STEP: Final = 0.003  # seconds of CPU, as far as can be told beforehand
MOST: Final = 0.15  # seconds, of all steps together
_MOST_CANDIDATES: Final = 250  # to compare them takes its time, too
_MOST_PODS: Final = 24  # on the nodes of a step: each is added back, and the filters run again
_OTHER_TURN: Final = Status.unresolvable("node(s) are tried in another step")
_DEFAULTS: Final = frozenset(one.name for one in DEFAULT_MULTIPOINT)


def unknown_plugins(profile: Profile) -> list[str]:
    """PostFilter plugins that may do more than look: those of users."""
    return [one.name for one in profile.at(PostFilter) if one.name not in _DEFAULTS]


class StepwisePostFilter:
    """The PostFilter plugins of a profile for one pod.

    `step` until it returns False, and `finish`; then `outcome` is what all steps found. What a step
    finds is true of its moment: the nodes change while other steps are waited for.
    """

    def __init__(self, runner: Runner, pod: Pod) -> None:
        self._runner = runner
        self._pod = pod
        self._left: deque[str] | None = None  # nodes to try
        self._portion = _MOST_PODS
        self._reports: list[PreemptionReport] = []
        self._only: PostFilterOutcome | None = None
        self._candidates = 0
        self._spent = 0.0
        self.outcome: PostFilterOutcome | None = None  # None also if not all nodes were tried
        self.steps: int = 0
        self.worth: int = 0  # nodes that evictions might help, when it began

    @property
    def untried(self) -> int:
        return len(self._left or ())

    def step(self, evaluation: Evaluation) -> bool:
        """Try some nodes, as they are now, after a step that lists them; False after the last."""
        started = time.thread_time()
        nodes, verdicts = evaluation.nodes, evaluation.verdicts()
        if self._left is None:
            self._left = self._to_try(nodes, verdicts)
            self.worth = len(self._left)
            return True
        shown = _only(verdicts, self._next_rows(nodes, self._left), len(nodes))
        outcome = self._runner.post_filter_alone(evaluation.state, self._pod, nodes, shown)
        self.steps += 1
        took = time.thread_time() - started
        self._spent += took
        if took > STEP:
            self._portion = max(1, self._portion // 2)
        elif took < STEP / 2:
            self._portion = min(_MOST_PODS, 2 * self._portion)
        if outcome is None or not self._keep(outcome):
            self._left.clear()
            self._only = outcome
            return False
        is_enough = self._spent > MOST or self._candidates >= _MOST_CANDIDATES
        return bool(self._left) and not is_enough

    def _to_try(self, nodes: Nodes, verdicts: Verdicts) -> deque[str]:
        names = nodes.names
        found = deque(names[row] for row in worth_trying(verdicts).tolist())
        nominated = self._pod.nominated_node_name
        if nominated in found:  # whose state decides whether to try at all
            found.remove(nominated)
            found.appendleft(nominated)
        return found

    def _next_rows(self, nodes: Nodes, left: deque[str]) -> list[int]:
        """The nodes of a step, taken from those left: at least one, with not too many pods."""
        rows: list[int] = []
        pods = 0
        while left and len(rows) < FEW_NODES:
            row = nodes.index_of(left[0])
            pods += 0 if row is None else len(pods_of(nodes, row))
            if rows and pods > self._portion:
                break
            left.popleft()
            if row is not None:
                rows.append(row)
        return rows

    def _keep(self, outcome: PostFilterOutcome) -> bool:
        """Whether other nodes may have more to say."""
        reports = [one for one in outcome.reports.values() if isinstance(one, PreemptionReport)]
        self._reports += reports
        self._candidates += sum(len(report.candidates) for report in reports)
        return bool(reports)

    def finish(self, now: float) -> None:
        """Compare what all steps found."""
        self.outcome = self._outcome(now)

    def _outcome(self, now: float) -> PostFilterOutcome | None:
        if not self._reports:
            return self._only
        report = merged(self._reports, now)
        reports: dict[str, object] = {"": report}
        if report.chosen is not None:
            node, victims = report.chosen.node_name, report.chosen.victims
            return PostFilterOutcome(OK, node, victims, reports)
        return None if self.untried else PostFilterOutcome(report.refusal, None, (), reports)

    def note(self) -> str:
        """What has to be known about the answer."""
        tried = f"{self.worth:,} nodes"
        if self.untried:
            tried = f"{self.worth - self.untried:,} of {tried}"
        return (
            f"evictions were tried out on {tried}, in {self.steps} steps while decisions were made:"
            " each node as it was then"
        )


def _only(verdicts: Verdicts, rows: list[int], count: int) -> Verdicts:
    """The verdicts of these rows of `count`; the others are not to be tried."""
    index = np.full(count, len(verdicts.statuses) + 1, dtype=np.int64)
    if verdicts.index is not None:
        index[rows] = verdicts.index[rows]
    return Verdicts.coded(index, [*verdicts.statuses, _OTHER_TURN])
