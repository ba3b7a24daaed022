"""The process of `mooring run`: a scheduler, its component and its endpoints."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mooring import __version__
from mooring.cli.run.component import run_component
from mooring.cli.run.configuration import election_of
from mooring.cli.run.first_lists import ServerConnection, connect
from mooring.cli.run.options import USER_AGENT, RunOptions
from mooring.cli.run.recording import Recording, recording
from mooring.cli.run.reload import Reload
from mooring.cli.run.settings import Settings
from mooring.client.component import Component
from mooring.errors import ConfigError, Problem
from mooring.observe import garbage_collection
from mooring.observe.process import add_process_metrics
from mooring.runtime.clock import SystemClock
from mooring.scheduler.connected import ConnectedScheduler
from mooring.scheduler.rbac import cluster_permissions
from mooring.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from mooring.lens.dump import CacheDumper
    from mooring.lens.live import LiveLens

log = logging.getLogger(__name__)


async def run_process(settings: Settings, connection: ServerConnection | None = None) -> bool:
    """Schedule until SIGTERM or SIGINT; whether the process is to be executed again."""
    config, options = settings.config, settings.options
    connection = connection or connect(config, options)
    host, metrics = connection.endpoint.host, connection.metrics
    if options.reload and not _is_loopback(host):
        text = f"is for development, with a server on this machine; this one is {host}"
        raise ConfigError([Problem("--reload", text)])
    add_process_metrics(metrics)
    component = Component(
        connection.connect,
        metrics,
        reading=connection.reading,
        qps=config.client_connection.qps,
        burst=config.client_connection.burst,
        election=election_of(config),
        needed=cluster_permissions(settings.plans, reviews=options.secure_port != 0),
        permission_check=options.permission_check_interval.seconds,
        delay_informers=config.delay_cache_until_active,
        grace=options.shutdown_grace_period.seconds,
    )
    connected = ConnectedScheduler(
        component,
        config,
        clock=SystemClock(),
        metrics=metrics,
        plugins=settings.plugins,
        node_selector=options.node_selector,
        max_in_unschedulable=options.pod_max_in_unschedulable_pods_duration.seconds,
        check_share=options.check_decisions,
        feature_gates=settings.feature_gates,
        user_agent=USER_AGENT,
    )
    connection.hand_over(component.informers)
    scheduler = connected.scheduler
    scheduler.try_in_copies(settings.policies)
    if options.check_start:
        return False
    if not options.config and not options.master:
        log.warning(
            "without --config the pods of default-scheduler are scheduled: kube-scheduler's"
        )
    names = ",".join(plan.scheduler_name for plan in settings.plans)
    log.info("Starting mooring", extra={"v": 0, "version": __version__, "profiles": names})
    document = settings.to_document() if options.secure_port else None
    reload = Reload(settings, component.stop, watch=options.reload)
    with recording(scheduler, options, metrics, settings.to_document) as recorded:
        lens = _lens(connected, document, recorded, options) if options.secure_port else None
        beside = [reload.run] if lens is None else [reload.run, lens.pending_kinds.run]
        await run_component(
            partial(_run_beside, beside, partial(connected.run, partial(_on_synced, scheduler))),
            component,
            scheduler.guard,
            options,
            metrics,
            document,
            {"plugins": scheduler.overruns.note},
            partial(_dump, scheduler, component),
            lens,
            reload.request,
        )
    return reload.is_due


async def _run_beside(
    others: Sequence[Callable[[], Coroutine[Any, Any, None]]], run: Callable[[], Awaitable[None]]
) -> None:
    tasks = [asyncio.create_task(other()) for other in others]
    try:
        await run()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


# The room lens is loaded when it is needed: a scheduler binds its first pods without it.


@cache
def _dumper(scheduler: Scheduler, component: Component) -> CacheDumper:
    from mooring.lens.dump import CacheDumper

    return CacheDumper(scheduler, component.informers)


def _dump(scheduler: Scheduler, component: Component) -> None:
    _dumper(scheduler, component).request()


def _lens(
    connected: ConnectedScheduler,
    document: object,
    recorded: Recording,
    options: RunOptions,
) -> LiveLens:
    from mooring.lens.live import LiveLens
    from mooring.lens.worker import LensWorker

    worker = None
    if options.lens_workers:
        worker = LensWorker("mooring.cli.lens_worker", plugins=options.plugin)
    return LiveLens(
        connected.scheduler,
        connected.component,
        document,
        record=recorded.record,
        worker=worker,
        journal=recorded.journal,
    )


def _on_synced(scheduler: Scheduler) -> None:
    garbage_collection.freeze_existing_objects()
    sizes = {"nodes": len(scheduler.cache.nodes), "pods": scheduler.cache.pod_count}
    log.info("Handlers synced", extra={"v": 0, **sizes})


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
