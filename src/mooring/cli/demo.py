"""`mooring demo`: a few dozen pods, one plugin of a dozen lines, and a reason for everything."""

from __future__ import annotations

import inspect
from collections import Counter

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

from mooring.cli import demo_plugin
from mooring.cli.demo_cluster import CONFIG, nodes, pods, relief
from mooring.framework import Node
from mooring.scheduler import Attempt
from mooring.simulator import Simulation


def demo(seed: int = 0, console: Console | None = None) -> int:
    """Tell the story; 0 if it ended as it should."""
    out = console or Console(highlight=False)
    with Simulation(config=CONFIG, plugins=[demo_plugin.ToNodeName], seed=seed) as sim:
        _show_plugin(out)
        cluster = nodes()
        sim.apply(*cluster)
        _title(out, f"The cluster: {len(cluster)} nodes")
        out.print(_node_table(sim))

        wanted = pods()
        sim.schedule(*wanted)
        bound = len(sim.cluster.bindings)
        _title(out, f"{len(wanted)} pods are created, {bound} are placed")
        out.print(_node_table(sim, usage=True))
        _title(out, "Why there: one decision, plugin by plugin (score x weight)")
        out.print(_score_table(_most_telling(sim.attempts)))
        _title(out, "Why not: the pods that wait")
        out.print(_pending_table(sim))

        added = relief()
        sim.apply(added)
        sim.advance(12)  # the backoff of the refused pods passes, in no time at all
        _title(out, f"Node {added.name} is added; twelve (virtual) seconds pass")
        out.print(_pending_table(sim))

        placed = len(sim.cluster.bindings)
        waiting = len(wanted) - placed
        spread = Counter(node for _, node in sim.cluster.bindings)
        out.print(
            f"[bold]{placed} of {len(wanted)} pods placed[/] on {len(spread)} of"
            f" {len(cluster) + 1} nodes in {len(sim.attempts)} attempts; {waiting} still wait, each"
            " with its reason."
        )
        return 0 if placed > bound and waiting else 1


def _title(out: Console, text: str) -> None:
    out.print()
    out.print(f"[bold cyan]{text}[/]")


def _show_plugin(out: Console) -> None:
    source = inspect.getsource(demo_plugin.ToNodeName).rstrip()
    code = Syntax(source, "python", theme="ansi_dark", background_color="default", word_wrap=True)
    out.print(Panel(code, title="a placement rule of our own", border_style="cyan"))


def _node_table(sim: Simulation, *, usage: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("node", "zone", "cpu", "memory", "kept free by"):
        table.add_column(column)
    if usage:
        table.add_column("pods", justify="right")
        table.add_column("cpu requested")
    for node in sim.scheduler.cache.nodes:
        total = node.allocatable("cpu")
        row = [
            node.name,
            node.labels.get("topology.kubernetes.io/zone", ""),
            f"{total / 1000:g}",
            f"{node.allocatable('memory') / 2**30:g}Gi",
            _obstacles(node),
        ]
        if usage:
            used = node.requested("cpu")
            filled = round(10 * used / total)
            row += [str(node.pod_count), f"{'█' * filled:<10} {used / 1000:g}"]
        table.add_row(*row)
    return table


def _obstacles(node: Node) -> str:
    found = [f"{taint.key}:{taint.effect}" for taint in node.taints]
    return ", ".join(["cordon"] * node.unschedulable + found) or "-"


def _most_telling(attempts: list[Attempt]) -> Attempt:
    """The decision with the most candidates is the one worth showing."""
    return max(attempts, key=lambda attempt: len(attempt.decision.rows))


def _score_table(attempt: Attempt) -> Table:
    decision = attempt.decision
    scores = decision.scores
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"pod {attempt.pod.key}")
    table.add_column("plugin")
    if scores is None:
        return table
    names = decision.feasible
    order = sorted(
        range(len(names)), key=lambda i: (-int(scores.totals[i]), names[i] != decision.node_name)
    )
    best = order[:3]
    for i in best:
        chosen = names[i] == decision.node_name
        table.add_column(names[i], justify="right", style="bold green" if chosen else "")
    for plugin in scores.plugins:
        cells = [f"{int(plugin.scores[i])}" for i in best]
        table.add_row(f"{plugin.plugin} x{plugin.weight}", *cells)
    table.add_section()
    table.add_row("total", *(str(int(scores.totals[i])) for i in best))
    return table


def _pending_table(sim: Simulation) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("pod", "queue", "reason"):
        table.add_column(column, overflow="fold")
    for pod in sim.cluster.pods():
        if not pod.spec.node_name:
            key = f"{pod.metadata.namespace}/{pod.metadata.name}"
            gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
            reason = sim.why(key) or f"waiting for scheduling gates: {gates}"
            table.add_row(pod.metadata.name, sim.where(key) or "-", reason)
    return table
