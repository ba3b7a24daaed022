"""What `mooring top` and `mooring queue` ask a running scheduler, and how often."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import msgspec
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mooring.cli.sources import SourceOptions, ask_scheduler
from mooring.errors import ConfigError, Problem
from mooring.lens.api import LensQueue, LensState, RecordPage

T = TypeVar("T")

_WIDE: Final = 240  # characters


class LiveOptions(SourceOptions, frozen=True, kw_only=True):
    """The flags of `mooring top` and `mooring queue`."""

    once: bool
    output: str
    interval: float


class LiveScheduler:
    """The answers of one scheduler at one moment."""

    def __init__(self, options: LiveOptions) -> None:
        self._options = options

    def state(self) -> LensState:
        return self._get("state", LensState)

    def queue(self, query: str = "") -> LensQueue:
        return self._get(f"queue{query}", LensQueue)

    def records(self, limit: int) -> RecordPage | None:
        """None if none are kept."""
        try:
            return self._get(f"records?limit={limit}", RecordPage)
        except ConfigError as error:
            if "no records are kept" in str(error):
                return None
            raise

    def _get(self, path: str, kind: type[T]) -> T:
        try:
            body = ask_scheduler(self._options, f"/lens/v1/{path}")
        except ConfigError as error:
            if "page not found" not in str(error) and "could not find" not in str(error):
                raise
            text = "no mooring scheduler answers there: expected its address, https://HOST:10259"
            raise ConfigError([Problem("--from", text)]) from error
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            text = f"not the answer of a mooring scheduler: {error}"
            raise ConfigError([Problem(path, text)]) from error


def wide_console() -> Console:
    """As wide as the terminal; what is read by programs is not cut."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE)


def one_line(text: str) -> Text:
    """A text that is cut where the column ends."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def table_of(*names: str, last: str, numbers: Collection[str] = ()) -> Table:
    """Columns that stay on one line; pods and the last are cut where the screen is narrow."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        justify = "right" if name in numbers else "left"
        table.add_column(name, justify=justify, no_wrap=name != "pod")  # type: ignore[arg-type]  # one of two
    table.add_column(last, min_width=24 if last else None)
    return table


def shown(
    options: LiveOptions,
    look: Callable[[], Any],
    render: Callable[[Any], RenderableType],
) -> int:
    """Look once or again and again, and show it; until Ctrl-C."""
    found = look()
    if options.output == "json":
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return 0
    console = wide_console()
    if options.once or not console.is_terminal:
        console.print(render(found))
        return 0
    try:
        with Live(render(found), console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(options.interval)
                live.update(render(look()), refresh=True)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 0
