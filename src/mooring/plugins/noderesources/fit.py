"""NodeResourcesFit: free resources for the pod's requests, and a score by utilisation."""

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api import core
from mooring.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    amount,
    is_extended,
    is_scalar,
    pod_nonzero_requests,
    pod_requests,
)
from mooring.api.resource import IMPLICIT_RESOURCE_PREFIX, DeviceClass
from mooring.cache.internals import allocatable_of, spare_of
from mooring.framework._internal import InternalPlugin, is_assigned_or_nominated
from mooring.plugins._device_classes import ResourceClasses, is_servable
from mooring.plugins._served_devices import ServedDevices
from mooring.plugins.noderesources.args import NodeResourcesFitArgs
from mooring.plugins.noderesources.shortages import edits_for, facts_of
from mooring.plugins.noderesources.strategies import (
    ScoredRequest,
    ScoredRequests,
    requests_of,
    scorer_of,
)

TOO_MANY_PODS: Final = "Too many pods"
_MOST_REQUESTS: Final = 14  # with a bit for pods and one for capacity they fill 16


class ResourceRequest(msgspec.Struct, frozen=True):
    """An amount above zero that a node must have spare, and the reason if it has not."""

    resource: str
    amount: int  # milli-CPU, or whole units
    shortage: str
    is_served: bool = False  # by devices, on nodes that do not offer it


class ResourceRequests(msgspec.Struct, frozen=True, eq=False):
    """All requests, also as columns: one row for the pod itself, then one per resource."""

    each: tuple[ResourceRequest, ...]
    resources: tuple[str, ...]
    amounts: fw.IntArray  # (1 + n, 1)

    @classmethod
    def of(cls, each: tuple[ResourceRequest, ...]) -> "ResourceRequests":
        resources = (PODS, *(request.resource for request in each))
        return cls(
            each,
            resources,
            np.array([1, *(request.amount for request in each)], dtype=np.int64).reshape(-1, 1),
        )


RESOURCE_REQUESTS: fw.StateKey[ResourceRequests] = fw.StateKey(
    "NodeResourcesFit/requests",
    'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
)
SCORED_REQUESTS: fw.StateKey[ScoredRequests] = fw.StateKey("NodeResourcesFit/scored requests")


class NodeResourcesFit(
    InternalPlugin, fw.Plugin[NodeResourcesFitArgs], fw.PreFilter, fw.Filter, fw.PreScore, fw.Score
):
    """Refuse nodes without free resources for the pod; score the others by their utilisation."""

    name = "NodeResourcesFit"
    key_from_spec = True
    depends_on = fw.NODE_AND_PODS
    wakes_on = (
        fw.Event.NODE_ADDED,
        fw.Event.NODE_ALLOCATABLE_CHANGED,
        fw.Event.POD_DELETED,
        fw.Event.POD_SCALED_DOWN,
        fw.ClusterEvent("resource.k8s.io/DeviceClass", fw.Action.ADD | fw.Action.UPDATE),
    )
    reads = (DeviceClass,)

    def __init__(self, args: NodeResourcesFitArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._classes = ResourceClasses(lambda: handle.objects)
        self._scorer = scorer_of(args.scoring_strategy)

    @cached_property
    def _served(self) -> ServedDevices:
        scored = (spec.name for spec in self.args.scoring_strategy.resources)
        return ServedDevices(scored, self.handle, self.feature_gates)

    def key_version(self) -> Hashable:
        return self.handle.objects.version(DeviceClass)

    def cache_key(self, pod: fw.Pod) -> Hashable:
        key = requests_of(pod) or pod.spec
        served = self._classes.served(pod)
        if not served:
            return key
        devices = self._served.key(pod) if self._served.may_count(pod) else None
        return (key, served, self.key_version(), devices)

    def has_own_key(self, pod: fw.Pod) -> bool:
        return self._served.may_count(pod)

    # --- filter ----------------------------------------------------------------------------------

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[RESOURCE_REQUESTS] = ResourceRequests.of(self._resource_requests(pod))
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        reasons = []
        beyond_capacity = False
        if node.pod_count >= node.allocatable(PODS):
            reasons.append(TOO_MANY_PODS)
        for request in state[RESOURCE_REQUESTS].each:
            if request.amount > node.spare(request.resource):
                if request.is_served and node.allocatable(request.resource) <= 0:
                    continue
                reasons.append(request.shortage)
                beyond_capacity |= request.amount > node.allocatable(request.resource)
        return refusal(reasons, beyond_capacity) if reasons else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        requests = state[RESOURCE_REQUESTS]
        is_short: fw.BoolArray = spare_of(nodes, requests.resources) < requests.amounts
        for place, request in enumerate(requests.each, 1):
            if request.is_served:
                is_short[place] &= nodes.allocatable(request.resource) > 0
        if not np.count_nonzero(is_short):
            return fw.Verdicts.passing(nodes)
        if len(requests.each) > _MOST_REQUESTS:
            return super().filter_all(state, pod, nodes)
        return explain(requests, nodes, is_short)

    # --- score -----------------------------------------------------------------------------------

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[SCORED_REQUESTS] = self._scored_requests(pod)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        requests = state.get(SCORED_REQUESTS) or self._scored_requests(pod)
        return self._scorer.score(requests, node)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        requests = state.get(SCORED_REQUESTS) or self._scored_requests(pod)
        return self._scorer.score_all(requests, nodes)

    # --- why, and what would help ----------------------------------------------------------------

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        requests = {each.resource: each.amount for each in state[RESOURCE_REQUESTS].each}
        return facts_of(requests, nodes, self.handle.nodes)

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        requests = {each.resource: each.amount for each in state[RESOURCE_REQUESTS].each}
        return () if node is None else edits_for(pod, requests, node)

    # --- events ----------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, DeviceClass):
            return _serves_anew(pod, old if isinstance(old, DeviceClass) else None, new)
        if isinstance(new, core.Node):
            return self._would_fit(pod, old if isinstance(old, core.Node) else None, new)
        if isinstance(old, fw.Pod) and isinstance(new, fw.Pod):
            return new.uid == pod.uid or releases(old, new, pod)
        return not isinstance(old, fw.Pod) or is_assigned_or_nominated(old)

    def _would_fit(self, pod: fw.Pod, old: core.Node | None, new: core.Node) -> bool:
        """Whether the pod fits the node when empty, and it has more of a request than before."""
        requests = [
            request
            for request in self._resource_requests(pod)
            if not (request.is_served and offered(new, request.resource) <= 0)
        ]
        if offered(new, PODS) < 1 or any(offered(new, n.resource) < n.amount for n in requests):
            return False
        return old is None or any(
            offered(new, resource) > offered(old, resource)
            for resource in (PODS, *(request.resource for request in requests))
        )

    # --- inside ----------------------------------------------------------------------------------

    def _resource_requests(self, pod: fw.Pod) -> tuple[ResourceRequest, ...]:
        amounts = pod.all_requests
        scalars = sorted(name for name in amounts if is_scalar(name) and not self._is_ignored(name))
        return tuple(
            ResourceRequest(name, amounts[name], f"Insufficient {name}", self._is_served(name))
            for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *scalars)
            if amounts.get(name, 0) > 0
        )

    def _is_served(self, resource: str) -> bool:
        return is_servable(resource) and self._classes.class_of(resource) is not None

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended(resource):
            return False
        group = resource.partition("/")[0]
        return resource in self.args.ignored_resources or group in self.args.ignored_resource_groups

    def _scored_requests(self, pod: fw.Pod) -> ScoredRequests:
        # kube-scheduler 1.36 leaves requests of the pod as a whole out of this score.
        if pod.spec.resources is None:
            amounts = dict(pod.all_requests)
            amounts[CPU], amounts[MEMORY] = pod.nonzero_requests
        else:
            exact = pod_requests(pod.api, pod_level=False)
            amounts = {name: amount(name, quantity) for name, quantity in exact.items()}
            amounts[CPU], amounts[MEMORY] = pod_nonzero_requests(pod.api, pod_level=False)
        return ScoredRequests.of(
            tuple(
                ScoredRequest(
                    spec.name,
                    amounts.get(spec.name, 0),
                    spec.weight,
                    self._served.of(pod, spec.name),
                )
                for spec in self.args.scoring_strategy.resources
                if spec.name != PODS and (amounts.get(spec.name, 0) or not is_scalar(spec.name))
            )
        )


def _serves_anew(pod: fw.Pod, old: DeviceClass | None, new: DeviceClass) -> bool:
    """Whether a device class serves a resource of the pod that it did not serve before."""
    if old is None and IMPLICIT_RESOURCE_PREFIX + new.name in pod.all_requests:
        return True
    name = new.spec.extended_resource_name
    is_other = old is None or old.spec.extended_resource_name != name
    return is_other and name is not None and name in pod.all_requests


def refusal(reasons: list[str], beyond_capacity: bool) -> fw.Status:
    """Evictions can help only if the node has the capacity."""
    if beyond_capacity:
        return fw.Status.unresolvable(*reasons)
    return fw.Status.unschedulable(*reasons)


def explain(requests: ResourceRequests, nodes: fw.Nodes, is_short: fw.BoolArray) -> fw.Verdicts:
    """The shortages of each node. Few combinations occur, and each gets one status."""
    shortages = [TOO_MANY_PODS, *(request.shortage for request in requests.each)]
    beyond = 1 << len(shortages)  # the bit after those of the shortages
    found = np.zeros(len(nodes), dtype=np.uint16)
    for place, here in enumerate(is_short):
        if np.count_nonzero(here):
            found |= here * np.uint16(1 << place)
    for is_small in (allocatable_of(nodes, requests.resources) < requests.amounts)[1:] & is_short[
        1:
    ]:
        if np.count_nonzero(is_small):
            found |= is_small * np.uint16(beyond)
    combinations = found.astype(np.intp)  # once, instead of in bincount and in indexing
    occurring = np.bincount(combinations)
    numbers = np.zeros(len(occurring), dtype=np.int64)  # combination -> number of its status
    statuses = []
    for combination in np.flatnonzero(occurring).tolist():
        reasons = [text for place, text in enumerate(shortages) if combination >> place & 1]
        if reasons:
            statuses.append(refusal(reasons, bool(combination & beyond)))
            numbers[combination] = len(statuses)
    return fw.Verdicts.coded(numbers[combinations], statuses)


def offered(node: core.Node, resource: str) -> int:
    quantity = node.status.allocatable.get(resource)
    return amount(resource, quantity) if quantity is not None else 0


def releases(old: fw.Pod, new: fw.Pod, pod: fw.Pod) -> bool:
    """Whether a pod on a node uses less of a resource that another pod requests."""
    return bool(new.node_name) and any(
        wanted > 0 and new.usage.get(resource, 0) < old.usage.get(resource, 0)
        for resource, wanted in pod.all_requests.items()
    )
