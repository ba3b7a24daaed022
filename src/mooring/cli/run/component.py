"""A component as a process of its own: signals, a watchdog, and endpoints with health checks."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mooring import __version__
from mooring.cli.run.options import ComponentOptions
from mooring.client.client import ApiClient
from mooring.client.component import Component, connector
from mooring.client.incluster import find_endpoint
from mooring.observe.component import ComponentMetrics
from mooring.observe.signals import run_until_signalled
from mooring.runtime.guard import Guard, Watchdog
from mooring.ui.health import Health
from mooring.ui.reviewer import ApiReviewer

USER_AGENT: Final = f"mooring/{__version__} ({platform.system().lower()}/{platform.machine()})"


async def run_component(
    run: Callable[[], Awaitable[None]],
    component: Component,
    guard: Guard,
    options: ComponentOptions,
    metrics: ComponentMetrics,
    document: Any = None,
) -> None:
    """Run until SIGTERM or SIGINT, with endpoints unless their port is 0.

    `run` runs the component; `document` is the configuration in force, if there is one.
    """

    async def run_with_endpoints() -> None:
        # Half a second of imports that a process without endpoints does not need.
        from mooring.cli.run.endpoints import ComponentEndpoints

        endpoints = ComponentEndpoints(
            options,
            health=_health(component),
            metrics=metrics,
            reviewer=_reviewer(options, component, metrics),
            reader=component.reader,
            document=document,
        )
        try:
            await endpoints.start()
            async with asyncio.TaskGroup() as tasks:
                looking = tasks.create_task(endpoints.run(), name="client CA")
                await run()
                looking.cancel()
        finally:
            await endpoints.close()

    running = run_with_endpoints if options.secure_port else run
    with Watchdog(guard):
        await run_until_signalled(running, component.stop)


def _health(component: Component) -> Health:
    """Healthy while the lease is renewed; ready while all informers are synced."""
    election, informers = component.election, component.informers

    def say_if_stopping() -> str:
        return "process is shutting down" if component.is_stopping else ""

    def say_if_syncing() -> str:
        unsynced = informers.unsynced()
        found = f"handlers are not fully synchronized: {', '.join(unsynced)}"
        return found if unsynced else ""

    health = Health()
    if election is not None:
        health.add("leaderElection", election.check, on=("healthz", "readyz"))
    health.add("shutdown", say_if_stopping, on=("readyz",))
    health.add("sched-handler-sync", say_if_syncing, on=("readyz",))
    health.add("informers", lambda: "; ".join(informers.problems()), on=("readyz",))
    health.add("permissions", lambda: component.permissions.problem, on=("readyz",))
    return health


def _reviewer(
    options: ComponentOptions, component: Component, metrics: ComponentMetrics
) -> ApiReviewer:
    """TokenReview and SubjectAccessReview may go to another server than the component's."""

    def asking(kubeconfig: str) -> ApiClient:
        if not kubeconfig:
            return component.reader
        connect = connector(find_endpoint(kubeconfig), metrics, USER_AGENT)
        return ApiClient(component.close_at_end(connect()))

    return ApiReviewer(
        asking(options.authentication_kubeconfig), asking(options.authorization_kubeconfig)
    )
