"""A running extender: plugins, informers and a listener, started and stopped in order."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from mooring import config as cfg
from mooring.client.component import Component, connector
from mooring.client.endpoint import Tls
from mooring.client.incluster import find_endpoint
from mooring.client.transport import Transport
from mooring.errors import ConfigError, Problem
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.handle import ExtenderHandle, LoggingRecorder, NoCluster
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.extender.serving.plugins import ServedPlugins, plan_serving
from mooring.extender.serving.request import VerbHandler
from mooring.extender.serving.server import Server
from mooring.extender.serving.verbs import Extender, make_handlers
from mooring.framework.handle import Client, Recorder
from mooring.framework.plugin import Base
from mooring.observe import garbage_collection
from mooring.observe import log as logs
from mooring.observe.listener import HttpListener
from mooring.observe.process import add_process_metrics
from mooring.observe.signals import run_until_signalled
from mooring.runtime.guard import Watchdog
from mooring.runtime.recorder import EventRecorder
from mooring.runtime.writer import Writer

log = logging.getLogger(__name__)

PORT: Final = 8888
PLUGIN_SECONDS: Final = 4.0  # less than the 5 s after which schedulers time out
IDLE_SECONDS: Final = 120.0  # Go clients close idle connections after 90, and should be first
HEADER_SECONDS: Final = 10.0  # from the first byte of a request, or from the connect
BODY_SECONDS: Final = 10.0  # for a body to arrive, and for an answer to be read
MAX_CONNECTIONS: Final = 256
MAX_BODY_BYTES: Final = 32 * 1024 * 1024  # some thousand whole nodes
_GRACE: Final = 10.0  # seconds for requests under way at the end


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to serve; by default on loopback only."""

    address: str = "127.0.0.1"
    port: int = PORT  # 0: any that is free
    cluster: bool = True  # watch nodes and pods; else nodes are as requests describe them
    kubeconfig: str = ""  # how to reach the cluster; as for kubectl, or from within a pod
    context: str = ""  # of the kubeconfig
    serve_bind: bool = False  # even without a Bind plugin of its own
    max_body_bytes: int = MAX_BODY_BYTES
    plugin_seconds: float = PLUGIN_SECONDS
    certified: bool = False  # require a client certificate that `tls` trusts
    client_names: tuple[str, ...] = ()  # if not empty, its common name must be one of these


class App:
    """One extender: `await run()` until `stop()`.

    `connect` makes transports to the cluster, if there is one.
    """

    def __init__(
        self,
        plugins: Sequence[type[Base]],
        *,
        connect: Callable[[], Transport] | None = None,
        options: Options | None = None,
        config: cfg.KubeSchedulerConfiguration | None = None,
        tls: Tls | None = None,
        metrics: ExtenderMetrics | None = None,
    ) -> None:
        self.options: Options = options or Options()
        self.metrics: ExtenderMetrics = metrics or ExtenderMetrics()
        plan = plan_serving(plugins, config)
        if connect is None and plan.reads:
            kinds = ", ".join(sorted(kind.KIND for kind in plan.reads))
            raise ConfigError([Problem("", f"plugins look up {kinds}: that needs a cluster")])
        self._component: Component | None = None
        client: Client = NoCluster()
        recorder: Recorder = LoggingRecorder()
        if connect is not None:
            limits = config.client_connection if config is not None else cfg.ClientConnection()
            self._component = Component(connect, self.metrics, qps=limits.qps, burst=limits.burst)
            client = Writer(self._component.writer)
            recorder = EventRecorder(self._component.events)
        self.cluster: WatchedCluster = WatchedCluster(self._component, plan.reads)
        handle = ExtenderHandle(
            plan.scheduler_name,
            cache=self.cluster.cache,
            client=client,
            recorder=recorder,
        )
        self.served: ServedPlugins = ServedPlugins(
            plan, plugins, handle, self.metrics, self.options.plugin_seconds
        )
        self.answers: dict[str, VerbHandler] = make_handlers(
            self.served, self.cluster, self.metrics, serve_bind=self.options.serve_bind
        )
        server = Server(
            self.answers,
            self.metrics,
            readiness=self._say_if_not_ready,
            max_body_bytes=self.options.max_body_bytes,
            body_seconds=BODY_SECONDS,
            certified=self.options.certified,
            client_names=self.options.client_names,
        )
        self.port: int = self.options.port
        self._listener = HttpListener(
            server.handle,
            tls,
            max_connections=MAX_CONNECTIONS,
            idle_seconds=IDLE_SECONDS,
            header_seconds=HEADER_SECONDS,
        )
        self.metrics.before_scrape(self._measure)
        self._serving = _Serving(self._listener)

    # --- living --------------------------------------------------------------------------------

    async def run(
        self,
        on_started: Callable[[int], None] | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        """Serve until `stop`; requests under way are answered.

        `on_started` is called with the port, `on_ready` when nodes and pods are known.
        """
        self.port = await self._listener.start(self.options.address, self.options.port)
        self._introduce()
        try:
            if on_started is not None:
                on_started(self.port)
            on_synced = partial(self._on_synced, on_ready)
            if self._component is None:
                on_synced()
                await self._serving.run()
            else:
                await self._component.run(self._serving, on_synced)
        finally:
            await self._listener.close(0.0)
            self.served.profile.close()

    def stop(self) -> None:
        """Accept no more connections; `run` returns."""
        self._serving.stop()
        if self._component is not None:
            self._component.stop()

    def _on_synced(self, on_ready: Callable[[], None] | None) -> None:
        if on_ready is not None:
            on_ready()
        if self.cluster.is_connected:
            extra = {"v": 0, "nodes": len(self.cluster.cache.nodes)}
            log.info("Ready: nodes and pods are known", extra=extra)

    def _introduce(self) -> None:
        options = self.options
        verbs = ", ".join(self.answers)
        extra = {"v": 0, "address": options.address, "port": self.port, "verbs": verbs}
        log.info("Serving an extender", extra=extra)
        if not options.certified and not ipaddress.ip_address(options.address).is_loopback:
            what = "ask and bind pods" if "bind" in self.answers else "ask"
            log.warning(
                f"any client that reaches the port may {what}: no client certificates are required",
                extra={"address": options.address},
            )

    def _say_if_not_ready(self) -> str:
        return "shutting down" if self._serving.is_stopping else self.cluster.problem()

    def _measure(self) -> None:
        self.metrics.connections.labels().set(len(self._listener))


class _Serving:
    """Answers requests until `stop`, as the work of a component."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._stop = asyncio.Event()

    async def run(self) -> None:
        await self._stop.wait()
        await self._listener.close(_GRACE)

    def stop(self) -> None:
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def hold(self, why: str) -> None:
        """Does nothing: requests are still answered, and /readyz reports that it is not ready."""

    def release(self, why: str) -> None:
        """Does nothing, as `hold`."""


# --- as a process of its own ---------------------------------------------------------------------


def run(extender: Extender, options: Options | None = None, **changes: Any) -> None:
    """Serve the functions of an extender until SIGTERM or SIGINT."""
    logs.configure(0, "text", sys.stderr)
    options = msgspec.structs.replace(options or Options(), **changes)
    asyncio.run(serve(extender.plugins, options))


async def serve(
    plugins: Sequence[type[Base]],
    options: Options,
    *,
    config: cfg.KubeSchedulerConfiguration | None = None,
    tls: Tls | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, with a watchdog for plugins that hang; raises ConfigError."""
    metrics = ExtenderMetrics()
    add_process_metrics(metrics)
    connect = None
    if options.cluster:
        kubeconfig = options.kubeconfig
        if not kubeconfig and config is not None:
            kubeconfig = config.client_connection.kubeconfig
        endpoint = find_endpoint(kubeconfig, context=options.context)
        connect = connector(endpoint, metrics, "mooring-extender")
    app = App(
        plugins,
        connect=connect,
        options=options,
        config=config,
        tls=tls,
        metrics=metrics,
    )
    run = partial(app.run, on_ready=garbage_collection.freeze_existing_objects)
    with Watchdog(app.served.guard):
        await run_until_signalled(run, app.stop)
