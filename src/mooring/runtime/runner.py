"""PreEnqueue and PostFilter: the points before and after the evaluation of a pod on the nodes.

The evaluation is in `decision`; what follows a decision is in `commit`. What each status means at
each point is kube-scheduler's, text included.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import InternalError
from mooring.framework import plugin as contract
from mooring.framework.results import Candidate, Nominate
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.guard import Guard
from mooring.runtime.plugin_caller import PluginCaller
from mooring.runtime.profile import Profile

T = TypeVar("T")
CandidateReview = Callable[
    [Pod, Sequence[Candidate], Nodes], Awaitable[Sequence[Candidate] | Status]
]
"""The candidates that the extenders accept; a status if that failed."""


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of work in which nothing but extenders would be waited for."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise InternalError("without extenders, there is nothing to wait for")


class PostFilterOutcome(msgspec.Struct, frozen=True):
    """The result of PostFilter; `nominate` is None if the nomination stays as it is."""

    status: Status
    nominate: str | None = None
    victims: tuple[Pod, ...] = ()  # to be evicted for the nomination
    reports: dict[str, object] = {}  # by plugin, to explain the decision


class Runner(PluginCaller):
    """Calls the PreEnqueue and PostFilter plugins of one profile."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        super().__init__(profile, guard)
        self._pre_enqueue = profile.at(contract.PreEnqueue)
        self._post_filter = profile.at(contract.PostFilter)

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status:
        """The first refusal, if any; the plugin that gated the pod last time is called first."""
        if not self._pre_enqueue:
            return OK
        started = self.guard.timer()
        plugins: Sequence[contract.PreEnqueue] = self._pre_enqueue
        if first:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != first)
        for plugin in plugins:
            status: Status = self.ask(plugin, "PreEnqueue", plugin.pre_enqueue, pod)
            if not status.ok:
                return self.took("PreEnqueue", started, status)
        return self.took("PreEnqueue", started, OK)

    def post_filter_alone(
        self, state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> PostFilterOutcome | None:
        """As `post_filter`, where no extender has a say: nothing is waited for."""
        return at_once(self.post_filter(state, pod, nodes, verdicts))

    async def post_filter(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        verdicts: Verdicts,
        review: CandidateReview | None = None,
    ) -> PostFilterOutcome | None:
        """Run PostFilter; None if the profile has no PostFilter plugin.

        It awaits nothing but `review`, in which extenders choose among the candidates.
        """
        if not self._post_filter:
            return None
        started = self.guard.timer()
        reasons: list[str] = []
        reports: dict[str, object] = {}
        nominate: str | None = None
        for plugin in self._post_filter:
            ask, own = plugin.post_filter, verdicts.to_read()
            answer = self.ask(plugin, "PostFilter", ask, state, pod, nodes, own, accept=(Nominate,))
            choose = answer.choose if isinstance(answer, Nominate) else None
            if review is not None and choose is not None:
                agreed = await review(pod, answer.candidates, nodes)
                answer = self.ask(plugin, "PostFilter", choose, agreed, accept=(Nominate,))
            chosen: str | None = None
            victims: tuple[Pod, ...] = ()
            if isinstance(answer, Nominate):
                chosen, victims = answer.node_name, answer.victims
                if answer.report is not None:
                    reports[plugin.name] = answer.report
                answer = answer.status.by(plugin.name)
            status: Status = answer
            if not (status.ok or status.rejected):
                status, chosen = Status(Code.ERROR, status.reasons, plugin.name, status.cause), None
            if not status.rejected or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                nominate = chosen  # the last plugin decides
                break
            nominate = nominate if chosen is None else chosen
            reasons += status.reasons
        else:  # the status names the first plugin, whose reasons come first
            status = Status(Code.UNSCHEDULABLE, tuple(reasons), self._post_filter[0].name)
        self.took("PostFilter", started, status)
        return PostFilterOutcome(status, nominate, victims if status.ok else (), reports)
