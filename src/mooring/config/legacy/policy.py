"""The Policy API: predicates and priorities, before there were plugins.

A Policy names built-in predicates and priorities. An absent list means the default ones; an empty
list means none but the two predicates that can't be disabled. Each name stands for a plugin of v1,
so the result is a profile that disables the plugins that were not named.
"""

from typing import Any, Final

import msgspec

from mooring.config.legacy import names
from mooring.config.legacy.profile import removed_message
from mooring.config.legacy.scores import Args, convert_scores
from mooring.config.legacy.sections import Document, convert_extenders, decode_legacy
from mooring.config.legacy.types import Policy, PredicatePolicy, PriorityPolicy
from mooring.config.notes import Findings
from mooring.config.types import PluginRef, PluginSet

_PREDICATES: Final = {
    "GeneralPredicates": (names.FIT, "NodeName", "NodePorts", "NodeAffinity"),
    "PodFitsResources": (names.FIT,),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "CheckVolumeBinding": (names.VOLUME_BINDING,),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MatchInterPodAffinity": (names.AFFINITY,),
    "EvenPodsSpread": (names.SPREAD,),
}
_MANDATORY: Final = ("TaintToleration", "NodeUnschedulable")
_COUNTS_OF_DRIVERS: Final = frozenset(
    {"MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"}
    | {"MaxCinderVolumeCount"}
)
_CONDITIONS: Final = frozenset(
    {"CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure"}
    | {"CheckNodePIDPressure"}
)
_IDLE_PREDICATES: Final = {
    "CheckNodeLabelPresence": "NodeLabel",
    "CheckServiceAffinity": "ServiceAffinity",
}

_PRIORITIES: Final = {
    "LeastRequestedPriority": names.LEAST_ALLOCATED,
    "MostRequestedPriority": names.MOST_ALLOCATED,
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "SelectorSpread",
    "InterPodAffinityPriority": names.AFFINITY,
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "NodePreferAvoidPodsPriority": names.AVOID_PODS,
    "EvenPodsSpreadPriority": names.SPREAD,
}
_USUAL_PRIORITIES: Final = (
    *(ref for ref in names.V1BETA1_SCORES if ref.name != names.SPREAD),
    PluginRef("SelectorSpread", 1),
)
_LARGEST_WEIGHT: Final = 2**31 - 1

# Filters that also run at PreFilter; a filter that is off must be off there too.
_PREPARING: Final = frozenset(names.V1_FILTERS) - {*_MANDATORY, "NodeName"}


class ConvertedPolicy(msgspec.Struct, frozen=True):
    """A Policy in terms of v1."""

    plugins: dict[str, PluginSet]
    args: Args
    extenders: list[Document]


def convert_policy(
    raw: dict[Any, object], findings: Findings, *, spread_weight: int, hard_affinity: int | None
) -> ConvertedPolicy | None:
    """Convert a Policy; None if it is malformed.

    `spread_weight` is the default weight of EvenPodsSpreadPriority in the Policy's release,
    `hard_affinity` the weight in the configuration that refers to the Policy.
    """
    policy: Policy | None = decode_legacy(raw, Policy, findings, lenient=True)
    if policy is None:
        return None
    args: Args = {}
    filters = _filters(policy.predicates, findings)
    scores = _scores(policy.priorities, spread_weight, args, findings)
    scores = convert_scores(scores, args, "priorities", findings, spread_is_by_selector=True)
    weight = policy.hard_pod_affinity_symmetric_weight or hard_affinity
    if weight is not None and any(ref.name == names.AFFINITY for ref in scores):
        args[names.AFFINITY] = {"hardPodAffinityWeight": weight}
    if not 0 <= policy.hard_pod_affinity_symmetric_weight <= 100:
        text = f"Invalid value: {policy.hard_pod_affinity_symmetric_weight}"
        findings.refuse("hardPodAffinitySymmetricWeight", f"{text}: not in valid range [0-100]")
    if policy.always_check_all_predicates:
        text = "has no counterpart: the first filter that refuses a node gives the reason"
        findings.note("alwaysCheckAllPredicates", text)
    extenders = convert_extenders(policy.extenders, findings)
    return ConvertedPolicy(_plugin_sets(filters, scores), args, extenders)


def _filters(predicates: tuple[PredicatePolicy, ...] | None, findings: Findings) -> set[str]:
    if predicates is None:
        return set(names.V1_FILTERS)
    chosen = set(_MANDATORY)
    for index, predicate in enumerate(predicates):
        chosen.update(_plugins_of(predicate, f"predicates[{index}]", findings))
    return chosen


def _plugins_of(predicate: PredicatePolicy, path: str, findings: Findings) -> tuple[str, ...]:
    argument = predicate.argument
    if argument is not None:
        given = [argument.service_affinity, argument.labels_presence]
        count = sum(part is not None for part in given)
        if count != 1:
            text = f"exactly 1 predicate argument is required, numArgs: {count}"
            findings.refuse(f"{path}.argument", text)
            return ()
    if predicate.name in _PREDICATES:
        return _PREDICATES[predicate.name]
    if predicate.name in _COUNTS_OF_DRIVERS:
        text = "is done by NodeVolumeLimits, which counts volumes of all kinds, as CSI volumes"
        findings.note(path, f"{predicate.name} {text}")
        return ("NodeVolumeLimits",)
    elif predicate.name in _CONDITIONS:
        text = "was removed: nodes in such a condition are tainted, and taints are always checked"
        findings.note(path, f"{predicate.name} {text}")
    elif argument is not None:
        part = argument.service_affinity or argument.labels_presence
        plugin = "ServiceAffinity" if argument.service_affinity else "NodeLabel"
        if part is not None and part.labels:
            findings.refuse(path, removed_message(plugin))
        else:
            findings.note(path, f"{plugin} without labels does nothing; left out")
    elif predicate.name in _IDLE_PREDICATES:
        findings.note(path, f"{predicate.name} without an argument does nothing; left out")
    else:
        findings.refuse(f"{path}.name", f'predicate type not found for "{predicate.name}"')
    return ()


def _scores(
    priorities: tuple[PriorityPolicy, ...] | None,
    spread_weight: int,
    args: Args,
    findings: Findings,
) -> list[PluginRef]:
    if priorities is None:
        findings.note("priorities", "written out with the weights that were the default then")
        return [*_USUAL_PRIORITIES, PluginRef(names.SPREAD, spread_weight)]
    weights: dict[str, int] = {}
    for index, priority in enumerate(priorities):
        path = f"priorities[{index}]"
        if not 0 < priority.weight <= _LARGEST_WEIGHT:
            text = "should have a positive weight applied to it or it has overflown"
            findings.refuse(f"{path}.weight", f"priority {priority.name} {text}")
        plugin = _plugin_of(priority, path, args, findings)
        if plugin is not None:
            weights[plugin] = priority.weight  # if a name is given twice, the last one counts
    return [PluginRef(plugin, weight) for plugin, weight in weights.items()]


def _plugin_of(priority: PriorityPolicy, path: str, args: Args, findings: Findings) -> str | None:
    argument = priority.argument
    if argument is not None:
        ratio = argument.requested_to_capacity_ratio_arguments
        given = [argument.service_anti_affinity, argument.label_preference, ratio]
        count = sum(part is not None for part in given)
        if count != 1:
            text = f"exactly 1 priority argument is required, numArgs: {count}"
            findings.refuse(f"{path}.argument", text)
            return None
    if priority.name == "EqualPriority":
        findings.note(path, "EqualPriority changes nothing; left out")
        return None
    if priority.name in _PRIORITIES:
        return _PRIORITIES[priority.name]
    if argument is None:
        if priority.name == "ResourceLimitsPriority":
            findings.refuse(path, removed_message("NodeResourceLimits"))
        else:
            findings.refuse(f"{path}.name", f'priority type not found for "{priority.name}"')
        return None
    if ratio is None:
        service = argument.service_anti_affinity is not None
        findings.refuse(path, removed_message("ServiceAffinity" if service else "NodeLabel"))
        return None
    if names.RATIO in args:
        text = f'priority "{priority.name}" redeclares custom priority "{names.RATIO}"'
        findings.refuse(path, text)
    args[names.RATIO] = {"shape": list(ratio.shape), "resources": list(ratio.resources)}
    return names.RATIO


def _plugin_sets(filters: set[str], scores: list[PluginRef]) -> dict[str, PluginSet]:
    """Disable plugins that were not chosen: everywhere, or at some points."""
    scoring = {ref.name for ref in scores}
    known = list(dict.fromkeys((*names.V1_FILTERS, *names.V1_SCORES)))
    unused = [name for name in known if name not in filters and name not in scoring]
    only_scoring = [name for name in names.V1_FILTERS if name in scoring and name not in filters]
    only_filtering = [name for name in names.V1_SCORES if name in filters and name not in scoring]
    order = {name: index for index, name in enumerate(names.V1_SCORES)}
    off: dict[str, list[str]] = {
        "multiPoint": unused,
        "preFilter": [name for name in only_scoring if name in _PREPARING],
        "filter": only_scoring,
        "preScore": only_filtering,
        "score": only_filtering,
    }
    sets = {
        point: PluginSet(disabled=tuple(PluginRef(name) for name in disabled))
        for point, disabled in off.items()
    }
    enabled = tuple(sorted(scores, key=lambda ref: order[ref.name]))
    sets["score"] = PluginSet(enabled=enabled, disabled=sets["score"].disabled)
    return sets
