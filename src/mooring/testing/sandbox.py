"""A cluster for one test, on virtual time: API server, controllers, kubelets and scheduler.

with Sandbox() as cluster:
    cluster.add_nodes(3, cpu="4")
    cluster.start_scheduler(plugins=[MyPlugin], config=CONFIG)
    cluster.apply(MANIFEST)
    cluster.wait_until_running()
    assert cluster.node_of("web-0") == "node-2"

All calls are synchronous: the cluster runs while the test waits or advances the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec

from mooring import config as cfg
from mooring.api.selectors import parse_label_query
from mooring.cluster.apiserver.resources import Resource, known
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.embedded import (
    EmbeddedCluster,
    RunningComponent,
    RunningScheduler,
    run_scheduler,
)
from mooring.cluster.manifests import find_resource
from mooring.cluster.node_templates import NodeTemplate
from mooring.controller import Controller, Options
from mooring.errors import InternalError
from mooring.framework.plugin import Base
from mooring.simulator.clock import VirtualClock, VirtualLoop
from mooring.testing.controllers import RunningController, run_controller

T = TypeVar("T")
R = TypeVar("R", bound=RunningComponent)

PATIENCE: Final = 300.0  # seconds of virtual time
_STEP: Final = 0.1  # seconds between checks of a condition
_PODS: Final = known("pods")
_EVENTS: Final = known("events")


class SeenEvent(msgspec.Struct, frozen=True):
    """A Kubernetes Event, as `kubectl describe` shows it."""

    about: str  # "Pod default/web"
    type: str
    reason: str
    message: str
    source: str  # the component that reports it


class Sandbox:
    """An embedded cluster on virtual time. Options as for `EmbeddedCluster`.

    Pods are named `name` in the namespace default, or `namespace/name`. With the same seed and the
    same calls, everything happens the same way again.
    """

    def __init__(self, *, seed: int = 0, **options: Any) -> None:
        self.loop: VirtualLoop = VirtualLoop()
        self.clock: VirtualClock = VirtualClock(self.loop)
        self._running: list[RunningComponent] = []
        try:
            self.cluster: EmbeddedCluster = EmbeddedCluster(
                clock=self.clock, rng=random.Random(seed), **options
            )
            self._complete(self.cluster.start())
        except BaseException:
            self.loop.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything."""
        if self.loop.is_closed():
            return
        try:
            self._complete(self.cluster.close())
        finally:
            self.loop.close()

    # --- the cluster ---------------------------------------------------------------------------

    def add_nodes(
        self, nodes: int | NodeTemplate | Iterable[NodeTemplate] = 1, **options: Any
    ) -> list[str]:
        """Add nodes: `add_nodes(3, cpu="8", zones=("a", "b"))`; returns their names."""
        return self.cluster.add_nodes(nodes, **options)

    def apply(self, *given: Any) -> list[Object]:
        """Create or change objects: YAML, paths, dictionaries, or what builders make."""
        return self.cluster.apply(*given)

    def delete(self, kind: str, key: str, **options: Any) -> None:
        """Delete an object, gracefully if it is a pod: `delete("deployment", "web")`."""
        options.setdefault("propagation", "Background")
        self.cluster.verbs.delete(*self._find(kind, key), **options)

    def get(self, kind: str, key: str) -> Object:
        """One object, as JSON: `get("deployment", "web")["status"]`."""
        return self.cluster.verbs.get(*self._find(kind, key))

    def all(self, kind: str, namespace: str = "") -> list[Object]:
        """All objects of a kind, by name."""
        of = self._resource(kind)
        return [
            self.cluster.verbs.get(of, item.namespace, item.name)
            for item in self.cluster.store.list(of, namespace)
        ]

    def _resource(self, kind: str) -> Resource:
        return find_resource(kind, self.cluster.verbs.custom.resources)

    def _find(self, kind: str, key: str) -> tuple[Resource, str, str]:
        of = self._resource(kind)
        return (of, *_split(key)) if of.namespaced else (of, "", key)

    def start_scheduler(
        self,
        config: cfg.KubeSchedulerConfiguration | str | Path | None = None,
        plugins: Iterable[type[Base]] = (),
        **options: Any,
    ) -> RunningScheduler:
        """Start a scheduler, and wait until its informers have synced."""
        return self._start(run_scheduler(self.cluster, config, plugins, **options))

    def start_controller(
        self, controller: Controller, options: Options | None = None
    ) -> RunningController:
        """Start a controller made by `@controller`, and wait until its informers have synced."""
        return self._start(run_controller(self.cluster, controller, options))

    def _start(self, starting: Coroutine[Any, Any, R]) -> R:
        running = self._complete(starting)
        self._running.append(running)
        self.settle()
        return running

    # --- time ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Run everything that needs no time to pass."""
        self.loop.settle()
        self._check()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.advance(seconds)
        self._check()

    def wait_until(
        self,
        condition: Callable[[], Any],
        seconds: float = PATIENCE,
        *,
        or_say: Callable[[], str] | None = None,
    ) -> None:
        """Let time pass until a condition holds; AssertionError if it does not in time."""
        self.settle()
        deadline = self.loop.time() + seconds
        while not condition():
            if self.loop.time() >= deadline:
                what = or_say() if or_say is not None else "the condition does not hold"
                raise AssertionError(f"after {seconds:g} s: {what}")
            self.advance(_STEP)

    def wait_until_bound(self, *keys: str, seconds: float = PATIENCE) -> None:
        """Wait until these pods, or all pods, are bound."""
        self._wait_for_pods(
            keys,
            lambda item: bool(item.fields["spec.nodeName"]),
            lambda key: f"{key} is not bound: {self.why(key)}",
            seconds,
        )

    def wait_until_running(self, *keys: str, seconds: float = PATIENCE) -> None:
        """Wait until these pods, or all pods, are running or have finished."""
        self._wait_for_pods(
            keys,
            lambda item: item.fields["status.phase"] in ("Running", "Succeeded"),
            lambda key: f"{key} is {self.phase_of(key)}: {self.why(key) or 'bound'}",
            seconds,
        )

    def _wait_for_pods(
        self,
        keys: tuple[str, ...],
        is_done: Callable[[Item], bool],
        describe: Callable[[str], str],
        seconds: float,
    ) -> None:
        def waiting() -> list[str]:
            items = [item for item in self._items(keys) if not is_done(item)]
            return [f"{item.namespace}/{item.name}" for item in items]

        self.wait_until(
            lambda: len(self._items(keys)) >= max(len(keys), 1) and not waiting(),
            seconds,
            or_say=lambda: "; ".join(map(describe, waiting())) or "there are no such pods",
        )

    # --- reading -------------------------------------------------------------------------------

    def pods(self, labels: str = "", namespace: str = "default") -> list[str]:
        """The names of pods, chosen as with `kubectl get pods -l`."""
        selector = parse_label_query(labels)
        found = self.cluster.store.list(_PODS, namespace)
        return [item.name for item in found if selector.matches(item.labels)]

    def node_of(self, key: str) -> str:
        """The node of a pod; "" if it is not bound."""
        return self._item(key).fields["spec.nodeName"]

    def phase_of(self, key: str) -> str:
        return self._item(key).fields["status.phase"]

    def placements(self, labels: str = "", namespace: str = "default") -> dict[str, str]:
        """Pod name -> node name."""
        prefix = f"{namespace}/"
        return {name: self.node_of(prefix + name) for name in self.pods(labels, namespace)}

    def why(self, key: str) -> str:
        """Why a pod is not scheduled, or was refused by its node; "" if neither."""
        for running in self._running:
            if isinstance(running, RunningScheduler):
                held = running.scheduler.held.why("/".join(_split(key)))
                if held:
                    return held
        status = self.get("pod", key).get("status") or {}
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] != "True":
                return str(condition.get("message", ""))
        return str(status.get("message", ""))

    def events(self, key: str = "", reason: str = "") -> list[SeenEvent]:
        """Events in the order of their creation: all, about one object, or of one reason."""
        namespace, name = _split(key) if key else ("", "")
        items = sorted(self.cluster.store.items(_EVENTS), key=lambda item: item.version)
        found = []
        for item in items:
            value = self.cluster.verbs.get(_EVENTS, item.namespace, item.name)
            about = value.get("involvedObject") or {}
            if key and (about.get("namespace", "default"), about.get("name")) != (namespace, name):
                continue
            if not reason or value.get("reason") == reason:
                found.append(_seen(value))
        return found

    # --- inside --------------------------------------------------------------------------------

    def _item(self, key: str) -> Item:
        found = self.cluster.store.get(_PODS, *_split(key))
        if found is None:
            raise KeyError(f"no pod {key}")
        return found

    def _items(self, keys: tuple[str, ...]) -> list[Item]:
        if not keys:
            return list(self.cluster.store.items(_PODS))
        found = (self.cluster.store.get(_PODS, *_split(key)) for key in keys)
        return [item for item in found if item is not None]

    def _complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the cluster to its end in virtual time."""
        task = self.loop.create_task(work)
        self.loop.settle()
        deadline = self.loop.time() + PATIENCE
        while not task.done():
            if self.loop.time() >= deadline:
                task.cancel()
                self.loop.settle()
                raise InternalError(f"{work!r} did not end within {PATIENCE:g} s")
            self.loop.advance(_STEP)
        return task.result()

    def _check(self) -> None:
        for running in self._running:
            running.check()
        if self.cluster.unexpected_errors:
            raise InternalError("a controller of the simulated cluster failed; see the log")


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace or "default", name


def _seen(value: Object) -> SeenEvent:
    about = value.get("involvedObject") or {}
    place = f"{about['namespace']}/" if about.get("namespace") else ""
    source = value.get("reportingComponent") or (value.get("source") or {}).get("component", "")
    return SeenEvent(
        about=f"{about.get('kind', '')} {place}{about.get('name', '')}",
        type=value.get("type", ""),
        reason=value.get("reason", ""),
        message=value.get("message", ""),
        source=source,
    )
