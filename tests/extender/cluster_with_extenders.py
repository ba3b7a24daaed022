"""A small embedded cluster whose scheduler calls extenders."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler, run_scheduler

_PODS = known("pods")
_EVENTS = known("events")
NODES = ("node-0", "node-1", "node-2")


def configuration(*extenders: Object, **own: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "extenders": list(extenders),
            **own,
        }
    )


def pod(name: str, **spec: Any) -> Object:
    container = {"name": "main", "image": "example/app", "command": ["run", name]}
    requests = spec.pop("requests", {"cpu": "100m"})
    resources = {"resources": {"requests": requests}}
    if "limits" in spec:
        resources["resources"]["limits"] = spec.pop("limits")
    meta = {"name": name, "namespace": "default", "labels": spec.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{**container, **resources}], **spec},
    }


class ClusterWithExtenders:
    """Three nodes and a scheduler; `async with`."""

    def __init__(self, config: str, nodes: int = 3, **machine: Any) -> None:
        self.cluster: EmbeddedCluster = EmbeddedCluster(startup=0.0, kubelets=False)
        self._config = config
        self._nodes = nodes
        self._machine = machine
        self.running: RunningScheduler | None = None

    async def __aenter__(self) -> Self:
        await self.cluster.__aenter__()
        self.cluster.add_nodes(self._nodes, **self._machine)
        self.running = await run_scheduler(self.cluster, self._config)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cluster.close()

    def node_of(self, name: str) -> str:
        for item in self.cluster.store.items(_PODS):
            if item.name == name:
                return str(json.loads(item.raw)["spec"].get("nodeName", ""))
        return ""

    def notes(self, name: str, reason: str = "FailedScheduling") -> list[str]:
        """What Events of a reason say about a pod."""
        events = [json.loads(item.raw) for item in self.cluster.store.items(_EVENTS)]
        return [
            event["message"]
            for event in events
            if event["reason"] == reason and event["involvedObject"]["name"] == name
        ]

    async def bound(self, *names: str) -> dict[str, str]:
        """Wait until these pods are bound; where they are."""
        await self.until(lambda: all(map(self.node_of, names)))
        return {name: self.node_of(name) for name in names}

    async def note(self, name: str) -> str:
        """Wait until a pod was refused; what its Event says."""
        await self.until(lambda: self.notes(name))
        return self.notes(name)[0]

    async def until(self, condition: Callable[[], Any]) -> None:
        running = self.running
        assert running is not None

        def holds() -> Any:
            running.check()
            return condition()

        await self.cluster.wait_for(holds, 20.0)
