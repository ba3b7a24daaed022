"""The arguments of the resource plugins, with kube-scheduler's defaults and error messages."""

from itertools import pairwise
from typing import Annotated, Final, Literal

from msgspec import Meta
from msgspec.structs import force_setattr

import mooring.framework as fw
from mooring.api.requests import CPU, MEMORY, is_resource_name

MAX_WEIGHT: Final = 100


class ResourceSpec(fw.Args, frozen=True):
    """A resource that counts in a score, and its weight; 0 means that none was given."""

    name: str
    weight: int = 1

    def __post_init__(self) -> None:
        if self.weight == 0:
            force_setattr(self, "weight", 1)
        if not 0 < self.weight <= MAX_WEIGHT:
            raise ValueError(f"resource weight of {self.name} not in valid range (0, {MAX_WEIGHT}]")


CPU_AND_MEMORY: Final = (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))


class ShapePoint(fw.Args, frozen=True):
    """The score at one utilisation, in percent; between points the score follows a line."""

    utilization: Annotated[int, Meta(ge=0, le=100)] = 0
    score: Annotated[int, Meta(ge=0, le=10)] = 0


class RequestedToCapacityRatioParam(fw.Args, frozen=True):
    """The points of the line, by rising utilisation."""

    shape: tuple[ShapePoint, ...] = ()

    def __post_init__(self) -> None:
        if not self.shape:
            raise ValueError("shape: at least one point must be specified")
        if any(a.utilization >= b.utilization for a, b in pairwise(self.shape)):
            raise ValueError("shape: values must be sorted in increasing order")


class ScoringStrategy(fw.Args, frozen=True):
    """The scoring strategy by utilisation, and the resources that count in it."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        if not self.resources:
            force_setattr(self, "resources", CPU_AND_MEMORY)
        wants_shape = self.type == "RequestedToCapacityRatio"
        if wants_shape and self.requested_to_capacity_ratio is None:
            raise ValueError(
                "requestedToCapacityRatio: must be specified when type is RequestedToCapacityRatio"
            )
        if not wants_shape and self.requested_to_capacity_ratio is not None:
            raise ValueError(
                "requestedToCapacityRatio: must be nil when type is not RequestedToCapacityRatio"
            )


class NodeResourcesFitArgs(fw.Args, frozen=True):
    """Extended resources to ignore, by name or by group: the part before the slash."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def __post_init__(self) -> None:
        for index, name in enumerate(self.ignored_resources):
            if not is_resource_name(name):
                raise ValueError(f"ignoredResources[{index}]: {name!r} is not a resource name")
        for index, group in enumerate(self.ignored_resource_groups):
            place = f"ignoredResourceGroups[{index}]"
            if "/" in group:
                raise ValueError(f"{place}: resource group name can't contain '/'")
            if not is_resource_name(group):
                raise ValueError(f"{place}: {group!r} is not the name of a group of resources")


class BalancedResource(fw.Args, frozen=True):
    """A resource to balance. All count the same: the weight is only part of the file format."""

    name: str
    weight: int = 1

    def __post_init__(self) -> None:
        if self.weight not in (0, 1):
            raise ValueError("weight: must be 1")
        force_setattr(self, "weight", 1)


BALANCED_BY_DEFAULT: Final = (BalancedResource(name=CPU), BalancedResource(name=MEMORY))


class NodeResourcesBalancedAllocationArgs(fw.Args, frozen=True):
    """The resources whose use should be even."""

    resources: tuple[BalancedResource, ...] = BALANCED_BY_DEFAULT

    def __post_init__(self) -> None:
        if not self.resources:
            force_setattr(self, "resources", BALANCED_BY_DEFAULT)
        names = [resource.name for resource in self.resources]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(f'resources[{index}].name: Duplicate value: "{name}"')
