"""`mooring cluster up`: an API server with simulated nodes, for kubectl and any scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mooring import config as cfg
from mooring.api.quantity import parse_quantity
from mooring.cli.cluster_report import PlacementReport
from mooring.cli.config import plugin_classes, print_problems, registry_with
from mooring.cli.options import CommandOptions
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.kubeconfig import refuse_to_overwrite
from mooring.cluster.apiserver.persistence import Persistence
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.server import new_store
from mooring.cluster.apiserver.store import Object, Store
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler, run_scheduler
from mooring.cluster.manifests import read_objects
from mooring.cluster.node_templates import NodeTemplate, make_nodes
from mooring.errors import ConfigError, Problem
from mooring.framework.plugin import Base
from mooring.observe import log as logs
from mooring.observe.signals import handle_signals

_NODES: Final = known("nodes")
_LOOK: Final = 0.5  # seconds between two reports
_AT_ONCE: Final = 100  # nodes made before other tasks have a turn


class ClusterOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring cluster up` understands."""

    nodes: int
    node_cpu: str
    node_memory: str
    node_pods: int
    zones: int
    gpus: int
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

    async def run(self) -> int:
        self._check()
        kubeconfig = self._kubeconfig()
        handle_signals(self._stop.set)
        cluster = EmbeddedCluster(
            store=self._store(),
            kubelets=not self._options.no_kubelets,
            events=True,
            storage_class=True,
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
        self._introduce(cluster, url, kubeconfig, scheduler)
        self._apply(cluster)
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
        if not options.scheduler:
            given = {"--config": options.config, "--plugin": options.plugin}
            problems += [
                Problem(flag, "is for a scheduler in this process; expected --scheduler beside it")
                for flag, value in given.items()
                if value
            ]
        for file in options.apply:
            try:
                self._objects += read_objects(Path(file))
            except OSError as error:
                problems.append(Problem(file, error.strerror or str(error)))
            except ValueError as error:
                problems.append(Problem("", str(error)))
        if problems:
            raise ConfigError(problems)
        registry = registry_with(options.plugin)
        self._plugins = plugin_classes(registry, options.plugin)

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
        """Create the nodes that do not exist yet, a few at a time."""
        options = self._options
        template = NodeTemplate(
            count=options.nodes,
            cpu=options.node_cpu,
            memory=options.node_memory,
            pods=options.node_pods,
            zones=tuple(f"zone-{letter}" for letter in _LETTERS[: options.zones]),
            resources={"nvidia.com/gpu": options.gpus} if options.gpus else {},
        )
        missing = [
            node
            for node in make_nodes([template], now=cluster.clock.now())
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
        file = self._options.config
        config = cfg.load_file(file) if file else None
        return await run_scheduler(cluster, config, self._plugins)

    # --- telling -------------------------------------------------------------------------------

    def _introduce(
        self,
        cluster: EmbeddedCluster,
        url: str,
        kubeconfig: Path,
        scheduler: RunningScheduler | None,
    ) -> None:
        kubectl = f"kubectl --kubeconfig {shlex.quote(str(kubeconfig))}"
        names = list(scheduler.scheduler.runtimes) if scheduler is not None else []
        zones = f" in {self._options.zones} zones" if self._options.zones else ""
        say(f"nodes:      {cluster.store.count(_NODES)}{zones}")
        say(f"server:     {url}")
        say(f"kubeconfig: {kubeconfig}")
        say(f"scheduler:  {', '.join(names) or 'none'}")
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
