"""Defaults of pods and pod templates."""

from __future__ import annotations

from typing import Any, Final

from mooring.cluster.apiserver.pod_resources import is_pod_level, pod_amounts
from mooring.cluster.apiserver.quantities import canonical, spell_resources
from mooring.cluster.apiserver.store import Object

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_READABLE: Final = 0o644  # the mode of files in volumes


def fill(holder: Object, **usual: Any) -> None:
    """Set the fields that are absent."""
    for field, value in usual.items():
        holder.setdefault(field, value)


def fill_empty(holder: Object, **usual: Any) -> None:
    """Set the fields that are absent, empty or zero."""
    for field, value in usual.items():
        if not holder.get(field):
            holder[field] = value


def set_defaults_pod(pod: Object) -> None:
    """For pods, not templates: requests default to limits."""
    spec = pod.setdefault("spec", {})
    set_defaults_spec(spec)
    for container in _containers(spec):
        resources = container["resources"]
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **resources.get("requests", {})}
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in _containers(spec):
            for port in container.get("ports", ()):
                fill_empty(port, hostPort=port.get("containerPort", 0))
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _set_defaults_pod_resources(spec)


def set_defaults_template(holder: Object) -> None:
    """For the template of a workload."""
    template = holder.setdefault("template", {})
    template.setdefault("metadata", {})
    set_defaults_spec(template.setdefault("spec", {}))


def set_defaults_spec(spec: Object) -> None:
    fill_empty(spec, restartPolicy="Always", dnsPolicy="ClusterFirst")
    fill_empty(spec, schedulerName="default-scheduler")
    fill(spec, terminationGracePeriodSeconds=30, securityContext={})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in (*_containers(spec), *spec.get("ephemeralContainers", ())):
        _set_defaults_container(container)
    for volume in spec.get("volumes", ()):
        _set_defaults_volume(volume)
    spell_resources(spec, "overhead")
    if "resources" in spec:
        spell_resources(spec["resources"], "requests", "limits")


def _containers(spec: Object) -> list[Object]:
    found: list[Object] = spec.get("containers", [])
    return [*found, *spec["initContainers"]] if spec.get("initContainers") else found


def _set_defaults_container(container: Object) -> None:
    is_latest = _tag(container.get("image", "")) == "latest"
    fill_empty(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if is_latest else "IfNotPresent",
    )
    spell_resources(container.setdefault("resources", {}), "requests", "limits")
    for port in container.get("ports", ()):
        fill_empty(port, protocol="TCP")
    for variable in container.get("env", ()):
        _set_defaults_source(variable.get("valueFrom", {}))
    for field in _PROBES:
        if field in container:
            _set_defaults_probe(container[field])
    for hook in container.get("lifecycle", {}).values():
        if isinstance(hook, dict) and "httpGet" in hook:
            _set_defaults_http(hook["httpGet"])


def _set_defaults_probe(probe: Object) -> None:
    fill_empty(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if "httpGet" in probe:
        _set_defaults_http(probe["httpGet"])
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _set_defaults_http(get: Object) -> None:
    fill_empty(get, path="/", scheme="HTTP")


def _set_defaults_source(source: Object) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        reference["divisor"] = canonical(reference.get("divisor", "0"))


def _set_defaults_volume(volume: Object) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    if "sizeLimit" in volume.get("emptyDir", {}):
        volume["emptyDir"]["sizeLimit"] = canonical(volume["emptyDir"]["sizeLimit"])
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if kind in volume:
            volume[kind].setdefault("defaultMode", _READABLE)
    for item in volume.get("downwardAPI", {}).get("items", ()):
        _set_defaults_source(item)
    for source in volume.get("projected", {}).get("sources", ()):
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in source.get("downwardAPI", {}).get("items", ()):
            _set_defaults_source(item)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    claim = volume.get("ephemeral", {}).get("volumeClaimTemplate", {})
    if "spec" in claim:
        claim["spec"].setdefault("volumeMode", "Filesystem")
        spell_resources(claim["spec"].get("resources", {}), "requests", "limits")


def _set_defaults_pod_resources(spec: Object) -> None:
    """Pod-level requests default to those of the containers, then to the pod-level limits.

    Huge pages can't be overcommitted: they have the limits of the containers as well.
    """
    whole: Any = spec.get("resources")
    if not whole or not (whole.get("limits") or whole.get("requests")):
        return
    parts = {part: spec.get(part) for part in ("containers", "initContainers")}
    limits = dict(whole.get("limits") or {})
    for name, amount in pod_amounts(parts, "limits").items():
        if name.startswith("hugepages-"):
            limits.setdefault(name, str(amount))
    if not limits:
        return
    asked = {name: str(amount) for name, amount in pod_amounts(parts, "requests").items()}
    usual = {name: amount for name, amount in {**limits, **asked}.items() if is_pod_level(name)}
    whole["limits"] = limits
    if usual:
        whole["requests"] = {**usual, **(whole.get("requests") or {})}


def _tag(image: str) -> str:
    """The tag of an image; `latest` if it has neither a tag nor a digest."""
    name, has_digest, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or ("" if has_digest else "latest")
