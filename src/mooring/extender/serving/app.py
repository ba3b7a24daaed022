"""A running extender: plugins, informers and a listener, started and stopped in order."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from mooring import config as cfg
from mooring.client.client import ApiClient
from mooring.client.endpoint import Tls
from mooring.client.flowcontrol import RateLimiter
from mooring.client.http import HttpTransport, OnAnswer
from mooring.client.incluster import find_endpoint
from mooring.errors import ConfigError, Problem
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.handle import BindingClient, ExtenderHandle
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
from mooring.observe.signals import handle_signals
from mooring.runtime.guard import Watchdog

log = logging.getLogger(__name__)

PORT: Final = 8888
PLUGIN_SECONDS: Final = 4.0  # less than the 5 s after which schedulers stop listening
IDLE_SECONDS: Final = 120.0  # Go clients close theirs after 90, and should be first
HEADER_SECONDS: Final = 10.0  # from the first byte of a request, and for the first one ever
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

    `client` is for watches and binds; `writer` carries out what else plugins write.
    """

    def __init__(
        self,
        plugins: Sequence[type[Base]],
        *,
        client: ApiClient | None = None,
        options: Options | None = None,
        config: cfg.KubeSchedulerConfiguration | None = None,
        writer: Client | None = None,
        recorder: Recorder | None = None,
        tls: Tls | None = None,
        metrics: ExtenderMetrics | None = None,
    ) -> None:
        self.options: Options = options or Options()
        self.metrics: ExtenderMetrics = metrics or ExtenderMetrics()
        plan = plan_serving(plugins, config)
        self.cluster: WatchedCluster = WatchedCluster(client, plan.reads)
        if client is None and plan.reads:
            kinds = ", ".join(sorted(kind.KIND for kind in plan.reads))
            raise ConfigError([Problem("", f"plugins look up {kinds}: that needs a cluster")])
        handle = ExtenderHandle(
            plan.scheduler_name,
            cache=self.cluster.cache,
            client=BindingClient(client, writer),
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
        self._stop = asyncio.Event()

    # --- living --------------------------------------------------------------------------------

    async def run(
        self,
        on_started: Callable[[int], None] | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        """Serve until `stop`; requests under way are answered.

        `on_started` hears the port, and `on_ready` when nodes and pods are known.
        """
        self.port = await self._listener.start(self.options.address, self.options.port)
        self._introduce()
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch(on_ready), name="informers")
                if on_started is not None:
                    on_started(self.port)
                await self._stop.wait()
                await self._listener.close(_GRACE)
                watching.cancel()
        finally:
            await self._listener.close(0.0)
            self.served.profile.close()

    def stop(self) -> None:
        """Accept no more connections; `run` returns."""
        self._stop.set()

    async def _watch(self, on_ready: Callable[[], None] | None) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.cluster.informers.run())
            await self.cluster.informers.wait_synced()
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
        return "shutting down" if self._stop.is_set() else self.cluster.problem()

    def _measure(self) -> None:
        self.metrics.connections.labels().set(len(self._listener))


# --- as a process of its own ---------------------------------------------------------------------


def run(extender: Extender, options: Options | None = None, **changes: Any) -> None:
    """Serve the functions of an extender until SIGTERM or SIGINT."""
    logs.configure(0, "text", sys.stderr)
    asyncio.run(_run(extender, msgspec.structs.replace(options or Options(), **changes)))


async def _run(extender: Extender, options: Options) -> None:
    metrics = ExtenderMetrics()
    async with connected(options, cfg.ClientConnection(), metrics.count_request) as client:
        app = App(
            extender.plugins,
            client=client,
            options=options,
            metrics=metrics,
        )
        await serve(app)


@asynccontextmanager
async def connected(
    options: Options, connection: cfg.ClientConnection, on_answer: OnAnswer | None = None
) -> AsyncIterator[ApiClient | None]:
    """A client for the cluster of the options, if they want one; raises ConfigError."""
    if not options.cluster:
        yield None
        return
    kubeconfig = options.kubeconfig or connection.kubeconfig
    transport = HttpTransport(
        find_endpoint(kubeconfig, context=options.context),
        user_agent="mooring-extender",
        on_answer=on_answer,
    )
    try:
        yield ApiClient(transport, limiter=RateLimiter(connection.qps, connection.burst))
    finally:
        await transport.close()


async def serve(app: App) -> None:
    """Run until SIGTERM or SIGINT, with a watchdog for plugins that hang."""
    handle_signals(lambda _: app.stop())
    add_process_metrics(app.metrics)
    with Watchdog(app.served.guard):
        await app.run(on_ready=garbage_collection.freeze_existing_objects)
    log.info("stopped", extra={"v": 0})
