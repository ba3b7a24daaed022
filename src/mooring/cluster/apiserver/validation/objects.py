"""Validation by kind: object metadata, and the rules of the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mooring.cluster.apiserver import metadata
from mooring.cluster.apiserver.errors import ErrorList
from mooring.cluster.apiserver.events import is_translated
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation import kinds, workloads
from mooring.cluster.apiserver.validation.pods import (
    validate_pod_create,
    validate_pod_spec,
    validate_pod_status_update,
    validate_pod_update,
)

_Check = Callable[[Object], ErrorList]
_ChangeCheck = Callable[[Object, Object], ErrorList]


def validate_create(resource: Resource, value: Object) -> ErrorList:
    found = metadata.validate_object_meta(resource, value["metadata"])
    check = _CHECKS.get(resource.key)
    if check is not None:
        found += check(value)
    if is_translated(resource):
        found += kinds.validate_new_event(value)
    return found


def validate_update(resource: Resource, new: Object, old: Object, subresource: str) -> ErrorList:
    meta, before = new["metadata"], old["metadata"]
    found: ErrorList = []
    if meta != before:
        found += metadata.validate_object_meta(resource, meta)
        found += metadata.validate_object_meta_update(meta, before)
    if subresource == "status":
        return found + (validate_pod_status_update(new, old) if resource.key == "pods" else [])
    if resource.key == "pods":
        return found + (
            validate_pod_spec(new["spec"], "spec") if subresource else validate_pod_update(new, old)
        )
    check, change_check = _CHECKS.get(resource.key), _CHANGE_CHECKS.get(resource.key)
    if check is not None and resource.key not in _ONLY_NEW:
        found += check(new)
    if change_check is not None:
        found += change_check(new, old)
    return found


# Validated on creation only: the checked fields can't change.
_ONLY_NEW: Final = ("priorityclasses.scheduling.k8s.io",)
_CHECKS: Final[Mapping[str, _Check]] = {
    "configmaps": kinds.validate_config_map,
    "events": kinds.validate_event,
    "nodes": kinds.validate_node,
    "persistentvolumeclaims": kinds.validate_persistent_volume_claim,
    "persistentvolumes": kinds.validate_persistent_volume,
    "pods": validate_pod_create,
    "replicationcontrollers": workloads.validate_replication_controller,
    "services": kinds.validate_service,
    "daemonsets.apps": workloads.validate_daemon_set,
    "deployments.apps": workloads.validate_deployment,
    "replicasets.apps": workloads.validate_replica_set,
    "statefulsets.apps": workloads.validate_stateful_set,
    "jobs.batch": workloads.validate_job,
    "cronjobs.batch": workloads.validate_cron_job,
    "leases.coordination.k8s.io": kinds.validate_lease,
    "poddisruptionbudgets.policy": kinds.validate_pod_disruption_budget,
    "priorityclasses.scheduling.k8s.io": kinds.validate_priority_class,
    "storageclasses.storage.k8s.io": kinds.validate_storage_class,
}

_CHANGE_CHECKS: Final[Mapping[str, _ChangeCheck]] = {
    "configmaps": kinds.validate_immutable_update,
    "persistentvolumeclaims": kinds.validate_persistent_volume_claim_update,
    "secrets": kinds.validate_immutable_update,
    "services": kinds.validate_service_update,
    "daemonsets.apps": workloads.validate_selector_update,
    "deployments.apps": workloads.validate_selector_update,
    "replicasets.apps": workloads.validate_selector_update,
    "statefulsets.apps": workloads.validate_stateful_set_update,
    "jobs.batch": workloads.validate_job_update,
    "priorityclasses.scheduling.k8s.io": kinds.validate_priority_class_update,
    "storageclasses.storage.k8s.io": kinds.validate_storage_class_update,
}
