"""Take the pictures of terminals in the documentation: `python -m tools.terminal_pictures [NAME…]`.

`demo` is in the README; `records` and `replay` are in how-to pages, of a scheduler that runs on the
embedded cluster for some seconds. SVGs that need nothing from the network: any monospace font will
do. Needs the `sqlite3` shell for `records`.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from mooring.cli.demo.command import demo
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.lens.record_file import RecordFile
from mooring.testing import node, pod

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "images"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
WIDTH = 92  # columns; lines are wrapped to it

RECORD, JOURNAL, TIGHTER = "decisions.db", "journal", "tighter.yaml"
BY_OUTCOME = """SELECT outcome, count(*) AS attempts, sum(victims) AS victims
  FROM records GROUP BY outcome ORDER BY attempts DESC"""
COMMANDS = {
    "records": [
        ["mooring", "records", RECORD, "--limit", "6"],
        ["sqlite3", "-box", RECORD, BY_OUTCOME],
    ],
    "replay": [
        ["mooring", "replay", JOURNAL],
        ["mooring", "replay", JOURNAL, "--config", TIGHTER, "--limit", "6"],
    ],
}
"""By picture: what is called, in a folder with what a scheduler recorded."""


def take_demo() -> Console:
    """The demo as one picture: the story, and the live view as it is at the end."""
    console = terminal()
    if demo(console=console, live=False) != 0:
        raise SystemExit("the demo did not go as it should; no picture was taken")
    return console


def take_commands(commands: Sequence[Sequence[str]], folder: Path) -> Console:
    """Commands and what they print, one below the other."""
    console = terminal()
    bin_folder = Path(sys.executable).parent
    env = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
    env["PATH"] = f"{bin_folder}{os.pathsep}{env['PATH']}"
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, env=env, check=False, text=True, capture_output=True
        )
        if done.stderr:
            raise SystemExit(f"{command}: {done.stderr}")
        words = (f'"{word}"' if " " in word else word for word in command)
        console.print(Text(f"$ {' '.join(words)}", style="bold"))
        console.print(Text.from_ansi(done.stdout.rstrip()))
        console.print()
    return console


async def record_decisions(folder: Path) -> None:
    """A small shop for a few seconds: rollouts, a pod that fits nowhere, and an urgent one."""
    shutil.copy(DOCS / "howto" / "packed.yaml", folder / TIGHTER)
    async with EmbeddedCluster(startup=0.01, stop=0.01) as cluster:
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        cluster.apply({**urgent, "metadata": {"name": "urgent"}})
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        cluster.apply(*(node(f"node-{i}", cpu=8, zone="abc"[i % 3]) for i in range(6)))
        running = await run_scheduler(cluster, record_size=1_000, journal=folder / JOURNAL)
        assert running.record is not None
        file = RecordFile(folder / RECORD, now=running.scheduler.now(), version="")
        file.start()
        running.record.add_sink(file)
        for name, cpu, count in (("web", "500m", 9), ("cart", 1, 6), ("search", 2, 12)):
            for number in range(count):
                cluster.apply(pod(f"{name}-{number}", namespace="shop", cpu=cpu))
                await asyncio.sleep(0.05)
        cluster.apply(pod("index-0", namespace="shop", cpu=64))
        await asyncio.sleep(0.5)
        cluster.apply(
            pod("pay-0", namespace="shop", cpu=7, spec={"priorityClassName": "urgent"}),
        )
        await asyncio.sleep(2)
        await running.stop()
        file.close()


def terminal() -> Console:
    return Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
    )


def without_fonts(svg: str) -> str:
    """The same picture in the reader's own font; rich would have one fetched from afar."""
    svg = re.sub(r"\s*@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: Fira Code, monospace", f"font-family: {FONTS}", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> int:
    wanted = sys.argv[1:] or ["demo", *COMMANDS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if any(one in COMMANDS for one in wanted):
            asyncio.run(record_decisions(folder))
        for one in wanted:
            console = take_demo() if one == "demo" else take_commands(COMMANDS[one], folder)
            svg = console.export_svg(title=f"mooring {one}", theme=MONOKAI, unique_id=one)
            (IMAGES / f"{one}.svg").write_text(without_fonts(svg), encoding="utf-8")
            print(f"wrote {IMAGES / f'{one}.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
