"""The three scoring strategies of NodeResourcesFit: a score of a node's utilisation.

Each scores a resource by what would be left of it, and combines the resources by weight. The scalar
form is the specification; the vectorised one does the same in columns of floats.
"""

import abc
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.cache.arrays import FloatArray
from mooring.cache.internals import (
    capacity_limits,
    float_allocatable_of,
    float_nonzero_requested_of,
)
from mooring.framework.scores import broken_linear
from mooring.plugins._served_devices import CountDevices
from mooring.plugins.noderesources.args import RequestedToCapacityRatioParam, ScoringStrategy

_SHAPE_SCALE: Final = 10  # shapes score up to 10, nodes up to 100
_EXACT: Final = 2**53 // fw.MAX_SCORE  # up to here, a hundred times a number is an exact float


class ScoredRequest(msgspec.Struct, frozen=True):
    """A pod's request of a scored resource."""

    resource: str
    amount: int  # milli-CPU, or whole units
    weight: int = 1
    devices: CountDevices | None = None  # that serve it, on nodes that do not offer it


def requests_of(pod: fw.Pod) -> Hashable | None:
    """What the resource plugins read of a pod; None if it is more than its total requests."""
    if pod.spec.resources is not None:
        return None  # pod-level requests count in Filter, but not in Score
    return frozenset(pod.all_requests.items()), pod.nonzero_requests


class ScoredRequests(msgspec.Struct, frozen=True, eq=False):
    """All scored requests, also as columns: one row per resource."""

    each: tuple[ScoredRequest, ...]
    resources: tuple[str, ...]
    amounts: FloatArray  # (n, 1)
    total_weight: int
    are_weighted: bool  # not all by 1
    counts_devices: bool  # for at least one

    @classmethod
    def of(cls, each: tuple[ScoredRequest, ...]) -> "ScoredRequests":
        resources: list[str] = []
        amounts: list[int] = []
        total_weight = 0
        counts_devices = False
        for request in each:
            resources.append(request.resource)
            amounts.append(request.amount)
            total_weight += request.weight
            counts_devices |= request.devices is not None
        are_weighted = total_weight != len(each)  # no weight is below 1
        return cls(
            each, tuple(resources), _column(amounts), total_weight, are_weighted, counts_devices
        )

    @property
    def weights(self) -> FloatArray:
        """(n, 1); rarely needed, since mostly all are 1."""
        return _column([request.weight for request in self.each])


def _column(numbers: Sequence[int]) -> FloatArray:
    return np.array([numbers], dtype=np.float64).T


class Capacity(msgspec.Struct, frozen=True, eq=False):
    """Allocatable resources of nodes, one row per resource: whole numbers as floats.

    Division of floats is four times as fast as that of integers. The results are the same while a
    hundred times a capacity is below 2**53: no sum is rounded, and no quotient is rounded up to the
    next whole number.
    """

    amounts: FloatArray
    offered: fw.BoolArray | None  # where there is any; None: everywhere

    @classmethod
    def of(cls, nodes: fw.Nodes, resources: tuple[str, ...]) -> "Capacity | None":
        """None if a number is too large."""
        if not len(nodes):
            return None
        least, most = capacity_limits(nodes, resources)
        if most >= _EXACT:
            return None
        amounts = float_allocatable_of(nodes, resources)
        return cls(amounts, amounts > 0 if least <= 0 else None)


class ResourceAllocationScorer(abc.ABC):
    """The weighted mean of a score per resource. Resources that a node lacks do not count."""

    @abc.abstractmethod
    def points(self, left: int, capacity: int) -> int:
        """0 to 100 for a resource of which this much would be left."""

    @abc.abstractmethod
    def points_all(self, left: FloatArray, capacity: FloatArray) -> FloatArray:
        """As `points`; may write into `left`. Capacities are above zero."""

    def score(self, requests: ScoredRequests, node: fw.Node) -> int:
        total = weights = 0
        for request in requests.each:
            capacity = node.allocatable(request.resource)
            if capacity > 0:
                left = max(capacity - node.nonzero_requested(request.resource) - request.amount, 0)
            else:
                capacity, used = request.devices(node) if request.devices is not None else (0, 0)
                if capacity <= 0:
                    continue
                left = max(capacity - used - request.amount, 0)
            points = self.points(left, capacity)
            total += points * request.weight
            weights += self.effective_weight(request.weight, points)
        return self.mean(total, weights) if weights else 0

    def score_all(self, requests: ScoredRequests, nodes: fw.Nodes) -> fw.IntArray:
        if not requests.each:
            return np.zeros(len(nodes), dtype=np.int64)
        known = None if requests.counts_devices else Capacity.of(nodes, requests.resources)
        if known is None:
            return np.array([self.score(requests, node) for node in nodes], dtype=np.int64)
        capacity, offered = known.amounts, known.offered
        if offered is not None:
            capacity = np.maximum(capacity, 1)
        left = capacity - float_nonzero_requested_of(nodes, requests.resources)
        left -= requests.amounts
        if np.minimum.reduce(left, axis=None) < 0:  # checking is cheaper than clipping
            np.maximum(left, 0, out=left)
        points = self.points_all(left, capacity)
        if offered is not None:
            points *= offered
        weights = self.effective_weights(requests, points, offered)
        if requests.are_weighted:
            points *= requests.weights
        total: FloatArray = points[0]
        for more in points[1:]:
            total += more
        if not isinstance(weights, int):
            # Without weights the total is 0, whatever it is divided by.
            weights = np.maximum(weights, 1)
        return self.mean_all(total, weights).astype(np.int64)

    def effective_weight(self, weight: int, points: int) -> int:
        return weight

    def effective_weights(
        self, requests: ScoredRequests, points: FloatArray, offered: fw.BoolArray | None
    ) -> FloatArray | int:
        """The sum of the weights, per node if it is not the same for all."""
        if offered is None:
            return requests.total_weight
        weights: FloatArray = (requests.weights * offered).sum(axis=0)
        return weights

    def mean(self, total: int, weights: int) -> int:
        return total // weights

    def mean_all(self, total: FloatArray, weights: FloatArray | int) -> FloatArray:
        """As `mean`, before it is truncated to whole numbers."""
        total /= weights
        return total


class LeastAllocated(ResourceAllocationScorer):
    """The emptier, the better: as noderesources.leastRequestedScore."""

    def points(self, left: int, capacity: int) -> int:
        return fw.MAX_SCORE * left // capacity

    def points_all(self, left: FloatArray, capacity: FloatArray) -> FloatArray:
        left *= fw.MAX_SCORE
        left /= capacity
        return np.floor(left, out=left)


class MostAllocated(ResourceAllocationScorer):
    """The fuller, the better: as noderesources.mostRequestedScore."""

    def points(self, left: int, capacity: int) -> int:
        return fw.MAX_SCORE * (capacity - left) // capacity

    def points_all(self, left: FloatArray, capacity: FloatArray) -> FloatArray:
        np.subtract(capacity, left, out=left)
        left *= fw.MAX_SCORE
        left /= capacity
        return np.floor(left, out=left)


class RequestedToCapacityRatio(MostAllocated):
    """A configured line over the utilisation; resources with a score of 0 do not count.

    As noderesources.buildRequestedToCapacityRatioScorerFunction. Utilisation is a whole percentage,
    so the line is a table of 101 scores.
    """

    def __init__(self, param: RequestedToCapacityRatioParam) -> None:
        shape = [(point.utilization, point.score * _SHAPE_SCALE) for point in param.shape]
        self._scores = broken_linear(shape, np.arange(101, dtype=np.int64))

    def points(self, left: int, capacity: int) -> int:
        return int(self._scores[super().points(left, capacity)])

    def points_all(self, left: FloatArray, capacity: FloatArray) -> FloatArray:
        return self._scores[super().points_all(left, capacity).astype(np.int64)].astype(np.float64)

    def effective_weight(self, weight: int, points: int) -> int:
        return weight if points > 0 else 0

    def effective_weights(
        self, requests: ScoredRequests, points: FloatArray, offered: fw.BoolArray | None
    ) -> FloatArray | int:
        weights: FloatArray = (requests.weights * (points > 0)).sum(axis=0)
        return weights

    def mean(self, total: int, weights: int) -> int:
        return (2 * total + weights) // (2 * weights)  # rounded, halves up

    def mean_all(self, total: FloatArray, weights: FloatArray | int) -> FloatArray:
        total *= 2
        total += weights
        total /= 2 * weights
        return total


def scorer_of(args: ScoringStrategy) -> ResourceAllocationScorer:
    if args.requested_to_capacity_ratio is not None:
        return RequestedToCapacityRatio(args.requested_to_capacity_ratio)
    return MostAllocated() if args.type == "MostAllocated" else LeastAllocated()
