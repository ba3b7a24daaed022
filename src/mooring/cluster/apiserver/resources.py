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

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "key", self.storage or self.qualified)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

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
    in_all: bool = False,
    storage: str = "",
) -> Resource:
    name, _, group = qualified.partition(".")
    return Resource(
        group=group,
        name=name,
        kind=kind,
        namespaced=namespaced,
        short=tuple(short.split()),
        categories=("all",) if in_all else (),
        subresources=tuple(subresources.split()),
        storage=storage,
    )


RESOURCES: Final[tuple[Resource, ...]] = (
    _resource("configmaps", "ConfigMap", "cm"),
    _resource("endpoints", "Endpoints", "ep"),
    _resource("events", "Event", "ev"),
    _resource("namespaces", "Namespace", "ns", "status finalize", namespaced=False),
    _resource("nodes", "Node", "no", "status", namespaced=False),
    _resource("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "status"),
    _resource("persistentvolumes", "PersistentVolume", "pv", "status", namespaced=False),
    _resource(
        "pods", "Pod", "po", "binding eviction status ephemeralcontainers resize", in_all=True
    ),
    _resource("replicationcontrollers", "ReplicationController", "rc", "scale status", in_all=True),
    _resource("resourcequotas", "ResourceQuota", "quota", "status"),
    _resource("secrets", "Secret"),
    _resource("serviceaccounts", "ServiceAccount", "sa", "token"),
    _resource("services", "Service", "svc", "status", in_all=True),
    _resource("controllerrevisions.apps", "ControllerRevision"),
    _resource("daemonsets.apps", "DaemonSet", "ds", "status", in_all=True),
    _resource("deployments.apps", "Deployment", "deploy", "scale status", in_all=True),
    _resource("replicasets.apps", "ReplicaSet", "rs", "scale status", in_all=True),
    _resource("statefulsets.apps", "StatefulSet", "sts", "scale status", in_all=True),
    _resource("jobs.batch", "Job", "", "status", in_all=True),
    _resource("cronjobs.batch", "CronJob", "cj", "status", in_all=True),
    _resource("leases.coordination.k8s.io", "Lease"),
    _resource("events.events.k8s.io", "Event", "ev", storage="events"),
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
_BY_KIND: Final = {(found.api_version, found.kind): found for found in RESOURCES}


def by_path(group: str, version: str, name: str) -> Resource | None:
    """The resource of a path such as /apis/apps/v1/…/deployments."""
    return _BY_PATH.get((group, version, name))


def by_kind(api_version: str, kind: str) -> Resource | None:
    """The resource of an object, by its apiVersion and kind."""
    return _BY_KIND.get((api_version, kind))


def known(name: str, group: str = "", version: str = "v1") -> Resource:
    """The resource with this name; LookupError if it is not served."""
    found = by_path(group, version, name)
    if found is None:
        raise LookupError(f"expected a resource that is served, got {group}/{version}/{name}")
    return found


# Resources that several modules refer to.
PODS: Final = known("pods")
NODES: Final = known("nodes")
NAMESPACES: Final = known("namespaces")
CLAIMS: Final = known("persistentvolumeclaims")
BUDGETS: Final = known("poddisruptionbudgets", "policy")
STORAGE_CLASSES: Final = known("storageclasses", "storage.k8s.io")
