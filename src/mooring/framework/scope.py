"""What a plugin's answers depend on, so that they can be kept."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

Stamp = TypeVar("Stamp", bound=Callable[..., Hashable])

_STEADY: Final = "_is_steady_stamp"


class Scope(enum.Enum):
    """Besides the pod's class: its namespace, labels, annotations, controller and spec.

    Answers that depend on less can be kept longer. A plugin whose answers depend on the pod's name,
    on the time, on dice or on anything outside the cluster has no scope: it is asked every time.
    """

    OBJECT = "object"  # the node's own object: its labels, taints, allocatable; not its pods
    NODE = "node"  # also the pods that are on that node: all but their status
    CLUSTER = "cluster"  # also other nodes and their pods: asked for every pod, as without a scope


def steady(stamp: Stamp) -> Stamp:
    """Says of a plugin's `stamp` that it is slow to change: see `Base.stamp`."""
    vars(stamp)[_STEADY] = True  # of this function: who overrides it promises nothing
    return stamp


def is_steady(stamp: Callable[..., Any]) -> bool:
    return getattr(stamp, _STEADY, False)
