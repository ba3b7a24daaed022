"""A cluster, a scheduler and a clock in one object, for tests, demos and experiments.

with Simulation(plugins=[MyPlugin], config=CONFIG) as sim:
    sim.apply(node("a"), node("b"), pod("web"))
    sim.settle()
    assert sim.node_of("web") == "b"
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mooring import config as cfg
from mooring.api import core
from mooring.framework.plugin import Base
from mooring.lens.reading import read_snapshot
from mooring.lens.snapshot import Snapshot
from mooring.runtime.guard import DEFAULT_BUDGET
from mooring.scheduler.attempts import Attempt
from mooring.scheduler.scheduler import Scheduler
from mooring.simulator.clock import VirtualClock, VirtualLoop
from mooring.simulator.cluster import LocalCluster, RecordedEvent


class Simulation:
    """One scheduler on one local cluster, on virtual time.

    `config` is a KubeSchedulerConfiguration: loaded, as YAML text, or as a path. With the same
    `seed` and the same calls, everything happens the same way again. Without `keep_attempts`, pods
    are decided by their classes, as a scheduler of a real cluster does; `check_share` of those
    decisions are made again in full and compared. `cluster` is empty, and another than the usual.
    """

    def __init__(
        self,
        *,
        config: cfg.KubeSchedulerConfiguration | str | Path | None = None,
        plugins: Iterable[type[Base]] = (),
        seed: int = 0,
        plugin_budget: float = DEFAULT_BUDGET,
        keep_attempts: bool = True,
        check_share: float = 0.0,
        cluster: LocalCluster | None = None,
    ) -> None:
        if isinstance(config, Path):
            config = cfg.load_file(config)
        elif isinstance(config, str):
            config = cfg.load_text(config)
        self.loop: VirtualLoop = VirtualLoop()
        self.clock: VirtualClock = VirtualClock(self.loop)
        self.cluster: LocalCluster = cluster or LocalCluster()
        self.attempts: list[Attempt] = []
        try:
            self.scheduler: Scheduler = Scheduler(
                config,
                client=self.cluster,
                recorder=self.cluster,
                clock=self.clock,
                rng=random.Random(seed),
                plugins=plugins,
                plugin_budget=plugin_budget,
                on_attempt=self.attempts.append if keep_attempts else None,
                check_share=check_share,
            )
        except BaseException:
            self.loop.close()
            raise
        self.cluster.watch(self.scheduler.handlers)
        self._running = self.loop.create_task(self.scheduler.run())

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the scheduler and cancel pending tasks."""
        if self.loop.is_closed():
            return
        try:
            self.scheduler.stop()
            self.loop.settle()
            if not self._running.done():
                self._running.cancel()  # a plugin never returned
            self.cluster.cancel_writes()
            self.loop.settle()
            self._check()
        finally:
            self.loop.close()

    # --- time ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Run everything that needs no time to pass."""
        self.loop.settle()
        self._check()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.advance(seconds)
        self._check()

    # --- the cluster ---------------------------------------------------------------------------

    def apply(self, *objects: Any) -> None:
        """Create or replace objects; nothing is scheduled until time passes or `settle`.

        A `Path` is a snapshot, or a file of objects in JSON or YAML.
        """
        given: list[Any] = []
        for one in objects:
            if isinstance(one, Path):
                one = read_snapshot(one)
            if isinstance(one, Snapshot):
                given += one.cluster.objects()
            else:
                given.append(one)
        self.cluster.apply(*given)

    def delete(self, *objects: Any) -> None:
        self.cluster.delete(*objects)

    def schedule(self, *pods: Any) -> None:
        """`apply` these pods and `settle`."""
        self.apply(*pods)
        self.settle()

    def pod(self, key: str) -> core.Pod:
        return self.cluster.pod(key)

    def node_of(self, key: str) -> str:
        """The node of a pod; "" if it is not bound."""
        return self.cluster.pod(key).spec.node_name

    def placements(self) -> dict[str, str]:
        """Pod name -> node name, of all pods."""
        return {pod.metadata.name: pod.spec.node_name for pod in self.cluster.pods()}

    def why(self, key: str) -> str:
        """What keeps a pod waiting, or the message of its PodScheduled condition; "" once bound."""
        held = self.scheduler.held.why(key if "/" in key else f"default/{key}")
        if held:
            return held
        for condition in self.cluster.pod(key).status.conditions:
            if condition.type == "PodScheduled":
                return condition.message
        return ""

    def where(self, key: str) -> str | None:
        """The queue that holds a pod: active, backoff, unschedulable or gated; or None."""
        return self.scheduler.queue.where(key if "/" in key else f"default/{key}")

    @property
    def events(self) -> list[RecordedEvent]:
        return self.cluster.events

    def _check(self) -> None:
        if self._running.done() and not self._running.cancelled():
            self._running.result()  # raises the error that ended the scheduler, if any

    def call(self, work: Any) -> Any:
        """Run a coroutine on the simulation's loop; it must end without time passing."""
        task = asyncio.ensure_future(work, loop=self.loop)
        self.settle()
        return task.result()
