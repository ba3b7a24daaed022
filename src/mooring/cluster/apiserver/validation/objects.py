"""Whether an object may be stored: metadata for all, and the rules of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mooring.cluster.apiserver import metadata
from mooring.cluster.apiserver.events import is_translated
from mooring.cluster.apiserver.failures import Problems
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation import kinds, workloads
from mooring.cluster.apiserver.validation.pods import (
    changed_pod_problems,
    new_pod_problems,
    pod_status_problems,
    spec_problems,
)

_Check = Callable[[Object], Problems]
_ChangeCheck = Callable[[Object, Object], Problems]


def problems_of_new(resource: Resource, value: Object) -> Problems:
    found = metadata.problems(resource, value["metadata"])
    check = _CHECKS.get(resource.key)
    if check is not None:
        found += check(value)
    if is_translated(resource):
        found += kinds.new_event_problems(value)
    return found


def problems_of_update(resource: Resource, new: Object, old: Object, subresource: str) -> Problems:
    meta, before = new["metadata"], old["metadata"]
    found: Problems = []
    if meta != before:
        found += metadata.problems(resource, meta)
        found += metadata.update_problems(meta, before)
    if subresource == "status":
        return found + (pod_status_problems(new, old) if resource.key == "pods" else [])
    if resource.key == "pods":
        return found + (
            spec_problems(new["spec"], "spec") if subresource else changed_pod_problems(new, old)
        )
    check, change_check = _CHECKS.get(resource.key), _CHANGE_CHECKS.get(resource.key)
    if check is not None and resource.key not in _ONLY_NEW:
        found += check(new)
    if change_check is not None:
        found += change_check(new, old)
    return found


# Nothing that is checked of them can change.
_ONLY_NEW: Final = ("priorityclasses.scheduling.k8s.io",)
_CHECKS: Final[Mapping[str, _Check]] = {
    "configmaps": kinds.config_map_problems,
    "events": kinds.event_problems,
    "nodes": kinds.node_problems,
    "persistentvolumeclaims": kinds.claim_problems,
    "persistentvolumes": kinds.volume_problems,
    "pods": new_pod_problems,
    "replicationcontrollers": workloads.replication_controller_problems,
    "services": kinds.service_problems,
    "daemonsets.apps": workloads.daemon_set_problems,
    "deployments.apps": workloads.deployment_problems,
    "replicasets.apps": workloads.replica_set_problems,
    "statefulsets.apps": workloads.stateful_set_problems,
    "jobs.batch": workloads.job_problems,
    "cronjobs.batch": workloads.cron_job_problems,
    "leases.coordination.k8s.io": kinds.lease_problems,
    "poddisruptionbudgets.policy": kinds.budget_problems,
    "priorityclasses.scheduling.k8s.io": kinds.priority_class_problems,
    "storageclasses.storage.k8s.io": kinds.storage_class_problems,
}

_CHANGE_CHECKS: Final[Mapping[str, _ChangeCheck]] = {
    "configmaps": kinds.config_change_problems,
    "persistentvolumeclaims": kinds.claim_change_problems,
    "secrets": kinds.config_change_problems,
    "services": kinds.service_change_problems,
    "daemonsets.apps": workloads.selector_change_problems,
    "deployments.apps": workloads.selector_change_problems,
    "replicasets.apps": workloads.selector_change_problems,
    "statefulsets.apps": workloads.stateful_set_change_problems,
    "jobs.batch": workloads.job_change_problems,
    "priorityclasses.scheduling.k8s.io": kinds.priority_class_change_problems,
    "storageclasses.storage.k8s.io": kinds.storage_class_change_problems,
}
