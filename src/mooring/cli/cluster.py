"""`mooring cluster up`: an API server with simulated nodes, for kubectl and any scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import math
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from mooring import config as cfg
from mooring.api.quantity import parse_quantity
from mooring.api.wellknown import ZONE
from mooring.cli.cluster_report import PlacementReport
from mooring.cli.config import plugin_classes, print_problems, read_configuration, registry_with
from mooring.cli.options import CommandOptions
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.kubeconfig import refuse_to_overwrite
from mooring.cluster.apiserver.persistence import Persistence
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.server import new_store
from mooring.cluster.apiserver.store import Object, Store
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler, run_scheduler
from mooring.cluster.lens import ClusterLens
from mooring.cluster.manifests import read_objects
from mooring.cluster.node_pools import (
    POOL,
    NodePool,
    check_names,
    parse_pool,
    publish_pools,
    read_pools,
)
from mooring.cluster.node_templates import NodeTemplate, make_nodes
from mooring.config.duration import Duration
from mooring.errors import ConfigError, Problem, UsageError
from mooring.framework.plugin import Base
from mooring.lens.record import SIZE
from mooring.lens.worker import LensWorker
from mooring.observe import log as logs
from mooring.observe.signals import handle_signals
from mooring.ui.lens import PREFIX, LensPages
from mooring.ui.page_server import served

_NODES: Final = known("nodes")
_LOOK: Final = 0.5  # seconds between two reports
_USUAL_POOL: Final = "node"
_USUAL_NODES: Final = 10
_AT_ONCE: Final = 100  # nodes made before other tasks have a turn


class ClusterOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring cluster up` understands."""

    nodes: int
    node_cpu: str
    node_memory: str
    node_pods: int
    zones: int
    gpus: int
    pool: Sequence[str]
    pools: str
    job_duration: str
    no_kubelets: bool

    kubeconfig: str
    force: bool
    address: str
    expose: bool
    port: int

    data: str
    apply: Sequence[str]

    scheduler: bool
    config: str
    plugin: Sequence[str]

    v: int


def up(options: ClusterOptions) -> int:
    """Run a cluster until it is told to stop; the exit code."""
    logs.configure(options.v, "text", sys.stderr)
    try:
        with contextlib.ExitStack() as resources:
            return asyncio.run(_Up(options, resources).run())
    except ConfigError as error:
        return print_problems(error, "mooring cluster up")


class _Up:
    """One `mooring cluster up`, from its options to its end."""

    def __init__(self, options: ClusterOptions, resources: contextlib.ExitStack) -> None:
        self._options = options
        self._resources = resources
        self._stop = asyncio.Event()
        self._objects: list[Object] = []
        self._plugins: tuple[type[Base], ...] = ()
        self._pools: list[NodePool] = []
        self._job_duration = math.inf
        self._config: cfg.KubeSchedulerConfiguration | None = None

    async def run(self) -> int:
        self._check()
        kubeconfig = self._kubeconfig()
        handle_signals(self._stop.set)
        cluster = EmbeddedCluster(
            store=self._store(),
            kubelets=not self._options.no_kubelets,
            events=True,
            storage_class=True,
            job_duration=self._job_duration,
            node_template=self._usual_node(),
        )
        async with cluster:
            url = await cluster.serve(
                self._options.address, self._options.port, exposed=self._options.expose
            )
            assert cluster.http is not None
            cluster.http.kubeconfig(kubeconfig, force=self._options.force)
            await self._add_nodes(cluster)
            await self._live(cluster, url, kubeconfig)
        say("stopped")
        return 0

    async def _live(self, cluster: EmbeddedCluster, url: str, kubeconfig: Path) -> None:
        report = PlacementReport(cluster.store, say)
        scheduler = await self._start_scheduler(cluster)
        if scheduler is not None:
            handle_signals(self._stop.set, scheduler.dumper.request)
            assert cluster.http is not None
            scheduler.lens.worker = LensWorker(
                "mooring.cli.lens_worker", plugins=self._options.plugin
            )
            cluster.http.others[PREFIX] = ClusterLens(LensPages(scheduler.lens))
        self._apply(cluster)
        async with contextlib.AsyncExitStack() as pages:
            page = ""
            if scheduler is not None:
                server = await pages.enter_async_context(served(LensPages(scheduler.lens)))
                page = server.new_address()
            self._introduce(cluster, url, kubeconfig, scheduler, page)
            await self._until_stopped(scheduler, report)

    async def _until_stopped(
        self, scheduler: RunningScheduler | None, report: PlacementReport
    ) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._stop.wait()
            report.print_changes()
            if scheduler is not None:
                scheduler.check()

    # --- before the start ----------------------------------------------------------------------

    def _check(self) -> None:
        """Raise ConfigError for what is wrong, before anything is created."""
        options, problems = self._options, []
        for flag, text in (
            ("--node-cpu", options.node_cpu),
            ("--node-memory", options.node_memory),
        ):
            try:
                parse_quantity(text)
            except ValueError as error:
                problems.append(Problem(flag, str(error)))
        try:
            self._job_duration = Duration.parse(options.job_duration).seconds
        except ValueError as error:
            problems.append(Problem("--job-duration", str(error)))
        problems += self._read_pools()
        if not options.scheduler:
            given = {"--config": options.config, "--plugin": options.plugin}
            problems += [
                Problem(flag, "is for a scheduler in this process; expected --scheduler beside it")
                for flag, value in given.items()
                if value
            ]
        malformed = bool(problems)
        for file in options.apply:
            try:
                self._objects += read_objects(Path(file))
            except OSError as error:
                problems.append(Problem(file, error.strerror or str(error)))
            except ValueError as error:
                problems.append(Problem("", str(error)))
        if problems:
            raise (UsageError if malformed else ConfigError)(problems)
        registry = registry_with(options.plugin)
        self._plugins = plugin_classes(registry, options.plugin)
        if options.config:
            self._config = read_configuration(options.config, registry).config

    def _read_pools(self) -> list[Problem]:
        """Read the pools of all flags; what is wrong with them."""
        options, problems = self._options, []
        for text in options.pool:
            try:
                self._pools.append(parse_pool(text))
            except ValueError as error:
                problems.append(Problem("--pool", str(error)))
        if options.pools:
            try:
                self._pools += read_pools(Path(options.pools))
            except OSError as error:
                problems.append(Problem(options.pools, error.strerror or str(error)))
            except ValueError as error:
                problems.append(Problem("--pools", str(error)))
        usual = self._usual_node()
        if options.nodes > 0 or (options.nodes < 0 and not self._pools):
            count = options.nodes if options.nodes > 0 else _USUAL_NODES
            labels = {**usual.labels, POOL: _USUAL_POOL}
            template = msgspec.structs.replace(usual, count=count, labels=labels)
            self._pools.insert(0, NodePool(_USUAL_POOL, template))
        try:
            check_names(self._pools)
        except ValueError as error:
            problems.append(Problem("--pool", str(error)))
        return problems

    def _usual_node(self) -> NodeTemplate:
        """What the flags say about nodes; also for Nodes that are created without a status."""
        options = self._options
        return NodeTemplate(
            cpu=options.node_cpu,
            memory=options.node_memory,
            pods=options.node_pods,
            zones=tuple(f"zone-{letter}" for letter in _LETTERS[: options.zones]),
            resources={"nvidia.com/gpu": options.gpus} if options.gpus else {},
        )

    def _kubeconfig(self) -> Path:
        path = self._options.kubeconfig
        if path:
            refuse_to_overwrite(path, force=self._options.force)
            return Path(path)
        folder = tempfile.TemporaryDirectory(prefix="mooring-cluster-")
        return Path(self._resources.enter_context(folder)) / "kubeconfig"

    def _store(self) -> Store:
        store = new_store()
        if self._options.data:
            file = self._resources.enter_context(Persistence(self._options.data))
            count = file.attach(store)
            if count:
                say(f"found {count} objects in {self._options.data}")
        return store

    # --- content -------------------------------------------------------------------------------

    async def _add_nodes(self, cluster: EmbeddedCluster) -> None:
        """Create the nodes of all pools that do not exist yet, a few at a time."""
        templates = [pool.template for pool in self._pools]
        missing = [
            node
            for node in make_nodes(templates, now=cluster.clock.now())
            if cluster.store.get(_NODES, "", node["metadata"]["name"]) is None
        ]
        for number, node in enumerate(missing, start=1):
            cluster.verbs.create(_NODES, node)
            if number % _AT_ONCE == 0:
                _show_progress(f"making nodes: {number} of {len(missing)}")
                await asyncio.sleep(0)
                if self._stop.is_set():
                    break
        _show_progress("")
        publish_pools(cluster.verbs, self._pools)

    def _apply(self, cluster: EmbeddedCluster) -> None:
        problems = []
        for value in self._objects:
            name = f"{value['kind']} {(value.get('metadata') or {}).get('name', '')}"
            try:
                cluster.apply(value)
            except (StatusError, ValueError, LookupError) as error:
                problems.append(Problem(f"--apply: {name}", str(error)))
        if problems:
            raise ConfigError(problems)

    async def _start_scheduler(self, cluster: EmbeddedCluster) -> RunningScheduler | None:
        if not self._options.scheduler:
            return None
        return await run_scheduler(
            cluster,
            self._config,
            self._plugins,
            record_size=SIZE,
            worker=LensWorker("mooring.cli.lens_worker", plugins=self._options.plugin),
        )

    # --- telling -------------------------------------------------------------------------------

    def _introduce(
        self,
        cluster: EmbeddedCluster,
        url: str,
        kubeconfig: Path,
        scheduler: RunningScheduler | None,
        page: str,
    ) -> None:
        kubectl = f"kubectl --kubeconfig {shlex.quote(str(kubeconfig))}"
        names = list(scheduler.scheduler.runtimes) if scheduler is not None else []
        usual = any(pool.name == _USUAL_POOL for pool in self._pools)
        pools = [f"{pool.name} {pool.template.count}" for pool in self._pools]
        shown = f" ({', '.join(pools)})" if len(pools) > 1 or not usual else ""
        zones = [item.labels.get(ZONE, "") for item in cluster.store.list(_NODES)]
        say(f"nodes:      {len(zones)}{_in_zones(zones)}{shown}")
        say(f"server:     {url}")
        say(f"kubeconfig: {kubeconfig}")
        say(f"scheduler:  {', '.join(names) or 'none'}")
        if page:
            say(f"page:       {page}  (opens once)")
        say("\nTry:")
        say(f"  {kubectl} get nodes")
        if names and cfg.DEFAULT_SCHEDULER_NAME not in names:
            chosen = f'{{"spec":{{"schedulerName":"{names[0]}"}}}}'
            say(f"  {kubectl} run web --image=nginx --overrides='{chosen}'")
        else:
            say(f"  {kubectl} create deployment web --image=nginx --replicas=3")
        say(f"  {kubectl} get pods -o wide --watch")
        if not names:
            say("\nPods wait until there is a scheduler, such as")
            say(f"  mooring run --kubeconfig {kubeconfig} --leader-elect=false --secure-port 0")
        say("\nCtrl-C ends it.")


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def _show_progress(text: str) -> None:
    """Replace the last line, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def say(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)


def _in_zones(zones: Sequence[str]) -> str:
    """How many zones there are, from the zone of each node; it is empty without one."""
    known = [zone for zone in zones if zone]
    if not known:
        return ""
    count = len(set(known))
    text = f"in {count} zones" if count > 1 else "in 1 zone"
    return f" {text}" if len(known) == len(zones) else f", {len(known)} of them {text}"
