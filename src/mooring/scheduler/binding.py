"""From a decision to a bound pod: reserve, permit, pre-bind, bind.

Reserve and Permit run within the cycle; the rest runs in the background, concurrently, while the
next pods are decided. A failure at any step undoes the steps before it, in reverse order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.client.errors import Fenced, NotFound
from mooring.errors import ApiError
from mooring.extender.calling.chain import Extenders
from mooring.framework.handle import Client
from mooring.framework.results import QueuedPod
from mooring.framework.state import CycleState, StateKey
from mooring.framework.status import OK, Status
from mooring.queue.queue import SchedulingQueue
from mooring.runtime.commit import Committer
from mooring.runtime.plugin_caller import interrupted
from mooring.runtime.waiting import WaitingPod, WaitingPods
from mooring.scheduler import diagnosis as diagnoses
from mooring.scheduler.conflicts import Conflict, OnConflict
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.recheck import Recheck

log = logging.getLogger(__name__)

BOUND_BY: StateKey[str] = StateKey("scheduler/bound by")  # the extender that says it bound the pod


class Assignment(msgspec.Struct, frozen=True):
    """A pod on its way to a node."""

    queued: QueuedPod
    pod: Pod  # with its node set, as counted in the cache
    node_name: str
    state: CycleState
    started: float  # when the attempt began
    touched: int = 0  # the node's last external change that the decision knew of
    evaluated: int = 0  # number of evaluated nodes
    feasible: int = 0  # number of feasible nodes
    entry: object | None = None  # that of the ledger


class Refusal(msgspec.Struct, frozen=True):
    """Why an assignment failed; with a diagnosis if a plugin refused it, without after an error."""

    status: Status
    diagnosis: Diagnosis | None = None
    announced: str = ""  # the node that was written into the pod's status, to be withdrawn
    is_moot: bool = False  # not reported: the pod is deleted, or another replica decides about it


class BindingPlugins:
    """Pods whose PreBind or Bind plugins run and can be cancelled."""

    def __init__(self) -> None:
        self._work: dict[str, asyncio.Task[Status]] = {}  # by pod uid
        self._reasons: dict[str, Status] = {}  # of cancelled ones
        self._begun: set[str] = set()  # uids of pods whose Bind has begun

    def __contains__(self, uid: str) -> bool:
        return uid in self._work

    def cancel(self, uid: str, reason: Status, *, is_deleted: bool = False) -> bool:
        """Cancel the plugins of this pod; False if none run.

        Once Bind has begun the pod may be bound: then only if it `is_deleted`.
        """
        work = self._work.get(uid)
        if work is None or (uid in self._begun and not is_deleted):
            return False
        self._reasons.setdefault(uid, reason)
        work.cancel()
        return True

    async def bind(self, uid: str, plugins: Coroutine[Any, Any, Status]) -> Status:
        """As `run`, for Bind."""
        self._begun.add(uid)
        try:
            return await self.run(uid, plugins)
        finally:
            self._begun.remove(uid)

    async def run(self, uid: str, plugins: Coroutine[Any, Any, Status]) -> Status:
        """The status of the plugins; if they are cancelled, an error with the reason."""
        work = self._work[uid] = asyncio.ensure_future(plugins)
        try:
            status = await work
        except asyncio.CancelledError as error:
            ours = asyncio.current_task()
            if ours is not None and ours.cancelling():
                raise  # the task of the binding, and not only that of its plugins
            status = Status.error(interrupted(error))
        finally:
            del self._work[uid]
            reason = self._reasons.pop(uid, None)
        # A plugin may have succeeded nevertheless, but the place is promised to another pod.
        return status if reason is None else reason


class Binder:
    """Carries out the decisions of one profile."""

    def __init__(
        self,
        committer: Committer,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        at_work: BindingPlugins,
        client: Client,
        recheck: Recheck,
        on_conflict: OnConflict,
        on_waiting: Callable[[WaitingPod], None],
        on_permitted: Callable[[Assignment], None],
        extenders: Extenders | None = None,
    ) -> None:
        self._committer = committer
        self._cache = cache
        self._queue = queue
        self._waiting = waiting
        self._at_work = at_work
        self._client = client
        self._recheck = recheck
        self._on_conflict = on_conflict
        self._on_waiting = on_waiting
        self._on_permitted = on_permitted
        self._extenders = extenders

    def reserve(self, assignment: Assignment) -> Refusal | None:
        """Reserve and Permit; a failure is undone before it is returned."""
        pod, node_name, state = assignment.pod, assignment.node_name, assignment.state
        status = self._committer.reserve(state, pod, node_name)
        if status.ok:
            status, holds = self._committer.permit(state, pod, node_name)
            if status.ok:
                if holds:
                    self._waiting.hold(pod, node_name, holds, assignment.queued.attempts)
                return None
        self.undo(assignment)
        return _refusal(status)

    def undo(self, assignment: Assignment) -> None:
        """Unreserve, then forget the assumed pod."""
        pod = assignment.pod
        self._committer.unreserve(assignment.state, pod, assignment.node_name)
        self._cache.forget(pod)

    async def bind(self, assignment: Assignment) -> Refusal | None:
        """PreBind, Bind and PostBind. After a refusal the caller has to call `undo`."""
        pod, node_name, state = assignment.pod, assignment.node_name, assignment.state
        flight = self._committer.pre_flight(state, pod, node_name)
        has_to_prepare = not flight.skipped
        if has_to_prepare and not flight.ok:
            return Refusal(flight)
        announced = ""
        held = self._waiting.get(pod.uid)
        if has_to_prepare or held is not None:
            announced = node_name
            await self._announce(pod, node_name)
        status = OK
        if held is not None:
            status = await self._wait_on_permit(held)
            self._on_permitted(assignment)
            if not status.ok:
                return _refusal(status, announced)
        self._queue.done(pod.uid)
        if has_to_prepare:
            work = self._committer.pre_bind(state, pod, node_name)
            status = await self._at_work.run(pod.uid, work)
        if status.ok:
            status = self._look_again(assignment)
        if status.ok:
            carry_out = self._committer.bind if self._extenders is None else self._carry_out
            work = carry_out(state, pod, node_name)
            if self._committer.bind_may_wait:
                work = self._at_work.bind(pod.uid, work)
            status = await work
        if status.ok:
            return None
        if status.skipped:
            status = Status.error("no Bind plugin took the pod: all of them skipped it")
        is_moot = isinstance(status.cause, NotFound | Fenced)
        return Refusal(status, announced=announced, is_moot=is_moot)

    async def _carry_out(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Bind, through an extender if one has the bind verb."""
        if self._extenders is not None:
            status = await self._extenders.bind(pod, node_name)
            if status is not None:
                if status.ok:
                    state[BOUND_BY] = status.plugin
                return status
        return await self._committer.bind(state, pod, node_name)

    def _look_again(self, assignment: Assignment) -> Status:
        if self._cache.last_touch(assignment.node_name) == assignment.touched:
            return OK
        status = self._recheck.ask(assignment.queued.pod, assignment.pod)
        if status.ok:
            return OK
        self._on_conflict(Conflict.RECHECK)
        # An error, not a refusal: other nodes may be feasible, so the pod need not wait for events.
        why = f"node {assignment.node_name} changed while the pod was on its way there"
        return Status.error(f"{why}: {status.message}")

    async def _wait_on_permit(self, held: WaitingPod) -> Status:
        loop = asyncio.get_running_loop()
        began = loop.time()
        if not held.is_decided:
            log.debug("Pod waiting on permit", extra={"pod": held.pod.key})
            self._on_waiting(held)
        try:
            status = await held.wait()
        finally:
            self._waiting.release(held.pod.uid)
        waited = self._committer.guard.metrics.permit_wait.labels(status.code.label)
        waited.observe(loop.time() - began)
        if status.ok or status.rejected:
            return status
        return Status(status.code, (f"waiting on permit for pod: {status.message}",), status.plugin)

    async def _announce(self, pod: Pod, node_name: str) -> None:
        """Write the node as a nomination, because PreBind may take long."""
        if pod.nominated_node_name == node_name:
            return
        try:
            await self._client.patch_pod_status(pod, None, node_name)
        except ApiError as error:
            extra = {"pod": pod.key, "node": node_name, "error": str(error)}
            log.warning("could not announce the node of a pod", extra=extra)


def _refusal(status: Status, announced: str = "") -> Refusal:
    """A refusal at Reserve or Permit, which is about the chosen node alone."""
    if not status.rejected:
        return Refusal(status, announced=announced)
    found = diagnoses.of_refusal(status)
    return Refusal(Status(status.code, (found.message,), status.plugin), found, announced)
