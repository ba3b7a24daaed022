"""What would happen if: the difference between a cluster as it is and with changes.

Both are runs of the same scheduler on the same snapshot, so that pods which only wait because the
scheduler has not come to them yet do not count as a difference.
"""

from __future__ import annotations

from mooring.lens.snapshot import Snapshot
from mooring.simulator.answers import Move, Pending, Side, WhatIfAnswer, told_by
from mooring.simulator.imagine import Run, RunOutcome


def side(outcome: RunOutcome, nodes: int) -> Side:
    """One side of an answer."""
    return Side(
        nodes=nodes,
        pods=len(outcome.placements),
        waiting=len(outcome.waiting),
        preempted=len(outcome.preempted),
        resources=outcome.measures,
    )


def what_if(
    snapshot: Snapshot,
    run: Run,
    before: RunOutcome,
    after: RunOutcome,
    *,
    name: str = "",
    changes: tuple[str, ...] = (),
) -> WhatIfAnswer:
    """The difference of two outcomes; `changes` are what was done, in words."""
    was, now = before.placements, after.placements
    moved, placed, pending = [], [], []
    still = 0
    waiting = {pod.key for pod in snapshot.cluster.pods if not pod.spec.node_name}
    for pod, to in sorted(now.items()):
        source = was.get(pod, "")
        if to and source and to != source:
            moved.append(Move(pod=pod, from_=source, to=to, waits=pod in waiting))
        elif to and not source:
            placed.append(Move(pod=pod, to=to, waits=pod in waiting))
        elif not to and (source or pod not in was):
            why = after.waiting[pod]
            pending.append(
                Pending(
                    pod=pod,
                    from_=source,
                    waits=pod in waiting,
                    message=why.message,
                    refused=why.refused,
                )
            )
        elif not to:
            still += 1
    nodes = len(snapshot.cluster.nodes)
    applied = run.changes.applied.nodes
    known = {node.metadata.name for node in snapshot.cluster.nodes}
    added = len(after.added_nodes) + sum(one.metadata.name not in known for one in applied)
    return WhatIfAnswer(
        snapshot=name,
        seed=run.seed,
        missing=snapshot.missing,
        notes=told_by(snapshot, *before.notes, *after.notes),
        changes=changes,
        config=run.config_name,
        moved=tuple(moved),
        placed=tuple(placed),
        pending=tuple(pending),
        gone=tuple(sorted(was.keys() - now.keys())),
        still_waiting=still,
        preempted=after.preempted,
        budgets=after.budgets,
        unmanaged=after.unmanaged,
        before=side(before, nodes),
        after=side(after, nodes + added - len(set(run.changes.remove_nodes))),
    )
