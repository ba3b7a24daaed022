"""`--feature-gates`: few can be changed; for others only the fixed value is accepted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.errors import Problem, UsageError
from mooring.framework._internal import COMPARES_TAINTS, DEVICE_TAINT_RULES, LIST_ATTRIBUTES

_ON: Final = frozenset(
    {
        "ClearingNominatedNodeNameAfterBinding",
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "DynamicResourceAllocation",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScaling",
        "MatchLabelKeysInPodAffinity",
        "MatchLabelKeysInPodTopologySpread",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "MutableCSINodeAllocatableCount",
        "NodeDeclaredFeatures",
        "NodeInclusionPolicyInPodTopologySpread",
        "NominatedNodeNameForExpectation",
        "PodLevelResources",
        "SchedulerAsyncPreemption",
        "SchedulerPopFromBackoffQ",
        "SchedulerQueueingHints",
        "SidecarContainers",
        "VolumeAttributesClass",
    }
)
_OFF: Final = frozenset(
    {
        "CoordinatedLeaderElection",
        "DRANodeAllocatableResources",
        "DRAWorkloadResourceClaims",
        "GangScheduling",
        "GenericWorkload",
        "OpportunisticBatching",
        "SchedulerAsyncAPICalls",
        "StorageCapacityScoring",
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
        "WorkloadAwarePreemption",
    }
)
_CHANGEABLE: Final = frozenset(
    {COMPARES_TAINTS, DEVICE_TAINT_RULES, LIST_ATTRIBUTES}
)  # off by default


def read_feature_gates(given: Iterable[str]) -> frozenset[str]:
    """The gates to turn on; ConfigError with every one that is unknown or can't be changed."""
    problems: list[Problem] = []
    chosen: dict[str, bool] = {}  # the last value counts
    for entry in (part for text in given for part in text.split(",") if part.strip()):
        name, equals, value = (piece.strip() for piece in entry.partition("="))
        if not equals or value.lower() not in ("true", "false"):
            problems.append(Problem("--feature-gates", f"expected NAME=true or false: {entry!r}"))
        elif name in _CHANGEABLE:
            chosen[name] = value.lower() == "true"
        elif name not in _ON | _OFF:
            problems.append(Problem("--feature-gates", f"unrecognized feature gate: {name}"))
        elif (value.lower() == "true") != (name in _ON):
            stands = "always on" if name in _ON else "not served"
            problems.append(Problem("--feature-gates", f"{name} is {stands} in mooring"))
    if problems:
        raise UsageError(problems)
    return frozenset(name for name, is_on in chosen.items() if is_on)
