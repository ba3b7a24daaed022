"""An in-process API server with a fixed clock and a seeded random generator."""

from __future__ import annotations

import random
from typing import Any

from tests.cluster.apiserver.compared_requests import Object, Step, ask_ours, pod
from tests.loop_rig import LoopRig

from mooring.cluster.apiserver.resources import Resource, known
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.store import Store
from mooring.cluster.apiserver.verbs import Verbs

PODS = known("pods")
MAPS = known("configmaps")
NAMESPACES = known("namespaces")
DEPLOYMENTS = known("deployments", "apps")
LEASES = known("leases", "coordination.k8s.io")

NOON = 1_700_000_000.0


class InProcessServer:
    """A server, and short forms of requests to it."""

    def __init__(self, store: Store | None = None, seed: int = 7) -> None:
        self.now = NOON
        self.server = ApiServer(store, clock=lambda: self.now, rng=random.Random(seed))

    @property
    def verbs(self) -> Verbs:
        return self.server.verbs

    @property
    def store(self) -> Store:
        return self.server.store

    def ask(self, step: Step) -> Any:
        """What is answered; it has to go well."""
        answer = ask_ours(self.server, step, "default")
        assert answer.status < 300, (str(step), answer)
        return answer.value

    def refusal(self, step: Step) -> tuple[int, str]:
        """Code and words of what has to go wrong."""
        answer = ask_ours(self.server, step, "default")
        assert answer.status >= 300, (str(step), answer)
        return answer.status, answer.value["message"]

    def create(self, resource: Resource, name: str, **fields: Any) -> Object:
        meta = {"name": name, **fields.pop("metadata", {})}
        namespace = "default" if resource.namespaced else ""
        value = {"metadata": meta, **fields}
        if resource is PODS:
            value = {**pod(name), **value}
        return self.verbs.create(resource, value, namespace=namespace)

    def names(self, resource: Resource) -> list[str]:
        return [item.name for item in self.store.list(resource)]


class ServerOnALoop(LoopRig):
    """A server and a virtual loop."""

    def __init__(self) -> None:
        super().__init__()
        self.server = InProcessServer()
