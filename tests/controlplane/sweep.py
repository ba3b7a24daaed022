"""Leave a shared cluster as it was found: remove what a test created."""

from __future__ import annotations

from tests.controlplane.admin import AdminApi, ApiFailure

_NAMESPACED = (
    "Pod",
    "PersistentVolumeClaim",
    "ReplicationController",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "policy/v1/PodDisruptionBudget",
    "resource.k8s.io/v1/ResourceClaim",
    "resource.k8s.io/v1/ResourceClaimTemplate",
    "coordination.k8s.io/v1/Lease",
    "events.k8s.io/v1/Event",
    "ServiceAccount",
    "ConfigMap",
    "rbac.authorization.k8s.io/v1/Role",
    "rbac.authorization.k8s.io/v1/RoleBinding",
)
# Each with the label selector that spares what the API server brings itself.
_CLUSTER_WIDE = {
    "Node": "",
    "PersistentVolume": "",
    "storage.k8s.io/v1/StorageClass": "",
    "storage.k8s.io/v1/CSINode": "",
    "storage.k8s.io/v1/CSIDriver": "",
    "resource.k8s.io/v1/ResourceSlice": "",
    "resource.k8s.io/v1/DeviceClass": "",
    "rbac.authorization.k8s.io/v1/ClusterRole": "kubernetes.io/bootstrapping!=rbac-defaults",
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": "kubernetes.io/bootstrapping!=rbac-defaults",
}
_OWN_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def sweep(admin: AdminApi) -> None:
    """Remove objects of the kinds that matter to a scheduler, and all namespaces of tests.

    Leases, accounts, maps and roles in the namespaces of the API server itself stay.
    """
    for kind in _NAMESPACED:
        _empty_namespaces(admin, kind)
    for kind, selector in _CLUSTER_WIDE.items():
        _ignoring_unknown(admin, kind, selector)
    for item in admin.list("scheduling.k8s.io/v1/PriorityClass"):
        if not item["metadata"]["name"].startswith("system-"):
            admin.delete("scheduling.k8s.io/v1/PriorityClass", item["metadata"]["name"])
    for item in admin.list("Namespace"):
        if item["metadata"]["name"] not in _OWN_NAMESPACES:
            _remove_namespace(admin, item["metadata"]["name"])


def _empty_namespaces(admin: AdminApi, kind: str) -> None:
    try:
        found = admin.list(kind)
    except ApiFailure as error:
        if error.code == 404:  # this version of Kubernetes does not serve the group
            return
        raise
    everywhere = kind in ("Pod", "PersistentVolumeClaim", "events.k8s.io/v1/Event")
    for namespace in {item["metadata"]["namespace"] for item in found}:
        if everywhere or not namespace.startswith("kube-"):
            admin.delete_all(kind, namespace)


def _ignoring_unknown(admin: AdminApi, kind: str, selector: str) -> None:
    try:
        admin.delete_all(kind, **({"labelSelector": selector} if selector else {}))
    except ApiFailure as error:
        if error.code != 404:
            raise


def _remove_namespace(admin: AdminApi, name: str) -> None:
    """Without a controller manager a deleted namespace waits forever to be finalized."""
    waiting = admin.delete("Namespace", name, grace=None)
    waiting["spec"]["finalizers"] = []
    path = admin.path("Namespace", name, subresource="finalize")
    admin.request("PUT", path, waiting)
