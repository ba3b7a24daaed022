"""Plugin names and defaults of older versions.

The lists are those of the last release that served a version: 1.18 for v1alpha1 and v1alpha2,
1.22 for v1beta1 and the Policy API, 1.27 for v1beta2 and v1beta3.
"""

from typing import Final

from mooring.config.types import PluginRef

FIT: Final = "NodeResourcesFit"
SPREAD: Final = "PodTopologySpread"
AFFINITY: Final = "InterPodAffinity"
VOLUME_BINDING: Final = "VolumeBinding"
LEAST_ALLOCATED: Final = "NodeResourcesLeastAllocated"
MOST_ALLOCATED: Final = "NodeResourcesMostAllocated"
RATIO: Final = "RequestedToCapacityRatio"
AVOID_PODS: Final = "NodePreferAvoidPods"

# Former plugins that are strategies of NodeResourcesFit in v1.
STRATEGIES: Final = {
    LEAST_ALLOCATED: "LeastAllocated",
    MOST_ALLOCATED: "MostAllocated",
    RATIO: "RequestedToCapacityRatio",
}
# DefaultPodTopologySpread is what 1.18 called SelectorSpread.
SELECTOR_SPREADS: Final = ("SelectorSpread", "DefaultPodTopologySpread")

# Volumes of these kinds are CSI volumes to the scheduler since migration is always on.
VOLUME_LIMITS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})

# Without these arguments the plugin has no effect; with them it has no counterpart.
REMOVED_UNLESS_UNUSED: Final = {
    "NodeLabel": (
        "presentLabels",
        "absentLabels",
        "presentLabelsPreference",
        "absentLabelsPreference",
    ),
    "ServiceAffinity": ("affinityLabels", "antiAffinityLabelsPreference"),
}
REMOVED: Final = frozenset({"NodeResourceLimits"})
ALTERNATIVES: Final = {
    "NodeLabel": "; to require or forbid labels use addedAffinity of NodeAffinity",
    "ServiceAffinity": "; pods can ask for it themselves with inter-pod affinity",
}

# Default plugins that are newer; they act only on pods that use their features.
NEWER: Final = ("SchedulingGates", "DynamicResources", "NodeDeclaredFeatures")
NEWER_AT: Final = {
    "preFilter": NEWER[1:],
    "filter": NEWER[1:],
    **dict.fromkeys(("postFilter", "score", "reserve", "preBind"), NEWER[1:2]),
}

V1_SCORES: Final[tuple[str, ...]] = (
    "TaintToleration",
    "NodeAffinity",
    FIT,
    SPREAD,
    AFFINITY,
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
V1_FILTERS: Final[tuple[str, ...]] = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    FIT,
    "VolumeRestrictions",
    "NodeVolumeLimits",
    VOLUME_BINDING,
    "VolumeZone",
    SPREAD,
    AFFINITY,
)

_COMMON_SCORES: Final[tuple[PluginRef, ...]] = (
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef(AFFINITY, 1),
    PluginRef(FIT, 1),
    PluginRef("NodeAffinity", 1),
    PluginRef(SPREAD, 2),
    PluginRef("TaintToleration", 1),
)


def _with_old_names(refs: tuple[PluginRef, ...]) -> tuple[PluginRef, ...]:
    renamed = tuple(PluginRef(LEAST_ALLOCATED, 1) if ref.name == FIT else ref for ref in refs)
    return (*renamed, PluginRef(AVOID_PODS, 10_000))


V1BETA2_SCORES: Final[tuple[PluginRef, ...]] = _COMMON_SCORES
V1BETA1_SCORES: Final = _with_old_names(_COMMON_SCORES)
ALPHA_SCORES: Final[tuple[PluginRef, ...]] = (
    *(PluginRef(ref.name, 1) if ref.name == SPREAD else ref for ref in V1BETA1_SCORES),
    PluginRef("DefaultPodTopologySpread", 1),
)

LEASE_LOCKS: Final = frozenset({"endpoints", "configmaps", "endpointsleases", "configmapsleases"})
