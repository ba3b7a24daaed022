"""The pods in flight, and the events that occurred during their attempts.

An attempt uses a snapshot. An event that would help a pod may arrive during its attempt; the pod is
then refused by old state and would miss the event. So events are kept for as long as a pod that was
popped before them is in flight, and replayed when the pod returns to the queue.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mooring.cache.pods import Pod
from mooring.framework.events import ClusterEvent


class ObservedEvent(NamedTuple):
    """An event with the object before and after, if there is one."""

    event: ClusterEvent
    old: object | None
    new: object | None


_Flight = tuple[Pod, int]
"""A pod, and the number of events recorded before it was popped."""


class InFlight:
    """Pods by uid in the order they were popped, with one shared list of events."""

    __slots__ = ("_by_key", "_events", "_flights", "_forgotten")

    def __init__(self) -> None:
        self._flights: OrderedDict[str, _Flight] = OrderedDict()
        self._by_key: dict[str, Pod] = {}
        self._events: deque[ObservedEvent] = deque()
        self._forgotten = 0  # events that no pod in flight needs any more

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: object) -> bool:
        return uid in self._flights

    def __iter__(self) -> Iterator[str]:
        """Their uids."""
        return iter(self._flights)

    def __getitem__(self, uid: str) -> Pod:
        return self._flights[uid][0]

    def held(self) -> Counter[ClusterEvent]:
        """The number of kept events of each kind."""
        return Counter(observed.event for observed in self._events)

    def find(self, key: str) -> Pod | None:
        """The pod of this "namespace/name" that was popped last and is still in flight."""
        return self._by_key.get(key)

    def start(self, pod: Pod) -> bool:
        """Mark a pod as in flight; False if it is in flight already."""
        if pod.uid in self._flights:
            return False
        self._flights[pod.uid] = (pod, self._forgotten + len(self._events))
        self._by_key[pod.key] = pod
        return True

    def record(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        if self._flights:
            self._events.append(ObservedEvent(event, old, new))

    def since(self, uid: str) -> Sequence[ObservedEvent] | None:
        """The events since the pod was popped; None if it is not in flight."""
        flight = self._flights.get(uid)
        if flight is None:
            return None
        return list(itertools.islice(self._events, flight[1] - self._forgotten, None))

    def done(self, uid: str) -> None:
        """End the attempt of a pod; drop the events that only this pod needed."""
        flight = self._flights.pop(uid, None)
        if flight is None:
            return
        pod = flight[0]
        if self._by_key.get(pod.key) is pod:
            del self._by_key[pod.key]
        if not self._events:
            return
        oldest = next(iter(self._flights.values()), None)
        if oldest is None:
            self._forgotten += len(self._events)
            self._events.clear()
            return
        while self._forgotten < oldest[1]:
            self._events.popleft()
            self._forgotten += 1
