"""Runs the points of a profile that decide, except the two that look at every node.

Those are in `evaluation`; what follows a decision is in `commit`. What each status means at each
point is kube-scheduler's, text included.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework import plugin as contract
from mooring.framework.results import Candidate, Nominate, OnlyNodes
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.asking import Asker, as_error
from mooring.runtime.guard import Guard
from mooring.runtime.profile import Profile

Review = Callable[[Pod, Sequence[Candidate], Nodes], Awaitable[Sequence[Candidate] | Status]]
"""Asks others which candidates they agree to; a status says what broke."""


class PreFilterOutcome(msgspec.Struct, frozen=True):
    """What PreFilter said: a status, and which nodes may be looked at at all."""

    status: Status
    only: frozenset[str] | None = None  # None: no restriction
    restricted_by: tuple[str, ...] = ()  # the plugins that restricted, sorted

    @property
    def elsewhere(self) -> Status:
        """What the nodes get that may not be looked at."""
        names = " ".join(self.restricted_by)
        return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


class PostFilterOutcome(msgspec.Struct, frozen=True):
    """What PostFilter said; `nominate` is None when the nomination stays as it is."""

    status: Status
    nominate: str | None = None
    victims: tuple[Pod, ...] = ()  # to be evicted to make the nomination true
    reports: dict[str, object] = {}  # by plugin, for whoever explains the decision


class Runner(Asker):
    """Asks the plugins of one profile before, around and after the look at the nodes."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        super().__init__(profile, guard)
        self._pre_enqueue = profile.at("preEnqueue", contract.PreEnqueue)
        self._pre_filter = profile.at("preFilter", contract.PreFilter)
        self._post_filter = profile.at("postFilter", contract.PostFilter)
        self._pre_score = profile.at("preScore", contract.PreScore)
        self._pre_filtered = self.evaluations("PreFilter", self._pre_filter)
        self._pre_scored = self.evaluations("PreScore", self._pre_score)
        self._following = tuple(plugin for plugin in self._pre_filter if _follows_pods(plugin))

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status:
        """The first refusal, if any; the plugin that gated the pod last time is asked first."""
        if not self._pre_enqueue:
            return OK
        started = self.guard.timer()
        plugins: Sequence[contract.PreEnqueue] = self._pre_enqueue
        if first:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != first)
        for plugin in plugins:
            running = f'running PreEnqueue plugin "{plugin.name}"'
            status: Status = self.ask(plugin, "PreEnqueue", running, plugin.pre_enqueue, pod)
            if not status.ok:
                return self.took("PreEnqueue", started, status)
        return self.took("PreEnqueue", started, OK)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterOutcome:
        started = self.guard.timer()
        outcome = self._run_pre_filter(state, pod, nodes)
        self.took("PreFilter", started, outcome.status)
        return outcome

    def _run_pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterOutcome:
        only: frozenset[str] | None = None
        restricted_by: list[str] = []
        result = OK
        for plugin in self._pre_filter:
            if plugin.name in state.skip_filter:
                continue
            running = f'running PreFilter plugin "{plugin.name}"'
            ask = plugin.pre_filter
            answer = self.ask(
                plugin, "PreFilter", running, ask, state, pod, nodes, accept=(OnlyNodes,)
            )
            if not isinstance(answer, OnlyNodes) and answer.skipped:
                state.skip_filter.add(plugin.name)
                continue
            self._pre_filtered[plugin.name].add()
            if isinstance(answer, OnlyNodes):
                restricted_by.append(plugin.name)
                only = answer.names if only is None else only & answer.names
                if not only:
                    return _nothing_left(restricted_by)
            elif answer.code is Code.UNSCHEDULABLE:
                result = answer  # go on: preemption wants everybody's state
            elif answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PreFilterOutcome(answer)
            elif not answer.ok:
                return PreFilterOutcome(as_error(running, answer))
        return PreFilterOutcome(result, only, tuple(sorted(restricted_by)))

    def follows_pods(self, name: str) -> bool:
        """Whether a plugin has to be told when a what-if moves a pod."""
        return any(plugin.name == name for plugin in self._following)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status:
        """Keep the pre-filter state true while a pod is on a node in thought."""
        for plugin in self._following:
            if plugin.name not in state.skip_filter:
                running = f'running AddPod on PreFilter plugin "{plugin.name}"'
                point = "PreFilterExtensionAddPod"
                status = self.ask(plugin, point, running, plugin.add_pod, state, pod, added, node)
                if not status.ok:
                    return as_error(running, status)
        return OK

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status:
        """Keep the pre-filter state true while a pod is gone from a node in thought."""
        for plugin in self._following:
            if plugin.name not in state.skip_filter:
                running = f'running RemovePod on PreFilter plugin "{plugin.name}"'
                point = "PreFilterExtensionRemovePod"
                ask = plugin.remove_pod
                status = self.ask(plugin, point, running, ask, state, pod, removed, node)
                if not status.ok:
                    return as_error(running, status)
        return OK

    async def post_filter(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        verdicts: Verdicts,
        review: Review | None = None,
    ) -> PostFilterOutcome | None:
        """None when the profile has no PostFilter plugin: then there is nothing to say.

        Without a `review` of candidates by others there is nothing to wait for.
        """
        if not self._post_filter:
            return None
        started = self.guard.timer()
        outcome = await self._run_post_filter(state, pod, nodes, verdicts, review)
        self.took("PostFilter", started, outcome.status)
        return outcome

    async def _run_post_filter(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        verdicts: Verdicts,
        review: Review | None,
    ) -> PostFilterOutcome:
        reasons: list[str] = []
        reports: dict[str, object] = {}
        nominate: str | None = None
        for plugin in self._post_filter:
            running = f'running PostFilter plugin "{plugin.name}"'
            ask, own = plugin.post_filter, verdicts.copy()
            answer = self.ask(
                plugin, "PostFilter", running, ask, state, pod, nodes, own, accept=(Nominate,)
            )
            choose = answer.choose if isinstance(answer, Nominate) else None
            if review is not None and choose is not None:
                agreed = await review(pod, answer.candidates, nodes)
                answer = self.ask(plugin, "PostFilter", running, choose, agreed, accept=(Nominate,))
            chosen: str | None = None
            victims: tuple[Pod, ...] = ()
            if isinstance(answer, Nominate):
                chosen, victims = answer.node_name, answer.victims
                if answer.report is not None:
                    reports[plugin.name] = answer.report
                answer = answer.status.by(plugin.name)
            status: Status = answer
            if status.ok:
                return PostFilterOutcome(status, chosen, victims, reports)
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PostFilterOutcome(status, chosen, (), reports)
            if not status.rejected:
                error = Status(Code.ERROR, status.reasons, plugin.name, status.cause)
                return PostFilterOutcome(error, reports=reports)
            nominate = nominate if chosen is None else chosen
            reasons += status.reasons
        # Signed by the first: its word opens the message.
        status = Status.unschedulable(*reasons).by(self._post_filter[0].name)
        return PostFilterOutcome(status, nominate, (), reports)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        started = self.guard.timer()
        for plugin in self._pre_score:
            running = f'running PreScore plugin "{plugin.name}"'
            status = self.ask(plugin, "PreScore", running, plugin.pre_score, state, pod, nodes)
            if status.skipped:
                state.skip_score.add(plugin.name)
                continue
            self._pre_scored[plugin.name].add()
            if not status.ok:
                return self.took("PreScore", started, as_error(running, status))
        return self.took("PreScore", started, OK)


def _nothing_left(plugins: list[str]) -> PreFilterOutcome:
    """The sets of the plugins have no node in common."""
    names = tuple(sorted(plugins))
    if len(names) == 1:
        text = f"node(s) didn't satisfy plugin {names[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    return PreFilterOutcome(Status.unresolvable(text), frozenset(), names)


def _follows_pods(plugin: contract.PreFilter) -> bool:
    """Whether a plugin keeps state that a pod coming or going changes."""
    own, base = type(plugin), contract.PreFilter
    return own.add_pod is not base.add_pod or own.remove_pod is not base.remove_pod
