"""A component as a process of its own: signals, a watchdog, endpoints and a stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from mooring.cli.run.options import ComponentOptions
from mooring.client.component import Component
from mooring.observe.component import ComponentMetrics
from mooring.observe.signals import run_until_signalled
from mooring.runtime.guard import Guard, Watchdog
from mooring.runtime.stand_in import Duty, StandIn

if TYPE_CHECKING:
    from mooring.ui.lens import Lens

Note: TypeAlias = Callable[[], str]


async def run_component(
    run: Callable[[], Awaitable[None]],
    component: Component,
    guard: Guard,
    options: ComponentOptions,
    metrics: ComponentMetrics,
    document: Any = None,
    notes: Mapping[str, Note] = MappingProxyType({}),
    dump: Callable[[], None] | None = None,
    lens: Lens | None = None,
    reload: Callable[[], None] | None = None,
) -> None:
    """Run until SIGTERM or SIGINT, with endpoints unless their port is 0.

    A stand-in renews the lease and answers health checks, where there are any, while the loop
    stands still. `run` runs the component; `document` is the configuration in force, if there is
    one; `notes` are shown by /readyz?verbose; SIGUSR2 calls `dump`, SIGHUP `reload`; `lens`
    explains the decisions of a scheduler.
    """
    duties: list[Duty] = []
    if component.stand_in is not None:
        duties.append(component.stand_in)

    async def run_with_endpoints() -> None:
        # Half a second of imports that a process without endpoints does not need.
        from mooring.cli.run.endpoints import ComponentEndpoints

        endpoints = ComponentEndpoints(options, component, metrics, document, notes, lens)
        try:
            await endpoints.start()
            duties.append(endpoints.stand_in)
            stand_in = StandIn(duties, files=[endpoints.listening.fileno()])
            await _run_beside(run, stand_in, endpoints.run())
        finally:
            await endpoints.close()

    async def run_without() -> None:
        await (_run_beside(run, StandIn(duties)) if duties else run())

    with Watchdog(guard):
        await run_until_signalled(
            run_with_endpoints if options.secure_port else run_without,
            component.stop,
            dump,
            reload,
        )


async def _run_beside(
    run: Callable[[], Awaitable[None]], stand_in: StandIn, *others: Coroutine[Any, Any, None]
) -> None:
    """Until `run` returns."""
    try:
        stand_in.start()
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(other) for other in (stand_in.run(), *others)]
            await run()
            for task in beside:
                task.cancel()
    finally:
        stand_in.close()
