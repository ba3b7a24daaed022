"""The nodes where evictions would make room for a pod, and the best of them.

Called by DefaultPreemption: `worth_trying` selects the nodes, `search` tries them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.results import Candidate
from mooring.framework.status import Code, Status
from mooring.framework.verdicts import Verdicts
from mooring.preemption.all_victims import find_all_victims
from mooring.preemption.victims import NO_VICTIMS, PreemptionRequest, started_at

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_LOWEST_PRIORITY: Final = -(2**31)
_LEAST_PORTION: Final = 64  # nodes that are tried at once; fewer are hardly faster

Started = Callable[[Pod], float]
"""When a pod started, in seconds."""


class Criterion(msgspec.Struct, frozen=True):
    """What speaks for the best candidate: less of this than the next best has."""

    name: str
    best: float
    next: float


class PreemptionReport(msgspec.Struct, frozen=True):
    """The result of a search, by node."""

    nodes: int  # of the cluster, also those that were not tried
    candidates: dict[str, Candidate] = {}  # by node name
    failures: dict[str, Status] = {}  # by node name: why evictions would not help there
    best: tuple[str, ...] = ()  # equally good candidates, sorted
    chosen: Candidate | None = None
    decided_by: Criterion | None = None  # only if every node was tried

    @property
    def reasons(self) -> dict[str, int]:
        """Reason -> number of nodes; for a search without candidates."""
        counted = Counter(reason for status in self.failures.values() for reason in status.reasons)
        untried = self.nodes - len(self.failures) - len(self.candidates)
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
    names = nodes.names
    candidates: dict[str, Candidate] = {}
    failures: dict[str, Status] = {}
    has_harmless = False
    for row, found in _tried(request, nodes, np.roll(rows, -start), wanted):
        if isinstance(found, Status):
            failures[names[row]] = found
            continue
        candidates[names[row]] = found
        has_harmless |= found.pdb_violations == 0
        if wanted is not None and has_harmless and len(candidates) >= wanted:
            break
    return _report(request.started, len(nodes), candidates, failures, is_complete=wanted is None)


def merged(reports: Sequence[PreemptionReport], now: float) -> PreemptionReport:
    """Searches of different nodes for one pod as one; `now` is the start of pods without one."""
    candidates: dict[str, Candidate] = {}
    failures: dict[str, Status] = {}
    for report in reports:
        candidates |= report.candidates
        failures |= report.failures
    count = reports[-1].nodes
    return _report(partial(started_at, now=now), count, candidates, failures, is_complete=True)


def _report(
    started: Started,
    count: int,
    candidates: dict[str, Candidate],
    failures: dict[str, Status],
    *,
    is_complete: bool,
) -> PreemptionReport:
    best = pick(started, candidates.values())
    return PreemptionReport(
        nodes=count,
        candidates=candidates,
        failures=failures,
        best=tuple(sorted(candidate.node_name for candidate in best)),
        chosen=best[0] if best else None,
        decided_by=decisive(started, candidates.values()) if is_complete else None,
    )


def _tried(
    request: PreemptionRequest, nodes: Nodes, rows: IntArray, wanted: int | None
) -> Iterator[tuple[int, Candidate | Status]]:
    """The result of each row, in order; tried in batches that hardly exceed `wanted`."""
    has_victims = _with_less_important_pods(request, nodes)[rows]
    known = request.results(nodes) if has_victims.any() else None
    ends = 1 + np.flatnonzero(has_victims)  # after each row with victims
    begin = tried = candidates = 0
    while begin < len(rows):
        portion = len(rows) if wanted is None else max(wanted - candidates, _LEAST_PORTION)
        tried += portion
        end = int(ends[tried - 1]) if tried <= len(ends) else len(rows)
        with_victims = rows[begin:end][has_victims[begin:end]].tolist()
        results = find_all_victims(request, nodes, with_victims, known)
        candidates += sum(isinstance(result, Candidate) for result in results)
        found = dict(zip(with_victims, results, strict=True))
        for row in rows[begin:end].tolist():
            yield row, found.get(row, NO_VICTIMS)
        begin = end


def pick(started: Started, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates that do least harm, in the order given; several if they are equal."""
    best = list(candidates)
    for harms_of in _HARMS.values():
        if len(best) < 2:
            break
        harms = harms_of(started, best)
        least = min(harms)
        best = [candidate for candidate, harm in zip(best, harms, strict=True) if harm == least]
    return best


def decisive(started: Started, candidates: Iterable[Candidate]) -> Criterion | None:
    """The criterion that left no more than the best; None if there never was a choice."""
    left, found = list(candidates), None
    for name, harms_of in _HARMS.items():
        harms = sorted(set(harms_of(started, left))) if len(left) > 1 else []
        if len(harms) > 1:
            found = Criterion(name, harms[0], harms[1])
            left = [one for one in left if harms_of(started, [one])[0] == harms[0]]
    return found


def _priorities(started: Started, candidates: list[Candidate]) -> list[float]:
    # From zero up, so that more victims are never better, even of negative priority.
    return [sum([v.priority - _LOWEST_PRIORITY for v in c.victims]) for c in candidates]


_HARMS: Final[dict[str, Callable[[Started, list[Candidate]], list[float]]]] = {
    "violations of disruption budgets": lambda started, candidates: [
        c.pdb_violations for c in candidates
    ],
    "highest priority of a victim": lambda started, candidates: [
        c.victims[0].priority for c in candidates
    ],
    "sum of the priorities of the victims": _priorities,
    "number of victims": lambda started, candidates: [len(c.victims) for c in candidates],
    # The first victim is the one of highest priority that started first: a late start is better.
    "age of the most important victim": lambda started, candidates: [
        -started(c.victims[0]) for c in candidates
    ],
}
"""The criteria for the best candidate, most important first; lower is better."""


def _with_less_important_pods(request: PreemptionRequest, nodes: Nodes) -> BoolArray:
    """The nodes with potential victims. Counted once, then kept current by the cache."""
    priority = request.pod.priority
    key = ("pods of lower priority than", priority)
    found: BoolArray = nodes.count_pods(key, lambda other: other.priority < priority) > 0
    return found
