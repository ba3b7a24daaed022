"""The times of the queue; the defaults are those of KubeSchedulerConfiguration."""

from __future__ import annotations

import msgspec


class QueueOptions(msgspec.Struct, frozen=True):
    """All in seconds."""

    initial_backoff: float = 1.0  # after the first failed attempt; doubles with each further one
    max_backoff: float = 10.0  # 0 disables backoff
    max_in_unschedulable: float = 300.0  # then a pod is retried without an event
