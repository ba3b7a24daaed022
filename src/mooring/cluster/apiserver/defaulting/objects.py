"""Defaults, kind by kind, and the initial status of objects."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from mooring.cluster.apiserver.defaulting.pods import fill, fill_empty
from mooring.cluster.apiserver.metadata import keep
from mooring.cluster.apiserver.pods import quality_of_service, set_condition
from mooring.cluster.apiserver.quantities import canonical, spell_resources
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object

_RBAC: Final = "rbac.authorization.k8s.io"
GATED: Final[Mapping[str, str]] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def prepare_status(resource: Resource, value: Object, now: str, old: Object | None) -> None:
    """Set the parts of a status that the server owns; `old` is None for a new object."""
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
    elif resource.key == "resourcequotas" and "status" in value:
        spell_resources(value["status"], "hard", "used")
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


def set_defaults_service(value: Object) -> None:
    spec = value.setdefault("spec", {})
    fill_empty(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    for port in spec.get("ports", ()):
        fill_empty(port, protocol="TCP", targetPort=port.get("port", 0))
    if spec["type"] in ("NodePort", "LoadBalancer"):
        fill_empty(spec, externalTrafficPolicy="Cluster")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def set_defaults_namespace(value: Object) -> None:
    meta = value["metadata"]
    if meta.get("name"):
        meta["labels"] = {**meta.get("labels", {}), "kubernetes.io/metadata.name": meta["name"]}
    value.setdefault("spec", {})
    value.setdefault("status", {}).setdefault("phase", "Active")


def set_defaults_persistent_volume(value: Object) -> None:
    spec = value.setdefault("spec", {})
    fill_empty(spec, persistentVolumeReclaimPolicy="Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    spell_resources(spec, "capacity")


def set_defaults_storage_class(value: Object) -> None:
    fill(value, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def set_defaults_csi_driver(value: Object) -> None:
    spec = value.setdefault("spec", {})
    fill(spec, attachRequired=True, fsGroupPolicy="ReadWriteOnceWithFSType")
    fill(spec, podInfoOnMount=False, requiresRepublish=False)
    fill(spec, storageCapacity=False, seLinuxMount=False)
    fill_empty(spec, volumeLifecycleModes=["Persistent"])


def set_defaults_csi_storage_capacity(value: Object) -> None:
    for field in ("capacity", "maximumVolumeSize"):
        if field in value:
            value[field] = canonical(value[field])


def set_defaults_secret(value: Object) -> None:
    fill_empty(value, type="Opaque")
    if plain := value.pop("stringData", None):
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        value["data"] = {**value.get("data", {}), **coded}


def set_defaults_quota(value: Object) -> None:
    spell_resources(value.setdefault("spec", {}), "hard")


def set_defaults_limit_range(value: Object) -> None:
    """For containers, limits default to the maximum, and requests to limits or else the minimum."""
    for item in value.setdefault("spec", {}).get("limits", ()):
        spell_resources(item, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        if item.get("type") == "Container":
            item["default"] = {**item.get("max", {}), **item.get("default", {})}
            least = {**item.get("min", {}), **item["default"]}
            item["defaultRequest"] = {**least, **item.get("defaultRequest", {})}
            for field in ("default", "defaultRequest"):
                if not item[field]:
                    del item[field]


def set_defaults_event(value: Object) -> None:
    fill(value, source={}, reportingComponent="", reportingInstance="")


def set_defaults_endpoints(value: Object) -> None:
    for subset in value.get("subsets", ()):
        for port in subset.get("ports", ()):
            fill_empty(port, protocol="TCP")


def set_defaults_endpoint_slice(value: Object) -> None:
    for port in value.get("ports") or ():
        fill(port, name="", protocol="TCP")
    for endpoint in value.get("endpoints") or ():
        endpoint.setdefault("conditions", {})


def set_defaults_role_binding(value: Object) -> None:
    value.setdefault("roleRef", {}).setdefault("apiGroup", _RBAC)
    for subject in value.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def set_defaults_resource_claim(value: Object) -> None:
    _set_defaults_devices(value.setdefault("spec", {}))


def set_defaults_resource_claim_template(value: Object) -> None:
    _set_defaults_devices(value.setdefault("spec", {}).setdefault("spec", {}))


def _set_defaults_devices(spec: Object) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        exact = [request["exactly"]] if "exactly" in request else []
        for one in (*exact, *request.get("firstAvailable", ())):
            fill_empty(one, allocationMode="ExactCount")
            if one["allocationMode"] == "ExactCount":
                fill_empty(one, count=1)


def set_defaults_runtime_class(value: Object) -> None:
    spell_resources(value.get("overhead", {}), "podFixed")


def set_defaults_priority_class(value: Object) -> None:
    fill(value, value=0, preemptionPolicy="PreemptLowerPriority")


def set_defaults_node(value: Object) -> None:
    value.setdefault("spec", {})
