"""What the stories of the demo share: chapters one after the other, and looks at the cluster.

Everything but the machines is real: the API server, the controllers that make pods, the scheduler
with its queue, and the binds that go through the API server.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from mooring.cli.demo.screen import Screen
from mooring.cluster.apiserver.resources import known
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler

_PODS: Final = known("pods")
_PATIENCE: Final = 20.0  # seconds for one step; they take less than one each


class Story(abc.ABC):
    """Runs the steps on a cluster with a scheduler; `failures` are the steps that went wrong."""

    def __init__(self, cluster: EmbeddedCluster, running: RunningScheduler, screen: Screen) -> None:
        self._cluster = cluster
        self._running = running
        self._screen = screen
        self._began = time.monotonic()
        self.failures: list[str] = []

    @abc.abstractmethod
    def chapters(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """The steps in their order."""

    async def tell(self) -> None:
        """Run all chapters; `sum_up` prints the numbers afterwards."""
        for chapter in self.chapters():
            await chapter()
            await self._screen.pause()

    def sum_up(self) -> None:
        self._screen.chapter("In numbers", "")
        metrics = self._running.scheduler.metrics
        attempts = {result: int(child.value) for (result, _), child in metrics.schedule_attempts}
        algorithm = metrics.algorithm_duration.labels()
        mean = algorithm.total / max(algorithm.count, 1) * 1000
        placed = [bool(self._node_of(item.name)) for item in self._cluster.store.list(_PODS)]
        nodes = len(self._running.scheduler.cache.nodes)
        self._screen.say(
            f"{attempts.get('scheduled', 0)} binds on {nodes} nodes in"
            f" {time.monotonic() - self._began:.1f} s, {mean:.2f} ms per decision:"
            f" {placed.count(True)} pods have a node, {placed.count(False)} wait, each with its"
            " reason."
        )
        checks = {result: int(child.value) for (result,), child in metrics.class_checks}
        self._screen.say(
            f"{checks.get('equal', 0)} decisions used results of earlier pods; made again without"
            " them, they came out the same."
        )
        self._expect(not checks.get("different"), "decisions came out the same when made again")

    # --- looking -------------------------------------------------------------------------------

    def _pods(self, app: str) -> list[dict[str, Any]]:
        items = self._cluster.store.list(_PODS, "default")
        return [item.decoded() for item in items if item.labels.get("app") == app]

    def _names(self) -> set[str]:
        return {item.name for item in self._cluster.store.list(_PODS, "default")}

    def _nodes_of(self, app: str) -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in self._pods(app)]

    def _waiting(self, app: str) -> str:
        """One pod of a Deployment that has no node."""
        return next(
            (p["metadata"]["name"] for p in self._pods(app) if not p["spec"].get("nodeName")), ""
        )

    def _pod(self, name: str) -> dict[str, Any]:
        item = self._cluster.store.get(_PODS, "default", name)
        return item.decoded() if item is not None else {}

    def _node_of(self, name: str) -> str:
        node: str = self._pod(name).get("spec", {}).get("nodeName", "")
        return node

    def _why(self, name: str) -> str:
        for condition in self._pod(name).get("status", {}).get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                message: str = condition.get("message", "")
                return message
        return ""

    def _label(self, node: str, key: str) -> str:
        found = self._running.scheduler.cache.nodes.get(node)
        return found.labels.get(key, "") if found is not None else ""

    # --- waiting -------------------------------------------------------------------------------

    async def _until(self, app: str, count: int) -> None:
        def are_running() -> bool:
            phases = [pod["status"].get("phase") for pod in self._pods(app)]
            return phases.count("Running") == count

        await self._wait(are_running, f"{count} pods of {app} run")

    async def _wait(self, condition: Callable[[], Any], what: str) -> None:
        try:
            await self._cluster.wait_for(condition, _PATIENCE)
        except TimeoutError:
            self._expect(False, what)
        self._running.check()

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.failures.append(what)
            self._screen.say(f"[red]expected that {what}[/]")
