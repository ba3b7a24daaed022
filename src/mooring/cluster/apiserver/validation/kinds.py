"""Validation of nodes, services, claims, volumes, priority classes, budgets and other kinds."""

from __future__ import annotations

import re
from typing import Any, Final

from mooring.api.quantity import parse_quantity
from mooring.cluster.apiserver.errors import (
    ErrorList,
    FieldError,
    forbidden_field,
    invalid_value,
    invalid_values,
    one_of,
    required,
    shown,
    unsupported,
)
from mooring.cluster.apiserver.names import label_value_faults, qualified_name_faults
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.validation.containers import (
    BAD_PORT,
    NEGATIVE,
    PROTOCOLS,
    port_name_faults,
)
from mooring.cluster.apiserver.validation.placement import EFFECTS
from mooring.cluster.apiserver.validation.selectors import (
    validate_label_selector,
    validate_node_selector,
)
from mooring.cluster.apiserver.validation.workloads import IMMUTABLE, validate_int_or_percent

HIGHEST_PRIORITY: Final = 1_000_000_000  # that users may give
_SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_ACCESS: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_LONGEST_KEY: Final = 253
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_NOT_SOURCES: Final = frozenset(
    (
        "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity",
        "persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName",
        "volumeMode",
    )
)  # fmt: skip
_BAD_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',"
    "  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def validate_node(value: Object) -> ErrorList:
    found: ErrorList = []
    seen = set()
    for index, taint in enumerate(value.get("spec", {}).get("taints") or ()):
        place = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        found += invalid_values(f"{place}.key", key, qualified_name_faults(key))
        text = taint.get("value", "")
        if faults := label_value_faults(text):
            found.append(invalid_value(f"{place}.value", text, ";".join(faults)))
        if not effect:
            found.append(required(f"{place}.effect"))
        elif effect not in EFFECTS:
            found.append(unsupported(f"{place}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            added = taint.get("timeAdded")
            parts = {"Key": key, "Value": text, "Effect": effect, "TimeAdded": added}
            message = f"Duplicate value: {shown(parts)}: taints must be unique by key and effect"
            found.append(FieldError(place, f"{message} pair", "FieldValueDuplicate"))
        seen.add((key, effect))
    status = value.get("status", {})
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            if parse_quantity(amount).nanos < 0:
                found.append(invalid_value(f"status.{field}.{name}", amount, NEGATIVE))
    return found


def validate_service(value: Object) -> ErrorList:
    spec = value["spec"]
    found: ErrorList = []
    ports = spec.get("ports") or ()
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        found.append(required("spec.ports"))
    for index, port in enumerate(ports):
        place = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            found.append(required(f"{place}.name"))
        number, target = port.get("port", 0), port.get("targetPort")
        if not 1 <= number <= 65535:
            found.append(invalid_value(f"{place}.port", number, BAD_PORT))
        found += one_of(f"{place}.protocol", port["protocol"], PROTOCOLS)
        if isinstance(target, int) and not 1 <= target <= 65535:
            found.append(invalid_value(f"{place}.targetPort", target, BAD_PORT))
        elif isinstance(target, str):
            faults = port_name_faults(target)
            found += invalid_values(f"{place}.targetPort", target, faults)
    found += one_of("spec.type", spec["type"], _SERVICE_TYPES)
    return found


def validate_service_update(new: Object, old: Object) -> ErrorList:
    spec, before = new["spec"], old["spec"]
    address = before.get("clusterIP")
    if not address or spec["type"] == "ExternalName" or spec.get("clusterIP") == address:
        return []
    why = "may not change once set"
    return [invalid_value("spec.clusterIPs[0]", spec.get("clusterIP", ""), why)]


def validate_persistent_volume_claim(value: Object) -> ErrorList:
    spec = value["spec"]
    found = validate_label_selector(spec.get("selector"), "spec.selector")
    modes = spec.get("accessModes") or ()
    if not modes:
        found.append(required("spec.accessModes", "at least 1 access mode is required"))
    for mode in modes:
        found += one_of("spec.accessModes", mode, _ACCESS)
    amount = (spec["resources"].get("requests") or {}).get("storage")
    if amount is None:
        found.append(required("spec.resources[storage]"))
    elif parse_quantity(amount).nanos <= 0:
        found.append(invalid_value("spec.resources[storage]", amount, "must be greater than zero"))
    return found


def validate_persistent_volume_claim_update(new: Object, old: Object) -> ErrorList:
    def fixed(spec: Object) -> Object:
        loose = ("volumeName", "resources", "volumeAttributesClassName", "storageClassName")
        return {key: part for key, part in spec.items() if key not in loose}

    spec, before = new["spec"], old["spec"]
    found: ErrorList = []
    is_bound_again = before.get("volumeName", spec.get("volumeName")) != spec.get("volumeName")
    is_other_class = before.get("storageClassName") not in (None, spec.get("storageClassName"))
    if is_bound_again or is_other_class or fixed(spec) != fixed(before):
        why = (
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims"
        )
        found.append(forbidden_field("spec", why))
    was, wanted = (
        (one["resources"].get("requests") or {}).get("storage", "0") for one in (before, spec)
    )
    bound = old.get("status", {}).get("capacity", {}).get("storage", "0")
    if parse_quantity(wanted) < max(parse_quantity(bound), parse_quantity("0")) and wanted != was:
        why = "field can not be less than status.capacity"
        found.append(forbidden_field("spec.resources.requests.storage", why))
    return found


def validate_persistent_volume(value: Object) -> ErrorList:
    spec = value["spec"]
    found: ErrorList = []
    modes, capacity = spec.get("accessModes") or (), spec.get("capacity")
    if not modes:
        found.append(required("spec.accessModes"))
    for mode in modes:
        found += one_of("spec.accessModes", mode, _ACCESS)
    if not capacity:
        found.append(required("spec.capacity"))
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        found.append(unsupported("spec.capacity", capacity, ("storage",)))
    for name, amount in (capacity or {}).items():
        if parse_quantity(amount).nanos <= 0:
            found.append(
                invalid_value(f"spec.capacity[{name}]", amount, "must be greater than zero")
            )
    affinity = spec.get("nodeAffinity")
    sources = [key for key in spec if key not in _NOT_SOURCES]
    if not sources:
        found.append(required("spec", "must specify a volume type"))
    if affinity is not None:
        needed = affinity.get("required")
        if needed is None:
            why = "must specify required node constraints"
            found.append(required("spec.nodeAffinity.required", why))
        else:
            found += validate_node_selector(needed, "spec.nodeAffinity.required")
    elif "local" in spec:
        found.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return found


def validate_priority_class(value: Object) -> ErrorList:
    name, number = value["metadata"].get("name", ""), value["value"]
    found: ErrorList = []
    if name.startswith("system-"):
        if _SYSTEM.get(name) != number:
            why = f"{name} is not a known system priority class"
            if name in _SYSTEM:
                why = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
            start = "priority class names with 'system-' prefix are reserved for system use only."
            found.append(forbidden_field("metadata.name", f"{start} error: {why}"))
    elif number > HIGHEST_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"
        found.append(forbidden_field("value", why))
    policy = value["preemptionPolicy"]
    found += one_of("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    return found


def validate_priority_class_update(new: Object, old: Object) -> ErrorList:
    found: ErrorList = []
    if new["value"] != old["value"]:
        found.append(forbidden_field("value", "may not be changed in an update."))
    if new["preemptionPolicy"] != old.get("preemptionPolicy"):
        why = "field is immutable"
        found.append(invalid_value("preemptionPolicy", new["preemptionPolicy"], why))
    return found


def validate_pod_disruption_budget(value: Object) -> ErrorList:
    spec = value.get("spec") or {}
    found: ErrorList = []
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        parts = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        why = "minAvailable and maxUnavailable cannot be both set"
        found.append(invalid_value("spec", parts, why))
    for name, share in (("minAvailable", least), ("maxUnavailable", most)):
        if share is not None:
            found += validate_int_or_percent(share, f"spec.{name}")
    policy = spec.get("unhealthyPodEvictionPolicy", "AlwaysAllow")
    found += one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
    return found + validate_label_selector(spec.get("selector"), "spec.selector")


def validate_storage_class(value: Object) -> ErrorList:
    found: ErrorList = []
    if not value.get("provisioner"):
        found.append(required("provisioner"))
    found += one_of("reclaimPolicy", value["reclaimPolicy"], ("Delete", "Retain"))
    found += one_of(
        "volumeBindingMode", value["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer")
    )
    return found


def validate_storage_class_update(new: Object, old: Object) -> ErrorList:
    return [
        invalid_value(field, new.get(field), IMMUTABLE)
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        if new.get(field) != old.get(field)
    ]


def validate_lease(value: Object) -> ErrorList:
    spec = value.get("spec") or {}
    found: ErrorList = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        why = "must be greater than 0"
        found.append(invalid_value("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], why))
    if spec.get("leaseTransitions", 0) < 0:
        found.append(invalid_value("spec.leaseTransitions", spec["leaseTransitions"], NEGATIVE))
    return found


def validate_config_map(value: Object) -> ErrorList:
    found: ErrorList = []
    for field in ("data", "binaryData"):
        for key in value.get(field) or ():
            found += invalid_values(f"{field}[{key}]", key, _key_faults(key))
            if field == "binaryData" and key in (value.get("data") or ()):
                why = f"duplicate of key present in {field}"
                found.append(invalid_value(f"data[{key}]", key, why))
    return found


def validate_secret(value: Object) -> ErrorList:
    return [
        invalid_value(f"data[{key}]", key, fault)
        for key in value.get("data") or ()
        for fault in _key_faults(key)
    ]


def _key_faults(key: str) -> list[str]:
    """Of a key of a config map or a secret: it becomes the name of a file."""
    found = []
    if len(key) > _LONGEST_KEY:
        found.append(f"must be no more than {_LONGEST_KEY} characters")
    if _CONFIG_KEY.fullmatch(key) is None:
        found.append(_BAD_KEY)
    elif key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found


def validate_immutable_update(new: Object, old: Object) -> ErrorList:
    """Of config maps and secrets."""
    found: ErrorList = []
    if old.get("immutable"):
        why = "field is immutable when `immutable` is set"
        for field in ("immutable", "data", "binaryData"):
            if new.get(field) != old.get(field):
                found.append(forbidden_field(field, why))
    if new.get("type") != old.get("type"):
        found.append(invalid_value("type", new.get("type"), IMMUTABLE))
    return found


def validate_event(value: Object) -> ErrorList:
    """Of events in either form; those with an eventTime follow the newer rules."""
    meta, about = value["metadata"], value.get("involvedObject") or {}
    namespace = meta.get("namespace", "")
    if about.get("namespace", "") not in ("", namespace):
        why = "does not match event.namespace"
        return [invalid_value("involvedObject.namespace", about["namespace"], why)]
    return []


def validate_new_event(value: Object) -> ErrorList:
    """Of events created through events.k8s.io, in the form they are stored in."""
    found: ErrorList = []
    called = {"reportingComponent": "reportingController"}  # in this group
    fields = ["eventTime"]
    if value.get("eventTime"):
        fields = ["reportingComponent", "reportingInstance", "action", "reason"]
    for field in fields:
        if not value.get(field):
            found.append(required(called.get(field, field)))
    kind: Any = value.get("type", "")
    if kind not in ("Normal", "Warning"):
        found.append(invalid_value("type", kind, f"has invalid value: {kind}"))
    return found
