"""PreFilter: may the pod be placed at all, and on which nodes at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.plugins import DecisionPlugins
from mooring.decision.results import Results
from mooring.framework import plugin as contract
from mooring.framework.results import OnlyNodes
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status


class PreFilterOutcome(msgspec.Struct, frozen=True):
    """What PreFilter said: a status, and the only nodes that can be meant."""

    status: Status
    only: frozenset[str] | None = None  # None: no restriction
    restricted_by: tuple[str, ...] = ()  # the plugins that restricted, sorted
    ended_by: str = ""  # the plugin after which no other was asked

    @property
    def elsewhere(self) -> Status:
        """The status of the nodes outside."""
        names = " ".join(self.restricted_by)
        return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


def run_pre_filter(
    plugins: DecisionPlugins,
    state: CycleState,
    pod: Pod | None,
    nodes: Nodes | None,
    kept: Mapping[str, Results],
    *,
    only: Sequence[contract.PreFilter] | None = None,
    kept_only: bool = False,
) -> PreFilterOutcome:
    """Ask the plugins in order; kept answers are read, those of all others asked for.

    With `only`, of these plugins; with `kept_only`, of those whose answers are kept.
    """
    allowed: frozenset[str] | None = None
    restricted_by: list[str] = []
    result = OK
    for plugin in plugins.pre_filters if only is None else only:
        if plugin.name in state.skip_filter:
            continue
        results = kept.get(plugin.name)
        if results is not None:
            state.absorb(results.state)
            answer = results.pre_filter
        elif kept_only:
            continue
        else:
            assert pod is not None
            assert nodes is not None
            answer = plugins.caller.pre_filter(plugin, state, pod, nodes)
        if isinstance(answer, OnlyNodes):
            restricted_by.append(plugin.name)
            allowed = answer.names if allowed is None else allowed & answer.names
            if not allowed:
                return _nothing_left(restricted_by, plugin.name)
        elif answer.skipped:
            state.skip_filter.add(plugin.name)
        elif answer.code is Code.UNSCHEDULABLE:
            result = answer  # go on: preemption needs the state of all plugins
        elif not answer.ok:
            return PreFilterOutcome(answer, ended_by=plugin.name)
    return PreFilterOutcome(result, allowed, tuple(sorted(restricted_by)))


def _nothing_left(plugins: list[str], ended_by: str) -> PreFilterOutcome:
    """The sets of the plugins have no node in common."""
    names = tuple(sorted(plugins))
    if len(names) == 1:
        text = f"node(s) didn't satisfy plugin {names[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    return PreFilterOutcome(Status.unresolvable(text), frozenset(), names, ended_by)
