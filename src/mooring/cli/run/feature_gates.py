"""`--feature-gates`: gates can't be changed here; a value that equals the fixed one is accepted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.errors import ConfigError, Problem

_ON: Final = frozenset(
    {
        "ClearingNominatedNodeNameAfterBinding",
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
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "DRAWorkloadResourceClaims",
        "DynamicResourceAllocation",
        "GangScheduling",
        "GenericWorkload",
        "OpportunisticBatching",
        "SchedulerAsyncAPICalls",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
        "WorkloadAwarePreemption",
    }
)


def check_feature_gates(given: Iterable[str]) -> None:
    """Raise ConfigError with every gate that is unknown or has another value here."""
    problems: list[Problem] = []
    for entry in (part for text in given for part in text.split(",") if part.strip()):
        name, equals, value = (piece.strip() for piece in entry.partition("="))
        if not equals or value.lower() not in ("true", "false"):
            problems.append(Problem("--feature-gates", f"expected NAME=true or false: {entry!r}"))
        elif name not in _ON | _OFF:
            problems.append(Problem("--feature-gates", f"unrecognized feature gate: {name}"))
        elif (value.lower() == "true") != (name in _ON):
            stands = "always on" if name in _ON else "not served"
            problems.append(Problem("--feature-gates", f"{name} is {stands} in mooring"))
    if problems:
        raise ConfigError(problems)
