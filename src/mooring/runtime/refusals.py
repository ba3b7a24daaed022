"""Why no node will do for the pods of a class: kept, and brought up to date where nodes changed.

A large Job that does not fit is refused at the cost of its first pod. That nobody will do is known
already, and who says so are filters with a scope: their answers hold for the pods of the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Mark, Nodes
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.runtime.answers import Unsure
from mooring.runtime.layers import Outdated, Touched

Judge = Callable[[CycleState, Pod, Nodes], tuple[Verdicts, Status]]
"""The verdicts of all filters on some nodes; or an error."""

_MOST_STATUSES: Final = 64  # answers that no node gives any more are not worth looking for


class Refusals:
    """The verdicts on all nodes, for one class of pods."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        # Since when, and what; whoever was given the verdicts may keep them.
        self._known: tuple[Mark, Verdicts] | None = None

    def follow(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts:
        """The verdicts as they are now. Raises Unsure."""
        verdicts = self._brought_up_to_date(state, pod, nodes)
        if verdicts is None:
            verdicts = self._asked(state, pod, nodes)
        self._known = (nodes.mark, verdicts)
        return verdicts

    def _brought_up_to_date(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts | None:
        """None: every node has to be asked about, or that is easier."""
        if self._known is None:
            return None
        since, known = self._known
        try:
            touched = Touched.since_then(since, nodes)
        except Outdated:
            return None  # the last pod that was refused came long ago
        if not touched.both:
            return known
        if 2 * len(touched.both) > len(nodes) or len(known.statuses) > _MOST_STATUSES:
            return None
        fresh = self._asked(state, pod, nodes.take(touched.rows))
        verdicts = known.copy()
        for place, row in enumerate(touched.rows.tolist()):
            verdicts.set(row, fresh.status(place))
        return verdicts

    def _asked(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts:
        verdicts, status = self._judge(state, pod, nodes)
        if not status.ok:
            raise Unsure(f"{status.plugin} broke")
        if verdicts.index is None or not verdicts.index.all():
            raise Unsure("a node will do after all")
        return verdicts
