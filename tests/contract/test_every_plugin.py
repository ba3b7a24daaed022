"""Every plugin we ship keeps the contract that we ask of everybody."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sizes import seeds

from mooring.framework.plugin import Base
from mooring.runtime.registry import Registry
from mooring.testing import Examples, check_plugin

ADDED_AFFINITY = {
    "addedAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
            ]
        }
    }
}
RATIO = {
    "scoringStrategy": {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 3}, {"name": "nvidia.com/gpu", "weight": 1}],
        "requestedToCapacityRatio": {
            "shape": [{"utilization": 0, "score": 10}, {"utilization": 70, "score": 2}]
        },
    }
}
DEFAULT_CONSTRAINTS = {
    "defaultingType": "List",
    "defaultConstraints": [
        {
            "topologyKey": "topology.kubernetes.io/zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "minDomains": 3,
        },
        {
            "topologyKey": "disk",
            "maxSkew": 2,
            "whenUnsatisfiable": "ScheduleAnyway",
            "nodeTaintsPolicy": "Honor",
        },
    ],
}
ARGS: dict[str, list[dict[str, Any]]] = {
    "InterPodAffinity": [
        {},
        {"hardPodAffinityWeight": 0},
        {"hardPodAffinityWeight": 100, "ignorePreferredTermsOfExistingPods": True},
    ],
    "NodeAffinity": [{}, ADDED_AFFINITY],
    "NodeResourcesFit": [
        {},
        {"ignoredResources": ["nvidia.com/gpu"]},
        {"scoringStrategy": {"type": "MostAllocated"}},
        RATIO,
    ],
    "NodeResourcesBalancedAllocation": [
        {},
        {"resources": [{"name": name} for name in ("cpu", "memory", "nvidia.com/gpu")]},
    ],
    "PodTopologySpread": [{}, {"defaultingType": "List"}, DEFAULT_CONSTRAINTS],
}

REGISTRY = Registry.discover()
# No nodes, two and thirty: a key that leaves something out shows in one of these.
EXAMPLES = Examples(seeds=seeds(2, 3, 6))


@pytest.mark.parametrize("name", sorted(REGISTRY.names))
def test_keeps_the_contract(name: str) -> None:
    plugin: type[Base] = REGISTRY.get(name)
    check_plugin(plugin, args=ARGS.get(name, [{}]), examples=EXAMPLES)
