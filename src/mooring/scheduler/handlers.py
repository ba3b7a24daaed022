"""Event handlers: changes of the cluster go into cache and queue, in order.

An informer, a simulation or a test calls `put_*` with an object's latest state and `remove_*` when
it is deleted. Changes are found by comparing with the known state, so repeated or missed events do
no harm.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any

from mooring.api import core
from mooring.cache.cache import Cache
from mooring.cache.pods import Footprints, Pod
from mooring.client.pod_binder import pod_not_found
from mooring.framework.events import ASSIGNED_POD, NODE, Action, ClusterEvent
from mooring.framework.status import Status
from mooring.observe.family import Histogram, MetricFamily
from mooring.queue.queue import SchedulingQueue
from mooring.queue.updates import pod_update_events
from mooring.runtime.waiting import WaitingPods
from mooring.scheduler.binding import BindingPlugins
from mooring.scheduler.conflicts import Conflict, OnConflict

log = logging.getLogger(__name__)

ASSIGNED_POD_ADDED = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETED = ClusterEvent(ASSIGNED_POD, Action.DELETE)
NODE_ADDED = ClusterEvent(NODE, Action.ADD)
NODE_DELETED = ClusterEvent(NODE, Action.DELETE)


_Handler = Callable[["Handlers", Any], None]


def _in_turn(handle: _Handler) -> _Handler:
    """Put a handler off while `Handlers.held`."""

    @wraps(handle)
    def told(self: Handlers, value: Any) -> None:
        if self._later is None:
            handle(self, value)
        else:
            self._later.append((handle, value))

    return told


class Handlers:
    """Feeds one scheduler."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        at_work: BindingPlugins,
        is_ours: Callable[[Pod], bool],
        on_conflict: OnConflict,
        durations: MetricFamily[Histogram],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._waiting = waiting
        self._at_work = at_work
        self.is_ours: Callable[[Pod], bool] = is_ours
        self._on_conflict = on_conflict
        self._durations = durations
        self._by_event: dict[ClusterEvent, Histogram] = {}
        self._began = 0.0  # of the event that is being handled
        self._pending: dict[str, Pod] = {}  # key -> latest state of our pods without a node
        self._later: deque[tuple[_Handler, Any]] | None = None  # calls that came while held

    def pending(self, key: str) -> Pod | None:
        """The latest known state of a pod of ours that has no node yet."""
        return self._pending.get(key)

    @property
    def are_held(self) -> bool:
        """Whether a decision waits for an extender."""
        return self._later is not None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold events back while a decision waits for an extender; they are handled afterwards."""
        later = self._later = deque()
        try:
            yield
        finally:
            self._later = None
            for handle, value in later:
                try:
                    handle(self, value)
                except Exception:
                    extra = {"object": getattr(value, "key", "")}
                    log.exception("a handler failed, going on", extra=extra)

    # --- nodes ---------------------------------------------------------------------------------

    @_in_turn
    def put_node(self, node: core.Node) -> None:
        self._put_node(node)

    def _put_node(self, node: core.Node) -> None:
        self._began = perf_counter()
        old = self._cache.put_node(node)
        if old is None:
            self._move(NODE_ADDED, None, node)
            return
        for event in node_update_events(old, node):
            self._move(event, old, node)

    @_in_turn
    def put_nodes(self, listed: list[core.Node]) -> None:
        """Many at once, as `put_node` for each; those that are new are added together."""
        began = perf_counter()
        arrived: dict[str, core.Node] = {}
        others: list[core.Node] = []
        for node in listed:
            name = node.metadata.name
            if name in arrived or self._cache.has_node(name):
                others.append(node)
            else:
                arrived[name] = node
        self._cache.add_nodes(list(arrived.values()))
        each = (perf_counter() - began) / max(len(arrived), 1)
        for node in arrived.values():
            self._began = perf_counter() - each
            self._move(NODE_ADDED, None, node)
        for node in others:
            self._put_node(node)

    @_in_turn
    def remove_node(self, node: core.Node) -> None:
        self._began = perf_counter()
        self._move(NODE_DELETED, node, None)
        self._cache.remove_node(node.metadata.name)

    # --- pods ----------------------------------------------------------------------------------

    @_in_turn
    def put_pod(self, api: core.Pod) -> None:
        self._put_pod(Pod(api))

    @_in_turn
    def put_pods(self, listed: list[core.Pod]) -> None:
        """Many at once, as `put_pod` for each; those that are new to their node count together.

        If it raises, `put_pod` may be called for all of them.
        """
        began = perf_counter()
        cache, footprints = self._cache, Footprints()
        arrived: dict[str, Pod] = {}  # by uid
        others: list[Pod] = []
        for api in listed:
            pod = Pod(api)
            is_new = pod.uid not in arrived and cache.get_pod(pod.uid) is None
            if is_new and pod.node_name and not pod.is_finished and pod.key not in self._pending:
                footprints.share(pod)
                arrived[pod.uid] = pod
            else:
                others.append(pod)
        cache.add_pods(list(arrived.values()))
        foreign = {pod.node_name for pod in arrived.values() if not self.is_ours(pod)}
        for _ in filter(cache.is_overcommitted, foreign):
            self._on_conflict(Conflict.OVERCOMMITTED)
        each = (perf_counter() - began) / max(len(arrived), 1)
        for pod in arrived.values():
            self._began = perf_counter() - each
            self._move(ASSIGNED_POD_ADDED, None, pod)
        for pod in others:
            self._put_pod(pod)

    def _put_pod(self, pod: Pod) -> None:
        self._began = perf_counter()
        if pod.is_finished:
            self._remove(pod)
        elif pod.node_name:
            self._put_assigned(pod)
        elif self.is_ours(pod):
            self._put_pending(pod)

    @_in_turn
    def remove_pod(self, api: core.Pod) -> None:
        self._began = perf_counter()
        self._remove(Pod(api))

    def _put_assigned(self, pod: Pod) -> None:
        known = self._pending.get(pod.key)
        if known is not None:
            del self._pending[pod.key]
            self._queue.delete(known, bound=known.uid == pod.uid)
        was_assumed = self._cache.is_assumed(pod.uid)
        old = self._cache.put_pod(pod)
        if old is None and not self.is_ours(pod) and self._cache.is_overcommitted(pod.node_name):
            self._on_conflict(Conflict.OVERCOMMITTED)
        if old is None or was_assumed or old.node_name != pod.node_name:
            self._move(ASSIGNED_POD_ADDED, None, pod)
            return
        if old.api == pod.api:
            return
        for event in pod_update_events(old, pod, ASSIGNED_POD):
            self._move(event, old, pod)

    def _put_pending(self, pod: Pod) -> None:
        old = self._pending.get(pod.key)
        if old is not None and old.uid != pod.uid:
            self._remove(old)  # its deletion was missed: this is another pod of the same name
            old = None
        self._pending[pod.key] = pod
        if self._cache.is_assumed(pod.uid):
            if pod.is_terminating and (old is None or not old.is_terminating):
                self._call_off(pod)
                self._give_up_assumed(pod)
            return
        if old is None:
            self._queue.add(pod)
        else:
            self._queue.update(old, pod)

    def _remove(self, pod: Pod) -> None:
        pending = self._pending.get(pod.key)
        if pending is not None and pending.uid == pod.uid:
            del self._pending[pod.key]
            self._queue.delete(pending)
        self._call_off(pod)
        if self._cache.is_assumed(pod.uid):
            self._give_up_assumed(pod)
            return
        old = self._cache.remove_pod(pod)
        if old is not None:
            self._move(ASSIGNED_POD_DELETED, old, None)

    def _call_off(self, pod: Pod) -> None:
        """Cancel the PreBind and Bind plugins of a deleted pod, which might wait for ever."""
        if pod.uid in self._at_work:
            why = Status.error("the pod was deleted", cause=pod_not_found(pod.name))
            self._at_work.cancel(pod.uid, why, is_deleted=True)

    def _give_up_assumed(self, pod: Pod) -> None:
        """Free the place of an assumed pod that is deleted."""
        waiting = self._waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "removed")  # its binding task forgets it and wakes the others
            return
        known = self._cache.get_pod(pod.uid)
        self._cache.forget(pod)
        self._move(ASSIGNED_POD_DELETED, known, None)

    # --- everything else -----------------------------------------------------------------------

    @_in_turn
    def put_object(self, value: Any) -> None:
        """A service, claim, class… was added or has changed."""
        self._began = perf_counter()
        old = self._cache.objects.put(value)
        action = Action.ADD if old is None else Action.UPDATE
        self._move(ClusterEvent(_resource(value), action), old, value)

    @_in_turn
    def remove_object(self, value: Any) -> None:
        self._began = perf_counter()
        old = self._cache.objects.remove(value)
        if old is not None:
            self._move(ClusterEvent(_resource(value), Action.DELETE), old, None)

    def _move(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        """Move the pods that an event may help, and observe the duration."""
        self._queue.move_all(event, old, new)
        taken = self._by_event.get(event)
        if taken is None:
            taken = self._by_event[event] = self._durations.labels(event.label)
        taken.observe(perf_counter() - self._began)


def node_update_events(old: core.Node, new: core.Node) -> Iterator[ClusterEvent]:
    """The events of a changed node that may help a refused pod."""
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)
    if old.status.allocatable != new.status.allocatable:
        yield ClusterEvent(NODE, Action.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        yield ClusterEvent(NODE, Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        yield ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        yield ClusterEvent(NODE, Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        yield ClusterEvent(NODE, Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        yield ClusterEvent(NODE, Action.UPDATE_NODE_DECLARED_FEATURE)


def _conditions(node: core.Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _resource(value: Any) -> str:
    """The name of a kind in events: with its API group, unless it is a core one."""
    group, slash, _ = value.API_VERSION.partition("/")
    return f"{group}/{value.KIND}" if slash else str(value.KIND)
