"""The registry: what is special about each kind, as in kube-apiserver's pkg/registry.

A new kind is a row in `resources.py`, an entry here and one in `tables`, and its types in
`schema.txt` and `fieldnumbers.txt`. Its defaults and rules are in `defaulting` and `validation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.customresources.definition_rules import (
    validate_definition,
    validate_definition_update,
)
from mooring.cluster.apiserver.customresources.definitions import (
    prepare_definition,
    set_defaults_definition,
)
from mooring.cluster.apiserver.defaulting import objects as defaults
from mooring.cluster.apiserver.defaulting import pods as pod_defaults
from mooring.cluster.apiserver.defaulting import stored as stored_defaults
from mooring.cluster.apiserver.defaulting import workloads as workload_defaults
from mooring.cluster.apiserver.errors import ErrorList
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation import kinds as validation
from mooring.cluster.apiserver.validation import pods as pod_validation
from mooring.cluster.apiserver.validation import quotas as quota_validation
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
    validate_status: Callable[[Object, Object], ErrorList] | None = None
    warning: str = ""  # what is not simulated, for kinds that are stored and have no effect
    prepare: Callable[[Object, Object | None], None] | None = None  # sets fields of its own


_ALL_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_PLAIN: Final = Kind()
_NO_NETWORK: Final = "mooring simulates no network: this object is stored and has no effect"
_NO_METRICS: Final = "mooring simulates no metrics: this object is stored and scales nothing"
_NO_WEBHOOKS: Final = "mooring calls no admission webhooks: this object is stored and has no effect"
_NO_POLICIES: Final = (
    "mooring evaluates no admission policies: this object is stored and has no effect"
)
_NO_RBAC: Final = "mooring enforces no permissions: this object is stored and has no effect"
_CUSTOM: Final = Kind(has_generation=True, needs_version=True)

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
    "limitranges": Kind(
        set_defaults=defaults.set_defaults_limit_range,
        validate=quota_validation.validate_limit_range,
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
        validate_status=pod_validation.validate_pod_status_update,
    ),
    "podtemplates": Kind(
        has_generation=True,
        returns_deleted=True,
        set_defaults=pod_defaults.set_defaults_template,
        validate=workload_validation.validate_pod_template,
    ),
    "replicationcontrollers": Kind(
        has_generation=True,
        first_status={"replicas": 0},
        propagation="Orphan",
        set_defaults=workload_defaults.set_defaults_replication_controller,
        validate=workload_validation.validate_replication_controller,
    ),
    "resourcequotas": Kind(
        first_status={},
        returns_deleted=True,
        set_defaults=defaults.set_defaults_quota,
        validate=quota_validation.validate_quota,
        validate_update=quota_validation.validate_quota_update,
        validate_status=quota_validation.validate_quota_status,
    ),
    "secrets": Kind(
        set_defaults=defaults.set_defaults_secret,
        validate=validation.validate_secret,
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
    "mutatingadmissionpolicies.admissionregistration.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_policy,
        warning=_NO_POLICIES,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_policy_binding,
        warning=_NO_POLICIES,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_mutating_webhooks,
        warning=_NO_WEBHOOKS,
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": Kind(
        has_generation=True,
        first_status={},
        set_defaults=stored_defaults.set_defaults_policy,
        warning=_NO_POLICIES,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_policy_binding,
        warning=_NO_POLICIES,
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_validating_webhooks,
        warning=_NO_WEBHOOKS,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": Kind(
        has_generation=True,
        needs_version=True,
        returns_deleted=True,
        set_defaults=set_defaults_definition,
        validate=validate_definition,
        validates_updates=False,
        validate_update=validate_definition_update,
        prepare=prepare_definition,
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
    "horizontalpodautoscalers.autoscaling": Kind(
        first_status={"currentMetrics": None, "desiredReplicas": 0},
        set_defaults=stored_defaults.set_defaults_autoscaler,
        warning=_NO_METRICS,
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
    "endpointslices.discovery.k8s.io": Kind(
        has_generation=True, set_defaults=defaults.set_defaults_endpoint_slice
    ),
    "ingressclasses.networking.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_ingress_class,
        warning=_NO_NETWORK,
    ),
    "ingresses.networking.k8s.io": Kind(
        has_generation=True, first_status={"loadBalancer": {}}, warning=_NO_NETWORK
    ),
    "networkpolicies.networking.k8s.io": Kind(
        has_generation=True,
        set_defaults=stored_defaults.set_defaults_network_policy,
        warning=_NO_NETWORK,
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
        creates_on_update=True,
        set_defaults=defaults.set_defaults_role_binding,
        warning=_NO_RBAC,
    ),
    "clusterroles.rbac.authorization.k8s.io": Kind(creates_on_update=True, warning=_NO_RBAC),
    "rolebindings.rbac.authorization.k8s.io": Kind(
        creates_on_update=True,
        set_defaults=defaults.set_defaults_role_binding,
        warning=_NO_RBAC,
    ),
    "roles.rbac.authorization.k8s.io": Kind(creates_on_update=True, warning=_NO_RBAC),
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
    return _CUSTOM if resource.is_custom else _KINDS.get(resource.key, _PLAIN)
