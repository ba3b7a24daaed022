"""`mooring demo`, from flags to exit code."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from mooring.cli.demo import devices_story, manifests
from mooring.cli.demo.devices_story import DevicesStory
from mooring.cli.demo.placement_story import PlacementStory
from mooring.cli.demo.plugin import PreferSpot
from mooring.cli.demo.screen import Screen
from mooring.cli.demo.story import Story
from mooring.cli.options import CommandOptions
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler, run_scheduler
from mooring.cluster.node_templates import NodeTemplate
from mooring.framework.plugin import Base
from mooring.lens.worker import LensWorker
from mooring.observe.signals import handle_signals
from mooring.ui.lens import LensPages
from mooring.ui.page_server import served


class Setting(NamedTuple):
    """A story, and what is there when it begins."""

    story: type[Story]
    machines: Sequence[NodeTemplate]
    config: str | None = None
    plugins: tuple[type[Base], ...] = ()


PLACEMENT: Final = "placement"
_RECORDED: Final = 10_000  # attempts that the page shows
_STORIES: Final = {
    PLACEMENT: Setting(PlacementStory, manifests.MACHINES, manifests.CONFIG, (PreferSpot,)),
    "devices": Setting(DevicesStory, devices_story.MACHINES),
}


class DemoOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring demo` understands."""

    seed: int
    stay: bool
    story: str


def run(options: DemoOptions) -> int:
    """The command."""
    return demo(options.seed, stay=options.stay, story=options.story)


def demo(
    seed: int = 0,
    *,
    stay: bool = False,
    story: str = PLACEMENT,
    console: Console | None = None,
    live: bool | None = None,
) -> int:
    """Run the demo; 0 if every step succeeded. `live` defaults to whether this is a terminal."""
    console = console or Console(highlight=False)
    screen = Screen(console, is_live=console.is_terminal if live is None else live)
    return asyncio.run(_demo(seed, stay, console, screen, _STORIES[story]))


async def _demo(seed: int, stay: bool, console: Console, screen: Screen, setting: Setting) -> int:
    if setting.plugins:
        screen.introduce()
    cluster = EmbeddedCluster(rng=random.Random(seed), startup=0.3, storage_class=True)
    async with cluster:
        cluster.add_nodes(setting.machines)
        running = await run_scheduler(
            cluster,
            setting.config,
            setting.plugins,
            on_attempt=screen.decided,
            check_share=1.0,
            record_size=_RECORDED if stay else 0,
            worker=_worker(setting) if stay else None,
        )
        story = setting.story(cluster, running, screen)
        showing = asyncio.create_task(screen.show(running.scheduler))
        try:
            await story.tell()
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
        screen.print_view()
        story.sum_up()
        if stay:
            await _stay(cluster, running, console)
    return 1 if story.failures else 0


def _worker(setting: Setting) -> LensWorker:
    plugins = [f"{one.__module__}:{one.__qualname__}" for one in setting.plugins]
    return LensWorker("mooring.cli.lens_worker", plugins=plugins)


async def _stay(cluster: EmbeddedCluster, running: RunningScheduler, console: Console) -> None:
    """Keep the cluster for kubectl, and a page about it, until Ctrl-C."""
    stop = asyncio.Event()
    handle_signals(stop.set)
    await cluster.serve()
    assert cluster.http is not None
    with tempfile.TemporaryDirectory(prefix="mooring-demo-") as folder:
        async with served(LensPages(running.lens)) as server:
            file = Path(folder) / "kubeconfig"
            cluster.http.kubeconfig(file)
            console.print("\n[bold]The cluster stays until Ctrl-C.[/] Try:", highlight=False)
            console.print(f"   export KUBECONFIG={file}", soft_wrap=True)
            console.print("   kubectl get pods -o wide")
            console.print("   kubectl scale deployment web --replicas=12")
            console.print("   kubectl describe pod -l app=batch")
            console.print(f"   open {server.new_address()}", soft_wrap=True)
            await stop.wait()
