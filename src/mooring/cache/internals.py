"""What the decision engine and our own plugins read of `Nodes` beyond its public members.

Functions, so that plugin authors do not meet them: they may change without notice. `Nodes` is the
view that others get.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.cache.arrays import FloatArray, IntArray, frozen
from mooring.cache.labels import LabelColumn
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Features, Mark, Nodes, RowChanges
from mooring.cache.topology import Extract, Parts

S = TypeVar("S", bound=np.generic)

# --- what changed ---------------------------------------------------------------------------------


def structure_of(nodes: Nodes) -> int:
    """A number that is another one as soon as any node is, or pods have other features.

    So it stays while pods come and go that bring nothing but their requests.
    """
    table = nodes._table
    return table.node_journal.position + table.feature_changes


def epoch_of(nodes: Nodes) -> int:
    """A number that is another one as soon as rows come, go or move."""
    return nodes._table.epoch


def is_whole(nodes: Nodes) -> bool:
    """Whether these are all nodes, so that a place is a row."""
    return nodes._rows is None


def rows_of(nodes: Nodes) -> IntArray | None:
    """The rows of these nodes; None if they are all nodes."""
    return nodes._rows


def mark_of(nodes: Nodes) -> Mark:
    """This moment, for `changed_since`."""
    table = nodes._table
    return Mark(table.pod_journal.position, table.node_journal.position)


def changed_since(nodes: Nodes, mark: Mark) -> RowChanges | None:
    """The rows that changed, of all nodes; None if rows came or went, or it is too long ago."""
    table = nodes._table
    changed_pods = table.pod_journal.since(mark.pods)
    changed_nodes = table.node_journal.since(mark.nodes)
    if changed_pods is None or changed_nodes is None:
        return None
    return RowChanges(changed_pods, changed_nodes)


def pods_of(nodes: Nodes, place: int) -> tuple[Pod, ...]:
    """The pods of one of these nodes, as `Node.pods`."""
    row = place if nodes._rows is None else int(nodes._rows[place])
    return tuple(nodes._table.pods[row].values())


class AnyMark(NamedTuple):
    """Positions in all journals."""

    rows: Mark
    statuses: int  # of pods


def any_mark_of(nodes: Nodes) -> AnyMark:
    """This moment, for `touched_since`."""
    return AnyMark(mark_of(nodes), nodes._table.status_journal.position)


def touched_since(nodes: Nodes, mark: AnyMark) -> Iterable[int] | None:
    """As `changed_since`, also rows of which only the status of a pod changed."""
    changes = changed_since(nodes, mark.rows)
    statuses = nodes._table.status_journal.since(mark.statuses)
    if changes is None or statuses is None:
        return None
    return chain(changes.pods, changes.nodes, statuses)


def all_names(nodes: Nodes) -> tuple[str, ...]:
    """The names of all nodes by row; the same tuple until nodes come or go."""
    return nodes._table.all_names()


def on_rows_of(nodes: Nodes, column: NDArray[S]) -> NDArray[S]:
    """The part of a column over all nodes that is about these."""
    return column if nodes._rows is None else column[nodes._rows]


def touch(nodes: Nodes, names: Iterable[str]) -> None:
    """Count rows as changed: something beside pods and nodes that results depend on has changed."""
    table = nodes._table
    for name in names:
        row = table.row_of.get(name)
        if row is not None:
            table.pod_journal.changed(row)


# --- order ----------------------------------------------------------------------------------------


def listing_of(nodes: Nodes) -> IntArray:
    """The places of these nodes in the order in which kube-scheduler would list them."""
    rows, ranks = nodes._table.ordered()
    if nodes._rows is None:
        return rows
    return np.argsort(ranks[nodes._rows], kind="stable")


def ranks_of(nodes: Nodes) -> IntArray:
    """The place of each of these nodes in `listing_of`."""
    if nodes._rows is None:
        return nodes._table.ordered()[1]
    return np.argsort(listing_of(nodes), kind="stable")


# --- labels ---------------------------------------------------------------------------------------


def listed_label_codes(nodes: Nodes, key: str) -> IntArray:
    """The label codes of all nodes, in the order of `listing_of`."""
    table = nodes._table
    return table.label(key).listed(table.ordered()[0])


def label_column(nodes: Nodes, key: str) -> LabelColumn:
    """All values of a label; another one if values have other codes."""
    return nodes._table.label(key)


def rows_labelled(nodes: Nodes, key: str, code: int) -> IntArray:
    """The places, among all nodes, of those with a label code."""
    table = nodes._table
    return table.label(key).rows_of(code, table.epoch)


def label_tally(nodes: Nodes, key: str) -> IntArray:
    """How many of these nodes have each label code."""
    table = nodes._table
    if nodes._rows is None:
        return table.label(key).tally(table.epoch)
    known = ("tally", key)
    found: IntArray | None = nodes._cache.get(known)
    if found is None:
        tally = np.bincount(nodes.label_codes(key), minlength=nodes.label_count(key))
        found = nodes._cache[known] = frozen(tally)
    return found


# --- several resources at once, for a third of the calls; shape (n_resources, n_nodes) ------------


def allocatable_of(nodes: Nodes, resources: tuple[str, ...]) -> IntArray:
    return nodes._stacked("allocatable", resources)


def requested_of(nodes: Nodes, resources: tuple[str, ...]) -> IntArray:
    return nodes._stacked("requested", resources)


def spare_of(nodes: Nodes, resources: tuple[str, ...]) -> IntArray:
    return frozen(allocatable_of(nodes, resources) - requested_of(nodes, resources))


def capacity_limits(nodes: Nodes, resources: tuple[str, ...]) -> tuple[int, int]:
    """No node of the cluster has less, and none more, of any of these resources."""
    return nodes._table.resources.capacity_limits(resources)


# Floats, where scores are computed: rounded above 2**53.


def float_allocatable_of(nodes: Nodes, resources: tuple[str, ...]) -> FloatArray:
    return nodes._stacked_floats("allocatable", resources)


def float_requested_of(nodes: Nodes, resources: tuple[str, ...]) -> FloatArray:
    return nodes._stacked_floats("requested", resources)


def float_nonzero_requested_of(nodes: Nodes, resources: tuple[str, ...]) -> FloatArray:
    return nodes._stacked_floats("nonzero_requested", resources)


# --- features of pods -----------------------------------------------------------------------------


def count_features(
    nodes: Nodes, key: Hashable, extract: Extract, parts: Parts | None = None
) -> Features:
    """The distinct features that `extract` finds in pods, and how many pods have each.

    As with `Nodes.count_pods`, `key` names the question, and every pod is looked at only when it
    comes and when it leaves; so `extract` must always say the same of a pod. Features can be found
    by what `parts` sees in them.
    """
    return nodes._features(key, extract, parts)


def features_version(nodes: Nodes, key: Hashable) -> int:
    """A number that is another one as soon as pods have other features; 0: never asked for yet."""
    return nodes._table.features_version(key)
