"""The process of `mooring run --shadow`: compares with another scheduler and writes nothing.

It needs rights to read only, holds no lease, and asks the API server about no right. All its
connections refuse to send a write.
"""

from __future__ import annotations

import logging
import sys
from functools import partial

from mooring import __version__
from mooring.cli.run.component import run_component
from mooring.cli.run.options import USER_AGENT
from mooring.cli.run.settings import Settings
from mooring.client.component import Component, connector
from mooring.client.incluster import find_endpoint
from mooring.client.read_only import ReadOnlyTransport
from mooring.errors import ConfigError, Problem
from mooring.extender.calling.connecting import connect, documents_for
from mooring.lens.dump import CacheDumper
from mooring.lens.live import LiveLens
from mooring.lens.shadow.report import ShadowReport
from mooring.lens.shadow.shadow import Shadow, Silent, shadow_config
from mooring.observe import garbage_collection
from mooring.observe.metrics import Metrics
from mooring.observe.process import add_process_metrics
from mooring.runtime.clock import SystemClock
from mooring.runtime.writer import Writer
from mooring.scheduler.scheduler import Scheduler
from mooring.scheduler.watching import add_informers, kinds_to_watch

log = logging.getLogger(__name__)


async def run_shadow(settings: Settings) -> None:
    """Compare until SIGTERM or SIGINT, then print a report."""
    config, options = settings.config, settings.options
    endpoint = find_endpoint(
        config.client_connection.kubeconfig, options.master, context=options.context
    )
    metrics = Metrics()
    add_process_metrics(metrics)
    connecting = connector(endpoint, metrics, USER_AGENT)
    component = Component(
        lambda: ReadOnlyTransport(connecting()),
        metrics,
        grace=options.shutdown_grace_period.seconds,
    )
    documents = documents_for(config.extenders)
    extenders = connect(
        config.extenders,
        documents,
        user_agent=USER_AGENT,
        fence=None,
        scoring=metrics.goroutines.labels("prioritizing_extender"),
    )
    component.close_at_end(extenders)
    scheduler = Scheduler(
        shadow_config(config),
        client=Writer(component.writer),
        recorder=Silent(),
        clock=SystemClock(),
        plugins=settings.plugins,
        metrics=metrics,
        extenders=extenders,
        feature_gates=settings.feature_gates,
    )
    report = _report(metrics, options.shadow_report)
    shadow = Shadow(scheduler, config, report.add)
    add_informers(
        component.informers,
        component.reader,
        shadow,
        kinds_to_watch(scheduler.plans),
        options.node_selector,
        documents,
    )
    names = ",".join(scheduler.runtimes)
    log.info("Starting as a shadow", extra={"v": 0, "version": __version__, "profiles": names})
    document = settings.to_document()
    try:
        await run_component(
            partial(component.run, shadow, partial(_on_synced, scheduler)),
            component,
            scheduler.guard,
            options,
            metrics,
            document,
            dump=CacheDumper(scheduler, component.informers).request,
            lens=LiveLens(scheduler, component, document),
        )
    finally:
        report.close()
        sys.stdout.write(report.text())


def _report(metrics: Metrics, path: str) -> ShadowReport:
    try:
        return ShadowReport(metrics, path)
    except OSError as error:
        problem = Problem("--shadow-report", f"can't write {path}: {error.strerror}")
        raise ConfigError([problem]) from None


def _on_synced(scheduler: Scheduler) -> None:
    garbage_collection.freeze_existing_objects()
    log.info("Handlers synced", extra={"v": 0, "nodes": len(scheduler.cache.nodes)})
