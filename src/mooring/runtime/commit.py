"""Calls the plugins of the extension points after a decision: Reserve to PostBind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import groupby
from typing import Final

from mooring.cache.pods import Pod
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework._internal import InternalPlugin, skip_is_final
from mooring.framework.results import Wait
from mooring.framework.state import CycleState, StateKey
from mooring.framework.status import OK, SKIP, Code, Status
from mooring.runtime.guard import Guard
from mooring.runtime.plugin_caller import PluginCaller, as_error, picks_pods, running
from mooring.runtime.profile import Profile

MAX_PERMIT_TIMEOUT: Final = 15 * 60.0  # seconds

# The plugins that do not apply to this pod: computed at Reserve, read at later points.
_LEFT_OUT: StateKey[frozenset[str]] = StateKey("left out")


class Committer(PluginCaller):
    """Calls the plugins of one profile that carry out a decision."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        super().__init__(profile, guard)
        self._reserve = profile.at(contract.Reserve)
        self._permit = profile.at(contract.Permit)
        self._pre_bind = profile.at(contract.PreBind)
        # Adjacent plugins that allow it run concurrently; any other plugin runs alone.
        together = groupby(self._pre_bind, key=lambda one: True if one.parallel else one.name)
        self._pre_bind_groups = [list(group) for _, group in together]
        self._pre_bind_names = frozenset(one.name for one in self._pre_bind)
        self._bind = profile.at(contract.Bind)
        # Our own end by themselves; others may wait for ever, also when their pod is gone.
        self.bind_may_wait: bool = not all(isinstance(one, InternalPlugin) for one in self._bind)
        self._post_bind = profile.at(contract.PostBind)
        after = {one.name: one for one in (*self._reserve, *self._permit, *self._pre_bind)}
        self._final = frozenset(name for name, one in after.items() if skip_is_final(one))
        # The plugins that do not apply to some pods.
        self._picky = [one for one in after.values() if picks_pods(one)]
        self._side_by_side = guard.metrics.goroutines.labels("PreBind")

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        started = self.guard.timer()
        left_out = state[_LEFT_OUT] = self._left_out(state, pod)
        for plugin in self._reserve:
            if plugin.name in left_out:
                continue
            status = self.ask(plugin, "Reserve", plugin.reserve, state, pod, node_name)
            if not status.ok:
                return self.took("Reserve", started, _refusal_or_error("Reserve", plugin, status))
        return self.took("Reserve", started, OK)

    def _left_out(self, state: CycleState, pod: Pod) -> frozenset[str]:
        found = self._final & state.skip_filter
        if not self._picky:
            return found
        return found.union(one.name for one in self._picky if not self.applies(one, pod))

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Unreserve all plugins in reverse order, also those whose `reserve` was not called."""
        started = self.guard.timer()
        for plugin in reversed(self._reserve):
            try:
                self.guard.call(plugin, "Unreserve", plugin.unreserve, state, pod, node_name)
            except PluginError:
                continue  # the guard has logged it, and the other plugins must be called
        self.took("Unreserve", started, OK)

    def permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status, Mapping[str, float]]:
        """The status, and the plugins that make the pod wait, each with its timeout in seconds."""
        started = self.guard.timer()
        holds: dict[str, float] = {}
        for plugin in self._permit:
            if plugin.name in (state.get(_LEFT_OUT) or ()):  # a plugin may have cleared the state
                continue
            ask = plugin.permit
            answer = self.ask(plugin, "Permit", ask, state, pod, node_name, accept=(Wait,))
            if isinstance(answer, Wait):
                holds[plugin.name] = min(max(answer.timeout, 0.0), MAX_PERMIT_TIMEOUT)
            elif answer.code is Code.WAIT:
                holds[plugin.name] = 0.0  # without a timeout, the wait ends at once
            elif not answer.ok:
                status = _refusal_or_error("Permit", plugin, answer)
                return self.took("Permit", started, status), {}
        return self.took("Permit", started, OK), holds

    def pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """OK if some PreBind plugin will have something to do, SKIP if none."""
        if not self._pre_bind:
            return SKIP
        started = self.guard.timer()
        result = SKIP
        left_out = state.get(_LEFT_OUT) or frozenset()
        state.skip_pre_bind.update(self._pre_bind_names & left_out)
        for plugin in self._pre_bind:
            if plugin.name in left_out:
                continue
            ask = plugin.pre_flight
            status = self.ask(plugin, "PreBindPreFlight", ask, state, pod, node_name)
            if status.skipped:
                state.skip_pre_bind.add(plugin.name)
            elif status.ok:
                result = OK
            else:
                result = _pre_flight_error(plugin, status)
                break
        return self.took("PreBindPreFlight", started, result)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        started = self.guard.timer()
        for group in self._pre_bind_groups:
            active = [plugin for plugin in group if plugin.name not in state.skip_pre_bind]
            status = await self._pre_bind_group(active, state, pod, node_name)
            if not status.ok:
                return self.took("PreBind", started, status)
        return self.took("PreBind", started, OK)

    async def _pre_bind_group(
        self, group: list[contract.PreBind], state: CycleState, pod: Pod, node_name: str
    ) -> Status:
        if len(group) == 1:
            return await self._pre_bind_one(group[0], state, pod, node_name)
        tasks = [
            asyncio.ensure_future(self._pre_bind_one(plugin, state, pod, node_name))
            for plugin in group
        ]
        self._side_by_side.add(len(tasks))
        try:
            for finished in asyncio.as_completed(tasks):
                status = await finished
                if not status.ok:
                    return status  # the first failure cancels the others
            return OK
        finally:
            self._side_by_side.add(-len(tasks))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pre_bind_one(
        self, plugin: contract.PreBind, state: CycleState, pod: Pod, node_name: str
    ) -> Status:
        status = await self.ask_async(plugin, "PreBind", plugin.pre_bind, state, pod, node_name)
        return status if status.ok else _refusal_or_error("PreBind", plugin, status)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """The status of the first plugin that does not skip; SKIP if all skip."""
        started = self.guard.timer()
        for plugin in self._bind:
            # The pod may be bound already; a failure would free its place for other pods.
            status = await self.ask_async(
                plugin, "Bind", plugin.bind, state, pod, node_name, stands=True
            )
            if not status.skipped:
                if not status.ok:
                    status = _refusal_or_error("Bind", plugin, status)
                return self.took("Bind", started, status)
        return self.took("Bind", started, SKIP)

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        started = self.guard.timer()
        for plugin in self._post_bind:
            try:
                await self.guard.acall(plugin, "PostBind", plugin.post_bind, state, pod, node_name)
            except PluginError:
                continue  # the guard has logged it, and the pod is bound anyway
        self.took("PostBind", started, OK)


def _refusal_or_error(point: str, plugin: contract.Base, status: Status) -> Status:
    """A status that is not OK: a refusal stays, anything else becomes an error."""
    return status if status.rejected else as_error(running(point, plugin), status)


def _pre_flight_error(plugin: contract.PreBind, status: Status) -> Status:
    if status.code is Code.ERROR:
        return as_error(running("PreBindPreFlight", plugin), status)
    text = (
        f'PreBindPreFlight {plugin.name} returned "{status.code.label}", which is'
        " unsupported. It is supposed to return Success, Skip, or Error status"
    )
    return Status.error(text).by(plugin.name)
