"""The Scale subresource of workloads with replicas."""

from __future__ import annotations

from typing import Any

from mooring.api.codec import convert
from mooring.api.meta import LabelSelector
from mooring.api.selectors import Selector, SelectorError
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.customresources.scaling import custom_scale, with_custom_replicas
from mooring.cluster.apiserver.errors import invalid_kind, invalid_value
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object


def scale_of(resource: Resource, value: Object) -> Object:
    """The Scale of a workload with replicas, or of a custom object."""
    if isinstance(resource, CustomResource):
        return custom_scale(resource, value)
    meta, spec, status = value["metadata"], value.get("spec", {}), value.get("status", {})
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in kept if field in meta},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {"replicas": status.get("replicas", 0)},
    }
    if selector := _selector_text(spec.get("selector")):
        scale["status"]["selector"] = selector
    return scale


def replicas_of(resource: Resource, scale: Object, name: str) -> int:
    """The replicas that a Scale asks for; custom objects have rules of their own."""
    replicas = scale.get("spec", {}).get("replicas", 0)
    asked = scale.get("metadata", {}).get("name", name)
    if not isinstance(replicas, int) or (replicas < 0 and not resource.is_custom):
        problem = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_kind("Scale", "autoscaling", asked, [problem])
    return replicas


def with_replicas(resource: Resource, value: Object, replicas: int) -> Object:
    if isinstance(resource, CustomResource):
        return with_custom_replicas(resource, value, replicas)
    return {**value, "spec": {**value.get("spec", {}), "replicas": replicas}}


def _selector_text(selector: Any) -> str:
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return str(Selector.from_map(selector))  # of a replication controller
    try:
        return str(Selector.from_label_selector(convert(selector, LabelSelector)))
    except SelectorError:  # accepted by older rules; it has no text form
        return ""
