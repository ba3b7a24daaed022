"""A private copy of a cluster with the plugins of one profile: edited freely, written nowhere.

An edit is made in place and undone afterwards, so that to try one out costs hardly more than the
evaluation itself. `simulator.evaluate` and the remedies of this room work on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Footprints, Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.framework.explaining import Edit, ObjectChange, PluginChange
from mooring.framework.state import CycleState
from mooring.lens.configurations import Configurations
from mooring.lens.decider import Decider
from mooring.lens.inspect import Inspector
from mooring.lens.snapshot import ClusterState
from mooring.queue.nominator import NominatedPods
from mooring.runtime.profile import Profile, ProfilePlan
from mooring.runtime.runner import Runner


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
        configurations: Configurations | None = None,
    ) -> None:
        self.nominator: NominatedPods = NominatedPods()
        self.cache: Cache = Cache()
        self._pods: dict[tuple[str, str], Pod] = {}  # by namespace and name
        self.cache.add_nodes(list({node.metadata.name: node for node in cluster.nodes}.values()))
        self._put_all(cluster.pods)
        for value in cluster.other_objects():
            self.cache.objects.put(value)
        client = writes(self.cache)
        clock = _FrozenClock(time.time() if at is None else at)
        self._configurations = configurations
        self._changes: tuple[PluginChange, ...] = ()  # of the configuration, inside `edited`
        self._build: Callable[[ProfilePlan], Decider] = partial(
            Decider, cache=self.cache, nominator=self.nominator, clock=clock, client=client
        )
        self._decider: Decider = self._build(plan)
        self._others: dict[object, Decider] = {}  # by what is changed

    @property
    def profile(self) -> Profile:
        return self._decider.profile

    @property
    def runner(self) -> Runner:
        return self._decider.runner

    @property
    def evaluator(self) -> PodEvaluator:
        return self._decider.evaluator

    @property
    def inspector(self) -> Inspector:
        return self._decider.inspector

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
        before = self._decider, self._changes
        given = pod.scheduler_name
        try:
            for edit in edits:
                for change in edit.changes:
                    if not change.name:
                        pod = Pod(change.to(pod.api))
                    else:
                        undo.append(self._change(change))
                if edit.plugin is not None:
                    self._changes = (*self._changes, edit.plugin)
            other = pod.scheduler_name if pod.scheduler_name != given else ""
            if other or self._changes is not before[1]:
                self._decider = self._configured(other or self.profile.scheduler_name)
            yield pod
        finally:
            self._decider, self._changes = before
            for back in reversed(undo):
                back()

    # --- the configuration ---------------------------------------------------------------------

    def configuration_edits(self, plugin: str) -> list[Edit]:
        """The profile without a plugin that refuses, if that is a plugin of the user."""
        if self._configurations is None:
            return []
        edit = self._configurations.without(self.profile.scheduler_name, plugin)
        return [] if edit is None else [edit]

    def other_profiles(self) -> list[Edit]:
        """The pod in the care of another profile of the configuration."""
        if self._configurations is None:
            return []
        return self._configurations.other_profiles(self.profile.scheduler_name)

    def configuration_patch(self, change: PluginChange) -> dict[str, Any]:
        """What a change does to the profile, as a JSON merge patch."""
        assert self._configurations is not None
        name = self.profile.scheduler_name
        return self._configurations.patch(name, self._changes, change)

    def can_try(self, edit: Edit) -> bool:
        """Whether an edit can be made here: of the configuration, only if it is known."""
        return edit.plugin is None or self._configurations is not None

    def _configured(self, name: str) -> Decider:
        assert self._configurations is not None
        key = (name, *((one.plugin, msgspec.json.encode(one.args)) for one in self._changes))
        if key not in self._others:
            self._others[key] = self._build(self._configurations.plan(name, self._changes))
        return self._others[key]

    # --- objects -------------------------------------------------------------------------------

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

    def _put_all(self, pods: Iterable[core.Pod]) -> None:
        """As `_put_pod` for each; those on nodes are counted together."""
        footprints = Footprints()
        bound: dict[str, Pod] = {}  # by uid
        for api in pods:
            pod = Pod(api)
            if pod.node_name and not pod.is_finished:
                footprints.share(pod)
                bound[pod.uid] = pod
                self._pods[pod.namespace, pod.name] = pod
            else:
                self._put_pod(pod)
        self.cache.add_pods(list(bound.values()))

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
