"""Validation of containers and volumes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from mooring.api.quantity import parse_quantity
from mooring.cluster.apiserver.errors import (
    ErrorList,
    duplicate,
    forbidden_field,
    invalid_value,
    invalid_values,
    not_found_value,
    one_of,
    required,
    unsupported,
)
from mooring.cluster.apiserver.names import label_faults, qualified_name_faults
from mooring.cluster.apiserver.pod_resources import amounts_of, is_pod_level, pod_amounts

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
BAD_PORT: Final = "must be between 1 and 65535, inclusive"
NEGATIVE: Final = "must be greater than or equal to 0"
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = ("cpu", "hugepages-", "memory")
_PORT_NAME: Final = re.compile(r"[-a-z0-9]*")
_VARIABLE: Final = re.compile(r"[ -<>-~]+")
_ONLY_FOR_SIDECARS: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def validate_containers(
    containers: Sequence[Mapping[str, Any]],
    field: str,
    volumes: frozenset[str],
    others: Sequence[Mapping[str, Any]] = (),
) -> ErrorList:
    """Of containers, or of init containers if there are `others` whose names are taken."""
    found: ErrorList = []
    seen = {other.get("name", "") for other in others}
    for index, container in enumerate(containers):
        place = f"{field}[{index}]"
        found += _validate_container(container, place, volumes)
        name = container.get("name", "")
        if name in seen:
            found.append(duplicate(f"{place}.name", name))
        seen.add(name)
        if others and container.get("restartPolicy") != "Always":
            why = "may not be set for init containers without restartPolicy=Always"
            for part in _ONLY_FOR_SIDECARS:
                if part in container:
                    found.append(forbidden_field(f"{place}.{part}", why))
    if not others:
        found += _validate_host_ports(containers, field)
    return found


def _validate_container(
    container: Mapping[str, Any], field: str, volumes: frozenset[str]
) -> ErrorList:
    name = container.get("name", "")
    found = invalid_values(f"{field}.name", name, label_faults(name)) if name else []
    if not name:
        found.append(required(f"{field}.name"))
    if not container.get("image"):
        found.append(required(f"{field}.image"))
    found += _validate_ports(container.get("ports") or (), f"{field}.ports")
    found += _validate_env(container.get("env") or (), f"{field}.env")
    mounts = container.get("volumeMounts") or ()
    found += _validate_volume_mounts(mounts, f"{field}.volumeMounts", volumes)
    policy = container.get("imagePullPolicy")
    found += one_of(f"{field}.imagePullPolicy", policy, _PULL_POLICIES)
    return found + validate_resources(container.get("resources") or {}, f"{field}.resources")


def _validate_ports(ports: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    names = set()
    for index, port in enumerate(ports):
        place = f"{field}[{index}]"
        if name := port.get("name", ""):
            found += invalid_values(f"{place}.name", name, port_name_faults(name))
            if name in names:
                found.append(duplicate(f"{place}.name", name))
            names.add(name)
        number, of_host = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            found.append(required(f"{place}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(invalid_value(f"{place}.containerPort", number, BAD_PORT))
        if of_host and not 1 <= of_host <= 65535:
            found.append(invalid_value(f"{place}.hostPort", of_host, BAD_PORT))
        found += one_of(f"{place}.protocol", port.get("protocol", ""), PROTOCOLS)
    return found


def port_name_faults(name: str) -> list[str]:
    faults = []
    if len(name) > 15:
        faults.append("must be no more than 15 characters")
    if _PORT_NAME.fullmatch(name) is None:
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def _validate_host_ports(containers: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    taken = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                found.append(duplicate(f"{field}[{index}].ports[{number}].hostPort", key))
            taken.add(key)
    return found


def _validate_env(variables: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    why = (
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='"
    )
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            found.append(required(f"{field}[{index}].name"))
        elif _VARIABLE.fullmatch(name) is None:
            found.append(invalid_value(f"{field}[{index}].name", name, why))
    return found


def _validate_volume_mounts(
    mounts: Sequence[Mapping[str, Any]], field: str, volumes: frozenset[str]
) -> ErrorList:
    found: ErrorList = []
    paths = set()
    for index, mount in enumerate(mounts):
        place = f"{field}[{index}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(f"{place}.name"))
        elif name not in volumes:
            found.append(not_found_value(f"{place}.name", name))
        if not path:
            found.append(required(f"{place}.mountPath"))
        elif path in paths:
            found.append(invalid_value(f"{place}.mountPath", path, "must be unique"))
        paths.add(path)
    return found


# --- resources ---------------------------------------------------------------------------------


def validate_pod_resources(spec: Mapping[str, Any], field: str) -> ErrorList:
    """Of the requests and limits of a whole pod, and how its containers fit into them."""
    whole = spec["resources"]
    found = validate_resources(whole, field, of_pod=True)
    requests, limits = whole.get("requests") or {}, whole.get("limits") or {}
    for name, amount in pod_amounts({**spec, "resources": {}}, "requests").items():
        if is_pod_level(name) and name in requests and parse_quantity(requests[name]) < amount:
            why = f"must be greater than or equal to aggregate container requests of {amount}"
            found.append(invalid_value(f"{field}.requests[{name}]", requests[name], why))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in amounts_of(container, "limits").items():
            if name in limits and parse_quantity(limits[name]) < amount:
                place = f"{field}.containers[{index}][{name}].limits"
                why = f"must be less than or equal to pod limits of {limits[name]}"
                found.append(invalid_value(place, str(amount), why))
    return found


def validate_resources(
    resources: Mapping[str, Any], field: str, *, of_pod: bool = False
) -> ErrorList:
    """Of requests and limits, of a container or of a whole pod."""
    found: ErrorList = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in limits.items():
        found += _validate_amount(name, amount, f"{field}.limits[{name}]", of_pod=of_pod)
    for name, amount in requests.items():
        found += _validate_amount(name, amount, f"{field}.requests[{name}]", of_pod=of_pod)
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                why = "Limit must be set for non overcommitable resources"
                found.append(required(f"{field}.limits", why))
        elif amount != limit:
            asked, most = parse_quantity(amount), parse_quantity(limit)
            if asked != most and not may_overcommit(name):
                why = f"must be equal to {name} limit of {limit}"
                found.append(invalid_value(f"{field}.requests", amount, why))
            elif asked > most:
                why = f"must be less than or equal to {name} limit of {limit}"
                found.append(invalid_value(f"{field}.requests", amount, why))
    return found


def _validate_amount(name: str, amount: str, field: str, *, of_pod: bool) -> ErrorList:
    faults = container_resource_faults(name)
    if of_pod and not faults and not is_pod_level(name):
        return [unsupported(field, name, _OF_PODS), *validate_quantity(name, amount, field)]
    found = invalid_values(field, name, faults[:1] if of_pod else faults)
    return found + validate_quantity(name, amount, field)


def validate_quantity(name: str, amount: str, field: str) -> ErrorList:
    found: ErrorList = []
    nanos = parse_quantity(amount).nanos
    if nanos < 0:
        found.append(invalid_value(field, amount, NEGATIVE))
    if nanos % 10**9 and not (is_native(name) and name != "pods"):
        found.append(invalid_value(field, amount, "must be an integer"))
    return found


@lru_cache(maxsize=4096)
def container_resource_faults(name: str) -> tuple[str, ...]:
    faults = qualified_name_faults(name)
    if "/" not in name:
        is_standard = name in _STANDARD or name.startswith("hugepages-")
        if not faults and not is_standard:
            faults = ("must be a standard resource type or fully qualified",)
        return faults if is_standard else (*faults, "must be a standard resource for containers")
    if not is_native(name) and (faults or name.startswith("requests.")):
        return (*faults, "doesn't follow extended resource name standard")
    return faults


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    return is_native(name) and not name.startswith("hugepages-")


# --- volumes -----------------------------------------------------------------------------------


def validate_volumes(volumes: Sequence[Mapping[str, Any]], field: str) -> ErrorList:
    found: ErrorList = []
    seen = set()
    for index, volume in enumerate(volumes):
        place = f"{field}[{index}]"
        kinds = [kind for kind in volume if kind != "name"]
        for kind in sorted(kinds, key=_KINDS.index)[1:] if set(kinds) <= set(_KINDS) else kinds[1:]:
            why = "may not specify more than 1 volume type"
            found.append(forbidden_field(f"{place}.{kind}", why))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            found.append(required(f"{place}.persistentVolumeClaim.claimName"))
        path = volume.get("hostPath")
        if path is not None and not path.get("path"):
            found.append(required(f"{place}.hostPath.path"))
        name = volume.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
        else:
            found += invalid_values(f"{place}.name", name, label_faults(name))
            if name in seen:
                found.append(duplicate(f"{place}.name", name))
            seen.add(name)
    return found


# In the order of the real server; the first of several counts.
_KINDS: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret",
    "nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs",
    "quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
