"""`mooring queue`: the pods without a node of a running scheduler, and why they wait."""

from __future__ import annotations

import time
from urllib.parse import urlencode

from rich.console import Group, RenderableType
from rich.text import Text

from mooring.api.meta import parse_time
from mooring.cli.live import LiveOptions, LiveScheduler, one_line, shown, table_of
from mooring.cli.sources import reported
from mooring.lens.api import LensQueue, QueueCounts, WaitingPodRow


class QueueCommandOptions(LiveOptions, frozen=True, kw_only=True):
    """What `mooring queue` understands."""

    place: str
    namespace: str
    limit: int


@reported
def run(options: QueueCommandOptions) -> int:
    """Show it until Ctrl-C, or once."""
    scheduler = LiveScheduler(options)
    asked = {"place": options.place, "namespace": options.namespace, "limit": options.limit}
    given = urlencode({key: value for key, value in asked.items() if value})
    query = f"?{given}" if given else ""
    return shown(options, lambda: scheduler.queue(query), rendered)


def rendered(found: LensQueue) -> RenderableType:
    """All of it, for a terminal."""
    counts = "   ".join(
        f"{name.replace('_', ' ')} {getattr(found.counts, name):,}"
        for name in QueueCounts.__struct_fields__
    )
    if not found.pods:
        return Group(Text(counts), Text("no pod waits"))
    numbers = ("priority", "attempts")
    names = ("place", "pod", *numbers, "since", "next try", "asks for")
    table = table_of(*names, last="why", numbers=numbers)
    for pod in found.pods:
        table.add_row(*map(one_line, _cells(pod)), one_line(pod.message or ", ".join(pod.plugins)))
    more = [Text("there are more: --limit")] if found.truncated else []
    return Group(Text(counts), Text(), table, *more)


def _cells(pod: WaitingPodRow) -> tuple[str, ...]:
    return (
        pod.place,
        f"{pod.namespace}/{pod.name}",
        f"{pod.priority:,}",
        f"{pod.attempts:,}",
        _ago(pod.since),
        _in(pod.next_try),
        pod.shape,
    )


def _ago(text: str | None) -> str:
    return "" if text is None else _span(time.time() - parse_time(text))


def _in(text: str | None) -> str:
    return "" if text is None else f"in {_span(parse_time(text) - time.time())}"


def _span(seconds: float) -> str:
    whole = max(int(seconds), 0)
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    return f"{minutes}m{whole % 60:02}s" if minutes < 120 else f"{minutes // 60}h{minutes % 60:02}m"
