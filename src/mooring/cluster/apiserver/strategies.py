"""How kinds differ in writes: generations, status resets, required resourceVersions and the like.

As the strategies of kube-apiserver's registries; defaults and validation are in `defaulting` and
`validation`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object


class RestStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """What is special about one kind."""

    has_generation: bool = False  # metadata.generation counts changes of the spec
    keeps_status: bool = False  # creation may set the status
    first_status: Object | None = None  # status of a new object
    status_keeps: tuple[str, ...] = ()  # metadata that a status update can't change
    creates_on_update: bool = False
    needs_version: bool = False  # an update needs a resourceVersion
    returns_deleted: bool = False  # a deletion returns the object, not a Status
    propagation: str = ""  # default propagation policy of deletions


_ALL_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_USUAL: Final = RestStrategy()
_NEEDS_VERSION: Final = RestStrategy(needs_version=True)
_RETURNED: Final = RestStrategy(returns_deleted=True)
_CREATED: Final = RestStrategy(creates_on_update=True)

_STRATEGIES: Final[dict[str, RestStrategy]] = {
    "endpoints": _CREATED,
    "events": _CREATED,
    "namespaces": RestStrategy(first_status={"phase": "Active"}, returns_deleted=True),
    "nodes": RestStrategy(keeps_status=True),
    "persistentvolumeclaims": RestStrategy(first_status={"phase": "Pending"}, returns_deleted=True),
    "persistentvolumes": RestStrategy(first_status={"phase": "Pending"}, returns_deleted=True),
    "pods": RestStrategy(
        has_generation=True,
        first_status={"phase": "Pending"},
        status_keeps=("ownerReferences",),
        returns_deleted=True,
    ),
    "replicationcontrollers": RestStrategy(
        has_generation=True, first_status={"replicas": 0}, propagation="Orphan"
    ),
    "resourcequotas": RestStrategy(first_status={}, returns_deleted=True),
    "serviceaccounts": _RETURNED,
    "services": RestStrategy(
        first_status={"loadBalancer": {}}, creates_on_update=True, returns_deleted=True
    ),
    "daemonsets.apps": RestStrategy(
        has_generation=True,
        first_status={
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    ),
    "deployments.apps": RestStrategy(
        has_generation=True, first_status={}, status_keeps=("labels",)
    ),
    "replicasets.apps": RestStrategy(has_generation=True, first_status={"replicas": 0}),
    "statefulsets.apps": RestStrategy(
        has_generation=True, first_status={"replicas": 0, "availableReplicas": 0}
    ),
    "jobs.batch": RestStrategy(has_generation=True, first_status={}, propagation="Orphan"),
    "cronjobs.batch": RestStrategy(has_generation=True, first_status={}),
    "leases.coordination.k8s.io": RestStrategy(creates_on_update=True, needs_version=True),
    "runtimeclasses.node.k8s.io": RestStrategy(creates_on_update=True, needs_version=True),
    "poddisruptionbudgets.policy": RestStrategy(
        has_generation=True,
        needs_version=True,
        first_status={
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": _CREATED,
    "clusterroles.rbac.authorization.k8s.io": _CREATED,
    "rolebindings.rbac.authorization.k8s.io": _CREATED,
    "roles.rbac.authorization.k8s.io": _CREATED,
    "deviceclasses.resource.k8s.io": RestStrategy(has_generation=True, returns_deleted=True),
    "resourceclaims.resource.k8s.io": RestStrategy(
        first_status={}, status_keeps=_ALL_METADATA, returns_deleted=True
    ),
    "resourceclaimtemplates.resource.k8s.io": _RETURNED,
    "resourceslices.resource.k8s.io": RestStrategy(has_generation=True, returns_deleted=True),
    "priorityclasses.scheduling.k8s.io": RestStrategy(has_generation=True),
    "csidrivers.storage.k8s.io": RestStrategy(needs_version=True, returns_deleted=True),
    "csinodes.storage.k8s.io": RestStrategy(needs_version=True, returns_deleted=True),
    "csistoragecapacities.storage.k8s.io": _NEEDS_VERSION,
    "storageclasses.storage.k8s.io": _RETURNED,
    "volumeattachments.storage.k8s.io": RestStrategy(
        first_status={"attached": False},
        status_keeps=_ALL_METADATA,
        needs_version=True,
        returns_deleted=True,
    ),
    "volumeattributesclasses.storage.k8s.io": _RETURNED,
}


def strategy_of(resource: Resource) -> RestStrategy:
    return _STRATEGIES.get(resource.key, _USUAL)


def prepare_new(resource: Resource, value: Object) -> None:
    """Remove the fields that a client can't set on creation."""
    strategy = strategy_of(resource)
    meta = value["metadata"]
    if strategy.has_generation:
        meta["generation"] = 1
    if strategy.first_status is not None:
        value["status"] = {
            key: dict(part) if isinstance(part, dict) else part
            for key, part in strategy.first_status.items()
        }
    if resource.key == "namespaces":
        spec = value.setdefault("spec", {})
        if "kubernetes" not in spec.get("finalizers", ()):
            spec["finalizers"] = [*spec.get("finalizers", ()), "kubernetes"]


def prepare_update(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Keep the old object's fields that this subresource can't change."""
    has_status = "status" in resource.subresources
    meta, before = new["metadata"], old["metadata"]
    if subresource == "status":
        for field in list(new.keys() - {"metadata", "status", "kind", "apiVersion"}):
            del new[field]
        for field in old.keys() - {"metadata", "status", "kind", "apiVersion"}:
            new[field] = old[field]
        for field in strategy_of(resource).status_keeps:
            keep(meta, before, field)
    elif has_status:
        keep(new, old, "status")
    if resource.key == "namespaces" and subresource != "finalize":
        keep(new.setdefault("spec", {}), old.get("spec", {}), "finalizers")


def count_generation(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Increase the generation with the spec; a Deployment's annotations count as well."""
    meta, before = new["metadata"], old["metadata"]
    keep(meta, before, "generation")
    if subresource == "status" or not strategy_of(resource).has_generation:
        return
    has_changed = new.get("spec") != old.get("spec")
    if resource.key == "deployments.apps":
        has_changed |= meta.get("annotations") != before.get("annotations")
    if has_changed:
        meta["generation"] = before.get("generation", 0) + 1


def keep(new: Object, old: Object, field: str) -> None:
    """Set a field of the new object to its old value."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
