"""The story: a rollout, a spread, a pod that does not fit and why, a node, a preemption.

Everything but the machines is real: the API server, the controllers that make pods, the scheduler
with its queue, and the binds that go through the API server.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from mooring.api.wellknown import ZONE
from mooring.cli.demo import manifests
from mooring.cli.demo.screen import Screen
from mooring.cluster.apiserver.resources import known
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler

_PODS: Final = known("pods")
_BATCH: Final = 20  # pods of two cores: more than there is room for
_PATIENCE: Final = 20.0  # seconds for one step; they take less than one each


class Story:
    """Runs the steps on a cluster with a scheduler; `failures` are the steps that went wrong."""

    def __init__(self, cluster: EmbeddedCluster, running: RunningScheduler, screen: Screen) -> None:
        self._cluster = cluster
        self._running = running
        self._screen = screen
        self._began = time.monotonic()
        self.failures: list[str] = []

    async def tell(self) -> None:
        """Run all chapters; `sum_up` prints the numbers afterwards."""
        chapters = (
            self._roll_out,
            self._spread,
            self._does_not_fit,
            self._add_a_node,
            self._preempt,
        )
        for chapter in chapters:
            await chapter()
            await self._screen.pause()

    # --- chapters ------------------------------------------------------------------------------

    async def _roll_out(self) -> None:
        self._screen.chapter("A rollout", "kubectl create deployment web --replicas=6")
        self._cluster.apply(manifests.deployment("web", 6, "500m"))
        await self._until("web", 6)
        by_price = Counter(self._label(name, "price") for name in self._nodes_of("web"))
        self._screen.say(
            f"6 pods run: {by_price['spot']} on spot machines, {by_price['full']} on others."
            " The plugin above decides among nodes that fit."
        )

    async def _spread(self) -> None:
        self._screen.chapter("A spread", "at most one more pod in a zone than in any other")
        self._cluster.apply(manifests.deployment("api", 6, "250m", ZONE))
        await self._until("api", 6)
        zones = Counter(self._label(name, ZONE) for name in self._nodes_of("api"))
        shown = ", ".join(f"{count} in zone {zone}" for zone, count in sorted(zones.items()))
        self._screen.say(f"{shown}.")
        self._expect(len(set(zones.values())) == 1, "the spread is even")

    async def _does_not_fit(self) -> None:
        self._screen.chapter("A pod that does not fit", "it asks for 8 cores; machines have 4")
        self._cluster.apply(manifests.pod("huge", "8"))
        await self._wait(lambda: self._why("huge"), "a reason")
        self._screen.say(f"huge waits: {self._why('huge')}")

    async def _add_a_node(self) -> None:
        self._screen.chapter("A node is added", "large-0, with 16 cores")
        began = time.monotonic()
        self._cluster.add_nodes(manifests.RELIEF)
        await self._wait(lambda: self._node_of("huge"), "huge is bound")
        took = (time.monotonic() - began) * 1000
        self._screen.say(f"huge is bound to {self._node_of('huge')} {took:.0f} ms later.")

    async def _preempt(self) -> None:
        """Only one node of the zone has room after one eviction, so it is always the same one.

        The other would have to lose two pods; and batch has the lowest priority, so a pod
        of batch is the victim, however close together pods have started.
        """
        self._screen.chapter("A preemption", "the cluster is filled, then something urgent comes")
        batch = manifests.deployment("batch", _BATCH, "2", priority_class=manifests.BACKGROUND)
        self._cluster.apply(*manifests.PRIORITIES, batch)
        await self._wait(self._is_full, "the cluster is full")
        waiting = self._waiting("batch")
        self._screen.say(f"{waiting} waits: {self._why(waiting)}")
        before = self._names()
        self._cluster.apply(manifests.pod("urgent", "2500m", manifests.URGENT, zone="b"))
        await self._wait(lambda: self._node_of("urgent"), "urgent is bound")
        gone = sorted(before - self._names())
        self._screen.say(
            f"urgent is bound to {self._node_of('urgent')};"
            f" {', '.join(gone) or 'no pod'} made room."
        )
        self._expect(len(gone) == 1, "one pod made room")

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

    def _is_full(self) -> bool:
        """Every pod of batch has a node or a reason why not, and some have a reason."""
        pods = self._pods("batch")
        placed = [bool(pod["spec"].get("nodeName")) for pod in pods]
        reasons = [bool(self._why(pod["metadata"]["name"])) for pod in pods]
        return len(pods) == _BATCH and not all(placed) and all(map(max, placed, reasons))

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
