"""The plugins of a profile that take part in a decision, point by point."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.cache.pods import Pod
from mooring.decision.feasible import MAX_TOTAL
from mooring.framework import plugin as contract
from mooring.framework.scope import Scope
from mooring.framework.scores import MAX_SCORE
from mooring.runtime.caller import PluginCaller
from mooring.runtime.profile import Profile


class DecisionPlugins:
    """The plugins at PreFilter, Filter, PreScore and Score, in the order of the profile."""

    def __init__(self, profile: Profile, caller: PluginCaller) -> None:
        self.caller: PluginCaller = caller
        self.pre_filters: tuple[contract.PreFilter, ...] = profile.at(
            "preFilter", contract.PreFilter
        )
        self.filters: tuple[contract.Filter, ...] = profile.at("filter", contract.Filter)
        self.pre_scorers: tuple[contract.PreScore, ...] = profile.at("preScore", contract.PreScore)
        self.scorers: tuple[contract.Score, ...] = profile.at("score", contract.Score)
        self.weights: Mapping[str, int] = profile.weights
        at_all = (*self.pre_filters, *self.filters, *self.pre_scorers, *self.scorers)
        self.all: tuple[contract.Base, ...] = tuple({one.name: one for one in at_all}.values())
        self.pre_filter_names: frozenset[str] = _names(self.pre_filters)
        self.filter_names: frozenset[str] = _names(self.filters)
        self.pre_scorer_names: frozenset[str] = _names(self.pre_scorers)
        self.scorer_names: frozenset[str] = _names(self.scorers)
        # Otherwise a total and its tie-break rank do not fit into one number.
        self.totals_fit: bool = MAX_SCORE * sum(self.weights.values()) < MAX_TOTAL


def kept_scope(plugin: contract.Base, pod: Pod) -> Scope | None:
    """What the answers for pods like this one depend on, if they can be kept; else None."""
    scope = plugin.scope_of(pod)
    return scope if scope in (Scope.OBJECT, Scope.NODE) else None


def _names(plugins: tuple[contract.Base, ...]) -> frozenset[str]:
    return frozenset(plugin.name for plugin in plugins)
