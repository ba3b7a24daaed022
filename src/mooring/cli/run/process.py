"""The process of `mooring run`: a scheduler, its component and its endpoints."""

from __future__ import annotations

import logging
from functools import partial

from mooring import __version__
from mooring.cli.run.component import run_component
from mooring.cli.run.options import USER_AGENT
from mooring.cli.run.settings import Settings, election_of
from mooring.client.component import Component, connector
from mooring.client.incluster import find_endpoint
from mooring.lens.dump import CacheDumper
from mooring.lens.live import LiveLens
from mooring.observe import garbage_collection
from mooring.observe.metrics import Metrics
from mooring.observe.process import add_process_metrics
from mooring.runtime.clock import SystemClock
from mooring.scheduler.connected import ConnectedScheduler
from mooring.scheduler.rbac import cluster_permissions
from mooring.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)


async def run_process(settings: Settings) -> None:
    """Schedule until SIGTERM or SIGINT."""
    config, options = settings.config, settings.options
    kubeconfig = config.client_connection.kubeconfig
    endpoint = find_endpoint(kubeconfig, options.master, context=options.context)
    metrics = Metrics()
    add_process_metrics(metrics)
    component = Component(
        connector(endpoint, metrics, USER_AGENT),
        metrics,
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
    scheduler = connected.scheduler
    scheduler.try_in_copies(settings.policies)
    if not options.config and not options.master:
        log.warning(
            "without --config the pods of default-scheduler are scheduled: kube-scheduler's"
        )
    names = ",".join(plan.scheduler_name for plan in settings.plans)
    log.info("Starting mooring", extra={"v": 0, "version": __version__, "profiles": names})
    garbage_collection.collect_rarely()
    document = settings.to_document()
    await run_component(
        partial(connected.run, partial(_on_synced, scheduler)),
        component,
        scheduler.guard,
        options,
        metrics,
        document,
        {"plugins": scheduler.overruns.note},
        CacheDumper(scheduler, component.informers).request,
        LiveLens(scheduler, component, document),
    )


def _on_synced(scheduler: Scheduler) -> None:
    garbage_collection.freeze_existing_objects()
    sizes = {"nodes": len(scheduler.cache.nodes), "pods": scheduler.cache.pod_count}
    log.info("Handlers synced", extra={"v": 0, **sizes})
