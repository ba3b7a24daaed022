"""DynamicResources: refuse nodes without devices for the pod's claims; allocate on the chosen one.

Filter says only whether a node's devices suffice. Reserve finds the devices again, for the chosen
node alone: within one attempt they are the same.
"""

from collections.abc import Hashable, Iterable
from functools import cached_property, partial
from typing import Final, Literal

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.frozen import FrozenDict
from mooring.api.resource import (
    MOST_SUBREQUESTS,
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from mooring.api.selectors import compile_node_selector
from mooring.config.duration import Duration
from mooring.framework._internal import (
    DEVICE_TAINT_RULES,
    AllocatesClaims,
    InternalPlugin,
    Permissions,
)
from mooring.framework.depends_on import DependsOn
from mooring.plugins._device_classes import ResourceClasses
from mooring.plugins.dynamicresources.allocation import allocations
from mooring.plugins.dynamicresources.ask import Ask, Asks, PodDeviceClaims, RefusedAsk
from mooring.plugins.dynamicresources.binding import ClaimBinder, ClaimReservation
from mooring.plugins.dynamicresources.claims import UnusableClaim, claims_of, is_unavailable
from mooring.plugins.dynamicresources.devices import Devices, devices_of
from mooring.plugins.dynamicresources.explaining import DeviceFacts
from mooring.plugins.dynamicresources.extended import (
    IN_MEMORY,
    Requests,
    requests_for,
)
from mooring.plugins.dynamicresources.hints import may_help
from mooring.plugins.dynamicresources.problem import Content
from mooring.plugins.dynamicresources.remedies import DeviceRemedies, before_nodes, released
from mooring.plugins.dynamicresources.requests import CLAIM, DEVICE, DeviceDemand
from mooring.plugins.dynamicresources.search import OutOfTime, SearchError, Solution

_ONE_SECOND: Final = Duration.of(1)
_ADDED_OR_CHANGED: Final = fw.Action.ADD | fw.Action.UPDATE

HAS_RUN: fw.StateKey[bool] = fw.StateKey("DynamicResources/has run")
GONE: fw.StateKey["GonePods"] = fw.StateKey("DynamicResources/gone pods")
ASK: fw.StateKey[Ask] = fw.StateKey("DynamicResources/ask")
RESERVATION: fw.StateKey[ClaimReservation] = fw.StateKey("DynamicResources/reservation")


class DynamicResourcesArgs(fw.Args, frozen=True):
    """How long Filter may take for a node (0: no limit), and how long a binding may take.

    The others are not kube-scheduler's: which of several devices is taken, whether nodes whose
    devices are in use already are preferred, and whether pods may be evicted for their devices.
    """

    filter_timeout: Duration = Duration.of(10)
    binding_timeout: Duration = Duration.of(600)
    device_choice: Literal["FirstFit", "BestFit"] = "FirstFit"
    pack_nodes: bool = False
    preempt_device_holders: bool = False

    def __post_init__(self) -> None:
        if self.filter_timeout < Duration():
            raise ValueError(
                f'filterTimeout: Invalid value: "{self.filter_timeout}": must be zero or positive'
            )
        if self.binding_timeout < _ONE_SECOND:
            raise ValueError(
                f'bindingTimeout: Invalid value: "{self.binding_timeout}":'
                " must be at least 1 second"
            )


class GonePods(msgspec.Struct):
    """Pods that are taken away in a dry run of preemption."""

    uids: set[str] = set()

    def clone(self) -> "GonePods":
        return GonePods(set(self.uids))


class DynamicResources(
    AllocatesClaims,
    InternalPlugin,
    fw.Plugin[DynamicResourcesArgs],
    fw.PreEnqueue,
    fw.PreFilter,
    fw.Filter,
    fw.PostFilter,
    fw.Score,
    fw.Reserve,
    fw.PreBind,
):
    """Find devices for the claims of a pod, and allocate them; nothing for pods without claims."""

    name = "DynamicResources"
    key_from_spec = True
    skip_is_final = True
    depends_on = fw.NODE
    normalizer = fw.BEST_IS_100
    evicts = False
    parallel = True
    reads = (ResourceClaim, ResourceSlice, DeviceClass)
    gated_reads = FrozenDict({DEVICE_TAINT_RULES: (DeviceTaintRule,)})
    permissions = (
        Permissions(ResourceClaim, ("get", "patch", "create", "delete")),
        Permissions(ResourceClaim, ("patch",), "status"),
        Permissions(ResourceClaim, ("patch",), "binding"),
    )
    wakes_on = (
        fw.Event.NODE_ADDED,
        fw.Event.NODE_LABELS_CHANGED,
        fw.Event.NODE_ALLOCATABLE_CHANGED,
        # kube-scheduler does not wait for the end of claims: their devices are free before.
        fw.ClusterEvent("resource.k8s.io/ResourceClaim", fw.Action.ALL),
        fw.ClusterEvent("Pod", fw.Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        fw.ClusterEvent("resource.k8s.io/DeviceClass", _ADDED_OR_CHANGED),
        fw.ClusterEvent("resource.k8s.io/ResourceSlice", _ADDED_OR_CHANGED),
    )

    NOTHING_TO_FREE = fw.Status.unschedulable("no new claims to deallocate")
    DEALLOCATED = fw.Status.unschedulable("deallocation of ResourceClaim completed")
    DELETED = fw.Status.unschedulable("deletion of ResourceClaim completed")
    STILL_UNSCHEDULABLE = fw.Status.unschedulable("still not schedulable")
    NEVER_RAN = fw.Status.error("not found")
    NO_ALLOCATION = fw.Status.error("claim allocation not found for node")
    UNAVAILABLE = fw.Status.unresolvable("resourceclaim not available on the node")
    NOT_ALLOCATABLE = fw.Status.unresolvable("cannot allocate all claims")
    NOT_FREE = fw.Status.unschedulable("cannot allocate all claims")  # evictions may help
    INVALID_POOLS = fw.Status.unresolvable("invalid resource pools were encountered")
    CLAIM_IN_THE_WAY = fw.Status.unresolvable("cannot schedule extended resource claim")
    NO_RESOURCE = fw.Status.unresolvable("cannot fit resource")

    def __init__(self, args: DynamicResourcesArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._filter_timeout = args.filter_timeout.seconds
        self._binding_timeout = args.binding_timeout.seconds
        self._classes = ResourceClasses(lambda: handle.objects)
        self._binder = ClaimBinder(handle, lambda: self._devices, self._binding_timeout)

    @cached_property
    def _devices(self) -> Devices:
        return devices_of(self.handle.objects, self.feature_gates)

    @cached_property
    def _asks(self) -> Asks:
        return Asks(self.handle, self._devices, self._classes)

    # --- keys ------------------------------------------------------------------------------------

    def has_own_key(self, pod: fw.Pod) -> bool:
        return bool(pod.spec.resource_claims or self._classes.served(pod))

    def key_version(self) -> Hashable:
        return self.handle.objects.version(DeviceClass)

    def depends_on_for(self, pod: fw.Pod) -> DependsOn | None:
        if not self.has_own_key(pod):
            return fw.NODE
        ask = self._ask(pod)
        return fw.NODE_AND_PODS if isinstance(ask, Ask) and not ask.is_timely else None

    def cache_key(self, pod: fw.Pod) -> Hashable:
        if not self.has_own_key(pod):
            return None
        ask = self._ask(pod)
        if not isinstance(ask, Ask):
            return None
        demand = self._devices.demand(ask.specs)
        rest = (ask.has_named, ask.selectors, ask.is_unavailable, ask.extended, ask.containers)
        return (demand, rest, ask.score, self._devices.shared_version, self.key_version())

    def _ask(self, pod: fw.Pod) -> Ask | fw.Status:
        """What a pod asks for now, or why it need not ask."""
        self._devices.follow(self.handle.nodes)
        asks = self._asks
        try:
            claims = asks.claims(pod)
            return asks.of(pod, claims, self._binding_timeout) if claims.all else fw.SKIP
        except UnusableClaim as unusable:
            return fw.Status.unresolvable(str(unusable))
        except RefusedAsk as refused:
            return refused.status

    # --- filter ----------------------------------------------------------------------------------

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
        if not pod.spec.resource_claims:
            return fw.OK
        try:
            claims_of(pod, self._devices.ledger)
        except UnusableClaim as unusable:
            return fw.Status.unresolvable(str(unusable))
        return fw.OK

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[HAS_RUN] = True
        if not self.has_own_key(pod):
            return fw.SKIP
        ask = self._ask(pod)
        if not isinstance(ask, Ask):
            return ask
        state[ASK] = ask
        if self.args.preempt_device_holders:
            state[GONE] = GonePods()
        return fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        if GONE in state:
            state[GONE].uids.discard(added.api.metadata.uid)
        return fw.OK

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        if GONE in state:
            state[GONE].uids.add(removed.api.metadata.uid)
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        ask = state.get(ASK)
        if ask is None:
            return fw.OK if HAS_RUN in state else self.NEVER_RAN
        served: tuple[str, ...] = ()
        if ask.extended is not None:
            if ask.extended.is_made:
                return self.CLAIM_IN_THE_WAY
            found = self._asks.served_on(ask, node)
            if found is None:
                return self.NO_RESOURCE
            if not ask.has_named and (not found or ask.extended.is_allocated):
                return fw.OK
            served = found
        if ask.allocates:
            status = self._allocatable(state, ask, pod, node, served)
            if not status.ok:
                return status
        if ask.is_unavailable or not all(
            one.matches(node.labels, node.name) for one in ask.selectors
        ):
            return self.UNAVAILABLE
        return fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        ask = state.get(ASK)
        if ask is None:
            verdicts = fw.Verdicts.passing(nodes)
            return verdicts if HAS_RUN in state else verdicts.reject_all(self.NEVER_RAN)
        inventory = self._devices.inventory
        if ask.extended is not None or ask.selectors or inventory.has_groups:
            return super().filter_all(state, pod, nodes)
        # Nodes without devices of their own are all alike.
        alike: fw.Status | None = None
        statuses: list[fw.Status] = []
        for row, name in enumerate(nodes.names):
            if inventory.has_own(name):
                statuses.append(self.filter(state, pod, nodes[row]))
            else:
                if alike is None:
                    alike = self.filter(state, pod, nodes[row])
                statuses.append(alike)
        return fw.Verdicts.of(statuses)

    def _allocatable(
        self, state: fw.CycleState, ask: Ask, pod: fw.Pod, node: fw.Node, served: tuple[str, ...]
    ) -> fw.Status:
        demand = self._demand(ask, pod, served)
        gone = state.get(GONE)
        used = self._devices.used_without(node, gone.uids) if gone and gone.uids else None
        try:
            _, outcome = self._devices.solve(demand, node, self._filter_timeout, used)
        except OutOfTime:
            return fw.Status.error(f"node {node.name}: timed out trying to allocate devices")
        if isinstance(outcome, Solution):
            return fw.OK
        if isinstance(outcome, SearchError):
            return fw.Status.error(self._text(outcome, pod, node))
        content = self._devices.content(node)
        if any(pool.is_invalid for pool in content.pools):
            return self.INVALID_POOLS
        return self.NOT_ALLOCATABLE if gone is None else self.NOT_FREE

    def _demand(self, ask: Ask, pod: fw.Pod, served: tuple[str, ...]) -> DeviceDemand:
        specs = self._asks.specs_on(ask, pod, served)
        return self._devices.demand(specs, is_best_fit=self.args.device_choice == "BestFit")

    def _text(self, error: SearchError, pod: fw.Pod, node: fw.Node) -> str:
        """An error with the names of the claim and of a device in it."""
        asked = [one for one in self._asks.claims(pod).all if one.allocation is None]
        text = error.text.replace(CLAIM, asked[error.claim].key)
        before, found, rest = text.partition(DEVICE)
        if not found:
            return text
        number, _, after = rest.partition(DEVICE)
        device = self._devices.content(node).devices[int(number)]
        return f"{before}{'/'.join(device.id)}{after}"

    # --- no node ---------------------------------------------------------------------------------

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status:
        # As in kube-scheduler: if an earlier plugin ends PreFilter, there is no state: an error.
        if HAS_RUN not in state:
            return self.NEVER_RAN
        if ASK not in state:
            return self.NOTHING_TO_FREE
        freeable = self.deallocatable(state, pod, nodes, verdicts)
        if freeable:
            claim = freeable[0]
            if claim.metadata.name == _special_name(self._asks.claims(pod)):
                self._binder.later(partial(self._binder.delete, claim), pod)
                return self.DELETED
            self._binder.later(partial(self._binder.deallocate, claim), pod)
            return self.DEALLOCATED
        return self.STILL_UNSCHEDULABLE

    def deallocatable(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> list[ResourceClaim]:
        if ASK not in state:
            return []
        claims = self._asks.claims(pod)
        found = [
            claim
            for claim in claims.named
            if self._is_in_the_way(claim, nodes, verdicts) and _is_only_for(claim, pod)
        ]
        special = claims.special
        if special is not None and special.name != IN_MEMORY:
            if self._is_in_the_way(special, nodes, verdicts):
                return [special]
            return found or [special]
        return found

    def _is_in_the_way(self, claim: ResourceClaim, nodes: fw.Nodes, verdicts: fw.Verdicts) -> bool:
        """Whether an allocated claim kept the pod from a node."""
        if claim.allocation is None:
            return False
        now = self.handle.clock.now()
        selector = claim.allocation.node_selector
        matcher = compile_node_selector(selector) if selector is not None else None
        for row, status in enumerate(verdicts.each()):
            if status.plugin == self.name and status.reasons == self.UNAVAILABLE.reasons:
                if is_unavailable(claim, now, self._binding_timeout):
                    return True
                node = nodes[row]
                if matcher is not None and not matcher.matches(node.labels, node.name):
                    return True
        return False

    # --- score -----------------------------------------------------------------------------------

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        ask = state.get(ASK)
        if ask is None or not ask.allocates:
            return 0
        solution = self._solution(ask, pod, node)
        if solution is None:
            return 0
        demand, _, found = solution
        preference = ask.score + sum(
            MOST_SUBREQUESTS - place
            for claim, chosen in zip(demand.claims, found.alternatives, strict=True)
            for slot, place in zip(claim.slots, chosen, strict=True)
            if slot[place].is_alternative
        )
        if not self.args.pack_nodes:
            return preference
        # What was preferred comes first, then nodes whose devices are in use already.
        return preference * (fw.MAX_SCORE + 1) + self._devices.share_in_use(demand, node)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        ask = state.get(ASK)
        if ask is None or not ask.allocates:
            return np.zeros(len(nodes), dtype=np.int64)
        return super().score_all(state, pod, nodes)

    def _solution(
        self, ask: Ask, pod: fw.Pod, node: fw.Node
    ) -> tuple[DeviceDemand, Content, Solution] | None:
        """The devices that a pod gets on a node; None if none are to be allocated there."""
        served: tuple[str, ...] = ()
        if ask.extended is not None:
            served = self._asks.served_on(ask, node) or ()
            if not ask.has_named and not served:
                return None
        demand = self._demand(ask, pod, served)
        content, outcome = self._devices.solve(demand, node, self._filter_timeout)
        return (demand, content, outcome) if isinstance(outcome, Solution) else None

    # --- reserve ---------------------------------------------------------------------------------

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        ask = state.get(ASK)
        if ask is None:
            return fw.OK
        reservation = state[RESERVATION] = ClaimReservation(self._asks.claims(pod))
        node = self.handle.nodes.get(node_name)
        if not ask.allocates:
            return fw.OK
        found = self.allocate(state, pod, node) if node is not None else []
        if not found:
            return fw.OK if not ask.specs else self.NO_ALLOCATION
        assert node is not None
        if ask.extended is not None:
            reservation.requests = self._requests_on(ask, pod, node)
        self._binder.reserve(reservation, [allocation for _, allocation in found])
        return fw.OK

    def allocate(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node
    ) -> list[tuple[ResourceClaim, AllocationResult]]:
        ask = state.get(ASK)
        if ask is None or not ask.allocates:
            return []
        solution = self._solution(ask, pod, node)
        if solution is None:
            return []
        found = allocations(*solution, node.name)
        claims = [one for one in self._asks.claims(pod).all if one.allocation is None]
        return list(zip(claims, found, strict=True))

    def _requests_on(self, ask: Ask, pod: fw.Pod, node: fw.Node) -> Requests:
        return requests_for(pod, self._asks.served_on(ask, node) or (), self._classes)

    def assume_in_flight(self, claim: ResourceClaim) -> None:
        self._devices.ledger.begin(claim)

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        if ASK not in state:
            return
        reservation = state.get(RESERVATION)
        if reservation is None:
            try:
                reservation = ClaimReservation(self._asks.claims(pod))
            except UnusableClaim:
                return
        self._binder.release(reservation, pod)
        del state[RESERVATION]

    # --- bind ------------------------------------------------------------------------------------

    def pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK if RESERVATION in state else fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        reservation = state.get(RESERVATION)
        if reservation is None:
            return fw.OK
        return await self._binder.bind(reservation, pod, node_name)

    # --- why, and what would help ----------------------------------------------------------------

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        found = DeviceFacts(self._devices, self._asks, pod, self._binding_timeout)
        ask = state.get(ASK)
        reasons = status.reasons
        if ask is None:
            return found.before_nodes()
        if reasons == self.UNAVAILABLE.reasons:
            return found.unavailable(self.handle.clock.now())
        if reasons == self.NO_RESOURCE.reasons:
            return found.unserved(ask, nodes)
        if reasons == self.CLAIM_IN_THE_WAY.reasons:
            text = "a claim of an earlier attempt is deleted first"
            return [fw.Fact(text=text, waits_for="others")]
        return found.of_nodes(ask, nodes)

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        ask = state.get(ASK)
        if ask is None:
            return before_nodes(self._asks, pod)
        if status.reasons == self.UNAVAILABLE.reasons:
            claims = self._asks.claims(pod).named
            return [released([one]) for one in claims if one.allocation is not None]
        if node is None or not ask.allocates:
            return ()
        return DeviceRemedies(self._devices, self._asks, pod, ask, node).edits()

    # --- events ----------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        return may_help(pod, old, new, self._devices.ledger)


def _special_name(claims: PodDeviceClaims) -> str:
    return claims.special.name if claims.special is not None else ""


def _is_only_for(claim: ResourceClaim, pod: fw.Pod) -> bool:
    """Whether no other pod uses a claim."""
    users = claim.status.reserved_for
    return not users or (len(users) == 1 and users[0].uid == pod.api.metadata.uid)
