"""How full a node would be, as a score: the three strategies of NodeResourcesFit.

Each gives points per resource from what would be left of it, and joins them by weight. The scalar
form is the specification; the vectorised one does the same in int64 columns.
"""

import abc
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.quantity import INT64_MAX
from mooring.plugins.noderesources.args import RequestedToCapacityRatioParam, ScoringStrategy

_SHAPE_SCALE: Final = 10  # shapes score up to 10, nodes up to 100
_PRODUCT_LIMIT: Final = INT64_MAX // fw.MAX_SCORE  # above it, 100 * capacity leaves int64


class Ask(msgspec.Struct, frozen=True):
    """What one pod asks of one scored resource."""

    resource: str
    amount: int  # milli-CPU, or whole units
    weight: int = 1


def requests_of(pod: fw.Pod) -> Hashable | None:
    """All that the plugins of this room look at of a pod; None if it is more than sums."""
    if pod.spec.resources is not None:
        return None  # requests of the pod as a whole count here and not there
    return frozenset(pod.all_requests.items()), pod.nonzero_requests


class Asks(msgspec.Struct, frozen=True, eq=False):
    """All of them, also as columns: one row per resource."""

    each: tuple[Ask, ...]
    resources: tuple[str, ...]
    amounts: fw.IntArray  # (n, 1)
    weights: fw.IntArray  # (n, 1)
    total_weight: int
    are_weighted: bool  # not all by 1

    @classmethod
    def of(cls, each: tuple[Ask, ...]) -> "Asks":
        weights = [ask.weight for ask in each]
        return cls(
            each,
            tuple(ask.resource for ask in each),
            as_column([ask.amount for ask in each]),
            as_column(weights),
            sum(weights),
            any(weight != 1 for weight in weights),
        )


def as_column(numbers: Sequence[int]) -> fw.IntArray:
    return np.array(numbers, dtype=np.int64).reshape(-1, 1)


def least_of(numbers: fw.IntArray) -> int:
    """The least number, 1 if there is none; `min()` takes three times as long."""
    return numbers.item(int(numbers.argmin())) if numbers.size else 1


def left_of(capacity: fw.IntArray, used: fw.IntArray, amounts: fw.IntArray) -> fw.IntArray:
    """What remains of capacities beside those who use them and one more; never less than nothing.

    Clipped before it is subtracted, so that absurd requests don't wrap around.
    """
    room = capacity - amounts
    left: fw.IntArray = np.minimum(used, room)
    np.subtract(room, left, out=left)
    return left


class Strategy(abc.ABC):
    """Points per resource, and their weighted mean. Resources that a node lacks do not count."""

    @abc.abstractmethod
    def points(self, left: int, capacity: int) -> int:
        """0 to 100 for a resource of which this much would be left."""

    @abc.abstractmethod
    def points_all(self, left: fw.IntArray, capacity: fw.IntArray) -> fw.IntArray:
        """As `points`; may write into `left`. Capacities are above zero."""

    def score(self, asks: Asks, node: fw.Node) -> int:
        total = weights = 0
        for ask in asks.each:
            capacity = node.allocatable(ask.resource)
            if capacity <= 0:
                continue
            left = max(capacity - node.nonzero_requested(ask.resource) - ask.amount, 0)
            points = self.points(left, capacity)
            total += points * ask.weight
            weights += self.effective_weight(ask.weight, points)
        return self.mean(total, weights) if weights else 0

    def score_all(self, asks: Asks, nodes: fw.Nodes) -> fw.IntArray:
        if not asks.each or not len(nodes):
            return np.zeros(len(nodes), dtype=np.int64)
        capacity = nodes.allocatable_of(asks.resources)
        if capacity.item(int(capacity.argmax())) > _PRODUCT_LIMIT:
            return np.array([self.score(asks, node) for node in nodes], dtype=np.int64)
        offered: fw.BoolArray | None = None  # None: everything everywhere
        if least_of(capacity) <= 0:
            offered = capacity > 0
            capacity = np.maximum(capacity, 1)
        left = left_of(capacity, nodes.nonzero_requested_of(asks.resources), asks.amounts)
        points = self.points_all(left, capacity)
        if offered is not None:
            points *= offered
        weights = self.effective_weights(asks, points, offered)
        if asks.are_weighted:
            points *= asks.weights
        total: fw.IntArray = points[0]
        for more in points[1:]:
            total += more
        if isinstance(weights, int):
            return self.mean_all(total, weights)
        # Without weight there are no points either, and nothing divided by one is nothing.
        return self.mean_all(total, np.maximum(weights, 1))

    def effective_weight(self, weight: int, points: int) -> int:
        return weight

    def effective_weights(
        self, asks: Asks, points: fw.IntArray, offered: fw.BoolArray | None
    ) -> fw.IntArray | int:
        """Their sum, for each node if it is not the same for all."""
        if offered is None:
            return asks.total_weight
        weights: fw.IntArray = (asks.weights * offered).sum(axis=0)
        return weights

    def mean(self, total: int, weights: int) -> int:
        return total // weights

    def mean_all(self, total: fw.IntArray, weights: fw.IntArray | int) -> fw.IntArray:
        total //= weights
        return total


class LeastAllocated(Strategy):
    """The emptier, the better: as noderesources.leastRequestedScore."""

    def points(self, left: int, capacity: int) -> int:
        return fw.MAX_SCORE * left // capacity

    def points_all(self, left: fw.IntArray, capacity: fw.IntArray) -> fw.IntArray:
        left *= fw.MAX_SCORE
        left //= capacity
        return left


class MostAllocated(Strategy):
    """The fuller, the better: as noderesources.mostRequestedScore."""

    def points(self, left: int, capacity: int) -> int:
        return fw.MAX_SCORE * (capacity - left) // capacity

    def points_all(self, left: fw.IntArray, capacity: fw.IntArray) -> fw.IntArray:
        np.subtract(capacity, left, out=left)
        left *= fw.MAX_SCORE
        left //= capacity
        return left


class RequestedToCapacityRatio(MostAllocated):
    """A line of one's own over the utilisation; resources it gives no points do not count.

    As noderesources.buildRequestedToCapacityRatioScorerFunction. Utilisation is a whole percentage,
    so the line is a table of 101 scores.
    """

    def __init__(self, param: RequestedToCapacityRatioParam) -> None:
        shape = [(point.utilization, point.score * _SHAPE_SCALE) for point in param.shape]
        self._scores = fw.broken_linear(shape, np.arange(101, dtype=np.int64))

    def points(self, left: int, capacity: int) -> int:
        return int(self._scores[super().points(left, capacity)])

    def points_all(self, left: fw.IntArray, capacity: fw.IntArray) -> fw.IntArray:
        points: fw.IntArray = self._scores[super().points_all(left, capacity)]
        return points

    def effective_weight(self, weight: int, points: int) -> int:
        return weight if points > 0 else 0

    def effective_weights(
        self, asks: Asks, points: fw.IntArray, offered: fw.BoolArray | None
    ) -> fw.IntArray | int:
        weights: fw.IntArray = (asks.weights * (points > 0)).sum(axis=0)
        return weights

    def mean(self, total: int, weights: int) -> int:
        return (2 * total + weights) // (2 * weights)  # rounded, halves up

    def mean_all(self, total: fw.IntArray, weights: fw.IntArray | int) -> fw.IntArray:
        total *= 2
        total += weights
        total //= 2 * weights
        return total


def strategy_of(args: ScoringStrategy) -> Strategy:
    """The strategy that a configuration names."""
    if args.requested_to_capacity_ratio is not None:
        return RequestedToCapacityRatio(args.requested_to_capacity_ratio)
    return MostAllocated() if args.type == "MostAllocated" else LeastAllocated()
