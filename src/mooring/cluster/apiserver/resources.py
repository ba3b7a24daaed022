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
    key: str = ""  # where the store keeps its objects; made here, because it is asked for so often

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "key", self.storage or self.qualified)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As error messages name it: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.name}.{self.group}" if self.group else self.name


_ALL: Final = ("all",)
_APPS: Final = "apps"
_STORAGE: Final = "storage.k8s.io"

RESOURCES: Final[tuple[Resource, ...]] = (
    Resource(name="configmaps", kind="ConfigMap", short=("cm",)),
    Resource(name="endpoints", kind="Endpoints", short=("ep",)),
    Resource(name="events", kind="Event", short=("ev",)),
    Resource(
        name="namespaces",
        kind="Namespace",
        namespaced=False,
        short=("ns",),
        subresources=("status", "finalize"),
    ),
    Resource(name="nodes", kind="Node", namespaced=False, short=("no",), subresources=("status",)),
    Resource(
        name="persistentvolumeclaims",
        kind="PersistentVolumeClaim",
        short=("pvc",),
        subresources=("status",),
    ),
    Resource(
        name="persistentvolumes",
        kind="PersistentVolume",
        namespaced=False,
        short=("pv",),
        subresources=("status",),
    ),
    Resource(
        name="pods",
        kind="Pod",
        short=("po",),
        categories=_ALL,
        subresources=("binding", "eviction", "status", "ephemeralcontainers", "resize"),
    ),
    Resource(
        name="replicationcontrollers",
        kind="ReplicationController",
        short=("rc",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(
        name="resourcequotas", kind="ResourceQuota", short=("quota",), subresources=("status",)
    ),
    Resource(name="secrets", kind="Secret"),
    Resource(name="serviceaccounts", kind="ServiceAccount", short=("sa",), subresources=("token",)),
    Resource(
        name="services", kind="Service", short=("svc",), categories=_ALL, subresources=("status",)
    ),
    Resource(group=_APPS, name="controllerrevisions", kind="ControllerRevision"),
    Resource(
        group=_APPS,
        name="daemonsets",
        kind="DaemonSet",
        short=("ds",),
        categories=_ALL,
        subresources=("status",),
    ),
    Resource(
        group=_APPS,
        name="deployments",
        kind="Deployment",
        short=("deploy",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(
        group=_APPS,
        name="replicasets",
        kind="ReplicaSet",
        short=("rs",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(
        group=_APPS,
        name="statefulsets",
        kind="StatefulSet",
        short=("sts",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(group="batch", name="jobs", kind="Job", categories=_ALL, subresources=("status",)),
    Resource(
        group="batch",
        name="cronjobs",
        kind="CronJob",
        short=("cj",),
        categories=_ALL,
        subresources=("status",),
    ),
    Resource(group="coordination.k8s.io", name="leases", kind="Lease"),
    Resource(group="events.k8s.io", name="events", kind="Event", short=("ev",), storage="events"),
    Resource(group="node.k8s.io", name="runtimeclasses", kind="RuntimeClass", namespaced=False),
    Resource(
        group="policy",
        name="poddisruptionbudgets",
        kind="PodDisruptionBudget",
        short=("pdb",),
        subresources=("status",),
    ),
    Resource(
        group="rbac.authorization.k8s.io",
        name="clusterrolebindings",
        kind="ClusterRoleBinding",
        namespaced=False,
    ),
    Resource(
        group="rbac.authorization.k8s.io", name="clusterroles", kind="ClusterRole", namespaced=False
    ),
    Resource(group="rbac.authorization.k8s.io", name="rolebindings", kind="RoleBinding"),
    Resource(group="rbac.authorization.k8s.io", name="roles", kind="Role"),
    Resource(group="resource.k8s.io", name="deviceclasses", kind="DeviceClass", namespaced=False),
    Resource(
        group="resource.k8s.io",
        name="resourceclaims",
        kind="ResourceClaim",
        subresources=("status",),
    ),
    Resource(group="resource.k8s.io", name="resourceclaimtemplates", kind="ResourceClaimTemplate"),
    Resource(
        group="resource.k8s.io", name="resourceslices", kind="ResourceSlice", namespaced=False
    ),
    Resource(
        group="scheduling.k8s.io",
        name="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
        short=("pc",),
    ),
    Resource(group=_STORAGE, name="csidrivers", kind="CSIDriver", namespaced=False),
    Resource(group=_STORAGE, name="csinodes", kind="CSINode", namespaced=False),
    Resource(group=_STORAGE, name="csistoragecapacities", kind="CSIStorageCapacity"),
    Resource(
        group=_STORAGE, name="storageclasses", kind="StorageClass", namespaced=False, short=("sc",)
    ),
    Resource(
        group=_STORAGE,
        name="volumeattachments",
        kind="VolumeAttachment",
        namespaced=False,
        subresources=("status",),
    ),
    Resource(
        group=_STORAGE,
        name="volumeattributesclasses",
        kind="VolumeAttributesClass",
        namespaced=False,
        short=("vac",),
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
    """A resource that is certainly served."""
    found = by_path(group, version, name)
    if found is None:
        raise LookupError(f"expected a resource that is served, got {group}/{version}/{name}")
    return found
