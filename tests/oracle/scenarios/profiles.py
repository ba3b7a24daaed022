"""Profiles: plugins moved, weighted and switched off, and arguments of those that take some."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.oracle.scenarios.dice import Dice, Object
from tests.oracle.scenarios.quantities import EXTENDED
from tests.oracle.scenarios.selectors import HOST, ZONE, node_affinity

FILTERS = (
    *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts"),
    *("NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    *("PodTopologySpread", "InterPodAffinity"),
)
SCORES = (
    *("TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread"),
    *("InterPodAffinity", "NodeResourcesBalancedAllocation", "ImageLocality"),
)
PRE_SCORES = tuple(name for name in SCORES if name != "ImageLocality")
MULTI = (*FILTERS, "DefaultPreemption", "NodeResourcesBalancedAllocation", "ImageLocality")
_RESOURCES = ("cpu", "memory", "ephemeral-storage", *EXTENDED, "hugepages-2Mi")


def plugin_config(dice: Dice, arguments: dict[str, Object]) -> list[Object]:
    made = []
    for name, fields in arguments.items():
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args"}
        # The kind may be left out: it follows from the name.
        made.append({"name": name, "args": {**({} if dice.chance(0.2) else kind), **fields}})
    return made


def _weighted(dice: Dice, weights: Sequence[int]) -> list[Object]:
    return [{"name": name, "weight": dice.pick(weights)} for name in dice.some(_RESOURCES, 1, 4)]


def fit_args(dice: Dice) -> Object:
    fields: Object = {}
    if dice.chance(0.2):
        fields["ignoredResources"] = [dice.pick(EXTENDED)]
    if dice.chance(0.2):
        groups = [name.split("/")[0] for name in EXTENDED]
        fields["ignoredResourceGroups"] = [dice.pick(groups)]
    if dice.chance(0.9):
        kind = dice.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
        strategy: Object = {"type": kind}
        if dice.chance(0.8):
            strategy["resources"] = _weighted(dice, (1, 1, 2, 3, 5, 10, 100))
        if kind == "RequestedToCapacityRatio":
            points = sorted(dice.some(range(101), 1, 7))
            if len(points) > 1 and dice.chance(0.5):
                points[0], points[-1] = 0, 100
            strategy["requestedToCapacityRatio"] = {
                "shape": [{"utilization": at, "score": dice.between(0, 10)} for at in points]
            }
        fields["scoringStrategy"] = strategy
    return fields


def balanced_args(dice: Dice) -> Object:
    return {"resources": _weighted(dice, (1,))}


def affinity_args(dice: Dice, nodes: Sequence[str]) -> Object:
    added = node_affinity(dice, nodes)
    return {"addedAffinity": added} if added else {}


def spread_args(dice: Dice) -> Object:
    if dice.chance(0.1):
        return {"defaultingType": "System"}
    pairs = [
        (key, what) for key in (ZONE, HOST, "rack") for what in ("DoNotSchedule", "ScheduleAnyway")
    ]
    constraints = [
        {"maxSkew": dice.pick((1, 1, 2, 3)), "topologyKey": key, "whenUnsatisfiable": what}
        for key, what in dice.some(pairs, 0, 3)
    ]
    return {"defaultConstraints": constraints, "defaultingType": "List"}


def interpod_args(dice: Dice) -> Object:
    fields: Object = {"hardPodAffinityWeight": dice.pick((0, 1, 30, 100))}
    if dice.chance(0.3):
        fields["ignorePreferredTermsOfExistingPods"] = dice.chance(0.7)
    return fields


def preemption_args(dice: Dice) -> Object:
    return {
        "minCandidateNodesPercentage": dice.pick((1, 10, 100)),
        "minCandidateNodesAbsolute": dice.pick((1, 5, 100)),
    }


def arguments(dice: Dice, nodes: Sequence[str], fewest: int) -> list[Object]:
    """Arguments of a few plugins."""
    kinds: dict[str, Callable[[], Object]] = {
        "NodeResourcesFit": lambda: fit_args(dice),
        "NodeResourcesBalancedAllocation": lambda: balanced_args(dice),
        "NodeAffinity": lambda: affinity_args(dice, nodes),
        "PodTopologySpread": lambda: spread_args(dice),
        "InterPodAffinity": lambda: interpod_args(dice),
        "DefaultPreemption": lambda: preemption_args(dice),
    }
    chosen = dice.some(list(kinds), fewest, 3)
    return plugin_config(dice, {name: kinds[name]() for name in chosen})


def _named(chosen: Sequence[str]) -> list[Object]:
    return [{"name": name} for name in chosen]


def _scored(dice: Dice, chosen: Sequence[str]) -> list[Object]:
    enabled = []
    for name in chosen:
        plugin: Object = {"name": name}
        if dice.chance(0.85):
            plugin["weight"] = dice.pick((1, 2, 5, 10, 100, dice.between(1, 20)))
        enabled.append(plugin)
    return enabled


def _multi_point(dice: Dice) -> Object:
    if dice.chance(0.3):
        # All of it anew: the two that every profile needs, and a choice of the others.
        chosen = dice.shuffle([*dice.some(MULTI, 2, 14), "PrioritySort", "DefaultBinder"])
        return {"disabled": [{"name": "*"}], "enabled": _scored(dice, chosen)}
    made: Object = {}
    if dice.chance(0.6):
        made["disabled"] = _named(dice.some(MULTI, 1, 4))
    if dice.chance(0.5) or not made:
        made["enabled"] = _scored(dice, dice.some(MULTI, 1, 2))
    return made


def plugins(dice: Dice) -> Object:
    """One or more extension points changed."""
    changed: Object = {}
    if dice.chance(0.3):
        changed["multiPoint"] = _multi_point(dice)
    if dice.chance(0.5):
        score: Object = {"disabled": _named(dice.some(SCORES, 1, 4))}
        if dice.chance(0.12):
            score["disabled"] = [{"name": "*"}]
        if dice.chance(0.7):
            score["enabled"] = _scored(dice, dice.some(SCORES, 1, 4))
        changed["score"] = score
    if dice.chance(0.25):
        filters: Object = {"disabled": _named(dice.some(FILTERS, 1, 4))}
        if dice.chance(0.1):
            filters["disabled"] = [{"name": "*"}]
        if dice.chance(0.5):
            filters["enabled"] = _named(dice.some(FILTERS, 1, 3))
        changed["filter"] = filters
    if dice.chance(0.08):
        changed["postFilter"] = {"disabled": _named([dice.pick(("*", "DefaultPreemption"))])}
    if dice.chance(0.08):
        changed["preScore"] = {"disabled": _named(dice.some(PRE_SCORES, 1, 1))}
    if dice.chance(0.04):
        changed["preFilter"] = {"disabled": _named(dice.some(FILTERS, 1, 1))}
    return changed


def profile(dice: Dice, nodes: Sequence[str]) -> Object:
    made: Object = {}
    changed = plugins(dice)
    if changed:
        made["plugins"] = changed
    if dice.chance(0.65) or not made:
        made["pluginConfig"] = arguments(dice, nodes, 1)
    return made
