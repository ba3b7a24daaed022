"""The plugins of a profile that take part in a decision, and PreFilter, the first of its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from mooring.decision.feasible import MAX_TOTAL
from mooring.decision.results import Results
from mooring.framework import (
    MAX_SCORE,
    OK,
    Code,
    CycleState,
    Filter,
    Nodes,
    OnlyNodes,
    Pod,
    PreFilter,
    PreScore,
    Score,
    Status,
)
from mooring.framework._internal import DomainFilter, DomainScore
from mooring.framework.plugin import Base
from mooring.runtime import DecisionCaller, Guard, Profile, overrides_normalize_score

Kept: TypeAlias = Mapping[str, Results]
"""Results that are kept for the class of a pod, by plugin."""

NOTHING_KEPT: Kept = {}


class DecisionPlugins:
    """The plugins at PreFilter, Filter, PreScore and Score, in the order of the profile."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        self.caller: DecisionCaller = DecisionCaller(profile, guard)
        self.pre_filters: tuple[PreFilter, ...] = profile.at(PreFilter)
        self.filters: tuple[Filter, ...] = profile.at(Filter)
        self.pre_scorers: tuple[PreScore, ...] = profile.at(PreScore)
        self.scorers: tuple[Score, ...] = profile.at(Score)
        self.weights: Mapping[str, int] = profile.weights
        at_all = (*self.pre_filters, *self.filters, *self.pre_scorers, *self.scorers)
        self.all: tuple[Base, ...] = tuple({one.name: one for one in at_all}.values())
        self.pre_filter_names: frozenset[str] = _names(self.pre_filters)
        self.filter_names: frozenset[str] = _names(self.filters)
        self.pre_scorer_names: frozenset[str] = _names(self.pre_scorers)
        self.scorer_names: frozenset[str] = _names(self.scorers)
        # Plugins with tables by topology domain, which are used where results are not cached.
        self.domain_filters: Mapping[str, DomainFilter] = {
            one.name: one for one in self.filters if isinstance(one, DomainFilter)
        }
        self.domain_scorers: Mapping[str, DomainScore] = {
            one.name: one
            for one in self.scorers
            # With a `normalize_score` of its own, a plugin may turn equal scores into others.
            if isinstance(one, DomainScore) and not overrides_normalize_score(one)
        }
        # Beyond this, a total and its tie-break rank do not fit into one number.
        self.totals_fit: bool = MAX_SCORE * sum(self.weights.values()) < MAX_TOTAL


class PreFilterOutcome(msgspec.Struct, frozen=True):
    """The result of PreFilter: a status, and the nodes it restricts the decision to."""

    status: Status
    only: frozenset[str] | None = None  # None: no restriction
    restricted_by: tuple[str, ...] = ()  # the plugins that restricted, sorted
    ended_by: str = ""  # the plugin whose answer ended PreFilter

    @property
    def elsewhere(self) -> Status:
        """The status of the nodes that PreFilter excludes."""
        names = " ".join(self.restricted_by)
        return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


_PASSED: Final = PreFilterOutcome(OK)


def run_pre_filter(
    plugins: DecisionPlugins,
    state: CycleState,
    pod: Pod | None,
    nodes: Nodes | None,
    kept: Kept,
    *,
    only: Sequence[PreFilter] | None = None,
    kept_only: bool = False,
) -> PreFilterOutcome:
    """Run PreFilter of the plugins in order; cached results are read instead of a call.

    With `only`, run these plugins; with `kept_only`, read cached results alone.
    """
    allowed: frozenset[str] | None = None
    restricted_by: list[str] = []
    result, skipped = OK, state.skip_filter
    for plugin in plugins.pre_filters if only is None else only:
        if plugin.name in skipped:
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
        if answer is OK:
            continue
        if isinstance(answer, OnlyNodes):
            restricted_by.append(plugin.name)
            allowed = answer.names if allowed is None else allowed & answer.names
            if not allowed:
                return _nothing_left(restricted_by, plugin.name)
        elif answer.skipped:
            skipped.add(plugin.name)
        elif answer.code is Code.UNSCHEDULABLE:
            result = answer  # continue: preemption needs the state of all plugins
        elif not answer.ok:
            return PreFilterOutcome(answer, ended_by=plugin.name)
    if result is OK and allowed is None:
        return _PASSED  # for nearly every pod
    return PreFilterOutcome(result, allowed, tuple(sorted(restricted_by)))


def _nothing_left(plugins: list[str], ended_by: str) -> PreFilterOutcome:
    """The outcome if the sets of the plugins have no node in common."""
    names = tuple(sorted(plugins))
    if len(names) == 1:
        text = f"node(s) didn't satisfy plugin {names[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    return PreFilterOutcome(Status.unresolvable(text), frozenset(), names, ended_by)


def _names(plugins: tuple[Base, ...]) -> frozenset[str]:
    return frozenset(plugin.name for plugin in plugins)
