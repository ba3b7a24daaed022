"""What objects have although nobody wrote it, kind by kind; and the status they begin with."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.defaulting.pods import fill_in_pod
from mooring.cluster.apiserver.defaulting.workloads import (
    fill_in_claim,
    fill_in_cron_job,
    fill_in_daemon_set,
    fill_in_deployment,
    fill_in_job,
    fill_in_replica_set,
    fill_in_replication_controller,
    fill_in_stateful_set,
)
from mooring.cluster.apiserver.failures import bad_request
from mooring.cluster.apiserver.pods import quality_of_service, set_condition
from mooring.cluster.apiserver.quantities import BadQuantity, canonical, spell_resources
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.strategies import keep

_RBAC: Final = "rbac.authorization.k8s.io"
GATED: Final[Mapping[str, str]] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def fill_in(resource: Resource, value: Object) -> None:
    """Fill in what was left out; raises for amounts that are none."""
    try:
        filling = _FILLINGS.get(resource.key)
        if filling is not None:
            filling(value)
    except BadQuantity as error:
        raise _unreadable(resource, error) from error


def _unreadable(resource: Resource, error: BadQuantity) -> StatusError:
    kind = resource.kind
    return bad_request(
        f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {error}'
    )


def prepare_status(resource: Resource, value: Object, now: str, old: Object | None = None) -> None:
    """See to the parts of a status that are the server's own; without `old` for a new object."""
    try:
        _prepare_status(resource, value, now, old)
    except BadQuantity as error:
        raise _unreadable(resource, error) from error


def _prepare_status(resource: Resource, value: Object, now: str, old: Object | None) -> None:
    if resource.key == "pods":
        _prepare_pod_status(value, old, now)
    elif resource.key == "persistentvolumes":
        status = value.setdefault("status", {})
        before = {} if old is None else old.get("status", {})
        since = "lastPhaseTransitionTime"
        if status.get("phase") != before.get("phase"):
            if status.get(since) == before.get(since):
                status[since] = now
        elif since not in status:
            keep(status, before, since)
    elif resource.key == "nodes" and "status" in value:
        status = value["status"]
        if "allocatable" not in status and "capacity" in status:
            status["allocatable"] = dict(status["capacity"])
        spell_resources(status, "capacity", "allocatable")


def _prepare_pod_status(pod: Object, old: Object | None, now: str) -> None:
    status = pod.setdefault("status", {})
    if old is None:
        if pod["spec"].get("schedulingGates"):
            set_condition(status, dict(GATED), now)
        status["qosClass"] = quality_of_service(pod["spec"])
        return
    before = old.get("status", {})
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]
    if not status.get("qosClass"):
        keep(status, before, "qosClass")
    if not status.get("observedGeneration"):
        keep(status, before, "observedGeneration")
    known = {one.get("type"): one for one in before.get("conditions", ())}
    for condition in status.get("conditions", ()):
        if not condition.get("observedGeneration"):
            keep(condition, known.get(condition.get("type"), {}), "observedGeneration")


# --- kind by kind ------------------------------------------------------------------------------


def _fill_in_service(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    spec["type"] = spec.get("type") or "ClusterIP"
    for port in spec.get("ports", ()):
        port["protocol"] = port.get("protocol") or "TCP"
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _fill_in_namespace(value: Object) -> None:
    meta = value["metadata"]
    if meta.get("name"):
        meta["labels"] = {**meta.get("labels", {}), "kubernetes.io/metadata.name": meta["name"]}
    value.setdefault("spec", {})
    value.setdefault("status", {}).setdefault("phase", "Active")


def _fill_in_volume(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    spell_resources(spec, "capacity")


def _fill_in_storage_class(value: Object) -> None:
    value.setdefault("reclaimPolicy", "Delete")
    value.setdefault("volumeBindingMode", "Immediate")


def _fill_in_driver(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    for field in ("podInfoOnMount", "requiresRepublish", "storageCapacity", "seLinuxMount"):
        spec.setdefault(field, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec["volumeLifecycleModes"] = spec.get("volumeLifecycleModes") or ["Persistent"]


def _fill_in_capacity(value: Object) -> None:
    for field in ("capacity", "maximumVolumeSize"):
        if field in value:
            value[field] = canonical(value[field])


def _fill_in_secret(value: Object) -> None:
    value["type"] = value.get("type") or "Opaque"
    if plain := value.pop("stringData", None):
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        value["data"] = {**value.get("data", {}), **coded}


def _fill_in_quota(value: Object) -> None:
    spell_resources(value.setdefault("spec", {}), "hard")


def _fill_in_event(value: Object) -> None:
    value.setdefault("source", {})
    value.setdefault("reportingComponent", "")
    value.setdefault("reportingInstance", "")


def _fill_in_endpoints(value: Object) -> None:
    for subset in value.get("subsets", ()):
        for port in subset.get("ports", ()):
            port["protocol"] = port.get("protocol") or "TCP"


def _fill_in_binding(value: Object) -> None:
    value.setdefault("roleRef", {}).setdefault("apiGroup", _RBAC)
    for subject in value.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def _fill_in_resource_claim(value: Object) -> None:
    _fill_in_devices(value.setdefault("spec", {}))


def _fill_in_resource_claim_template(value: Object) -> None:
    _fill_in_devices(value.setdefault("spec", {}).setdefault("spec", {}))


def _fill_in_devices(spec: Object) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        exact = [request["exactly"]] if "exactly" in request else []
        for one in (*exact, *request.get("firstAvailable", ())):
            one["allocationMode"] = one.get("allocationMode") or "ExactCount"
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1


def _fill_in_runtime_class(value: Object) -> None:
    spell_resources(value.get("overhead", {}), "podFixed")


def _fill_in_priority_class(value: Object) -> None:
    value.setdefault("value", 0)
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _fill_in_node(value: Object) -> None:
    value.setdefault("spec", {})


_FILLINGS: Final[Mapping[str, Callable[[Any], None]]] = {
    "endpoints": _fill_in_endpoints,
    "events": _fill_in_event,
    "namespaces": _fill_in_namespace,
    "nodes": _fill_in_node,
    "persistentvolumeclaims": fill_in_claim,
    "persistentvolumes": _fill_in_volume,
    "pods": fill_in_pod,
    "replicationcontrollers": fill_in_replication_controller,
    "resourcequotas": _fill_in_quota,
    "secrets": _fill_in_secret,
    "services": _fill_in_service,
    "daemonsets.apps": fill_in_daemon_set,
    "deployments.apps": fill_in_deployment,
    "replicasets.apps": fill_in_replica_set,
    "statefulsets.apps": fill_in_stateful_set,
    "jobs.batch": fill_in_job,
    "cronjobs.batch": fill_in_cron_job,
    "runtimeclasses.node.k8s.io": _fill_in_runtime_class,
    f"clusterrolebindings.{_RBAC}": _fill_in_binding,
    f"rolebindings.{_RBAC}": _fill_in_binding,
    "resourceclaims.resource.k8s.io": _fill_in_resource_claim,
    "resourceclaimtemplates.resource.k8s.io": _fill_in_resource_claim_template,
    "priorityclasses.scheduling.k8s.io": _fill_in_priority_class,
    "csidrivers.storage.k8s.io": _fill_in_driver,
    "csistoragecapacities.storage.k8s.io": _fill_in_capacity,
    "storageclasses.storage.k8s.io": _fill_in_storage_class,
}
