"""The core group: pods, nodes, and the few other v1 kinds a scheduler reads or writes.

Placement and volume types of the group are in `placement` and `volumes`.
"""

from typing import ClassVar, Final

from msgspec import field

from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import NO_RESOURCES, Condition, Object, ObjectReference, ResourceList, Value
from mooring.api.placement import Affinity as Affinity
from mooring.api.placement import NodeAffinity as NodeAffinity
from mooring.api.placement import NodeSelector as NodeSelector
from mooring.api.placement import NodeSelectorRequirement as NodeSelectorRequirement
from mooring.api.placement import NodeSelectorTerm as NodeSelectorTerm
from mooring.api.placement import PodAffinity as PodAffinity
from mooring.api.placement import PodAffinityTerm as PodAffinityTerm
from mooring.api.placement import PodAntiAffinity as PodAntiAffinity
from mooring.api.placement import PreferredSchedulingTerm as PreferredSchedulingTerm
from mooring.api.placement import Taint as Taint
from mooring.api.placement import Toleration as Toleration
from mooring.api.placement import TopologySpreadConstraint as TopologySpreadConstraint
from mooring.api.placement import WeightedPodAffinityTerm as WeightedPodAffinityTerm
from mooring.api.volumes import PersistentVolume as PersistentVolume
from mooring.api.volumes import PersistentVolumeClaim as PersistentVolumeClaim
from mooring.api.volumes import Volume as Volume

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"


class ResourceClaimRef(Value, frozen=True, kw_only=True):
    """The entry of `spec.resourceClaims` a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Value, frozen=True, kw_only=True):
    """What a container or a whole pod asks for, and may use at most."""

    requests: ResourceList = NO_RESOURCES
    limits: ResourceList = NO_RESOURCES
    claims: tuple[ResourceClaimRef, ...] = ()


class ContainerPort(Value, frozen=True, kw_only=True):
    """A port a container listens on, and the node's port it takes, if any."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(default="", name="hostIP")


class ContainerResizePolicy(Value, frozen=True, kw_only=True):
    """Whether changing a resource in place restarts the container."""

    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRule(Value, frozen=True, kw_only=True):
    """What to do when a container exits in a certain way; only the action is read here."""

    action: str = ""


class Container(Value, frozen=True, kw_only=True):
    """One container; an init container with restartPolicy Always is a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_restartable(self) -> bool:
        """True for a sidecar: an init container that keeps running beside the others."""
        return self.restart_policy == "Always"


class PodSchedulingGate(Value, frozen=True, kw_only=True):
    """A reason, by name, not to try scheduling the pod yet."""

    name: str = ""


class PodResourceClaim(Value, frozen=True, kw_only=True):
    """A dynamic resource claim the pod uses, by name or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOS(Value, frozen=True, kw_only=True):
    """The operating system a pod is written for."""

    name: str = ""


class PodSpec(Value, frozen=True, kw_only=True):
    """What a pod needs in order to run."""

    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_selector: FrozenDict[str, str] = EMPTY
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    overhead: ResourceList = NO_RESOURCES
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    host_users: bool | None = None
    os: PodOS | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    service_account_name: str = ""
    termination_grace_period_seconds: int | None = None


class ContainerStatus(Value, frozen=True, kw_only=True):
    """What a container was granted on its node, as far as accounting needs it."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = NO_RESOURCES


class PodResourceClaimStatus(Value, frozen=True, kw_only=True):
    """The claim made for one entry of `spec.resourceClaims`."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Value, frozen=True, kw_only=True):
    """The request of a claim that serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Value, frozen=True, kw_only=True):
    """The claim that was made for the extended resources of a pod."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Value, frozen=True, kw_only=True):
    """What is known of a pod since it was created."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    reason: str = ""
    message: str = ""
    host_ip: str = field(default="", name="hostIP")
    pod_ip: str = field(default="", name="podIP")
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = NO_RESOURCES
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    observed_generation: int = 0


class Pod(Object, frozen=True, kw_only=True):
    """The thing to be scheduled."""

    API_VERSION: ClassVar[str] = "v1"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ContainerImage(Value, frozen=True, kw_only=True):
    """An image a node already holds, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class AttachedVolume(Value, frozen=True, kw_only=True):
    """A volume attached to a node."""

    name: str = ""
    device_path: str = ""


class NodeSpec(Value, frozen=True, kw_only=True):
    """What an operator decided about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(default="", name="providerID")


class NodeStatus(Value, frozen=True, kw_only=True):
    """What a node offers and how it is."""

    allocatable: ResourceList = NO_RESOURCES
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    """A machine pods can be placed on."""

    API_VERSION: ClassVar[str] = "v1"
    NAMESPACED: ClassVar[bool] = False

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceStatus(Value, frozen=True, kw_only=True):
    """Whether a namespace is in use or going away."""

    phase: str = ""


class Namespace(Object, frozen=True, kw_only=True):
    """A scope for names; its labels are what namespace selectors look at."""

    API_VERSION: ClassVar[str] = "v1"
    NAMESPACED: ClassVar[bool] = False

    status: NamespaceStatus = NamespaceStatus()


class ConfigMap(Object, frozen=True, kw_only=True):
    """Texts under keys."""

    API_VERSION: ClassVar[str] = "v1"

    data: FrozenDict[str, str] = EMPTY


class ServiceSpec(Value, frozen=True, kw_only=True):
    """The pods a service stands for."""

    selector: FrozenDict[str, str] = EMPTY


class Service(Object, frozen=True, kw_only=True):
    """A name for a set of pods; default spreading follows its selector."""

    API_VERSION: ClassVar[str] = "v1"

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Value, frozen=True, kw_only=True):
    """The pods a replication controller keeps alive."""

    replicas: int | None = None
    selector: FrozenDict[str, str] = EMPTY


class ReplicationController(Object, frozen=True, kw_only=True):
    """The predecessor of ReplicaSet; its selector is a plain map."""

    API_VERSION: ClassVar[str] = "v1"

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class Binding(Object, frozen=True, kw_only=True):
    """The decision, as it is sent to the API server."""

    API_VERSION: ClassVar[str] = "v1"

    target: ObjectReference = ObjectReference()
