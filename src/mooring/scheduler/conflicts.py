"""Where the decisions of another scheduler and ours met; counted, so that somebody notices."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Conflict(enum.StrEnum):
    """How it showed."""

    RECHECK = "recheck"  # the node had changed by the time of our bind
    ALREADY_BOUND = "already_bound"  # the pod was bound by somebody else
    OVERCOMMITTED = "overcommitted"  # somebody bound to a node that was full


OnConflict = Callable[[Conflict], None]
