"""A pod controller on the cluster of a test: the real thing, on virtual time."""

from __future__ import annotations

import asyncio
import random

from mooring.cluster.embedded import EmbeddedCluster
from mooring.controller.app import Controller
from mooring.controller.runner import Options, Runner
from mooring.simulator.clock import VirtualLoop


class RunningController:
    """A controller at work, until `stop`."""

    def __init__(self, runner: Runner, task: asyncio.Task[None]) -> None:
        self.runner: Runner = runner
        self._task = task

    def check(self) -> None:
        """Raise what ended the controller, if anything did."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def stop(self) -> None:
        """Stop it in order: binds under way may end, Events are written."""
        self.runner.stop()
        await self._task


def run_controller(
    cluster: EmbeddedCluster,
    loop: VirtualLoop,
    controller: Controller,
    options: Options | None = None,
) -> RunningController:
    """Start it; it runs until `stop`, or until the cluster is closed."""
    runner = Runner(
        controller,
        cluster.transport,
        options,
        clock=cluster.clock.now,
        uptime=loop.time,
        rng=random.Random(cluster.rng.getrandbits(64)),
        host="localhost",
    )
    running = RunningController(runner, loop.create_task(runner.run(), name=repr(controller)))
    cluster.before_close(running.stop)
    return running
