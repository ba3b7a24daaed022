"""Answers to preempt: of the nodes where room could be made, which may be freed, and of whom.

The scheduler has worked out whom it would have to evict where. An extender may take nodes and
victims away from that and add none.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mooring.api import core
from mooring.api.meta import ObjectMeta
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.extender.serving.answering import checked
from mooring.extender.serving.cluster import Cluster
from mooring.extender.serving.functions import PreemptFunction, as_status
from mooring.extender.serving.hosting import Hosted
from mooring.extender.serving.question import Failure, read_pod, select
from mooring.extender.wire import (
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    MetaPod,
    MetaVictims,
)
from mooring.framework.plugin import Args, Base
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.runner import PostFilterOutcome

log = logging.getLogger(__name__)

_OFFERED = Status.unschedulable("node has no room, and pods that could be evicted")


class Offer(msgspec.Struct, frozen=True):
    """Who would have to leave a node."""

    victims: tuple[Pod, ...]
    violations: int  # of disruption budgets

    def only(self, uids: Iterable[str]) -> Offer:
        chosen = frozenset(uids)
        victims = tuple(pod for pod in self.victims if pod.uid in chosen)
        return msgspec.structs.replace(self, victims=victims)

    def to_wire(self) -> MetaVictims:
        return MetaVictims(tuple(MetaPod(pod.uid) for pod in self.victims), self.violations)


Offers = dict[str, Offer]  # by node name


class _Named(Base):
    """What a function goes by in messages and metrics."""


class Preempting:
    """Decides for one extender, by functions first and then by the PostFilter plugins."""

    def __init__(
        self, hosted: Hosted, cluster: Cluster, functions: Sequence[PreemptFunction] = ()
    ) -> None:
        self._hosted = hosted
        self._cluster = cluster
        self._functions = [(function, _named(function, hosted)) for function in functions]

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        problem = self._cluster.problem()
        if problem:
            raise Failure(f"the extender is not ready: {problem}")
        pod = read_pod(args.pod)
        offers = self._read(args)
        for function, named in self._functions:
            kept: Offers = {}
            for name, offer in offers.items():
                left = await self._hosted.wait_for(
                    named, "preempt", _asked, function, pod, name, offer
                )
                if left is not None:
                    kept[name] = left
            offers = kept
        if self._hosted.preempts and offers:
            offers = await self._nominated(pod, offers)
        return ExtenderPreemptionResult({name: left.to_wire() for name, left in offers.items()})

    def _read(self, args: ExtenderPreemptionArgs) -> Offers:
        if args.node_name_to_victims is not None:
            return {
                name: Offer(tuple(map(read_pod, given.pods or ())), given.num_pdb_violations)
                for name, given in args.node_name_to_victims.items()
            }
        if not self._cluster.is_connected:
            raise Failure("victims were named by uid, and the extender has no cluster to look in")
        offers: Offers = {}
        for name, meta in (args.node_name_to_meta_victims or {}).items():
            found = [self._cluster.cache.get_pod(victim.uid) for victim in meta.pods or ()]
            victims = tuple(pod for pod in found if pod is not None)
            if len(victims) == len(found):
                offers[name] = Offer(victims, meta.num_pdb_violations)
            else:  # nobody can say whether it may be evicted
                log.warning("a victim is not known; its node is left out", extra={"node": name})
        return offers

    # --- plugins -------------------------------------------------------------------------------

    async def _nominated(self, pod: Pod, offers: Offers) -> Offers:
        """The one node that a plugin wants freed; none if it wants none."""
        hosted, state = self._hosted, CycleState()
        seen = self._seen(offers)
        nodes, _ = select(seen, tuple(offers))
        with self._hosted.handle.looking_at(seen):
            outcome = hosted.evaluator.begin(state, pod, seen.nodes).outcome
            if not outcome.status.rejected:
                checked(outcome.status)
            verdicts = Verdicts.passing(nodes).reject_all(_OFFERED)
            # Without others to ask, it waits for nothing: what is looked at stays as it is.
            after = await hosted.runner.post_filter(state, pod, nodes, verdicts)
        if after is None or after.status.rejected:
            return {}
        checked(after.status)
        return _taken(after, offers)

    def _seen(self, offers: Offers) -> Cache:
        if self._cluster.is_connected:
            return self._cluster.cache
        seen = Cache()
        for name, offer in offers.items():
            seen.put_node(core.Node(metadata=ObjectMeta(name=name)))
            for victim in offer.victims:
                seen.put_pod(victim.assumed_on(name))
        return seen


def _taken(outcome: PostFilterOutcome, offers: Offers) -> Offers:
    name, plugin = outcome.nominate, outcome.status.plugin
    if not name:
        return {}
    offer = offers.get(name)
    if offer is None:
        raise Failure(f'PostFilter nominated node "{name}", which was not offered', plugin)
    if not outcome.victims:  # it has nothing against those who were offered
        return {name: offer}
    left = offer.only(pod.uid for pod in outcome.victims)
    if not left.victims:
        text = f'PostFilter chose no pod on node "{name}" that was offered as a victim'
        raise Failure(text, plugin)
    return {name: left}


async def _asked(function: PreemptFunction, pod: Pod, name: str, offer: Offer) -> Offer | None:
    """What a function leaves of an offer; None if nothing."""
    answer: Any = function(pod, name, offer.victims)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, Iterable) and not isinstance(answer, str):
        chosen = list(answer)
        if not all(isinstance(victim, Pod) for victim in chosen):
            raise TypeError(f"returned {chosen!r:.80}, expected pods of those offered")
        left = offer.only(victim.uid for victim in chosen)
        return left if left.victims else None
    return offer if as_status(answer, function.__name__).ok else None


def _named(function: PreemptFunction, hosted: Hosted) -> Base:
    kind = type("PreemptFunction", (_Named,), {"name": function.__name__})
    made: Base = kind(Args(), hosted.handle)
    return made
