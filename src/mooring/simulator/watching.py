"""The scores of chosen pods at the time of their decision, while all others go by class."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.evaluator import PodEvaluator
from mooring.framework.state import CycleState
from mooring.scheduler.cycle import Cycle, Decision
from mooring.scheduler.scheduler import Scheduler


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One node as a pod's decision saw it: who refused it, or what each plugin gave it."""

    refused_by: str = ""
    reasons: tuple[str, ...] = ()
    scores: dict[str, int] = {}  # weighted; plugins that were skipped are left out


class Watched(msgspec.Struct, frozen=True):
    """The last decision of one pod."""

    chosen: str
    nodes: dict[str, Seen]
    refused_by: tuple[str, ...] = ()  # the plugins that refused, if no node was feasible


def watch(scheduler: Scheduler, pods: Mapping[str, tuple[str, ...]]) -> dict[str, Watched]:
    """Fill the returned dictionary, from now on, with the decisions of these pods."""
    found: dict[str, Watched] = {}
    if pods:
        for name, runtime in scheduler.runtimes.items():
            cycle = _WatchedCycle(runtime.cycle, runtime.evaluator, pods, found)
            scheduler.runtimes[name] = msgspec.structs.replace(runtime, cycle=cycle)
    return found


class _WatchedCycle(Cycle):
    """Decides as another cycle does; before that, it evaluates the watched pods in full."""

    def __init__(
        self,
        inner: Cycle,
        evaluator: PodEvaluator,
        pods: Mapping[str, tuple[str, ...]],
        found: dict[str, Watched],
    ) -> None:
        self._inner = inner
        self._evaluate = evaluator
        self._pods = pods
        self._found = found

    async def decide(self, state: CycleState, pod: Pod, nodes: Nodes) -> Decision:
        wanted = self._pods.get(pod.key)
        seen = self._seen(pod, nodes, wanted) if wanted is not None else None
        decision = await self._inner.decide(state, pod, nodes)
        if seen is not None:
            refused = decision.diagnosis.unschedulable_plugins if decision.diagnosis else ()
            self._found[pod.key] = Watched(decision.node_name, seen, tuple(sorted(refused)))
        return decision

    def _seen(self, pod: Pod, nodes: Nodes, wanted: tuple[str, ...]) -> dict[str, Seen]:
        evaluation = self._evaluate.begin(CycleState(), pod, nodes, use_memory=False)
        status = evaluation.outcome.status
        if not status.ok:
            seen = Seen(refused_by=status.plugin, reasons=status.reasons)
            return dict.fromkeys(wanted, seen)
        evaluation.filter()
        verdicts = evaluation.verdicts()
        scores = evaluation.scores() if evaluation.count else None
        places = {row: place for place, row in enumerate(evaluation.rows.tolist())}
        found = {}
        for name in wanted:
            row = nodes.index_of(name)
            if row is None:
                continue
            status = verdicts.status(row)
            if not status.ok or scores is None or row not in places:
                found[name] = Seen(refused_by=status.plugin, reasons=status.reasons)
                continue
            given = {
                one.plugin: int(one.scores[places[row]]) * one.weight for one in scores.plugins
            }
            found[name] = Seen(scores=given)
        return found
