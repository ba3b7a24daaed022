"""The registry: what is special about each kind, as in kube-apiserver's pkg/registry.

A new kind is a row in `resources.py`, an entry here and one in `tables`, and its types in
`schema.txt` and `fieldnumbers.txt`. Its defaults and rules are in `defaulting` and `validation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.defaulting import objects as defaults
from mooring.cluster.apiserver.defaulting import pods as pod_defaults
from mooring.cluster.apiserver.defaulting import workloads as workload_defaults
from mooring.cluster.apiserver.errors import ErrorList
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation import kinds as validation
from mooring.cluster.apiserver.validation import pods as pod_validation
from mooring.cluster.apiserver.validation import workloads as workload_validation


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """The strategy, defaults and validation of one kind."""

    has_generation: bool = False  # metadata.generation counts changes of the spec
    first_status: Object | None = None  # status of a new object
    status_keeps: tuple[str, ...] = ()  # metadata that a status update can't change
    creates_on_update: bool = False
    needs_version: bool = False  # an update needs a resourceVersion
    returns_deleted: bool = False  # a deletion returns the object, not a Status
    propagation: str = ""  # default propagation policy of deletions
    set_defaults: Callable[[Any], None] | None = None
    validate: Callable[[Object], ErrorList] | None = None
    validates_updates: bool = True  # `validate` is called for updates too
    validate_update: Callable[[Object, Object], ErrorList] | None = None


_ALL_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_PLAIN: Final = Kind()

_KINDS: Final[dict[str, Kind]] = {
    "configmaps": Kind(
        validate=validation.validate_config_map,
        validate_update=validation.validate_immutable_update,
    ),
    "endpoints": Kind(creates_on_update=True, set_defaults=defaults.set_defaults_endpoints),
    "events": Kind(
        creates_on_update=True,
        set_defaults=defaults.set_defaults_event,
        validate=validation.validate_event,
    ),
    "namespaces": Kind(
        first_status={"phase": "Active"},
        returns_deleted=True,
        set_defaults=defaults.set_defaults_namespace,
    ),
    "nodes": Kind(set_defaults=defaults.set_defaults_node, validate=validation.validate_node),
    "persistentvolumeclaims": Kind(
        first_status={"phase": "Pending"},
        returns_deleted=True,
        set_defaults=workload_defaults.set_defaults_persistent_volume_claim,
        validate=validation.validate_persistent_volume_claim,
        validate_update=validation.validate_persistent_volume_claim_update,
    ),
    "persistentvolumes": Kind(
        first_status={"phase": "Pending"},
        returns_deleted=True,
        set_defaults=defaults.set_defaults_persistent_volume,
        validate=validation.validate_persistent_volume,
    ),
    "pods": Kind(
        has_generation=True,
        first_status={"phase": "Pending"},
        status_keeps=("ownerReferences",),
        returns_deleted=True,
        set_defaults=pod_defaults.set_defaults_pod,
        validate=pod_validation.validate_pod_create,
        validates_updates=False,
        validate_update=pod_validation.validate_pod_update,
    ),
    "replicationcontrollers": Kind(
        has_generation=True,
        first_status={"replicas": 0},
        propagation="Orphan",
        set_defaults=workload_defaults.set_defaults_replication_controller,
        validate=workload_validation.validate_replication_controller,
    ),
    "resourcequotas": Kind(
        first_status={}, returns_deleted=True, set_defaults=defaults.set_defaults_quota
    ),
    "secrets": Kind(
        set_defaults=defaults.set_defaults_secret,
        validate_update=validation.validate_immutable_update,
    ),
    "serviceaccounts": Kind(returns_deleted=True),
    "services": Kind(
        first_status={"loadBalancer": {}},
        creates_on_update=True,
        returns_deleted=True,
        set_defaults=defaults.set_defaults_service,
        validate=validation.validate_service,
        validate_update=validation.validate_service_update,
    ),
    "daemonsets.apps": Kind(
        has_generation=True,
        first_status={
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
        set_defaults=workload_defaults.set_defaults_daemon_set,
        validate=workload_validation.validate_daemon_set,
        validate_update=workload_validation.validate_selector_update,
    ),
    "deployments.apps": Kind(
        has_generation=True,
        first_status={},
        status_keeps=("labels",),
        set_defaults=workload_defaults.set_defaults_deployment,
        validate=workload_validation.validate_deployment,
        validate_update=workload_validation.validate_selector_update,
    ),
    "replicasets.apps": Kind(
        has_generation=True,
        first_status={"replicas": 0},
        set_defaults=workload_defaults.set_defaults_replica_set,
        validate=workload_validation.validate_replica_set,
        validate_update=workload_validation.validate_selector_update,
    ),
    "statefulsets.apps": Kind(
        has_generation=True,
        first_status={"replicas": 0, "availableReplicas": 0},
        set_defaults=workload_defaults.set_defaults_stateful_set,
        validate=workload_validation.validate_stateful_set,
        validate_update=workload_validation.validate_stateful_set_update,
    ),
    "jobs.batch": Kind(
        has_generation=True,
        first_status={},
        propagation="Orphan",
        set_defaults=workload_defaults.set_defaults_job,
        validate=workload_validation.validate_job,
        validate_update=workload_validation.validate_job_update,
    ),
    "cronjobs.batch": Kind(
        has_generation=True,
        first_status={},
        set_defaults=workload_defaults.set_defaults_cron_job,
        validate=workload_validation.validate_cron_job,
    ),
    "leases.coordination.k8s.io": Kind(
        creates_on_update=True, needs_version=True, validate=validation.validate_lease
    ),
    "runtimeclasses.node.k8s.io": Kind(
        creates_on_update=True, needs_version=True, set_defaults=defaults.set_defaults_runtime_class
    ),
    "poddisruptionbudgets.policy": Kind(
        has_generation=True,
        first_status={
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
        needs_version=True,
        validate=validation.validate_pod_disruption_budget,
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": Kind(
        creates_on_update=True, set_defaults=defaults.set_defaults_role_binding
    ),
    "clusterroles.rbac.authorization.k8s.io": Kind(creates_on_update=True),
    "rolebindings.rbac.authorization.k8s.io": Kind(
        creates_on_update=True, set_defaults=defaults.set_defaults_role_binding
    ),
    "roles.rbac.authorization.k8s.io": Kind(creates_on_update=True),
    "deviceclasses.resource.k8s.io": Kind(has_generation=True, returns_deleted=True),
    "resourceclaims.resource.k8s.io": Kind(
        first_status={},
        status_keeps=_ALL_METADATA,
        returns_deleted=True,
        set_defaults=defaults.set_defaults_resource_claim,
    ),
    "resourceclaimtemplates.resource.k8s.io": Kind(
        returns_deleted=True, set_defaults=defaults.set_defaults_resource_claim_template
    ),
    "resourceslices.resource.k8s.io": Kind(has_generation=True, returns_deleted=True),
    "priorityclasses.scheduling.k8s.io": Kind(
        has_generation=True,
        set_defaults=defaults.set_defaults_priority_class,
        validate=validation.validate_priority_class,
        validates_updates=False,
        validate_update=validation.validate_priority_class_update,
    ),
    "csidrivers.storage.k8s.io": Kind(
        needs_version=True, returns_deleted=True, set_defaults=defaults.set_defaults_csi_driver
    ),
    "csinodes.storage.k8s.io": Kind(needs_version=True, returns_deleted=True),
    "csistoragecapacities.storage.k8s.io": Kind(
        needs_version=True, set_defaults=defaults.set_defaults_csi_storage_capacity
    ),
    "storageclasses.storage.k8s.io": Kind(
        returns_deleted=True,
        set_defaults=defaults.set_defaults_storage_class,
        validate=validation.validate_storage_class,
        validate_update=validation.validate_storage_class_update,
    ),
    "volumeattachments.storage.k8s.io": Kind(
        first_status={"attached": False},
        status_keeps=_ALL_METADATA,
        needs_version=True,
        returns_deleted=True,
    ),
    "volumeattributesclasses.storage.k8s.io": Kind(returns_deleted=True),
}


def kind_of(resource: Resource) -> Kind:
    return _KINDS.get(resource.key, _PLAIN)
