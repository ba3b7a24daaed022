"""`mooring replay`: recorded attempts decided again, with the same or another configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from mooring.cli.config import plugin_classes, registry_with
from mooring.cli.imagined import plural
from mooring.cli.live import one_line, table_of, wide_console
from mooring.cli.options import CommandOptions
from mooring.cli.sources import reported
from mooring.errors import ConfigError, Problem
from mooring.lens.journal_reading import JournalFolder
from mooring.simulator.replay import Replay, ReplayAnswer

DIFFERENT = 3  # exit code


class ReplayOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring replay` understands."""

    journal: str
    config: str
    plugin: Sequence[str]
    output: str
    limit: int


@reported
def run(options: ReplayOptions) -> int:
    """Decide all of it again."""
    text = ""
    if options.config:
        try:
            text = Path(options.config).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ConfigError([Problem(options.config, why)]) from error
    plugins = plugin_classes(registry_with(options.plugin), options.plugin)
    replay = Replay(text, options.config, plugins, most_differences=1_000)
    found = replay.run(JournalFolder(Path(options.journal)).lines())
    if options.output == "json":
        shown = structs.replace(found, differences=found.differences[: options.limit])
        print(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    else:
        _show(found, options.limit)
    return DIFFERENT if found.different else 0


def _show(found: ReplayAnswer, limit: int) -> None:
    console = wide_console()
    waiting = len(found.waiting)
    console.print(
        f"{found.attempts:,} attempts: {found.equal:,} decided the same,"
        f" {found.different:,} otherwise; {plural(found.placed, 'pod')} placed"
    )
    if found.skipped:
        console.print(f"{found.skipped:,} of schedulers that the configuration does not have")
    if found.evicted:
        console.print(f"{plural(found.evicted, 'pod')} evicted")
    if waiting:
        console.print(f"without a node at the end: {plural(waiting, 'pod')}")
    if found.differences:
        table = table_of("attempt", "pod", "recorded", last="now", numbers=("attempt",))
        for one in found.differences[:limit]:
            now = one.replayed or one.message
            cells = (f"{one.seq:,}", one.pod, one.recorded or "no node", now)
            table.add_row(*map(one_line, cells))
        console.print(table)
        if found.different > limit:
            console.print(f"and {found.different - limit:,} more (--limit, -o json)")
    for note in found.notes:
        console.print(note, markup=False)
