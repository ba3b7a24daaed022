"""An explanation for people: tables that fit 80 columns, and sentences."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mooring.framework.explaining import listed
from mooring.lens import explanation as told
from mooring.lens.explanation import (
    Choice,
    Explanation,
    NodeAnswer,
    NodeGroup,
    NodeScore,
    PluginRefusal,
    Preemption,
    Remedy,
)
from mooring.lens.snapshot import QueuedState

_MOST_GROUPS: Final = 12
_MOST_REMEDIES: Final = 6
_MOST_FACTS: Final = 3
_COLOURS: Final = {
    told.GATED: "yellow",
    told.MISCONFIGURED: "red",
    told.WAITS_FOR_ROOM: "yellow",
    told.WAITS_FOR_OTHERS: "yellow",
    told.ERROR: "red",
    told.FITS: "green",
    told.SCHEDULED: "green",
}


def show(found: Explanation, console: Console, now: float | None = None) -> None:
    """Print an explanation."""
    with console.capture() as captured:
        console.print(rendered(found, time.time() if now is None else now))
    # Without the blanks with which tables fill their cells.
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def rendered(found: Explanation, now: float) -> RenderableType:
    parts: list[RenderableType] = [_headline(found, now)]
    if found.before is not None and (found.kind in (told.GATED, told.ERROR) or not found.groups):
        parts.append(_before(found.before))
    refused = [group for group in found.groups if group.said is not None]
    if refused:
        parts.append(_groups(found.groups))
    if found.choice is not None:
        parts += _choice(found.choice, found)
    parts += [_answer(answer) for answer in found.asked]
    if found.preemption is not None:
        parts += _preemption(found.preemption)
    if found.remedies is not None:
        parts += _remedies(found.remedies)
    if found.queue is not None:
        parts.append(_queue(found.queue, now))
    if found.wakes_on and found.choice is None:
        *most, last = found.wakes_on
        clauses = f"{', '.join(most)} or {last}" if most else last
        parts.append(Text(f"Tried again when {clauses}."))
    parts += [Text.assemble(("note: ", "bold"), note) for note in found.notes]
    return Group(*parts)


def _headline(found: Explanation, now: float) -> Text:
    text = Text(found.summary, style="bold")
    known: list[str] = []
    if found.queue is not None and found.queue.attempts:
        attempts = found.queue.attempts
        known.append(f"{attempts} attempt{'' if attempts == 1 else 's'}")
        if found.queue.added_at:
            known.append(duration(now - found.queue.added_at))
    if known:
        text.append(f" ({', '.join(known)})", style="not bold")
    if found.kind not in (told.FITS, told.SCHEDULED):
        text.append(" ")
        text.append(f"[{found.kind}]", style=f"not bold {_COLOURS[found.kind]}")
    return text


def _before(refusal: PluginRefusal) -> RenderableType:
    return Text.assemble((f" {refusal.plugin}: ", "cyan"), _why(refusal))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _groups(groups: Sequence[NodeGroup]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  nodes", justify="right", no_wrap=True)
    table.add_column("refused by", style="cyan", no_wrap=True)
    table.add_column("why", overflow="fold", ratio=1)
    for group in groups[:_MOST_GROUPS]:
        if group.said is None:
            table.add_row(f"{group.nodes:,}", Text("none", style="green"), _names(group))
            continue
        why = Text(_why(group.said))
        if group.nodes <= len(group.examples):
            why.append(f"  ({', '.join(group.examples)})", style="dim")
        table.add_row(f"{group.nodes:,}", group.said.plugin, why)
        for refusal in group.also:
            table.add_row("", Text(f"+ {refusal.plugin}", style="cyan"), Text(_why(refusal)))
    left = groups[_MOST_GROUPS:]
    if left:
        nodes = sum(group.nodes for group in left)
        table.add_row(f"{nodes:,}", "", f"in {len(left):,} smaller groups (-o json has them all)")
    return table


def _names(group: NodeGroup) -> Text:
    more = group.nodes - len(group.examples)
    shown = ", ".join(group.examples) + (f", … and {more:,} more" if more > 0 else "")
    return Text(f"fits: {shown}")


def _why(refusal: PluginRefusal) -> str:
    """What the plugin knows, or else what it said."""
    facts = refusal.facts
    if not facts:
        return ", ".join(refusal.reasons)
    shown = [
        f"{fact.text} ({fact.nodes:,})" if fact.nodes and len(facts) > 1 else fact.text
        for fact in facts[:_MOST_FACTS]
    ]
    if len(facts) > _MOST_FACTS:
        shown.append(f"{len(facts) - _MOST_FACTS} more")
    return "; ".join(shown)


# --- the best node --------------------------------------------------------------------------------


def _choice(choice: Choice, found: Explanation) -> list[RenderableType]:
    parts: list[RenderableType] = [_scores(choice, found.node)]
    if choice.margin is None:
        parts.append(Text("It is the only node that fits."))
        return parts
    if choice.tied > 1:
        names = listed(choice.ties, 4) if choice.tied <= 4 else f"{choice.tied:,} nodes"
        parts.append(
            Text(f"A tie of {choice.tied:,} ({names}) falls {choice.tie_break}: {choice.node}.")
        )
    else:
        telling = [one for one in choice.difference if one.points]
        made = ", ".join(f"{one.plugin} {one.points:+,}" for one in telling)
        parts.append(Text(f"{choice.margin:,} ahead of {choice.runner_up}: {made}."))
    if choice.flip is not None:
        flip = choice.flip
        change = f"With weight {flip.to} instead of {flip.weight} for {flip.plugin}"
        change = change if flip.to else f"Without {flip.plugin}"
        parts.append(Text(f"{change}, {flip.node} would be chosen."))
    return parts


def _scores(choice: Choice, bound: str) -> Table:
    """Nodes in rows, plugins in columns: raw and weighted points where they differ."""
    plugins = [one.plugin for one in choice.nodes[0].plugins] if choice.nodes else []
    telling = [
        name
        for place, name in enumerate(plugins)
        if any(score.plugins[place].weighted for score in choice.nodes)
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("node", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    for name in telling:
        weight = next(one.weight for one in choice.nodes[0].plugins if one.plugin == name)
        label = "\n".join(re.findall(r"[A-Z][a-z]+", name)) or name
        table.add_column(label + (f"\nx{weight}" if weight != 1 else ""), justify="right")
    for score in choice.nodes:
        points = {one.plugin: one for one in score.plugins}
        style = "bold" if score.node == choice.node else ""
        mark = " (here)" if score.node == bound else ""
        table.add_row(
            Text(score.node + mark, style=style),
            Text(f"{score.total:,}", style=style),
            *(Text(f"{points[name].weighted:,}", style=style) for name in telling),
        )
    return table


def _answer(answer: NodeAnswer) -> RenderableType:
    if answer.refusals:
        table = _table("", "")
        table.show_header = False
        for refusal in answer.refusals:
            table.add_row(Text(f"  {refusal.plugin}", style="cyan"), Text(_why(refusal)))
        return Group(Text(f"{answer.node} is refused by"), table)
    assert answer.score is not None
    return Group(Text(f"{answer.node}: place {answer.score.place:,}"), _points(answer.score))


def _points(score: NodeScore) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  plugin", no_wrap=True)
    for name in ("raw", "0-100", "weight", "points"):
        table.add_column(name, justify="right")
    for one in score.plugins:
        values = (one.raw, one.normalized, one.weight, one.weighted)
        table.add_row(f"  {one.plugin}", *(f"{value:,}" for value in values))
    return table


# --- what would help ------------------------------------------------------------------------------


def _preemption(preemption: Preemption) -> list[RenderableType]:
    if not preemption.helps:
        why = preemption.message.partition("preemption: ")[2]
        is_refusal = why.startswith("not eligible")
        return [Text(f"Preemption: {why}" if is_refusal else "Preemption would not help.")]
    text = f"Preemption {preemption.message}"
    if preemption.decided_by:
        text += f" ({preemption.decided_by})"
    parts: list[RenderableType] = [Text(text + ".")]
    if preemption.count > 1:
        table = _table("  candidate", "victims", "budgets violated")
        for one in preemption.candidates[:5]:
            victims = listed(one.victims, 3)
            table.add_row(f"  {one.node}", victims, str(one.pdb_violations))
        parts.append(table)
        if preemption.count > 5:
            parts.append(Text(f"  … and {preemption.count - 5:,} more", style="dim"))
    return parts


def _remedies(remedies: Sequence[Remedy]) -> list[RenderableType]:
    if not remedies:
        return [Text("No change that we know helps.", style="bold")]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("target", style="magenta", no_wrap=True)
    table.add_column("edits", overflow="fold", ratio=1)
    table.add_column("nodes", justify="right", no_wrap=True)
    chosen = _worth_showing(remedies)
    for remedy in chosen:
        shown = f"{remedy.nodes:,} node{'' if remedy.nodes == 1 else 's'}"
        for place, edit in enumerate(remedy.edits):
            text = f"+ {edit.text}" if place else edit.text
            table.add_row(f"  {edit.target}", text, "" if place else shown)
    parts: list[RenderableType] = [
        Text("What would make it fit (each tried out)", style="bold"),
        table,
    ]
    left = len(remedies) - len(chosen)
    if left:
        parts.append(Text(f"  … and {left} more, with more edits (-o json)", style="dim"))
    return parts


def _worth_showing(remedies: Sequence[Remedy]) -> list[Remedy]:
    """All with one edit, some with more, and the added node."""
    last = [one for one in remedies[-1:] if "add a node" in one.text]
    others = remedies[: len(remedies) - len(last)]
    alone = [one for one in others if len(one.edits) == 1]
    more = [one for one in others if len(one.edits) > 1]
    room = max(_MOST_REMEDIES - len(alone), 2 if alone else _MOST_REMEDIES)
    return [*alone, *more[: min(room, 4)], *last]


def _queue(queue: QueuedState, now: float) -> Text:
    text = f"In the queue: {queue.queue}"
    since = queue.since or queue.added_at
    if since:
        text += f", since {duration(now - since)}"
    if queue.ahead is not None and queue.queue == "active":
        text += f", {queue.ahead:,} tried before it"
    if queue.retry_at is not None and queue.retry_at > now:
        text += f", tried again in {duration(queue.retry_at - now)} at the latest"
    text += "."
    if queue.declined:
        latest = [f"{one.event} ({one.plugin})" for one in queue.declined[:3]]
        text += f" Events since that do not help it: {', '.join(latest)}."
    return Text(text)


def duration(seconds: float) -> str:
    """As kubectl writes an age: 6m12s, 3h5m, 2d4h."""
    whole = max(int(seconds), 0)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{days}d{hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
