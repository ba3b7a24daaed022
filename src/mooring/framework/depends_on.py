"""What a plugin's results depend on, so that they can be cached."""

from __future__ import annotations

import enum
from typing import Any, Final

from msgspec import structs

from mooring.cache.pods import Pod


class DependsOn(enum.Enum):
    """What a plugin's results depend on besides the pod's cache key.

    A plugin whose results depend on the pod's name, on the time, on random numbers or on anything
    outside the cluster declares none of these and is called for every pod.
    """

    NODE = "node"
    NODE_AND_PODS = "node and pods"


NODE: Final = DependsOn.NODE
"""The node's own object: its labels, annotations, taints, allocatable; not its pods."""
NODE_AND_PODS: Final = DependsOn.NODE_AND_PODS
"""The node's own object, and the pods that are on that node: all but their status."""


def everything_of(pod: Pod) -> tuple[Any, ...]:
    """The default cache key: all of a pod but its name and its status.

    Volumes without a source, such as that of a service account token, are left out: their names
    differ from pod to pod and influence nothing.
    """
    meta, spec = pod.api.metadata, pod.api.spec
    if spec.volumes:
        volumes = tuple([volume for volume in spec.volumes if volume.has_source])
        spec = structs.replace(spec, volumes=volumes)
    # Fields that are compared fast and often differ come first.
    return (meta.namespace, meta.labels, meta.annotations, meta.controller, spec)
