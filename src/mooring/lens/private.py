"""A private copy of a cluster with the plugins of one profile: edited freely, written nowhere.

An edit is made in place and undone afterwards, so that to try one out costs hardly more than the
evaluation itself. `simulator.evaluate` and the remedies of this room work on it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.plugins import DecisionPlugins
from mooring.framework.explaining import Edit, ObjectChange
from mooring.framework.state import CycleState
from mooring.lens.inspect import Inspector
from mooring.lens.snapshot import ClusterState
from mooring.observe.metrics import Metrics
from mooring.queue.nominator import NominatedPods
from mooring.runtime.guard import Guard
from mooring.runtime.handle import ProfileHandle
from mooring.runtime.profile import Profile, ProfilePlan
from mooring.runtime.runner import Runner
from mooring.runtime.waiting import WaitingPods


class Waits(Exception):
    """A plugin would wait, and time stands still in a private copy."""


class _FrozenClock:
    """A clock that stands still at the time of the copy."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        raise Waits


class _NoWrites:
    """Fulfils `framework.Client` and `framework.Recorder` where nothing may be written."""

    async def bind(self, *args: object) -> None:
        raise AssertionError("nothing is written from a private copy")

    patch_pod_status = delete_pod = update = bind

    def soon(self, write: object) -> None:
        """A write in the background: there is none."""

    def event(self, *args: object, **kwargs: object) -> None:
        """An Event would be a write: there is none."""


class PrivateCluster:
    """Nodes, pods and objects of a cluster, and the plugins that decide on them."""

    def __init__(
        self,
        plan: ProfilePlan,
        cluster: ClusterState,
        at: float | None = None,
        writes: Callable[[Cache], Any] = lambda cache: _NoWrites(),
    ) -> None:
        self.nominator: NominatedPods = NominatedPods()
        self.cache: Cache = Cache()
        self._pods: dict[tuple[str, str], Pod] = {}  # by namespace and name
        for node in cluster.nodes:
            self.cache.put_node(node)
        for api in cluster.pods:
            self._put_pod(Pod(api))
        for value in cluster.other_objects():
            self.cache.objects.put(value)
        client = writes(self.cache)
        handle = ProfileHandle(
            plan.scheduler_name,
            cache=self.cache,
            clock=_FrozenClock(time.time() if at is None else at),
            rng=random.Random(0),
            client=client,
            recorder=client,
            waiting=WaitingPods(),
        )
        self.profile: Profile = plan.build(handle)
        guard = Guard(Metrics())
        self.runner: Runner = Runner(self.profile, guard)
        self.evaluator: PodEvaluator = PodEvaluator(
            DecisionPlugins(self.profile, guard), self.nominator, self.cache.objects
        )
        handle.attach(self.nominator, self.evaluator.what_if, lambda keys: None)
        self.inspector: Inspector = Inspector(self.evaluator, self.runner, self.cache)

    @property
    def nodes(self) -> Nodes:
        return self.cache.nodes

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get((namespace, name))

    # --- evaluating ----------------------------------------------------------------------------

    def evaluate(self, pod: Pod) -> Evaluation:
        """PreFilter and Filter of a pod, by all plugins on all nodes."""
        evaluation = self.evaluator.begin(CycleState(exhaustive=True), pod, self.nodes)
        if evaluation.passed_pre_filter or evaluation.outcome.status.ok:
            evaluation.filter()
        return evaluation

    def fits(self, pod: Pod) -> Evaluation | None:
        """The evaluation of a pod that would be scheduled now; None if it would not."""
        if not self.runner.pre_enqueue(pod).ok or not len(self.nodes):
            return None
        evaluation = self.evaluate(pod)
        is_fine = evaluation.outcome.status.ok and evaluation.status.ok
        return evaluation if is_fine and evaluation.count else None

    # --- editing -------------------------------------------------------------------------------

    @contextmanager
    def edited(self, pod: Pod, edits: Iterable[Edit]) -> Iterator[Pod]:
        """Inside, as if these edits had been made; the pod with its part of them."""
        undo: list[Callable[[], None]] = []
        try:
            for edit in edits:
                for change in edit.changes:
                    if not change.name:
                        pod = Pod(change.to(pod.api))
                    else:
                        undo.append(self._change(change))
            yield pod
        finally:
            for back in reversed(undo):
                back()

    def current(self, change: ObjectChange) -> Object | None:
        """The object that a change is about, as it is."""
        if change.kind is core.Node:
            node = self.nodes.get(change.name)
            return None if node is None else node.api
        if change.kind is core.Pod:
            known = self.pod(change.namespace, change.name)
            return None if known is None else known.api
        return self.cache.objects.get(change.kind, change.name, change.namespace)

    def _change(self, change: ObjectChange) -> Callable[[], None]:
        before = self.current(change)
        after = change.to(before)
        self._replace(before, after)
        return lambda: self._replace(after, before)

    def _replace(self, before: Object | None, after: Object | None) -> None:
        value = after if after is not None else before
        if isinstance(value, core.Node):
            if isinstance(after, core.Node):
                self.cache.put_node(after)
            else:
                self.cache.remove_node(value.name)
        elif isinstance(value, core.Pod):
            if isinstance(before, core.Pod):
                self._remove_pod(before)
            if isinstance(after, core.Pod):
                self._put_pod(Pod(after))
        elif after is not None:
            self.cache.objects.put(after)
        elif before is not None:
            self.cache.objects.remove(before)

    def _put_pod(self, pod: Pod) -> None:
        self._pods[pod.namespace, pod.name] = pod
        if pod.node_name:
            self.cache.put_pod(pod)
        elif not pod.is_finished:
            self.nominator.nominate(pod, None)

    def _remove_pod(self, api: core.Pod) -> None:
        known = self._pods.pop((api.metadata.namespace, api.metadata.name), None)
        if known is not None:
            self.cache.remove_pod(known)
            self.nominator.delete(known)


def sorted_by_name(cluster: ClusterState) -> ClusterState:
    """Nodes as an API server lists them: the first that reports an image decides its size."""
    nodes = sorted(cluster.nodes, key=lambda node: node.metadata.name)
    return structs.replace(cluster, nodes=tuple(nodes))
