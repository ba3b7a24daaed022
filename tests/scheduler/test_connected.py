"""A scheduler and its component: what one tells the other."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.faulty_transport import FaultyTransport

from mooring.client.component import Component
from mooring.client.transport import Request, Transport
from mooring.observe.metrics import Metrics
from mooring.scheduler.cluster import CONGESTED
from mooring.scheduler.connected import ConnectedScheduler
from mooring.testing import pod
from mooring.testing.sandbox import Sandbox


def test_nothing_is_decided_while_many_binds_wait_for_the_server() -> None:
    answers = asyncio.Event()

    class SlowBinds(FaultyTransport):
        async def send(self, request: Request, fence: Any = None) -> Any:
            if request.path.endswith("/binding"):
                await answers.wait()
            return await super().send(request, fence)

    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.add_nodes(10, cpu="64", memory="64Gi", pods=110)
        sandbox.apply(*[pod(f"p{i}", cpu="10m") for i in range(400)])

        def connect() -> Transport:
            return SlowBinds(sandbox.cluster.transport())

        async def start() -> tuple[ConnectedScheduler, asyncio.Task[None]]:
            metrics = Metrics()
            component = Component(connect, metrics, clock=sandbox.clock.now)
            connected = ConnectedScheduler(component, clock=sandbox.clock, metrics=metrics)
            return connected, asyncio.create_task(connected.run())

        connected, task = sandbox.loop.run_until_complete(start())
        sandbox.advance(5)
        assert connected.scheduler.holds == {CONGESTED}
        assert connected.scheduler.cache.assumed_count < 400
        answers.set()
        sandbox.wait_until_bound()
        assert connected.scheduler.holds == frozenset()
        connected.component.stop()
        sandbox.loop.run_until_complete(task)
