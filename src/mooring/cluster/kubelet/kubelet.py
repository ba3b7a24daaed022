"""The kubelets of all nodes of a cluster, in one object and without a task per pod.

    bound ──▶ admitted ──▶ starting ──▶ running ──▶ succeeded or failed
      │                       ▲           │
      └──▶ rejected           └─ back-off ┘
    any of them, once it is terminating ──▶ stopping ──▶ gone

The next step of each pod waits in a heap of timers; due steps are written in small batches, so that
thousands of pods may start at once without blocking the event loop. Durations can be set in a pod's
annotations: see `pod_run`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import math
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from mooring.api import codec, core
from mooring.api.meta import parse_time
from mooring.client.errors import NotFound, StatusError
from mooring.cluster.apiserver.resources import NODES, PODS
from mooring.cluster.apiserver.store import Item, Object, StoreChange
from mooring.cluster.component import ComponentContext
from mooring.cluster.event_writer import NORMAL, WARNING
from mooring.cluster.kubelet import pod_status
from mooring.cluster.kubelet.admission import NodeInfo, PodRejection, PodRequests
from mooring.cluster.kubelet.node_leases import NodeLeases
from mooring.cluster.kubelet.node_status import NodeReports
from mooring.cluster.kubelet.pod_run import PodRun, PodStage
from mooring.cluster.node_templates import NodeTemplate
from mooring.config.duration import Duration

log = logging.getLogger(__name__)


_BATCH: Final = 100  # pods per callback of the event loop
_TICK: Final = 0.01  # seconds; timers are rounded up to this, so that pods start together
_FINISHED: Final = ("Succeeded", "Failed")
_DEADLINE: Final = -1  # instead of the plan of a timer: the time a pod may be active


class _Meta(msgspec.Struct, rename="camel"):
    generation: int | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _PodSummary(msgspec.Struct):
    """The fields of a pod that are read on every change, besides those that the store keeps."""

    metadata: _Meta


class Kubelets:
    """The kubelets of one cluster. `startup` and `stop` are the default durations in seconds.

    Pods of Jobs run for `job_duration`. Nodes that appear without a status get that of
    `node_template`.
    """

    def __init__(
        self,
        component: ComponentContext,
        *,
        startup: float = 0.5,
        jitter: float = 0.5,
        stop: float = 0.2,
        job_duration: float = math.inf,
        node_template: NodeTemplate | None = None,
    ) -> None:
        self._verbs = component.verbs
        self._rng = component.rng
        self._event_writer = component.event_writer
        self._startup = startup
        self._jitter = jitter  # the largest share added to the start-up time
        self._stop = stop
        self._job_duration = job_duration
        self._clock = component.clock
        self._reports = NodeReports(component.verbs, component.clock, node_template)
        self._outdated: dict[str, PodRun] = {}  # by uid: those with a changed spec
        self._node_infos: dict[str, NodeInfo] = {}
        self._leases = NodeLeases(component.verbs, component.clock)
        self._runs: dict[str, PodRun] = {}  # by uid
        self._held: dict[str, list[PodRun]] = {}  # by name of a node that is missing or not ready
        self._due: deque[tuple[int, PodRun]] = deque()  # with the plan that is due
        self._timers: list[tuple[float, int, int, PodRun]] = []  # when, order, plan
        self._order = itertools.count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.Handle | None = None
        self._wakes_at = math.inf  # on the loop's clock

    def start(self) -> None:
        """Take over existing pods, and all that are bound later; needs a running loop."""
        self._loop = asyncio.get_running_loop()
        store = self._verbs.store
        for of in (NODES, PODS):
            for item in store.list(of):
                self._on_change(StoreChange("ADDED", item.version, of.key, item, None))
        store.listen(self._on_change)
        self._leases.start()

    def close(self) -> None:
        """Stop at once; pods stay as they are."""
        self._loop = None
        self._leases.close()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    # --- changes of the store ------------------------------------------------------------------

    def _on_change(self, change: StoreChange) -> None:
        """Note a change; nothing is written, because a request is in progress."""
        if self._loop is None:
            return
        try:
            self._take(change)
        except Exception:  # an error here must not reach the writer
            extra = {"resource": change.resource, "object": change.new.name}
            log.exception("a kubelet failed on a change", extra=extra)

    def _take(self, change: StoreChange) -> None:
        is_gone = change.type == "DELETED"
        if change.resource == PODS.key:
            if is_gone:
                self._forget(change.new.uid)
            else:
                self._put_pod(change.new)
        elif change.resource == NODES.key:
            if is_gone:
                self._drop_node(change.new.name)
            else:
                self._put_node(change.new)

    def _put_node(self, item: Item) -> None:
        node_info = self._node_infos.get(item.name)
        if node_info is None:
            number = len(self._node_infos)
            spare = f"100.{64 + (number >> 8) % 64}.{number & 255}.0/24"
            node_info = self._node_infos[item.name] = NodeInfo(item, spare)
        else:
            node_info.update(item)
        if node_info.is_alive:
            if not node_info.is_reported:
                self._reports.add(item.name)
                self._wake()
            self._leases.add(item)
        else:
            self._leases.drop(item.name)
        if node_info.is_alive and item.name in self._held:
            self._due.extend((run.plan, run) for run in self._held.pop(item.name))
            self._wake()

    def _drop_node(self, name: str) -> None:
        """Forget a node; its pods have no kubelet until they are deleted."""
        self._node_infos.pop(name, None)
        self._leases.drop(name)
        for run in [run for run in self._runs.values() if run.node_name == name]:
            self._forget(run.uid)

    def _put_pod(self, item: Item) -> None:
        node_name = item.fields["spec.nodeName"]
        if not node_name:
            return
        meta = codec.decode(item.raw, _PodSummary).metadata
        is_leaving = meta.deletion_timestamp is not None
        is_finished = item.fields["status.phase"] in _FINISHED
        run = self._runs.get(item.uid)
        if run is None:
            if is_finished and not is_leaving:
                return
            run = self._new(item, node_name)
        if is_leaving:
            asked = meta.deletion_grace_period_seconds
            grace = math.inf if asked is None else float(asked)
            if grace < run.grace or run.stage is not PodStage.STOPPING:
                run.grace = grace
                if run.stage is not PodStage.NEW:  # else it is processed later
                    self._begin_termination(run)
        elif is_finished and run.stage not in (PodStage.NEW, PodStage.STOPPING):
            self._release(run)
        elif meta.generation != run.generation and run.phase == "Running":
            self._outdated[run.uid] = run
            self._wake()

    def _new(self, item: Item, node_name: str) -> PodRun:
        startup = self._startup * (1.0 + self._jitter * self._rng.random())
        run = PodRun(
            item.namespace,
            item.name,
            item.uid,
            node_name,
            startup=startup,
            stop=self._stop,
            job_duration=self._job_duration,
        )
        self._runs[item.uid] = run
        # A delay, so that a controller that replaces rejected pods can't loop forever
        # without the clock moving.
        self._schedule(run, PodStage.NEW, _TICK)
        return run

    def _forget(self, uid: str) -> None:
        run = self._runs.pop(uid, None)
        if run is not None:
            self._release(run)

    def _release(self, run: PodRun) -> None:
        """The pod no longer runs; free its resources."""
        if run.stage is PodStage.FINISHED:
            return
        run.stage = PodStage.FINISHED
        run.plan += 1
        node_info = self._node_infos.get(run.node_name)
        if node_info is not None:
            node_info.remove_pod(run.uid)
            node_info.release_ip(run.address)

    # --- time ----------------------------------------------------------------------------------

    def _schedule(self, run: PodRun, stage: PodStage, seconds: float) -> None:
        """Enter a stage that takes some seconds."""
        run.stage = stage
        run.plan += 1
        if self._loop is not None and seconds < math.inf:
            when = math.ceil((self._loop.time() + seconds) / _TICK) * _TICK
            heapq.heappush(self._timers, (when, next(self._order), run.plan, run))
            self._wake()

    def _wake(self) -> None:
        """Schedule `_work` for the next due step."""
        is_due = bool(self._due or self._reports.are_due or self._outdated)
        if self._loop is None or not (is_due or self._timers):
            return
        when = -math.inf if is_due else self._timers[0][0]
        if self._handle is not None:
            if when >= self._wakes_at:
                return
            self._handle.cancel()
        self._wakes_at = when
        if is_due:
            self._handle = self._loop.call_soon(self._work)
        else:
            self._handle = self._loop.call_at(when, self._work)

    def _work(self) -> None:
        self._handle = None
        if self._loop is None:
            return
        self._reports.write()
        while self._outdated:
            _, changed = self._outdated.popitem()
            self._guard(changed, self._take_over_spec)
        now = self._loop.time() + _TICK / 2  # a loop may call slightly early
        while self._timers and self._timers[0][0] <= now:
            *_, plan, run = heapq.heappop(self._timers)
            self._due.append((plan, run))
        for _ in range(min(_BATCH, len(self._due))):
            plan, run = self._due.popleft()
            if run.plan == plan:
                self._step(run)
            elif plan == _DEADLINE and run.phase == "Running":
                self._guard(run, self._exceed_deadline)
        self._wake()

    def _step(self, run: PodRun) -> None:
        node_info = self._node_infos.get(run.node_name)
        if node_info is None or not node_info.is_alive:
            self._held.setdefault(run.node_name, []).append(run)
            return
        self._guard(run, lambda run, node_info: _STEPS[run.stage](self, run, node_info))

    def _guard(self, run: PodRun, act: Callable[[PodRun, NodeInfo], None]) -> None:
        """Do something for a pod; a refused write is logged, and a missing pod forgotten."""
        node_info = self._node_infos.get(run.node_name)
        if node_info is None or not node_info.is_alive:
            return
        try:
            act(run, node_info)
        except NotFound:
            self._forget(run.uid)
        except StatusError as error:
            extra = {"pod": f"{run.namespace}/{run.name}", "error": str(error)}
            log.warning("a kubelet could not write", extra=extra)

    # --- a pod's life --------------------------------------------------------------------------

    def _admit(self, run: PodRun, node_info: NodeInfo) -> None:
        try:
            raw = self._current(run).raw
            pod = codec.decode(raw, core.Pod)
        except codec.DecodeError as error:
            log.error("cannot read a pod", extra={"pod": run.name, "error": str(error)})
            self._release(run)
            return
        run.read(pod, raw)
        if pod.metadata.deletion_timestamp is not None:
            self._begin_termination(run)
            return
        requests = PodRequests.of(pod)
        was_running = pod.status.phase == "Running"  # under an earlier process
        rejection = None if was_running else node_info.rejection(pod, requests)
        if rejection is not None:
            self._refuse(run, rejection)
            return
        node_info.add_pod(run.uid, requests)
        run.started = pod.status.start_time or self._verbs.now()
        self._watch_deadline(run)
        if was_running:
            run.address, run.since = pod.status.pod_ip, run.started
            run.phase, run.state = "Running", pod_status.running(run.since)
            self._schedule(run, PodStage.RUNNING, run.duration)
            return
        self._schedule(run, PodStage.STARTING, run.startup)
        if run.startup > 0:
            self._update_status(run, node_info, "Pending", pod_status.waiting("ContainerCreating"))

    def _refuse(self, run: PodRun, rejection: PodRejection) -> None:
        self._release(run)
        time = self._verbs.now()

        def write(pod: Object) -> None:
            pod_status.write_rejection(pod, rejection.reason, rejection.message, time)

        self._modify(run, write)
        self._record_event(run, WARNING, rejection.reason, rejection.message)

    def _run_containers(self, run: PodRun, node_info: NodeInfo) -> None:
        if not run.address:
            run.address = node_info.address if run.is_on_host_network else node_info.allocate_ip()
        run.restarts += run.stage is PodStage.BACK_OFF
        run.since = self._verbs.now()
        self._schedule(run, PodStage.RUNNING, run.duration)
        self._update_status(run, node_info, "Running", pod_status.running(run.since))
        for container in run.containers.main:
            pulled = f'Container image "{container.image}" already present on machine'
            self._record_event(run, NORMAL, "Pulled", pulled)
            self._record_event(run, NORMAL, "Created", "Container created")
            self._record_event(run, NORMAL, "Started", "Container started")

    def _finish_run(self, run: PodRun, node_info: NodeInfo) -> None:
        """The containers exit: for good, or to be restarted."""
        code = run.exit_code
        made = pod_status.container_id(run.uid, run.restarts)
        exited = pod_status.terminated(code, run.since, self._verbs.now(), made)
        if not run.will_restart(code):
            self._release(run)
            self._update_status(run, node_info, "Succeeded" if code == 0 else "Failed", exited)
            return
        pause = run.pause
        run.last_state = exited
        self._schedule(run, PodStage.BACK_OFF, pause)
        if pause > 0:
            names = ",".join(container.name for container in run.containers.main)
            pod = f"{run.name}_{run.namespace}({run.uid})"
            message = f"back-off {Duration.of(pause)} restarting failed container={names} pod={pod}"
            self._update_status(
                run, node_info, "Running", pod_status.waiting("CrashLoopBackOff", message)
            )
            note = f"Back-off restarting failed container {names} in pod {pod}"
            self._record_event(run, WARNING, "BackOff", note)

    def _take_over_spec(self, run: PodRun, node_info: NodeInfo) -> None:
        """Report a changed spec: resources, ephemeral containers, another deadline."""
        if run.stage in (PodStage.STOPPING, PodStage.FINISHED):
            return
        raw = self._current(run).raw
        pod = codec.decode(raw, core.Pod)
        before, run.stop = run.deadline, self._stop
        duration = run.duration
        run.read(pod, raw)
        run.duration = duration
        node_info.remove_pod(run.uid)
        node_info.add_pod(run.uid, PodRequests.of(pod))
        if run.deadline != before:
            self._watch_deadline(run)
        self._update_status(run, node_info, run.phase, run.state)

    def _watch_deadline(self, run: PodRun) -> None:
        if self._loop is not None and run.deadline < math.inf:
            since = self._clock.now() - parse_time(run.started)
            when = self._loop.time() + max(run.deadline - since, 0.0)
            heapq.heappush(self._timers, (when, next(self._order), _DEADLINE, run))
            self._wake()

    def _exceed_deadline(self, run: PodRun, node_info: NodeInfo) -> None:
        if self._clock.now() < parse_time(run.started) + run.deadline:
            return  # it was moved
        made = pod_status.container_id(run.uid, run.restarts)
        killed = pod_status.terminated(137, run.since, self._verbs.now(), made)
        self._release(run)
        self._update_status(run, node_info, "Failed", killed)
        self._modify(run, pod_status.write_deadline)
        message = "Pod was active on the node longer than the specified deadline"
        self._record_event(run, NORMAL, "DeadlineExceeded", message)

    def _begin_termination(self, run: PodRun) -> None:
        self._schedule(run, PodStage.STOPPING, min(run.grace, run.stop))

    def _remove(self, run: PodRun, node_info: NodeInfo) -> None:
        for container in run.containers.main:
            self._record_event(run, NORMAL, "Killing", f"Stopping container {container.name}")
        node_info.remove_pod(run.uid)  # even if a finalizer keeps the object
        run.grace = 0.0
        self._verbs.delete(PODS, run.namespace, run.name, uid=run.uid, grace=0)
        item = self._verbs.store.get(PODS, run.namespace, run.name)
        if item is not None and item.uid == run.uid and run.phase == "Running":
            # A finalizer keeps it; its containers have ended, so that its resources are free.
            made = pod_status.container_id(run.uid, run.restarts)
            ended = pod_status.terminated(0, run.since, self._verbs.now(), made)
            self._update_status(run, node_info, "Succeeded", ended)

    # --- writing -------------------------------------------------------------------------------

    def _update_status(
        self, run: PodRun, node_info: NodeInfo, phase: str, state: pod_status.State
    ) -> None:
        time = self._verbs.now()
        run.phase, run.state = phase, state
        seen = pod_status.ObservedPod(
            run.containers,
            phase,
            state,
            last_state=run.last_state,
            restarts=run.restarts,
            started=run.started,
            host_address=node_info.address,
            address=run.address,
        )

        def write(pod: Object) -> None:
            run.generation = pod["metadata"].get("generation")
            pod_status.write(pod, seen, time)

        self._modify(run, write)

    def _modify(self, run: PodRun, change: Callable[[Object], None]) -> None:
        self._current(run)
        self._verbs.modify(PODS, run.namespace, run.name, change, subresource="status")

    def _current(self, run: PodRun) -> Item:
        """The pod with this uid, not another one of the same name."""
        item = self._verbs.store.get(PODS, run.namespace, run.name)
        if item is None or item.uid != run.uid:
            raise NotFound(f'pods "{run.name}" not found', code=404, reason="NotFound")
        return item

    def _record_event(self, run: PodRun, type_: str, reason: str, message: str) -> None:
        meta = {"name": run.name, "namespace": run.namespace, "uid": run.uid}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
        host = run.node_name
        self._event_writer.record_event(pod, type_, reason, message, component="kubelet", host=host)


_STEPS: Final[dict[PodStage, Callable[[Kubelets, PodRun, NodeInfo], None]]] = {
    PodStage.NEW: Kubelets._admit,
    PodStage.STARTING: Kubelets._run_containers,
    PodStage.RUNNING: Kubelets._finish_run,
    PodStage.BACK_OFF: Kubelets._run_containers,
    PodStage.STOPPING: Kubelets._remove,
}  # what happens at the end of a stage
