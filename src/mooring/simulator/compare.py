"""Two configurations on one snapshot: which pods they place differently, and which plugin did it.

Both runs go by class. Only the pods that end up differently are looked at closer, in a second run
that evaluates them in full at the moment of their decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import structs

from mooring.lens.snapshot import Snapshot
from mooring.simulator.answers import ComparisonAnswer, PlacementDifference, told_by
from mooring.simulator.imagine import Run, RunOutcome
from mooring.simulator.watching import Seen, Watched
from mooring.simulator.what_if import side

CLOSER: Final = 1000  # differing pods whose plugin is looked for
_TIE: Final = "equal scores"


def differing(first: RunOutcome, second: RunOutcome) -> dict[str, tuple[str, ...]]:
    """The pods that are placed differently, and both nodes of each."""
    return {
        pod: tuple(sorted({node, other} - {""}))
        for pod, node in sorted(first.placements.items())
        if (other := second.placements.get(pod, "")) != node
    }


def closer(run: Run, pods: Mapping[str, tuple[str, ...]]) -> Run:
    """The run again, looking closer at these pods."""
    return structs.replace(run, watched=dict(list(pods.items())[:CLOSER]))


def compare(
    snapshot: Snapshot,
    runs: tuple[Run, Run],
    outcomes: tuple[RunOutcome, RunOutcome],
    watched: tuple[Mapping[str, Watched], Mapping[str, Watched]],
    *,
    name: str = "",
) -> ComparisonAnswer:
    """The answer; `watched` are what the second runs saw of the differing pods."""
    first, second = outcomes
    differences = tuple(
        _difference(
            pod,
            first.placements[pod],
            second.placements.get(pod, ""),
            watched[0].get(pod),
            watched[1].get(pod),
        )
        for pod in differing(first, second)
    )
    nodes = len(snapshot.cluster.nodes)
    counted = Counter(one.plugin or "not looked at" for one in differences)
    return ComparisonAnswer(
        snapshot=name,
        seed=runs[0].seed,
        missing=snapshot.missing,
        notes=told_by(snapshot, *first.notes, *second.notes, *_kept_in_place(snapshot, runs[0])),
        first_config=runs[0].config_name,
        second_config=runs[1].config_name,
        placed=min(first.bound, second.bound),
        differences=differences,
        by_plugin=dict(counted.most_common()),
        first=side(first, nodes),
        second=side(second, nodes),
    )


def _kept_in_place(snapshot: Snapshot, run: Run) -> Iterator[str]:
    kept = sum(bool(pod.spec.node_name) for pod in snapshot.cluster.pods)
    if kept and not run.reschedule:
        text = (
            "1 pod has a node and stays there"
            if kept == 1
            else f"{kept:,} pods have a node and stay there"
        )
        yield f"{text}: --reschedule places all pods anew"


def _difference(
    pod: str, first: str, second: str, here: Watched | None, there: Watched | None
) -> PlacementDifference:
    found = PlacementDifference(pod=pod, first=first, second=second)
    if here is None or there is None:
        return found
    for mine, other, seen in ((first, second, here), (second, first, there)):
        # A node that one configuration chose was refused under the other one.
        refused = seen.nodes.get(other) if other else None
        if refused is not None and not refused.scores and refused.refused_by:
            why = f"{other} was refused: {', '.join(refused.reasons)}"
            return structs.replace(found, plugin=refused.refused_by, why=why)
        if not mine and seen.refused_by:
            return structs.replace(found, plugin=", ".join(seen.refused_by), why="no node fitted")
    if not first or not second:
        return found
    plugin, points = _decisive(first, second, here.nodes, there.nodes)
    if not plugin:
        return structs.replace(found, plugin=_TIE)
    return structs.replace(found, plugin=plugin, why=points)


def _decisive(
    first: str, second: str, here: Mapping[str, Seen], there: Mapping[str, Seen]
) -> tuple[str, str]:
    """The plugin whose advice changed most between both decisions, towards the other node."""
    leads = [_leads(first, second, nodes) for nodes in (here, there)]
    changes = {
        plugin: leads[0].get(plugin, 0) - leads[1].get(plugin, 0)
        for plugin in dict.fromkeys((*leads[0], *leads[1]))
    }
    plugin = max(changes, key=lambda one: changes[one], default="")
    if not plugin or changes[plugin] <= 0:
        return "", ""
    said = [f"{lead.get(plugin, 0):+d}" for lead in leads]
    return plugin, f"{first} against {second}: {said[0]} and {said[1]} points"


def _leads(first: str, second: str, nodes: Mapping[str, Seen]) -> dict[str, int]:
    mine, other = (nodes.get(name, Seen()).scores for name in (first, second))
    return {plugin: mine[plugin] - other.get(plugin, 0) for plugin in mine}
