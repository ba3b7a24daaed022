"""Conflicts with the decisions of other schedulers, as they are counted in the metrics."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Conflict(enum.StrEnum):
    """How a conflict was detected."""

    RECHECK = "recheck"  # the node had changed by the time of our bind
    ALREADY_BOUND = "already_bound"  # the pod was bound by another scheduler
    OVERCOMMITTED = "overcommitted"  # another scheduler bound a pod to a full node


OnConflict = Callable[[Conflict], None]
