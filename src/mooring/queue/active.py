"""The pods that may be tried now, in the order of the QueueSort plugin."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

from mooring.framework.plugin import QueueSort
from mooring.framework.results import QueuedPod
from mooring.queue._heap import NamedHeap

Order = Callable[[QueuedPod], object]
"""A sort key for a pod in the queue, valid until the pod changes."""


def order_by(sort: QueueSort) -> Order:
    """The plugin's order as a sort key: by its `sort_key` if it has one, else by its `less`.

    A plugin must have a `sort_key` for all pods or for none: the two kinds can't be compared.
    """

    def compare(a: QueuedPod, b: QueuedPod) -> int:
        if sort.less(a, b):
            return -1
        return 1 if sort.less(b, a) else 0

    by_less = functools.cmp_to_key(compare)

    def order(queued: QueuedPod) -> object:
        key = sort.sort_key(queued)
        # `less` is called again later, so it gets a copy: a key in a heap must not change.
        return by_less(copy.copy(queued)) if key is None else key

    return order


class ActiveQueue(NamedHeap[QueuedPod]):
    """Ready pods by "namespace/name"; equal pods in the order they were added."""

    __slots__ = ()

    def add(self, queued: QueuedPod, now: float) -> None:
        if queued.first_attempt_at is None:
            queued.first_attempt_at = now
        self.put(queued.pod.key, queued)

    def replace(self, queued: QueuedPod) -> None:
        """Sort a changed pod in again."""
        self.put(queued.pod.key, queued)
