"""The scale subresource of custom objects."""

from __future__ import annotations

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.customresources.json_paths import first, put_at
from mooring.cluster.apiserver.customresources.resource import CustomResource, ScalePaths
from mooring.cluster.apiserver.store import Object

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def paths_of(resource: CustomResource) -> ScalePaths:
    """Where replicas and selector are; LookupError without the subresource."""
    if resource.served.scale is None:
        raise LookupError(f"{resource.qualified} has no scale subresource")
    return resource.served.scale


def custom_scale(resource: CustomResource, value: Object) -> Object:
    """The Scale of a custom object."""
    paths = paths_of(resource)
    meta = value["metadata"]
    replicas, current = first(value, paths.spec), first(value, paths.status)
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in _KEPT if field in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": current if isinstance(current, int) else 0},
    }
    selector = first(value, paths.selector) if paths.selector is not None else None
    if isinstance(selector, str) and selector:
        scale["status"]["selector"] = selector
    return scale


def check_replicas(resource: CustomResource, value: Object) -> None:
    """A Scale can't be read from an object without replicas."""
    paths = paths_of(resource)
    if first(value, paths.spec) is None:
        message = (
            f'Internal error occurred: the spec replicas field "{paths.spec_text}" does not exist'
        )
        causes = [{"message": message.removeprefix("Internal error occurred: ")}]
        raise StatusError(message, code=500, reason="InternalError", details={"causes": causes})


def with_custom_replicas(resource: CustomResource, value: Object, replicas: int) -> Object:
    put_at(value, paths_of(resource).spec, replicas)
    return value
