"""A pod controller on the embedded cluster of a test, on virtual time."""

from __future__ import annotations

import asyncio
import random

from mooring.cluster.embedded import EmbeddedCluster, RunningComponent
from mooring.controller.app import Controller
from mooring.controller.runner import Options, Runner


class RunningController(RunningComponent):
    """A controller on an embedded cluster."""

    def __init__(self, cluster: EmbeddedCluster, runner: Runner) -> None:
        super().__init__(cluster, runner.component, runner.run())
        self.runner: Runner = runner


async def run_controller(
    cluster: EmbeddedCluster, controller: Controller, options: Options | None = None
) -> RunningController:
    """Start a controller; it runs until `stop`, or until the cluster is closed."""
    runner = Runner(
        controller,
        cluster.transport,
        options,
        clock=cluster.clock.now,
        uptime=asyncio.get_running_loop().time,
        rng=random.Random(cluster.rng.getrandbits(64)),
        host="localhost",
    )
    return RunningController(cluster, runner)
