"""What a plugin's answers depend on, so that they can be kept."""

from __future__ import annotations

import enum
from typing import Any

from msgspec import structs

from mooring.cache.pods import Pod


class Scope(enum.Enum):
    """Besides the pod's cache key, by default its namespace, labels, annotations, controller, spec.

    Answers that depend on less can be kept longer. A plugin whose answers depend on the pod's name,
    on the time, on dice or on anything outside the cluster has no scope: it is asked every time.
    """

    OBJECT = "object"  # the node's own object: its labels, taints, allocatable; not its pods
    NODE = "node"  # also the pods that are on that node: all but their status


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
