"""The plugins of a profile that take part in a decision, and the layers that some make up."""

from __future__ import annotations

from collections.abc import Hashable

from mooring.cache.arrays import BoolArray
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework import plugin as contract
from mooring.framework.scope import Scope
from mooring.framework.state import CycleState
from mooring.runtime.answers import Answers
from mooring.runtime.guard import Guard
from mooring.runtime.layers import Layer, Outdated
from mooring.runtime.profile import Profile

Shared = dict[Hashable, Layer]
"""Layers by what they depend on."""


class Lineup:
    """The plugins of a profile that take part in a decision."""

    def __init__(self, profile: Profile, guard: Guard) -> None:
        self.pre_filters: tuple[contract.PreFilter, ...] = profile.at(
            "preFilter", contract.PreFilter
        )
        self.filters: tuple[contract.Filter, ...] = profile.at("filter", contract.Filter)
        self.pre_scores: tuple[contract.PreScore, ...] = profile.at("preScore", contract.PreScore)
        self.scorers: tuple[contract.Score, ...] = profile.at("score", contract.Score)
        self.answers: Answers = Answers(guard, profile.weights)
        everybody = (*self.pre_filters, *self.filters, *self.pre_scores, *self.scorers)
        self.everybody: tuple[contract.Base, ...] = tuple(
            {plugin.name: plugin for plugin in everybody}.values()
        )
        # All plugins are given the same.
        self.objects: Objects = everybody[0].handle.objects if everybody else Objects()


def scope_of(plugin: contract.Base, pod: Pod) -> Scope | None:
    """The scope as far as answers can be kept for it."""
    scope = plugin.scope_of(pod)
    return scope if scope in (Scope.OBJECT, Scope.NODE) else None


def layers_of(
    lineup: Lineup,
    shared: Shared,
    scopes: dict[str, Scope | None],
    filters: list[contract.Filter],
    scorers: list[contract.Score],
    state: CycleState,
    pod: Pod,
    nodes: Nodes,
) -> list[Layer]:
    """The layers of a class: its own, by scope, and those that it shares with others."""
    parts: dict[str, Hashable] = {}
    for plugin in lineup.everybody:
        normal = isinstance(plugin, contract.NormalizeScore)
        if scopes[plugin.name] is Scope.NODE and not normal:
            part = plugin.part_of(pod)
            if part is not None:
                parts[plugin.name] = (part, plugin.stamp(pod))
    layers: list[Layer] = []

    def add(names: set[str], *, sees_pods: bool, besides: BoolArray | None) -> Layer | None:
        own_filters = [one for one in filters if one.name in names]
        own_scorers = [one for one in scorers if one.name in names]
        if not own_filters and not own_scorers:
            return None
        return Layer(
            own_filters,
            own_scorers,
            answers=lineup.answers,
            sees_pods=sees_pods,
            state=state,
            pod=pod,
            nodes=nodes,
            besides=besides,
        )

    objects = {name for name, scope in scopes.items() if scope is Scope.OBJECT}
    first = add(objects, sees_pods=False, besides=None)
    if first is not None:
        layers.append(first)
    if parts:
        key = tuple(sorted(parts.items(), key=lambda item: item[0]))
        layer = shared.get(key)
        if layer is not None:
            try:
                layer.follow(pod, nodes)
            except Outdated:
                layer = None
        if layer is None:
            layer = add(set(parts), sees_pods=True, besides=None)
        if layer is not None:
            shared[key] = layer
            layers.append(layer)
    rest = {name for name, scope in scopes.items() if scope is Scope.NODE} - parts.keys()
    own = add(rest, sees_pods=True, besides=first.refused if first is not None else None)
    if own is not None:
        layers.append(own)
    return layers
