"""A whole cluster in this process: API server, controllers, nodes with kubelets; and schedulers.

    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(3, cpu="8", zones=("a", "b", "c"))
        scheduler = await run_scheduler(cluster, plugins=[MyPlugin])
        cluster.apply(MANIFEST)
        await cluster.wait_for(lambda: cluster.count_pods("Running") == 10)
        await scheduler.stop()

Everything runs on one event loop; it may be a `VirtualLoop`.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from mooring import config as cfg
from mooring.client.client import ApiClient
from mooring.client.component import Component
from mooring.cluster.apiserver.requests import ADMIN, Caller
from mooring.cluster.apiserver.resources import NODES, PODS
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.store import Object, Store, StoreChange
from mooring.cluster.apiserver.transport import LocalTransport
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.component import ComponentContext
from mooring.cluster.controllers import Controllers
from mooring.cluster.controllers.persistent_volumes import SIMULATED
from mooring.cluster.event_writer import EventWriter
from mooring.cluster.kubelet.kubelet import Kubelets
from mooring.cluster.manifests import put, read_objects
from mooring.cluster.node_templates import NodeTemplate, make_nodes
from mooring.framework.handle import Clock
from mooring.framework.plugin import Base
from mooring.lens.dump import CacheDumper
from mooring.lens.journal import DecisionJournal
from mooring.lens.live import LiveLens
from mooring.lens.record import DecisionRecord
from mooring.lens.worker import LensWorker
from mooring.observe.metrics import Metrics
from mooring.runtime.clock import SystemClock
from mooring.scheduler.attempts import Attempt
from mooring.scheduler.connected import ConnectedScheduler
from mooring.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from mooring.cluster.apiserver.http import HttpServer

_PHASE: Final = "status.phase"  # the field selector for a pod's phase
_POLL: Final = 0.05  # seconds between checks of a condition
_GRACE: Final = 5.0  # seconds for binds under way when a scheduler stops
_MAX_EVENTS: Final = 20_000  # waiting to be written

STORAGE_CLASS: Final[Object] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": SIMULATED,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}
"""The default storage class of an embedded cluster that has one."""


class EmbeddedCluster:
    """One cluster, from `start` to `close`.

    `controllers` may name a selection (see `mooring.cluster.controllers.ALL`). With `events`,
    kubelets and controllers write Normal events too; otherwise only warnings. `store` may contain a
    cluster. `clock` must match the loop: a VirtualClock on a VirtualLoop. Pods of Jobs run for
    `job_duration` seconds; Nodes that appear without a status get that of `node_template`.
    """

    def __init__(
        self,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        kubelets: bool = True,
        controllers: bool | Collection[str] = True,
        events: bool = False,
        storage_class: bool = False,
        provision_any: bool = False,
        startup: float = 0.5,
        stop: float = 0.2,
        job_duration: float = math.inf,
        node_template: NodeTemplate | None = None,
    ) -> None:
        self.clock: Clock = SystemClock() if clock is None else clock
        self.rng: random.Random = random.Random() if rng is None else rng
        self.server: ApiServer = ApiServer(store, clock=self.clock.now, rng=self._new_rng())
        self.verbs: Verbs = self.server.verbs
        self.store: Store = self.server.store
        event_writer = EventWriter(self.verbs, self.clock, warnings_only=not events)
        self._controllers: Controllers | None = None
        if controllers:
            self._controllers = Controllers(
                self._component(event_writer),
                only=None if controllers is True else controllers,
                provision_any=provision_any,
            )
        self._kubelets: Kubelets | None = None
        if kubelets:
            self._kubelets = Kubelets(
                self._component(event_writer),
                startup=startup,
                stop=stop,
                job_duration=job_duration,
                node_template=node_template,
            )
        self._phases = Counter(item.fields[_PHASE] for item in self.store.items(PODS))
        self.store.listen(self._count)
        if storage_class:
            self.apply(STORAGE_CLASS)
        self.http: HttpServer | None = None  # once it is served
        self._transports: list[LocalTransport] = []
        self._closing = AsyncExitStack()

    def _new_rng(self) -> random.Random:
        """One per component, so that components don't influence each other's random numbers."""
        return random.Random(self.rng.getrandbits(64))

    def _component(self, event_writer: EventWriter) -> ComponentContext:
        return ComponentContext(self.verbs, self.clock, self._new_rng(), event_writer)

    # --- lifecycle -------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._controllers is not None:
            self._controllers.start()
        if self._kubelets is not None:
            self._kubelets.start()

    async def close(self) -> None:
        """Stop schedulers and servers that were started here, then everything else."""
        try:
            await self._closing.aclose()
        finally:
            if self._controllers is not None:
                await self._controllers.close()
            if self._kubelets is not None:
                self._kubelets.close()
            for transport in self._transports:
                await transport.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def before_close(self, act: Callable[[], Awaitable[None]]) -> None:
        """Await `act()` when the cluster is closed; in reverse order of registration."""
        self._closing.push_async_callback(act)

    @property
    def unexpected_errors(self) -> int:
        """The number of unexpected exceptions of controllers; they are in the log."""
        return self._controllers.queue.unexpected_errors if self._controllers is not None else 0

    # --- access ---------------------------------------------------------------------------------

    def transport(self, caller: Caller = ADMIN) -> LocalTransport:
        transport = LocalTransport(self.server, caller)
        self._transports.append(transport)
        return transport

    def client(self, caller: Caller = ADMIN) -> ApiClient:
        return ApiClient(self.transport(caller))

    async def serve(self, address: str = "127.0.0.1", port: int = 0, **options: Any) -> str:
        """Serve the API over HTTPS; the URL. Options as for `HttpServer`."""
        from mooring.cluster.apiserver.http import HttpServer  # importing aiohttp is slow

        http = HttpServer(self.server, address=address, port=port, **options)
        url = await http.start()
        self.before_close(http.close)
        self.http = http
        return url

    # --- content -------------------------------------------------------------------------------

    def add_nodes(
        self, nodes: int | NodeTemplate | Iterable[NodeTemplate] = 1, **options: Any
    ) -> list[str]:
        """Add nodes from templates, or a number of equal ones; their names.

        With a number, options are those of `NodeTemplate`: `add_nodes(3, cpu="8", zones=("a",
        "b"))`.
        """
        first = self.store.count(NODES)
        if isinstance(nodes, int):
            options.setdefault("name", "node-{i}" if not first else f"node-{first}-{{i}}")
            nodes = NodeTemplate(**{"count": nodes, **options})
        templates = [nodes] if isinstance(nodes, NodeTemplate) else list(nodes)
        made = make_nodes(templates, now=self.clock.now(), first=first)
        for node in made:
            self.verbs.create(NODES, node)
        return [node["metadata"]["name"] for node in made]

    def apply(self, *given: Any) -> list[Object]:
        """Create objects, or merge them into existing ones; the results.

        Takes YAML text, paths, dictionaries, structs of `mooring.api` and what
        `mooring.testing.pod` and `node` return.
        """
        return [put(self.verbs, value) for value in read_objects(*given)]

    def count_pods(self, phase: str = "") -> int:
        """The number of pods, or of those in a phase; O(1)."""
        return self._phases[phase] if phase else self.store.count(PODS)

    def phases(self) -> dict[str, int]:
        return {phase: count for phase, count in self._phases.items() if count}

    def _count(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            if change.old is not None:
                self._phases[change.old.fields[_PHASE]] -= 1
            if change.type != "DELETED":
                self._phases[change.new.fields[_PHASE]] += 1

    async def wait_for(self, condition: Callable[[], Any], seconds: float = 60.0) -> None:
        """Wait until a condition holds; TimeoutError after `seconds`. On real loops only."""
        async with asyncio.timeout(seconds):
            seen = -1
            while self.store.version == seen or not condition():
                seen = self.store.version
                await asyncio.sleep(_POLL)


class RunningComponent:
    """A component at work on an embedded cluster, until `stop` or until the cluster is closed."""

    def __init__(
        self, cluster: EmbeddedCluster, component: Component, run: Coroutine[Any, Any, None]
    ) -> None:
        self._component = component
        self._task = asyncio.create_task(run)
        cluster.before_close(self.stop)

    def check(self) -> None:
        """Raise the error that ended it, if any."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def stop(self) -> None:
        """Stop gracefully: binds in progress finish, Events are written."""
        self._component.stop()
        await self._task


class RunningScheduler(RunningComponent):
    """A scheduler on an embedded cluster; with `record_size`, it keeps so many attempts.

    `worker` answers questions about it that take longer than a moment.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        connected: ConnectedScheduler,
        record_size: int = 0,
        worker: LensWorker | None = None,
        journal: Path | None = None,
    ) -> None:
        super().__init__(cluster, connected.component, connected.run())
        self.scheduler: Scheduler = connected.scheduler
        self.dumper: CacheDumper = CacheDumper(connected.scheduler, connected.component.informers)
        self.record: DecisionRecord | None = None
        if record_size:
            self.record = DecisionRecord(cluster.clock.now, size=record_size)
            connected.scheduler.ledger = self.record
        self._journal: DecisionJournal | None = None
        if journal is not None and self.record is not None:
            self._journal = DecisionJournal(journal, connected.scheduler)
            self._journal.start()
            self.record.add_sink(self._journal)
        self.lens: LiveLens = LiveLens(
            connected.scheduler,
            connected.component,
            _document(connected.scheduler) if worker is not None else None,
            record=self.record,
            worker=worker,
            journal=self._journal,
            source="cluster",
        )

    async def stop(self) -> None:
        await super().stop()
        if self._journal is not None:
            self._journal.close()


def _document(scheduler: Scheduler) -> dict[str, object]:
    """The configuration in force, for a worker in another process."""
    enabled = {name for plan in scheduler.plans for name in plan.classes}
    return cfg.to_document(scheduler.config, enabled)


async def run_scheduler(
    cluster: EmbeddedCluster,
    config: cfg.KubeSchedulerConfiguration | str | Path | None = None,
    plugins: Iterable[type[Base]] = (),
    *,
    rng: random.Random | None = None,
    on_attempt: Callable[[Attempt], None] | None = None,
    check_share: float = 0.0,
    record_size: int = 0,
    worker: LensWorker | None = None,
    journal: Path | None = None,
) -> RunningScheduler:
    """Start a real scheduler on a cluster: informers, binds and Events go through its API server.

    `config` is a KubeSchedulerConfiguration: loaded, as YAML text, or as a path. It runs until
    `stop`, or until the cluster is closed. `check_share` is that of `--check-decisions`,
    `record_size` that of `--record-size`, `worker` that of `--lens-workers`, and `journal` that of
    `--record-journal`, beside a record.
    """
    if isinstance(config, Path):
        config = cfg.load_file(config)
    elif isinstance(config, str):
        config = cfg.load_text(config)
    metrics = Metrics()
    component = Component(
        cluster.transport,
        metrics,
        grace=_GRACE,
        max_events=_MAX_EVENTS,
        host="localhost",
        clock=cluster.clock.now,
    )
    connected = ConnectedScheduler(
        component,
        config,
        clock=cluster.clock,
        metrics=metrics,
        rng=rng or random.Random(cluster.rng.getrandbits(64)),
        plugins=plugins,
        on_attempt=on_attempt,
        check_share=check_share,
    )
    return RunningScheduler(cluster, connected, record_size, worker, journal)
