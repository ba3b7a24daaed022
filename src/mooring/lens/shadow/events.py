"""The changes of a cluster in the order in which the other scheduler knew them.

A scheduler counts a pod on its node when it has decided, and binds it later; several binds are
under way at a time and may end in another order than they were decided. Pods of equal priority are
decided in the order in which they arrive, so a bind is held back while a pod that arrived earlier
is awaited: its bind, if it comes, is taken first. Later changes wait behind a bind that is held.

    change ──▶ [ … B's bind · node changed · C's bind ] ──▶ handlers
                 ▲ A's bind, if A arrived before B

A pod is awaited for `SETTLE` seconds at most, and only once; one that the other scheduler has
reported as unschedulable is not awaited at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from mooring.api import core

SETTLE: Final = 1.0  # seconds

Apply: TypeAlias = Callable[[Any], None]


class QueuedChange(msgspec.Struct, gc=False):
    """Something that happened to the cluster; `apply(value)` makes it known."""

    apply: Apply
    value: Any


class SchedulingOutcome(QueuedChange, gc=False):
    """The other scheduler has bound a pod, or says that it fits nowhere; `value` is the pod."""

    arrival: int
    priority: int
    received: float  # on the clock of the loop


class _Pending(msgspec.Struct, gc=False):
    uid: str
    arrival: int
    priority: int
    refusal: str  # the message of its condition


class OrderedChanges:
    """A queue of changes; `is_ours` says which pods the other scheduler decides on."""

    def __init__(
        self,
        is_ours: Callable[[core.Pod], bool],
        now: Callable[[], float],
        settle: float = SETTLE,
    ) -> None:
        self._is_ours = is_ours
        self._now = now
        self._settle = settle
        self._queue: deque[QueuedChange] = deque()
        self._arrivals = 0
        self._pending: dict[str, _Pending] = {}  # by key
        # Pods whose outcome is awaited: by priority, in the order of their arrival.
        self._awaited: dict[int, dict[int, str]] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, apply: Apply, value: Any) -> None:
        """Something other than a pod has changed, or many pods were listed."""
        self._queue.append(QueuedChange(apply, value))

    def put_pod(self, apply: Apply, pod: core.Pod) -> None:
        """A pod was created, or has changed."""
        known = self._known(pod)
        if known is not None and pod.spec.node_name:
            self._forget(pod.key)
            self._insert(self._outcome(apply, pod, known))
            return
        if pod.spec.node_name or not self._is_ours(pod):
            self._queue.append(QueuedChange(apply, pod))
            return
        if known is None:
            known = self._arrived(pod)
        refusal = _refusal(pod)
        if refusal and refusal != known.refusal:
            self._await_no_longer(known)
            self._insert(self._outcome(apply, pod, known))
        else:
            self._queue.append(QueuedChange(apply, pod))
        known.refusal = refusal

    def remove_pod(self, apply: Apply, pod: core.Pod) -> None:
        if self._known(pod) is not None:
            self._forget(pod.key)
        self._queue.append(QueuedChange(apply, pod))

    def next(self) -> QueuedChange | None:
        """The next change to make known; None if there is none, or none yet: see `due`."""
        if not self._queue:
            return None
        head = self._queue[0]
        if isinstance(head, SchedulingOutcome) and self._earlier(head):
            if self._now() < head.received + self._settle:
                return None
            self._give_up_before(head)
        return self._queue.popleft()

    def due(self) -> float | None:
        """When `next` will return a change at the latest; None if there is no change."""
        if not self._queue:
            return None
        head = self._queue[0]
        return head.received + self._settle if isinstance(head, SchedulingOutcome) else self._now()

    # --- pods ----------------------------------------------------------------------------------

    def _known(self, pod: core.Pod) -> _Pending | None:
        known = self._pending.get(pod.key)
        if known is not None and known.uid != pod.metadata.uid:
            self._forget(pod.key)  # its deletion was missed
            return None
        return known

    def _arrived(self, pod: core.Pod) -> _Pending:
        self._arrivals += 1
        known = _Pending(pod.metadata.uid, self._arrivals, pod.spec.priority or 0, "")
        self._pending[pod.key] = known
        if not pod.spec.scheduling_gates and pod.metadata.deletion_timestamp is None:
            self._awaited.setdefault(known.priority, {})[known.arrival] = pod.key
        return known

    def _forget(self, key: str) -> None:
        self._await_no_longer(self._pending.pop(key))

    def _await_no_longer(self, known: _Pending) -> None:
        self._awaited.get(known.priority, {}).pop(known.arrival, None)

    def _outcome(self, apply: Apply, pod: core.Pod, known: _Pending) -> SchedulingOutcome:
        return SchedulingOutcome(apply, pod, known.arrival, known.priority, self._now())

    # --- order ---------------------------------------------------------------------------------

    def _insert(self, outcome: SchedulingOutcome) -> None:
        """At the end, or before the first outcome of a pod that arrived later."""
        for place, other in enumerate(self._queue):
            if (
                isinstance(other, SchedulingOutcome)
                and other.priority == outcome.priority
                and other.arrival > outcome.arrival
            ):
                self._queue.insert(place, outcome)
                return
        self._queue.append(outcome)

    def _earlier(self, outcome: SchedulingOutcome) -> bool:
        """Whether a pod is awaited that arrived before."""
        first = next(iter(self._awaited.get(outcome.priority, ())), None)
        return first is not None and first < outcome.arrival

    def _give_up_before(self, outcome: SchedulingOutcome) -> None:
        awaited = self._awaited[outcome.priority]
        for arrival in [one for one in awaited if one < outcome.arrival]:
            del awaited[arrival]


def _refusal(pod: core.Pod) -> str:
    """What the scheduler says about a pod that fits nowhere."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message if condition.reason == "Unschedulable" else ""
    return ""
