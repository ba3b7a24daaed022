"""`mooring demo`, from flags to exit code."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

from rich.console import Console

from mooring.cli.demo import manifests
from mooring.cli.demo.plugin import PreferSpot
from mooring.cli.demo.screen import Screen
from mooring.cli.demo.story import Story
from mooring.cli.options import CommandOptions
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.observe.signals import handle_signals


class DemoOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring demo` understands."""

    seed: int
    stay: bool


def run(options: DemoOptions) -> int:
    """The command."""
    return demo(options.seed, stay=options.stay)


def demo(
    seed: int = 0, *, stay: bool = False, console: Console | None = None, live: bool | None = None
) -> int:
    """Run the demo; 0 if every step succeeded. `live` defaults to whether this is a terminal."""
    console = console or Console(highlight=False)
    screen = Screen(console, is_live=console.is_terminal if live is None else live)
    return asyncio.run(_demo(seed, stay, console, screen))


async def _demo(seed: int, stay: bool, console: Console, screen: Screen) -> int:
    screen.introduce()
    cluster = EmbeddedCluster(rng=random.Random(seed), startup=0.3, storage_class=True)
    async with cluster:
        cluster.add_nodes(manifests.MACHINES)
        running = await run_scheduler(
            cluster, manifests.CONFIG, [PreferSpot], on_attempt=screen.decided, check_share=1.0
        )
        story = Story(cluster, running, screen)
        showing = asyncio.create_task(screen.show(running.scheduler))
        try:
            await story.tell()
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
        screen.print_view()
        story.sum_up()
        if stay:
            await _stay(cluster, console)
    return 1 if story.failures else 0


async def _stay(cluster: EmbeddedCluster, console: Console) -> None:
    """Keep the cluster for kubectl until Ctrl-C."""
    stop = asyncio.Event()
    handle_signals(stop.set)
    await cluster.serve()
    assert cluster.http is not None
    with tempfile.TemporaryDirectory(prefix="mooring-demo-") as folder:
        file = Path(folder) / "kubeconfig"
        cluster.http.kubeconfig(file)
        console.print("\n[bold]The cluster stays until Ctrl-C.[/] Try:", highlight=False)
        console.print(f"   export KUBECONFIG={file}", soft_wrap=True)
        console.print("   kubectl get pods -o wide")
        console.print("   kubectl scale deployment web --replicas=12")
        console.print("   kubectl describe pod -l app=batch")
        await stop.wait()
