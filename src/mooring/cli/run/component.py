"""A component as a process of its own: signals, a watchdog and endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from mooring.cli.run.options import ComponentOptions
from mooring.client.component import Component
from mooring.observe.component import ComponentMetrics
from mooring.observe.signals import run_until_signalled
from mooring.runtime.guard import Guard, Watchdog

Note: TypeAlias = Callable[[], str]


async def run_component(
    run: Callable[[], Awaitable[None]],
    component: Component,
    guard: Guard,
    options: ComponentOptions,
    metrics: ComponentMetrics,
    document: Any = None,
    notes: Mapping[str, Note] = MappingProxyType({}),
) -> None:
    """Run until SIGTERM or SIGINT, with endpoints unless their port is 0.

    `run` runs the component; `document` is the configuration in force, if there is one; `notes`
    are shown by /readyz?verbose.
    """

    async def run_with_endpoints() -> None:
        # Half a second of imports that a process without endpoints does not need.
        from mooring.cli.run.endpoints import ComponentEndpoints

        endpoints = ComponentEndpoints(options, component, metrics, document, notes)
        try:
            await endpoints.start()
            async with asyncio.TaskGroup() as tasks:
                looking = tasks.create_task(endpoints.run(), name="endpoints")
                await run()
                looking.cancel()
        finally:
            await endpoints.close()

    running = run_with_endpoints if options.secure_port else run
    with Watchdog(guard):
        await run_until_signalled(running, component.stop)
