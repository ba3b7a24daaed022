"""A scheduler and its component: what one tells the other."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
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


def test_warns_now_and_then_that_another_process_binds_its_pods(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.add_nodes(2, cpu="64", memory="64Gi", pods=110)

        class Overtaken(FaultyTransport):
            """Another scheduler binds each pod first, to the other node."""

            async def send(self, request: Request, fence: Any = None) -> Any:
                if request.path.endswith("/binding"):
                    binding = json.loads(request.body or b"")
                    names = {"node-0": "node-1", "node-1": "node-0"}
                    binding["target"]["name"] = names[binding["target"]["name"]]
                    name = binding["metadata"]["name"]
                    sandbox.cluster.verbs.bind("default", name, binding)
                return await super().send(request, fence)

        async def start() -> tuple[ConnectedScheduler, asyncio.Task[None]]:
            metrics = Metrics()
            component = Component(
                lambda: Overtaken(sandbox.cluster.transport()), metrics, clock=sandbox.clock.now
            )
            connected = ConnectedScheduler(component, clock=sandbox.clock, metrics=metrics)
            return connected, asyncio.create_task(connected.run())

        def warnings() -> list[int]:
            return [
                record.__dict__["pods"]
                for record in caplog.records
                if record.message.startswith("another process binds pods of this scheduler")
            ]

        connected, task = sandbox.loop.run_until_complete(start())
        sandbox.apply(*[pod(f"p{i}", cpu="10m") for i in range(20)])
        sandbox.advance(60)
        assert warnings() == [1]
        sandbox.advance(300)
        sandbox.apply(pod("late", cpu="10m"))
        sandbox.advance(5)
        assert warnings() == [1, 20]
        connected.component.stop()
        sandbox.loop.run_until_complete(task)
