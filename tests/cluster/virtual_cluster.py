"""A cluster without a scheduler on virtual time, for tests of kubelets and controllers."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mooring.cluster.apiserver.resources import Resource, known
from mooring.cluster.apiserver.server import new_store
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.component import ComponentContext
from mooring.cluster.controllers import Controllers
from mooring.cluster.event_writer import EventWriter
from mooring.cluster.kubelet.kubelet import Kubelets
from mooring.cluster.manifests import resource_of
from mooring.cluster.node_templates import NodeTemplate, make_nodes
from mooring.simulator.clock import VirtualClock, VirtualLoop

PODS = known("pods")
NODES = known("nodes")
NAMESPACES = known("namespaces")
EVENTS = known("events")


class VirtualCluster:
    """Verbs, kubelets and controllers; pods are bound by hand, or to one node after the other."""

    def __init__(
        self,
        *,
        controllers: Collection[str] | None = None,
        kubelets: bool = True,
        binds: bool = True,
        warnings_only: bool = True,
        provision_any: bool = False,
        startup: float = 0.5,
    ) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop)
        self.store = new_store()
        self.verbs = Verbs(self.store, clock=self.clock.now, rng=random.Random(1))
        self._binds = binds
        self._turn = 0
        event_writer = EventWriter(self.verbs, self.clock, warnings_only=warnings_only)
        self._component = ComponentContext(self.verbs, self.clock, random.Random(2), event_writer)
        self.controllers = Controllers(
            self._component, only=controllers, provision_any=provision_any
        )
        self.kubelets = Kubelets(self._component, startup=startup, jitter=0.0)
        for name in ("default", "kube-system"):
            meta = {"name": name}
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})

        async def start() -> None:
            self.controllers.start()
            if kubelets:
                self.kubelets.start()

        self.store.listen(self._on_change)
        self.loop.run_until_complete(start())

    def close(self) -> None:
        self.loop.run_until_complete(self.controllers.close())
        self.kubelets.close()
        self.loop.settle()
        self.loop.close()

    def restart_controllers(self) -> None:
        """As if there had been others until now; all of them begin."""
        self.loop.run_until_complete(self.controllers.close())
        self.controllers = Controllers(self._component)
        self.loop.call_soon(self.controllers.start)

    def restart_kubelets(self) -> None:
        """As if the process had been another one until now."""
        self.kubelets.close()
        self.kubelets = Kubelets(self._component, jitter=0.0)
        self.loop.call_soon(self.kubelets.start)

    # --- writing -------------------------------------------------------------------------------

    def create(self, *values: Object) -> None:
        for value in values:
            of = resource_of(value)
            namespace = value["metadata"].get("namespace", "default") if of.namespaced else ""
            self.verbs.create(of, value, namespace=namespace)

    def nodes(self, count: int = 1, **options: Any) -> None:
        first = self.store.count(NODES)
        name = options.pop("name", f"n{first}-{{i}}" if first else "n{i}")
        template = NodeTemplate(name=name, count=count, **options)
        self.create(*make_nodes([template], now=self.clock.now(), first=first))

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        self.verbs.bind(namespace, name, binding)

    def change(self, of: Resource, name: str, namespace: str = "default", **spec: Any) -> None:
        """Set fields of a spec; names with __ reach further in."""

        def write(value: Object) -> None:
            for path, field in spec.items():
                *parents, last = path.split("__")
                place = value["spec"]
                for parent in parents:
                    place = place.setdefault(parent, {})
                place[last] = field

        self.verbs.modify(of, namespace if of.namespaced else "", name, write)

    # --- looking -------------------------------------------------------------------------------

    def get(self, of: Resource, name: str, namespace: str = "default") -> Object:
        return self.verbs.get(of, namespace if of.namespaced else "", name)

    def all(self, of: Resource, namespace: str = "default") -> list[Object]:
        return [item.decoded() for item in self.store.list(of, namespace if of.namespaced else "")]

    def pods(self, namespace: str = "default") -> list[Object]:
        return self.all(PODS, namespace)

    def pod_names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods()]

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.pods()}

    def events(self, reason: str = "") -> list[Object]:
        return [event for event in self.all(EVENTS) if not reason or event.get("reason") == reason]

    # --- time ----------------------------------------------------------------------------------

    def settle(self) -> None:
        self.loop.settle()
        self._check()

    def advance(self, seconds: float) -> None:
        self.loop.advance(seconds)
        self._check()

    def _check(self) -> None:
        errors = self.controllers.queue.unexpected_errors
        assert not errors, "a controller failed; see the log"

    # --- the scheduler of the poor ---------------------------------------------------------------

    def _on_change(self, change: StoreChange) -> None:
        if self._binds and change.resource == PODS.key and change.type == "ADDED":
            self.loop.call_soon(self._bind_next, change.new.namespace, change.new.name)

    def _bind_next(self, namespace: str, name: str) -> None:
        nodes = self.store.list(NODES)
        pod = self.store.get(PODS, namespace, name)
        if pod is None or not nodes:
            return
        value = pod.decoded()
        if value["spec"].get("nodeName") or "deletionTimestamp" in value["metadata"]:
            return
        wanted = _target(value)
        self._turn += 1
        self.bind(name, wanted or nodes[self._turn % len(nodes)].name, namespace)


@contextmanager
def virtual_cluster(**options: Any) -> Iterator[VirtualCluster]:
    made = VirtualCluster(**options)
    try:
        yield made
    finally:
        made.close()


def _target(pod: Object) -> str:
    """The node that a daemon's affinity names."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for test in term.get("matchFields") or ():
            return str(test["values"][0])
    return ""


def pod(name: str, *, cpu: str = "100m", node: str = "", **more: Any) -> Object:
    """A pod; `annotations` and `labels` go to its metadata, everything else to its spec."""
    meta = {"name": name, "namespace": "default"}
    for field in ("annotations", "labels"):
        if field in more:
            meta[field] = more.pop(field)
    spec = {"containers": [container(cpu)], **more}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def container(cpu: str = "100m", **requests: str) -> Object:
    return {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu, **requests}}}


def workload(kind: str, name: str, *, group: str = "apps/v1", **spec: Any) -> Object:
    """A Deployment or the like; `annotations` go to the template, `image` to the container."""
    labels = {"app": name}
    one = container()
    one["image"] = spec.pop("image", "app:1")
    inner: Object = {"labels": labels}
    if "annotations" in spec:
        inner["annotations"] = spec.pop("annotations")
    template: Object = {"metadata": inner, "spec": {"containers": [one]}}
    template["spec"] |= spec.pop("pod", {})
    body: Object = {"template": template, **spec}
    if kind != "Job":
        body["selector"] = {"matchLabels": labels}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": group, "kind": kind, "metadata": meta, "spec": body}


def conditions(value: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in value["status"].get("conditions", ())}


def names(values: Iterable[Object]) -> list[str]:
    return [value["metadata"]["name"] for value in values]
