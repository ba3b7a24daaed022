"""The nodes where evictions would make room for a pod, and the best of them.

Called by DefaultPreemption: `worth_trying` selects the nodes, `search` tries them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.snapshot import Nodes
from mooring.framework.results import Candidate
from mooring.framework.status import Code, Status
from mooring.framework.verdicts import Verdicts
from mooring.preemption.all_victims import find_all_victims
from mooring.preemption.harm import Criterion, decisive, harm_of_all, least_harmful
from mooring.preemption.known_victims import SearchResults
from mooring.preemption.victims import NO_VICTIMS, PreemptionRequest

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_LEAST_PORTION: Final = 64  # nodes that are tried at once; fewer are hardly faster


class PreemptionReport(msgspec.Struct, frozen=True):
    """The result of a search. Candidates and failures are in the order of the search."""

    nodes: int  # of the cluster, also those that were not tried
    candidates: tuple[Candidate, ...] = ()
    failures: dict[str, Status] = {}  # why evictions would not help, by node name
    least_harmful: tuple[Candidate, ...] = ()  # several if they are equal
    decided_by: Criterion | None = None  # only if every node was tried

    @property
    def chosen(self) -> Candidate | None:
        return self.least_harmful[0] if self.least_harmful else None

    @property
    def best(self) -> tuple[str, ...]:
        """The nodes of equally good candidates, sorted."""
        return tuple(sorted(candidate.node_name for candidate in self.least_harmful))

    @property
    def reasons(self) -> dict[str, int]:
        """Reason -> number of nodes; for a search without candidates."""
        counted = Counter(reason for status in self.failures.values() for reason in status.reasons)
        untried = self.nodes - len(self.candidates) - len(self.failures)
        if untried:
            counted[NOT_HELPFUL] += untried
        return dict(counted)

    @property
    def message(self) -> str:
        """Why no node is a candidate, in kube-scheduler's words."""
        # Sorted as strings, as in the message that this one is appended to.
        counted = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
        return f"0/{self.nodes} nodes are available: {', '.join(counted)}."

    @property
    def refusal(self) -> Status:
        """What a search without candidates says of the pod."""
        if self.error:
            return Status.error(f"preemption: {self.error}")
        return Status.unschedulable(f"preemption: {self.message}")

    @property
    def error(self) -> str:
        """The errors of the search, if any."""
        broken = (status for status in self.failures.values() if status.code is Code.ERROR)
        texts = tuple(dict.fromkeys(status.message for status in broken))
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def worth_trying(verdicts: Verdicts) -> IntArray:
    """The rows of the nodes that evictions might help: those refused as exactly Unschedulable."""
    hopeful = [status.code is Code.UNSCHEDULABLE for status in verdicts.statuses]
    if verdicts.index is None or not any(hopeful):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.array([False, *hopeful])[verdicts.index])


def search(
    request: PreemptionRequest,
    nodes: Nodes,
    rows: IntArray,
    *,
    wanted: int | None = None,
    start: int = 0,
) -> PreemptionReport:
    """Try the nodes in `rows`, in turn, from the one at `start`.

    With `wanted`, the search ends once that many candidates are known and one of them breaks no
    disruption budget; without, every node is tried.
    """
    results = request.results(nodes)
    tried = _try(request, nodes, np.roll(rows, -start), wanted, results)
    is_candidate, names = results.is_candidate[tried], nodes.names
    found, refused = tried[is_candidate], tried[~is_candidate]
    candidates, harm = results.candidates(found), results.harm[found]
    best = least_harmful(harm, request.now).tolist()
    refused_names = [names[row] for row in refused.tolist()]
    return PreemptionReport(
        nodes=len(nodes),
        candidates=candidates,
        failures=dict(zip(refused_names, results.failures(refused), strict=True)),
        least_harmful=tuple([candidates[place] for place in best]),
        decided_by=decisive(harm, request.now) if wanted is None else None,
    )


def merged(reports: Sequence[PreemptionReport], now: float) -> PreemptionReport:
    """Searches of different nodes for one pod as one; `now` is the start of pods without one."""
    candidates = tuple([found for report in reports for found in report.candidates])
    failures: dict[str, Status] = {}
    for report in reports:
        failures |= report.failures
    return PreemptionReport(
        nodes=reports[-1].nodes,
        candidates=candidates,
        failures=failures,
        least_harmful=tuple(pick(candidates, now)),
        decided_by=decisive(harm_of_all(candidates), now),
    )


def pick(candidates: Sequence[Candidate], now: float) -> list[Candidate]:
    """The candidates that do least harm, in the order given; several if they are equal."""
    return [candidates[place] for place in least_harmful(harm_of_all(candidates), now).tolist()]


def _try(
    request: PreemptionRequest,
    nodes: Nodes,
    rows: IntArray,
    wanted: int | None,
    results: SearchResults,
) -> IntArray:
    """Search rows whose result is not known, until enough are; the rows up to there, in order."""
    without_victims = rows[~_with_less_important_pods(request, nodes)[rows]]
    results.put(without_victims, NO_VICTIMS)
    while True:
        unknown = ~results.is_known[rows]
        end = _end(unknown, rows, wanted, results)
        places = np.flatnonzero(unknown[:end])
        if not len(places):
            return rows[:end]
        end = max(end, int(places[0]) + _LEAST_PORTION)
        to_search = rows[:end][unknown[:end]].tolist()
        request.ranks.keep(len(nodes))
        ranked = [request.ranked(nodes, row) for row in to_search]
        found = find_all_victims(request, nodes, to_search, ranked)
        for row, pods, result in zip(to_search, ranked, found, strict=True):
            results.put_searched(row, pods, request.budgets, result)


def _end(unknown: BoolArray, rows: IntArray, wanted: int | None, results: SearchResults) -> int:
    """How many rows have to be tried, if all that are not known were the best of candidates."""
    if wanted is None:
        return len(rows)
    candidates = unknown | results.is_candidate[rows]
    is_harmless = unknown | (candidates & (results.harm[rows, 0] == 0))
    is_enough = (np.cumsum(candidates) >= wanted) & np.logical_or.accumulate(is_harmless)
    return int(is_enough.argmax()) + 1 if is_enough.any() else len(rows)


def _with_less_important_pods(request: PreemptionRequest, nodes: Nodes) -> BoolArray:
    """The nodes with potential victims. Counted once, then kept current by the cache."""
    priority = request.pod.priority
    key = ("pods of lower priority than", priority)
    found: BoolArray = nodes.count_pods(key, lambda other: other.priority < priority) > 0
    return found
