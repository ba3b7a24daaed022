"""All extenders of a scheduler, verb by verb: requests, and the combined results.

Filters are called in turn, prioritize verbs concurrently. The cycle calls them after the plugins:
extenders see only nodes that all plugins accepted. The failure of an `ignorable` extender is
ignored, and so is every failure of prioritize; any other failure ends the scheduling attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from mooring.api.codec import DecodeError
from mooring.cache.arrays import BoolArray
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.errors import Fenced
from mooring.client.transport import NewFence
from mooring.decision.scoring import PluginScores, Scores
from mooring.extender import wire
from mooring.extender.calling.caller import NAME, ExtenderCaller, ExtenderError
from mooring.extender.wire import BIND, FILTER, PREEMPT, PRIORITIZE, AnyVerb
from mooring.framework import scores as plugin_scores
from mooring.framework.results import Candidate
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts
from mooring.observe.family import MetricValue

log = logging.getLogger(__name__)

_SCALE: Final = plugin_scores.MAX_SCORE // wire.MAX_SCORE
# A limit for scores, so that the sum with those of all plugins fits into 64 bits.
_MOST_POINTS: Final = 2**55
# A node that was left out without a reason: it is not known whether evictions would help.
_NO_REASON: Final = Status.unresolvable().by(NAME)


class Extenders:
    """The extenders of one scheduler, shared by its profiles; those that are ignorable come last.

    `fence` is checked before a bind, which must not be sent after the lease was lost.
    """

    def __init__(
        self,
        callers: Iterable[ExtenderCaller],
        *,
        fence: NewFence | None = None,
        scoring: MetricValue | None = None,
    ) -> None:
        self._callers = sorted(callers, key=lambda caller: caller.config.ignorable)
        self._fence = fence
        self._scoring = scoring  # gauge of prioritize calls in progress

    def __len__(self) -> int:
        return len(self._callers)

    @property
    def have_opinions(self) -> bool:
        """Whether any of them filters or scores."""
        return any(one.serves(FILTER) or one.serves(PRIORITIZE) for one in self._callers)

    async def close(self) -> None:
        for caller in self._callers:
            await caller.close()

    # --- filter --------------------------------------------------------------------------------

    async def filter(
        self, pod: Pod, nodes: Nodes, passed: BoolArray, verdicts: Verdicts
    ) -> BoolArray | Status:
        """The remaining nodes; the refusals of the others are added to the verdicts.

        Each extender gets the nodes that the extender before it accepted.
        """
        left = passed
        refused: dict[str, Status] = {}
        for caller in self._to_ask(FILTER, pod):
            if not left.any():
                break
            asked = nodes if left.all() else nodes.take(left)
            try:
                result = await caller.ask(FILTER, caller.about(pod, asked))
                kept = _kept(caller, result, asked)
            except ExtenderError as error:
                if self._is_ignored(caller, pod, error):
                    continue
                return Status.error(str(error), cause=error)
            refused |= _refused(result)
            if len(kept) < len(asked):
                left = left & np.array([name in kept for name in nodes.names], dtype=np.bool_)
        for row in np.flatnonzero(passed & ~left).tolist():
            verdicts.set(row, refused.get(nodes.names[row], _NO_REASON))
        return left

    # --- prioritize ----------------------------------------------------------------------------

    async def score(self, pod: Pod, nodes: Nodes, scores: Scores) -> tuple[Scores, list[str]]:
        """The scores with those of the extenders, and the best of the nodes that one scored."""
        callers = self._interested(pod)
        answers = await asyncio.gather(*(self._prioritize(one, pod, nodes) for one in callers))
        totals, tables = scores.totals.copy(), scores.plugins
        scored: set[str] = set()
        for table, names in filter(None, answers):
            totals += table.scores * table.weight
            tables += (table,)
            scored.update(names)
        best = [nodes.names[row] for row in np.flatnonzero(totals == totals.max()).tolist()]
        return Scores(tables, totals), [name for name in best if name in scored]

    async def _prioritize(
        self, caller: ExtenderCaller, pod: Pod, nodes: Nodes
    ) -> tuple[PluginScores, Iterable[str]] | None:
        """The scores of one extender, and the nodes in its answer; None if it failed."""
        weight, given = 0, dict.fromkeys(nodes.names, 0)  # of an extender without the verb
        if caller.serves(PRIORITIZE):
            weight, given = caller.config.weight * _SCALE, {}
            if self._scoring is not None:
                self._scoring.add(+1)
            try:
                for one in await caller.ask(PRIORITIZE, caller.about(pod, nodes)):
                    given[one.host] = given.get(one.host, 0) + one.score
            except ExtenderError as error:
                extra = {"extender": caller.name, "pod": pod.key, "error": str(error)}
                log.warning("an extender gave no scores", extra=extra)
                return None
            finally:
                if self._scoring is not None:
                    self._scoring.add(-1)
        most = _MOST_POINTS // max(weight, 1)
        points = np.array([min(max(given.get(name, 0), -most), most) for name in nodes.names])
        return PluginScores(caller.name, weight, points, points), given

    # --- preempt -------------------------------------------------------------------------------

    async def review(
        self, pod: Pod, candidates: Sequence[Candidate], nodes: Nodes
    ) -> Sequence[Candidate] | Status:
        """The candidates that all preempt verbs accept, possibly with other victims."""
        for caller in self._to_ask(PREEMPT, pod):
            if not candidates:
                break
            try:
                result = await caller.ask(PREEMPT, _preemption_args(caller, pod, candidates))
                kept = [
                    _candidate(caller, nodes, name, victims)
                    for name, victims in (result.node_name_to_meta_victims or {}).items()
                ]
                bare = [one.node_name for one in kept if not one.victims]
                if bare and not caller.config.ignorable:
                    raise ExtenderError(f'expected at least one victim pod on node "{bare[0]}"')
            except ExtenderError as error:
                if self._is_ignored(caller, pod, error):
                    continue
                return Status.error(str(error), cause=error)
            candidates = [one for one in kept if one.victims]
        return candidates

    # --- bind ----------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind through the first interested extender with a bind verb; None if there is none.

        The status names the extender.
        """
        args = wire.ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node_name)
        fence = None if self._fence is None else self._fence()
        for caller in self._to_ask(BIND, pod):
            try:
                result = await caller.ask(BIND, args, fence)
                if result.error:
                    raise ExtenderError(result.error)
            except Fenced as error:
                return Status.error(str(error), cause=error)
            except ExtenderError as error:
                if self._is_ignored(caller, pod, error):
                    continue
                return Status.error(str(error), cause=error)
            return OK.by(caller.name)
        return None

    # --- all verbs -----------------------------------------------------------------------------

    def _interested(self, pod: Pod) -> list[ExtenderCaller]:
        return [caller for caller in self._callers if caller.is_interested(pod)]

    def _to_ask(self, verb: AnyVerb, pod: Pod) -> list[ExtenderCaller]:
        return [caller for caller in self._interested(pod) if caller.serves(verb)]

    def _is_ignored(self, caller: ExtenderCaller, pod: Pod, error: ExtenderError) -> bool:
        if caller.config.ignorable:
            extra = {"extender": caller.name, "pod": pod.key, "error": str(error)}
            log.warning("an extender failed and is ignored, as configured", extra=extra)
        return caller.config.ignorable


def _kept(
    caller: ExtenderCaller, result: wire.ExtenderFilterResult, asked: Nodes
) -> frozenset[str]:
    """The nodes that a filter accepts; ExtenderError if it failed or names unknown nodes."""
    if result.error:
        raise ExtenderError(result.error)
    names: Iterable[str] = ()
    if caller.config.node_cache_capable and result.node_names is not None:
        names = result.node_names
    elif result.nodes is not None:
        try:
            names = [wire.name_of(item) for item in result.nodes.items or ()]
        except DecodeError as error:
            raise caller.failure(FILTER, f"Nodes: {error}") from error
    kept = frozenset(names)
    unknown = kept.difference(asked.names)
    if unknown:
        raise ExtenderError(
            f'extender "{caller.name}" claims a filtered node "{min(unknown)}" which is not'
            " found in the input node list"
        )
    return kept


def _refused(result: wire.ExtenderFilterResult) -> dict[str, Status]:
    """The reasons that a filter gives; a refused node need not have one."""
    failed, unresolvable = result.failed_nodes or {}, result.failed_and_unresolvable_nodes or {}
    return {
        **{name: Status.unschedulable(why).by(NAME) for name, why in failed.items()},
        **{name: Status.unresolvable(why).by(NAME) for name, why in unresolvable.items()},
    }


def _preemption_args(
    caller: ExtenderCaller, pod: Pod, candidates: Sequence[Candidate]
) -> wire.ExtenderPreemptionArgs:
    document = caller.documents.pod
    metas: dict[str, wire.MetaVictims] | None = None
    full: dict[str, wire.Victims] | None = None
    if caller.config.node_cache_capable:
        metas = {one.node_name: wire.MetaVictims.of(one) for one in candidates}
    else:
        full = {
            one.node_name: wire.Victims(tuple(map(document, one.victims)), one.pdb_violations)
            for one in candidates
        }
    return wire.ExtenderPreemptionArgs(document(pod), full, metas)


def _candidate(
    caller: ExtenderCaller, nodes: Nodes, name: str, victims: wire.MetaVictims
) -> Candidate:
    """A candidate as the preempt verb returns it."""
    node = nodes.get(name)
    if node is None:
        text = f'extender "{caller.name}" claims to preempt on a node "{name}" which is not found'
        raise ExtenderError(text)
    here = {pod.uid: pod for pod in node.pods}
    found = []
    for meta in victims.pods or ():
        victim = here.get(meta.uid)
        if victim is None:
            raise ExtenderError(
                f"extender: {caller.name} claims to preempt pod (UID: {meta.uid}) on node:"
                f" {name}, but the pod is not found on that node"
            )
        found.append(victim)
    return Candidate(name, tuple(found), victims.num_pdb_violations)
