"""Schedules one pod from the queue: chooses a node, assumes, binds; or requeues it with an Event.

waiting ──choose──▶ assumed on a node ──bind──▶ bound; the watch confirms it
   ▲                    │
   └── refused, failed ◀┘   again with backoff, or soon after nodes have changed
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from mooring.api import core
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.cache.pods import Pod
from mooring.client.errors import Fenced, NotFound
from mooring.client.event_series import truncated
from mooring.client.pod_binder import AlreadyBound, PodBinder
from mooring.controller.chooser import NodeChooser, NotNow
from mooring.controller.metrics import ControllerMetrics
from mooring.controller.reconciler import Requeue
from mooring.controller.recorder import Recorder
from mooring.controller.view import ClusterView
from mooring.controller.workqueue import WorkQueue
from mooring.errors import ApiError, PluginError

log = logging.getLogger(__name__)

NO_NODES: Final = "no nodes available to schedule pods"  # kube-scheduler's words
NO_CHOICE: Final = "no node was chosen"
_SOON: Final = 0.5  # seconds; changes of many nodes wake refused pods once
_STAND_BY: Final = 1.0  # seconds until a pod is tried again whose bind was fenced


class Placer:
    """Places the pods of one controller; `reconcile` is what workers call.

    The function is called for `at_once` pods at a time. With one, each call sees the nodes of the
    pods before; binds overlap in any case.
    """

    def __init__(
        self,
        chooser: NodeChooser,
        *,
        name: str,
        view: ClusterView,
        queue: WorkQueue[str],
        binder: PodBinder,
        recorder: Recorder,
        metrics: ControllerMetrics,
        at_once: int = 1,
    ) -> None:
        self._chooser = chooser
        self._name = name
        self._view = view
        self._queue = queue
        self._binder = binder
        self._recorder = recorder
        self._metrics = metrics
        self._turn = asyncio.Semaphore(at_once)
        self._choice_duration = metrics.choice_duration.labels(name)
        self._refused: dict[str, None] = {}  # keys of pods that wait for another try, in order
        self._waking: asyncio.TimerHandle | None = None
        metrics.before_scrape(self._measure)

    async def reconcile(self, key: str) -> Requeue | None:
        self._refused.pop(key, None)
        async with self._turn:
            pod = self._view.waiting(key)
            if pod is None:
                return None
            try:
                choice = await self._decide(pod)
            except PluginError as error:
                return self._refuse(pod, str(error))
            latest = self._view.waiting(key)
            if latest is None or latest.uid != pod.uid:
                return None  # gone or bound meanwhile
            if isinstance(choice, NotNow):
                return self._refuse(latest, choice.reason or NO_CHOICE, choice.after)
            # Within the turn, so that the next call sees the pod on its node.
            assumed = self._view.cache.assume(latest, choice)
        return await self._bind(assumed)

    def forget(self, key: str) -> None:
        """The pod is gone, or has a node."""
        self._refused.pop(key, None)
        self._queue.forget(key)

    def wake(self) -> None:
        """Nodes have changed: try the refused pods again."""
        if self._refused and self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(_SOON, self._wake_now)

    async def _decide(self, pod: Pod) -> str | NotNow:
        nodes = self._view.nodes
        if not len(nodes):
            return NotNow(NO_NODES)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self._chooser.ask(pod, nodes)
        finally:
            self._choice_duration.observe(loop.time() - began)

    def _refuse(self, pod: Pod, why: str, after: float | None = None) -> Requeue:
        self._refused[pod.key] = None
        log.info("pod is not placed, trying again", extra={"pod": pod.key, "error": why})
        self._recorder.event(
            pod.api, "FailedScheduling", truncated(why), action="Scheduling", is_warning=True
        )
        return Requeue(after)

    def _wake_now(self) -> None:
        self._waking = None
        for key in self._refused:
            self._queue.add(key)

    async def _bind(self, pod: Pod) -> Requeue | None:
        """Bind, or forget the assumed pod."""
        node = pod.node_name
        extra = {"pod": pod.key, "node": node}
        meta = ObjectMeta(namespace=pod.namespace, name=pod.name, uid=pod.api.metadata.uid)
        target = ObjectReference(kind="Node", name=node)
        try:
            await self._binder.bind(core.Binding(metadata=meta, target=target))
        except AlreadyBound as error:
            self._give_up(pod, "conflict")
            log.info("the pod was bound by another scheduler", extra={**extra, "found": error.node})
            return None
        except NotFound:
            self._give_up(pod, "gone")
            log.info("the pod was deleted before it could be bound", extra=extra)
            return None
        except Fenced:
            # A request before may have bound it: the watch will show that.
            self._give_up(pod, "fenced")
            return Requeue(_STAND_BY)
        except ApiError as error:
            self._give_up(pod, "error")
            return self._refuse(pod, f"could not be bound to node {node}: {error}")
        except BaseException:
            self._view.cache.forget(pod)
            raise
        self._count("bound")
        log.info("Successfully bound pod to node", extra=extra)
        note = f"Successfully assigned {pod.key} to {node}"
        self._recorder.event(pod.api, "Scheduled", note, action="Binding")
        return None

    def _give_up(self, pod: Pod, result: str) -> None:
        self._view.cache.forget(pod)
        self._count(result)

    def _count(self, result: str) -> None:
        self._metrics.binds.labels(self._name, result).add()

    def _measure(self) -> None:
        refused = len(self._refused)
        states = {
            "ready": self._view.waiting_count - refused,
            "refused": refused,
            "binding": self._view.cache.assumed_count,
        }
        for state, count in states.items():
            self._metrics.pending_pods.labels(self._name, state).set(max(count, 0))
