"""What a plugin's answers depend on, so that they can be kept."""

from __future__ import annotations

import enum
from typing import Any, Final

from msgspec import structs

from mooring.cache.pods import Pod


class DependsOn(enum.Enum):
    """Besides the pod's cache key, by default its namespace, labels, annotations, controller, spec.

    A plugin whose answers depend on the pod's name, on the time, on random numbers or on anything
    outside the cluster declares none of these: it is asked for every pod.
    """

    NODE = "node"
    NODE_AND_PODS = "node and pods"


NODE: Final = DependsOn.NODE
"""The node's own object: its labels, annotations, taints, allocatable; not its pods."""
NODE_AND_PODS: Final = DependsOn.NODE_AND_PODS
"""The node's own object, and the pods that are on that node: all but their status."""


def everything_of(pod: Pod) -> tuple[Any, ...]:
    """What a plugin may look at of a pod, but for its name and its status.

    A volume without a source, such as the one with a service account's token, has a name of its
    own in every pod, and no influence.
    """
    meta, spec = pod.api.metadata, pod.api.spec
    if spec.volumes:
        volumes = tuple([volume for volume in spec.volumes if volume.has_source])
        spec = structs.replace(spec, volumes=volumes)
    # What is soon compared, and often differs, first.
    return (meta.namespace, meta.labels, meta.annotations, meta.controller, spec)
