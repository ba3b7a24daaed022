"""The preempt verb: which candidate nodes and victims are acceptable.

The scheduler sends its candidates, each with victims. An extender may remove nodes and victims but
add none.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from mooring.api import core
from mooring.api.meta import ObjectMeta
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.filter_prioritize import expect_unbroken
from mooring.extender.serving.functions import PreemptFunction, as_status
from mooring.extender.serving.plugins import ServedPlugins
from mooring.extender.serving.request import Failure, read_pod, select
from mooring.extender.wire import (
    PREEMPT,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    MetaVictims,
)
from mooring.framework.results import Candidate
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts

log = logging.getLogger(__name__)

_OFFERED = Status.unschedulable("node has no room, and pods that could be evicted")


class PreemptHandler:
    """Runs the preempt functions of an extender, then its PostFilter plugins."""

    def __init__(self, served: ServedPlugins, cluster: WatchedCluster) -> None:
        self._served = served
        self._cluster = cluster

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        problem = self._cluster.problem()
        if problem:
            raise Failure(f"the extender is not ready: {problem}")
        pod = read_pod(args.pod)
        candidates = list(self._read(args))
        for plugin in self._served.functions(PREEMPT):
            ask = partial(_ask, plugin.function)
            left = [
                await self._served.wait_for(plugin, "preempt", ask, pod, candidate)
                for candidate in candidates
            ]
            candidates = [candidate for candidate in left if candidate is not None]
        if self._served.answers(PREEMPT) and candidates:
            candidates = await self._nominated(pod, candidates)
        return ExtenderPreemptionResult(
            {candidate.node_name: MetaVictims.of(candidate) for candidate in candidates}
        )

    def _read(self, args: ExtenderPreemptionArgs) -> Iterator[Candidate]:
        if args.node_name_to_victims is not None:
            for name, given in args.node_name_to_victims.items():
                victims = tuple(map(read_pod, given.pods or ()))
                yield Candidate(name, victims, given.num_pdb_violations)
            return
        if not self._cluster.is_connected:
            raise Failure("victims were named by uid, and the extender has no cluster to look in")
        for name, meta in (args.node_name_to_meta_victims or {}).items():
            found = [self._cluster.cache.get_pod(victim.uid) for victim in meta.pods or ()]
            victims = tuple(pod for pod in found if pod is not None)
            if len(victims) == len(found):
                yield Candidate(name, victims, meta.num_pdb_violations)
            else:  # an unknown pod can't be checked
                log.warning("a victim is not known; its node is left out", extra={"node": name})

    async def _nominated(self, pod: Pod, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The one node that a PostFilter plugin nominates, if any."""
        served, state = self._served, CycleState()
        by_name = {candidate.node_name: candidate for candidate in candidates}
        cache = self._cluster.cache if self._cluster.is_connected else _cache_of(candidates)
        nodes, _ = select(cache, tuple(by_name))
        with served.handle.looking_at(cache):
            expect_unbroken(served.evaluator.begin(state, pod, cache.nodes).outcome.status)
            verdicts = Verdicts.passing(nodes).reject_all(_OFFERED)
            # PostFilter plugins await nothing here, so the cache does not change meanwhile.
            after = await served.runner.post_filter(state, pod, nodes, verdicts)
        if after is None or after.status.rejected:
            return []
        expect_unbroken(after.status)
        name, plugin = after.nominate, after.status.plugin
        if not name:
            return []
        if name not in by_name:
            raise Failure(f'PostFilter nominated node "{name}", which was not offered', plugin)
        if not after.victims:  # all victims of the candidate are accepted
            return [by_name[name]]
        left = _with_victims(by_name[name], after.victims)
        if not left.victims:
            text = f'PostFilter chose no pod on node "{name}" that was offered as a victim'
            raise Failure(text, plugin)
        return [left]


def _cache_of(candidates: Iterable[Candidate]) -> Cache:
    """A cache of nodes with nothing but their names and the victims."""
    cache = Cache()
    for candidate in candidates:
        cache.put_node(core.Node(metadata=ObjectMeta(name=candidate.node_name)))
        for victim in candidate.victims:
            cache.put_pod(victim.assumed_on(candidate.node_name))
    return cache


async def _ask(function: PreemptFunction, pod: Pod, candidate: Candidate) -> Candidate | None:
    """The candidate as a function returns it; None if it is refused."""
    answer: Any = function(pod, candidate.node_name, candidate.victims)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, Iterable) and not isinstance(answer, str):
        chosen = list(answer)
        if not all(isinstance(victim, Pod) for victim in chosen):
            raise TypeError(f"returned {chosen!r:.80}, expected pods of those offered")
        left = _with_victims(candidate, chosen)
        return left if left.victims else None
    return candidate if as_status(answer, function.__name__).ok else None


def _with_victims(candidate: Candidate, chosen: Iterable[Pod]) -> Candidate:
    """The candidate with only these victims."""
    uids = {pod.uid for pod in chosen}
    victims = tuple(pod for pod in candidate.victims if pod.uid in uids)
    return msgspec.structs.replace(candidate, victims=victims)
