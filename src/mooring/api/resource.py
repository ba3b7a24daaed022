"""The resource.k8s.io group: device classes, slices of devices, and claims to devices.

Read by the plugin DynamicResources; only the fields that a scheduler looks at or writes.
"""

from typing import ClassVar, Final

from msgspec import field

from mooring.api.frozen import FrozenDict
from mooring.api.meta import NO_RESOURCES, Condition, Object, ObjectMeta, ResourceList, Value
from mooring.api.placement import NodeSelector
from mooring.api.quantity import Quantity

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""An annotation of claims made for extended resources of a pod."""
IMPLICIT_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""The extended resource that every device class has without naming one."""

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
MOST_RESULTS: Final = 32  # devices of a claim
MOST_SUBREQUESTS: Final = 8


class Json(str):
    """Any JSON value, as text: parameters of drivers, which a scheduler only passes on."""

    __slots__ = ()


# --- device classes -------------------------------------------------------------------------------


class CELDeviceSelector(Value, frozen=True, kw_only=True):
    """A CEL expression over the variable `device`."""

    expression: str = ""


class DeviceSelector(Value, frozen=True, kw_only=True):
    """Which devices are meant; CEL is the only kind."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Value, frozen=True, kw_only=True):
    """Parameters for one driver."""

    driver: str = ""
    parameters: Json = Json("null")


class DeviceClassConfiguration(Value, frozen=True, kw_only=True):
    """Configuration of all devices that are allocated through a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Value, frozen=True, kw_only=True):
    """The devices of a class, and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, kw_only=True):
    """A kind of device that requests name."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: DeviceClassSpec = DeviceClassSpec()


# --- devices --------------------------------------------------------------------------------------


class DeviceAttribute(Value, frozen=True, kw_only=True):
    """A fact about a device; exactly one of the fields is set.

    Those with several values count with the feature gate DRAListTypeAttributes only.
    """

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[int, ...] = field(default=(), name="ints")
    bool_values: tuple[bool, ...] = field(default=(), name="bools")
    string_values: tuple[str, ...] = field(default=(), name="strings")
    version_values: tuple[str, ...] = field(default=(), name="versions")


class DeviceAttributes(FrozenDict[str, DeviceAttribute]):
    """Attributes by qualified name: with a domain, or without one if it is the driver's."""

    __slots__ = ()


class CapacityRequestPolicyRange(Value, frozen=True, kw_only=True):
    """Amounts from `min` to `max`, in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Value, frozen=True, kw_only=True):
    """Which amounts of a capacity can be requested."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Value, frozen=True, kw_only=True):
    """How much of something a device has."""

    value: Quantity = Quantity.ZERO
    request_policy: CapacityRequestPolicy | None = None


class Capacities(FrozenDict[str, DeviceCapacity]):
    """Capacities by qualified name."""

    __slots__ = ()


class Counter(Value, frozen=True, kw_only=True):
    """An amount that devices of a pool share."""

    value: Quantity = Quantity.ZERO


class Counters(FrozenDict[str, Counter]):
    """Counters by name."""

    __slots__ = ()


class CounterSet(Value, frozen=True, kw_only=True):
    """Counters of which devices of the pool take their share."""

    name: str = ""
    counters: Counters = Counters()


class DeviceCounterConsumption(Value, frozen=True, kw_only=True):
    """What an allocated device takes of a counter set."""

    counter_set: str = ""
    counters: Counters = Counters()


class DeviceTaint(Value, frozen=True, kw_only=True):
    """Keeps claims without a toleration away from a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Value, frozen=True, kw_only=True):
    """One device of a slice."""

    name: str = ""
    attributes: DeviceAttributes = DeviceAttributes()
    capacity: Capacities = Capacities()
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Value, frozen=True, kw_only=True):
    """The pool of a slice: all slices of the latest generation make up the pool."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Value, frozen=True, kw_only=True):
    """Devices of one driver, or counters that devices of the pool share."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """A part of a pool of devices, as its driver published it."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Value, frozen=True, kw_only=True):
    """Devices by name; what is left out does not matter."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Value, frozen=True, kw_only=True):
    """A taint, and the devices that have it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Object, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices. Read with the gate DRADeviceTaintRules."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1beta2"
    NAMESPACED: ClassVar[bool] = False

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# --- claims ---------------------------------------------------------------------------------------


class DeviceToleration(Value, frozen=True, kw_only=True):
    """A device taint that a request puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Value, frozen=True, kw_only=True):
    """How much of each capacity a request needs."""

    requests: ResourceList = NO_RESOURCES


class ExactDeviceRequest(Value, frozen=True, kw_only=True):
    """Devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Value, frozen=True, kw_only=True):
    """One of several alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Value, frozen=True, kw_only=True):
    """What is asked for under one name: exactly this, or the first alternative that works."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Value, frozen=True, kw_only=True):
    """Devices of these requests have equal, or different, values of an attribute."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Value, frozen=True, kw_only=True):
    """Configuration of the devices of these requests; of all if none is named."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Value, frozen=True, kw_only=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Value, frozen=True, kw_only=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Value, frozen=True, kw_only=True):
    """A device that was allocated for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: ResourceList = NO_RESOURCES


class DeviceAllocationConfiguration(Value, frozen=True, kw_only=True):
    """Configuration for drivers, from a class or from a claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Value, frozen=True, kw_only=True):
    """The devices of a claim, in the order in which they were picked."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Value, frozen=True, kw_only=True):
    """What a claim got, and from which nodes it can be used; no selector: from all."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Value, frozen=True, kw_only=True):
    """A pod, or something else, that uses a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Value, frozen=True, kw_only=True):
    """What the driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Value, frozen=True, kw_only=True):
    """What a claim got, and its users."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Object, frozen=True, kw_only=True):
    """A wish for devices, and what came of it."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def allocation(self) -> AllocationResult | None:
        return self.status.allocation

    def is_reserved_for(self, uid: str) -> bool:
        """Whether a pod is among its users."""
        return any(user.uid == uid for user in self.status.reserved_for)


class ResourceClaimTemplateSpec(Value, frozen=True, kw_only=True):
    """What the claims made from a template are like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, kw_only=True):
    """A claim for each pod that names it. A scheduler does not read it; simulations do."""

    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
