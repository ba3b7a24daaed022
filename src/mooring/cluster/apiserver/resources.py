"""The resources that are served, and their names in paths, discovery and messages."""

from __future__ import annotations

from typing import Final

import msgspec


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One kind at one version; kinds with the same `storage` share their objects."""

    group: str = ""
    version: str = "v1"
    name: str  # plural, lower case
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    storage: str = ""  # of another group's kind that holds the same objects
    key: str = ""  # of its objects in the store; computed once
    is_custom: bool = False  # whether a CustomResourceDefinition defines it

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "key", self.storage or self.qualified)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def qualified(self) -> str:
        """As error messages name it: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.name}.{self.group}" if self.group else self.name


def _resource(
    qualified: str,
    kind: str,
    short: str = "",
    subresources: str = "",
    *,
    namespaced: bool = True,
    category: str = "",
    storage: str = "",
) -> Resource:
    """From a name such as `pods`, `jobs.batch` or `name.group/version`."""
    path, _, version = qualified.partition("/")
    name, _, group = path.partition(".")
    return Resource(
        group=group,
        version=version or "v1",
        name=name,
        kind=kind,
        namespaced=namespaced,
        short=tuple(short.split()),
        categories=(category,) if category else (),
        subresources=tuple(subresources.split()),
        storage=storage,
    )


RESOURCES: Final[tuple[Resource, ...]] = (
    _resource("configmaps", "ConfigMap", "cm"),
    _resource("endpoints", "Endpoints", "ep"),
    _resource("events", "Event", "ev"),
    _resource("limitranges", "LimitRange", "limits"),
    _resource("namespaces", "Namespace", "ns", "status finalize", namespaced=False),
    _resource("nodes", "Node", "no", "status", namespaced=False),
    _resource("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "status"),
    _resource("persistentvolumes", "PersistentVolume", "pv", "status", namespaced=False),
    _resource(
        "pods", "Pod", "po", "binding eviction status ephemeralcontainers resize", category="all"
    ),
    _resource("podtemplates", "PodTemplate"),
    _resource(
        "replicationcontrollers", "ReplicationController", "rc", "scale status", category="all"
    ),
    _resource("resourcequotas", "ResourceQuota", "quota", "status"),
    _resource("secrets", "Secret"),
    _resource("serviceaccounts", "ServiceAccount", "sa", "token"),
    _resource("services", "Service", "svc", "status", category="all"),
    _resource(
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "MutatingAdmissionPolicy",
        namespaced=False,
        category="api-extensions",
    ),
    _resource(
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
        namespaced=False,
        category="api-extensions",
    ),
    _resource(
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        namespaced=False,
        category="api-extensions",
    ),
    _resource(
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        "",
        "status",
        namespaced=False,
        category="api-extensions",
    ),
    _resource(
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
        category="api-extensions",
    ),
    _resource(
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        namespaced=False,
        category="api-extensions",
    ),
    _resource(
        "customresourcedefinitions.apiextensions.k8s.io",
        "CustomResourceDefinition",
        "crd crds",
        "status",
        namespaced=False,
        category="api-extensions",
    ),
    _resource("controllerrevisions.apps", "ControllerRevision"),
    _resource("daemonsets.apps", "DaemonSet", "ds", "status", category="all"),
    _resource("deployments.apps", "Deployment", "deploy", "scale status", category="all"),
    _resource("replicasets.apps", "ReplicaSet", "rs", "scale status", category="all"),
    _resource("statefulsets.apps", "StatefulSet", "sts", "scale status", category="all"),
    _resource(
        "horizontalpodautoscalers.autoscaling/v2",
        "HorizontalPodAutoscaler",
        "hpa",
        "status",
        category="all",
    ),
    _resource("jobs.batch", "Job", "", "status", category="all"),
    _resource("cronjobs.batch", "CronJob", "cj", "status", category="all"),
    _resource("leases.coordination.k8s.io", "Lease"),
    _resource("endpointslices.discovery.k8s.io", "EndpointSlice"),
    _resource("events.events.k8s.io", "Event", "ev", storage="events"),
    _resource("ingressclasses.networking.k8s.io", "IngressClass", namespaced=False),
    _resource("ingresses.networking.k8s.io", "Ingress", "ing", "status"),
    _resource("networkpolicies.networking.k8s.io", "NetworkPolicy", "netpol"),
    _resource("runtimeclasses.node.k8s.io", "RuntimeClass", namespaced=False),
    _resource("poddisruptionbudgets.policy", "PodDisruptionBudget", "pdb", "status"),
    _resource(
        "clusterrolebindings.rbac.authorization.k8s.io", "ClusterRoleBinding", namespaced=False
    ),
    _resource("clusterroles.rbac.authorization.k8s.io", "ClusterRole", namespaced=False),
    _resource("rolebindings.rbac.authorization.k8s.io", "RoleBinding"),
    _resource("roles.rbac.authorization.k8s.io", "Role"),
    _resource("deviceclasses.resource.k8s.io", "DeviceClass", namespaced=False),
    _resource("resourceclaims.resource.k8s.io", "ResourceClaim", "", "status"),
    _resource("resourceclaimtemplates.resource.k8s.io", "ResourceClaimTemplate"),
    _resource("resourceslices.resource.k8s.io", "ResourceSlice", namespaced=False),
    _resource("priorityclasses.scheduling.k8s.io", "PriorityClass", "pc", namespaced=False),
    _resource("csidrivers.storage.k8s.io", "CSIDriver", namespaced=False),
    _resource("csinodes.storage.k8s.io", "CSINode", namespaced=False),
    _resource("csistoragecapacities.storage.k8s.io", "CSIStorageCapacity"),
    _resource("storageclasses.storage.k8s.io", "StorageClass", "sc", namespaced=False),
    _resource(
        "volumeattachments.storage.k8s.io", "VolumeAttachment", "", "status", namespaced=False
    ),
    _resource(
        "volumeattributesclasses.storage.k8s.io", "VolumeAttributesClass", "vac", namespaced=False
    ),
)

_BY_PATH: Final = {(found.group, found.version, found.name): found for found in RESOURCES}
_BY_KEY: Final = {found.key: found for found in RESOURCES if not found.storage}
_BY_KIND: Final = {(found.api_version, found.kind): found for found in RESOURCES}


def by_path(group: str, version: str, name: str) -> Resource | None:
    """The resource of a path such as /apis/apps/v1/…/deployments."""
    return _BY_PATH.get((group, version, name))


def by_kind(api_version: str, kind: str) -> Resource | None:
    """The resource of an object, by its apiVersion and kind."""
    return _BY_KIND.get((api_version, kind))


def by_key(key: str) -> Resource | None:
    """The resource that owns a key of the store."""
    return _BY_KEY.get(key)


def known(name: str, group: str = "", version: str = "v1") -> Resource:
    """The resource with this name; LookupError if it is not served."""
    found = by_path(group, version, name)
    if found is None:
        raise LookupError(f"expected a resource that is served, got {group}/{version}/{name}")
    return found


# Resources that several modules refer to.
PODS: Final = known("pods")
SERVICES: Final = known("services")
ENDPOINTS: Final = known("endpoints")
ENDPOINT_SLICES: Final = known("endpointslices", "discovery.k8s.io")
CONFIG_MAPS: Final = known("configmaps")
LIMIT_RANGES: Final = known("limitranges")
QUOTAS: Final = known("resourcequotas")
NODES: Final = known("nodes")
NAMESPACES: Final = known("namespaces")
DEFINITIONS: Final = known("customresourcedefinitions", "apiextensions.k8s.io")
CLAIMS: Final = known("persistentvolumeclaims")
BUDGETS: Final = known("poddisruptionbudgets", "policy")
STORAGE_CLASSES: Final = known("storageclasses", "storage.k8s.io")
