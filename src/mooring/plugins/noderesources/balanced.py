"""Prefer nodes whose resources the pod would use more evenly.

Idle cores on a node without free memory are of no use. The score is the change of the balance by
the pod, so that pods with different requests complement each other.
"""

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Final

import numpy as np

import mooring.framework as fw
from mooring.api.requests import PODS, is_scalar
from mooring.api.resource import DeviceClass
from mooring.cache.arrays import FloatArray
from mooring.cache.internals import float_requested_of
from mooring.framework._internal import InternalPlugin
from mooring.plugins._served_devices import ServedDevices
from mooring.plugins.noderesources.args import NodeResourcesBalancedAllocationArgs
from mooring.plugins.noderesources.strategies import (
    Capacity,
    ScoredRequest,
    ScoredRequests,
    requests_of,
)

SCORED_REQUESTS: fw.StateKey[ScoredRequests] = fw.StateKey(
    "NodeResourcesBalancedAllocation/requests"
)

_HALF: Final = fw.MAX_SCORE // 2


class NodeResourcesBalancedAllocation(
    InternalPlugin, fw.Plugin[NodeResourcesBalancedAllocationArgs], fw.PreScore, fw.Score
):
    """Score 75 where the balance stays, up to 100 where it gets better, down to 50 where worse."""

    name = "NodeResourcesBalancedAllocation"
    key_from_spec = True
    depends_on = fw.NODE_AND_PODS

    reads = (DeviceClass,)

    @cached_property
    def _served(self) -> ServedDevices:
        scored = (spec.name for spec in self.args.resources)
        return ServedDevices(scored, self.handle, self.feature_gates)

    def has_own_key(self, pod: fw.Pod) -> bool:
        return self._served.may_count(pod)

    def cache_key(self, pod: fw.Pod) -> Hashable:
        key = requests_of(pod) or pod.spec
        return (key, self._served.key(pod)) if self._served.may_count(pod) else key

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        requests = self._scored_requests(pod)
        if not requests.each:
            return fw.SKIP  # or all best-effort pods would go to the same node
        state[SCORED_REQUESTS] = requests
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        requests = (state.get(SCORED_REQUESTS) or self._scored_requests(pod)).each
        if not requests:
            return 0
        before: list[float] = []
        after: list[float] = []
        for request in requests:
            capacity = node.allocatable(request.resource)
            used = node.requested(request.resource)
            if capacity <= 0 and request.devices is not None:
                capacity, used = request.devices(node)
            if capacity > 0:
                before.append(min(used / capacity, 1.0))
                after.append(min((used + request.amount) / capacity, 1.0))
        return _HALF + (_HALF + balance(after) - balance(before)) // 2

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        requests = state.get(SCORED_REQUESTS) or self._scored_requests(pod)
        if not requests.each:
            return np.zeros(len(nodes), dtype=np.int64)
        capacity = None if requests.counts_devices else Capacity.of(nodes, requests.resources)
        if capacity is None:
            return np.array([self.score(state, pod, node) for node in nodes], dtype=np.int64)
        used = float_requested_of(nodes, requests.resources)
        has = capacity.offered
        if has is None:
            return change_of_balance(capacity.amounts, used, requests.amounts)
        # Nodes that lack the same resources are scored together, over those they have.
        scores = np.empty(len(nodes), dtype=np.int64)
        pending = np.ones(len(nodes), dtype=np.bool_)
        while pending.any():
            first = int(pending.argmax())
            alike = pending & (has == has[:, first : first + 1]).all(axis=0)
            had = has[:, first]
            scores[alike] = change_of_balance(
                capacity.amounts[had][:, alike], used[had][:, alike], requests.amounts[had]
            )
            pending &= ~alike
        return scores

    def _scored_requests(self, pod: fw.Pod) -> ScoredRequests:
        """Empty if the pod changes no balance."""
        requests = tuple(
            ScoredRequest(
                spec.name, pod.requests(spec.name), devices=self._served.of(pod, spec.name)
            )
            for spec in self.args.resources
            if spec.name != PODS and (pod.requests(spec.name) or not is_scalar(spec.name))
        )
        return ScoredRequests.of(requests if any(request.amount for request in requests) else ())


def balance(fractions: Sequence[float]) -> int:
    """100 where all fractions are equal, less the further they spread.

    As noderesources.balancedResourceScorer, in the same order of operations: the result is cut to a
    whole number, so the last bit matters.
    """
    count = len(fractions)
    spread = 0.0
    if count == 2:
        spread = abs((fractions[0] - fractions[1]) / 2)
    elif count > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / count
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        spread = math.sqrt(squares / count)
    return int((1 - spread) * fw.MAX_SCORE)


def change_of_balance(capacity: FloatArray, used: FloatArray, amounts: FloatArray) -> fw.IntArray:
    """The score of nodes that have all these resources; one row per resource."""
    before = used / capacity
    after = used + amounts
    after /= capacity
    if np.maximum.reduce(after, axis=None, initial=0) > 1:  # checking is cheaper than clipping
        np.minimum(before, 1, out=before)
        np.minimum(after, 1, out=after)
    scores = balance_all(after)
    scores -= balance_all(before)
    scores += 3 * _HALF  # (the change + 50) / 2 + 50 is half of (the change + 150)
    scores *= 0.5
    return scores.astype(np.int64)


def balance_all(fractions: FloatArray) -> FloatArray:
    """As `balance`, along the first axis."""
    count = len(fractions)
    if count < 2:
        return np.full(fractions.shape[1:], float(fw.MAX_SCORE))
    if count == 2:
        # Twice the spread: to scale by two changes no rounding.
        distance: FloatArray = fractions[0] - fractions[1]
        np.abs(distance, out=distance)
        np.subtract(2, distance, out=distance)
        distance *= fw.MAX_SCORE / 2
        return np.floor(distance, out=distance)
    mean = np.zeros(fractions.shape[1:])
    for fraction in fractions:
        mean += fraction
    mean /= count
    squares = np.zeros(fractions.shape[1:])
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    squares /= count
    spread: FloatArray = np.sqrt(squares, out=squares)
    np.subtract(1, spread, out=spread)
    spread *= fw.MAX_SCORE
    return np.floor(spread, out=spread)
