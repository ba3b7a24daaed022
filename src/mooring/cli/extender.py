"""`mooring extender`: plugins and functions served to a kube-scheduler over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from mooring import config as cfg
from mooring.cli.config import plugin_classes, print_problems, registry_with
from mooring.cli.options import CommandOptions
from mooring.client.client import ApiClient
from mooring.client.events import EventSink
from mooring.config.duration import Duration
from mooring.errors import ConfigError, Problem
from mooring.extender.serving.app import App, Options, connected, serve
from mooring.extender.serving.functions import Extender
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.framework.plugin import Base
from mooring.observe import log as logs
from mooring.observe.texts import named
from mooring.scheduler.cluster import Writer
from mooring.scheduler.recorder import EventRecorder
from mooring.ui.serving_tls import ServingTls

_EVENTS_LAST: Final = 3.0  # seconds for Events still waiting at the end


class ExtenderOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring extender` understands."""

    extender: str
    plugin: Sequence[str]
    config: str
    serve_bind: bool
    plugin_timeout: Duration

    kubeconfig: str
    context: str
    no_cluster: bool

    bind_address: str
    port: int
    tls_cert_file: str
    tls_private_key_file: str
    client_ca_file: str
    client_names: str
    max_body_bytes: int

    v: int
    logging_format: Literal["text", "json"]


class _Served(msgspec.Struct, frozen=True):
    """What is served, and how."""

    plugins: tuple[type[Base], ...]
    extender: Extender
    config: cfg.KubeSchedulerConfiguration
    options: Options
    tls: ServingTls | None


def run(flags: ExtenderOptions) -> int:
    """Serve until it is told to stop; the exit code."""
    logs.configure(flags.v, flags.logging_format, sys.stderr)
    try:
        asyncio.run(_serve(_complete(flags)))
    except ConfigError as error:
        return print_problems(error, flags.config or "mooring extender")
    return 0


def _complete(flags: ExtenderOptions) -> _Served:
    """Complete and check the options; raises ConfigError."""
    extender, paths = _functions(flags.extender), list(flags.plugin)
    if flags.extender and extender is None:
        paths.append(flags.extender)
    registry = registry_with(paths)
    config = cfg.load_file(flags.config) if flags.config else cfg.default_configuration()
    tls = None
    if flags.tls_cert_file or flags.tls_private_key_file or flags.client_ca_file:
        tls = ServingTls(
            cert_file=flags.tls_cert_file,
            key_file=flags.tls_private_key_file,
            client_ca_file=flags.client_ca_file,
        )
    if flags.client_names and not flags.client_ca_file:
        raise ConfigError([Problem("--client-names", "needs --client-ca-file")])
    options = Options(
        address=flags.bind_address,
        port=flags.port,
        cluster=not flags.no_cluster,
        kubeconfig=flags.kubeconfig,
        context=flags.context,
        serve_bind=flags.serve_bind,
        max_body_bytes=flags.max_body_bytes,
        plugin_seconds=flags.plugin_timeout.seconds,
        certified=bool(flags.client_ca_file),
        client_names=tuple(name for name in flags.client_names.split(",") if name),
    )
    return _Served(plugin_classes(registry, paths), extender or Extender(), config, options, tls)


def _functions(path: str) -> Extender | None:
    """The Extender at `module:extender`; None if another object is there."""
    module, colon, name = path.partition(":")
    if not path:
        return None
    try:
        found: object = importlib.import_module(module)
        for part in (name if colon else "extender").split("."):
            found = getattr(found, part)
    except Exception as error:
        text = f"can't import {path}: {named(error)}"
        raise ConfigError([Problem("", text)]) from error
    return found if isinstance(found, Extender) else None


async def _serve(served: _Served) -> None:
    metrics = ExtenderMetrics()
    connection = served.config.client_connection
    async with connected(served.options, connection, metrics.count_request) as client:
        if client is None:
            await serve(_app(served, metrics))
            return
        events = EventSink(client, host=socket.gethostname())
        app = _app(served, metrics, client, events)
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(events.run(), name="events")
            await serve(app)
            await events.drain(_EVENTS_LAST)
            writing.cancel()


def _app(
    served: _Served,
    metrics: ExtenderMetrics,
    client: ApiClient | None = None,
    events: EventSink | None = None,
) -> App:
    writer = None
    if client is not None:
        # Binds do not go through it, so there are no conflicts to count.
        writer = Writer(client, on_conflict=lambda _: None, on_congestion=lambda _: None)
    return App(
        [*served.plugins, *served.extender.plugins],
        client=client,
        options=served.options,
        config=served.config,
        functions=served.extender.preempt_functions,
        writer=writer,
        recorder=EventRecorder(events) if events is not None else None,
        tls=served.tls,
        metrics=metrics,
    )
