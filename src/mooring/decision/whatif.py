"""The filters of a profile on hypothetical nodes.

Preemption filters nodes without some of their pods; every pod is filtered also with the pods that
are nominated for a node. The form for one node is the specification. Filters with `depends_on` look
at nothing but the node, so they are called for many nodes at once, in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np

from mooring.cache.hypothetical import NodesWithMorePods, NodesWithoutPods
from mooring.decision.filtering import Filtering
from mooring.decision.plugins import DecisionPlugins, Kept
from mooring.framework import (
    NODE,
    OK,
    CycleState,
    Filter,
    Node,
    Nodes,
    Pod,
    PreFilter,
    Status,
    Verdicts,
)
from mooring.framework._internal import Nominator as Nominator
from mooring.framework._internal import depends_on_of
from mooring.runtime import PluginFault, as_error, running


class WhatIfs:
    """The filters of a profile on hypothetical nodes; plugins use it by `handle.what_if`.

    `is_ours` says whether this process schedules a pod.
    """

    def __init__(
        self, plugins: DecisionPlugins, nominator: Nominator, is_ours: Callable[[Pod], bool]
    ) -> None:
        self.is_ours: Callable[[Pod], bool] = is_ours
        self._caller = plugins.caller
        self._nominator = nominator
        self._filters = plugins.filters
        self._following = tuple(plugin for plugin in plugins.pre_filters if follows_pods(plugin))
        self._following_names = frozenset(plugin.name for plugin in self._following)
        self._latest_nominated: tuple[Nodes, dict[int, list[Pod]], NodesWithMorePods] | None = None

    # --- the nodes as they are -----------------------------------------------------------------

    def first_refusals(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        kept: Kept,
        limit: int | None = None,
        start: int = 0,
    ) -> Verdicts:
        """The first refusal of every node, also for nominated pods. Raises PluginFault."""
        walk = Filtering(self._caller, self.active_filters(state), state, pod, nodes, kept)
        walk.run_vectorised()
        for row, status in self.refused_for_nominated(state, pod, nodes):
            walk.refuse_for_nominated(row, status)
        walk.run_per_node(limit, start)
        return walk.verdicts

    def verdicts_of(self, plugin: Filter, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts:
        """The verdicts of one plugin on every node. Raises PluginFault."""
        walk = Filtering(self._caller, [plugin], state, pod, nodes)
        walk.run_vectorised()
        walk.run_per_node()
        return walk.verdicts

    # --- one node ------------------------------------------------------------------------------

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """All filters on one node, as it is passed; an ERROR ends the attempt."""
        for plugin in self.active_filters(state):
            self._caller.filtered[plugin.name].add()
            try:
                status = self._caller.filter(plugin, state, pod, node)
            except PluginFault as fault:
                return fault.status
            if status is not OK:
                return status
        return OK

    def refusals_of(self, state: CycleState, pod: Pod, node: Node) -> list[Status]:
        """What every filter that refuses a node says, as it is handed in."""
        found: list[Status] = []
        for plugin in self.active_filters(state):
            try:
                status = self._caller.filter(plugin, state, pod, node)
            except PluginFault as fault:
                status = fault.status
            if not status.ok:
                found.append(status)
        return found

    def fits(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """As `filter_node`, with and without the pods that are nominated for the node."""
        status = self.filter_with_nominated(state, pod, node)
        if status is not None and not status.ok:
            return status
        return self.filter_node(state, pod, node)

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: Node) -> Status | None:
        """The status with the nominated pods on the node; None if there are none."""
        nominated = self.nominated_on(node.name, pod)
        if not nominated:
            return None
        hypothetical = state.clone()
        for other in nominated:
            node = node.with_pod(other)
            status = self.add_pod(hypothetical, pod, other, node)
            if not status.ok:
                return status
        return self.filter_node(hypothetical, pod, node)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status:
        """Update the PreFilter state for a pod that is added to the node."""
        asks = [(one, one.add_pod) for one in self._following]
        return self._tell("PreFilterExtensionAddPod", asks, state, pod, added, node)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status:
        """Update the PreFilter state for a pod that is removed from the node."""
        asks = [(one, one.remove_pod) for one in self._following]
        return self._tell("PreFilterExtensionRemovePod", asks, state, pod, removed, node)

    def _tell(
        self,
        point: str,
        asks: Sequence[tuple[PreFilter, Callable[..., Status]]],
        state: CycleState,
        *args: Pod | Node,
    ) -> Status:
        for plugin, ask in asks:
            if plugin.name not in state.skip_filter:
                status: Status = self._caller.ask(plugin, point, ask, state, *args)
                if not status.ok:
                    return as_error(running(point, plugin), status)
        return OK

    def fixed(self, pod: Pod) -> frozenset[str]:
        """The names of the filters that do not depend on the pods of a node."""
        return frozenset(
            plugin.name for plugin in self._filters if depends_on_of(plugin, pod) is NODE
        )

    @property
    def has_nominated(self) -> bool:
        """Whether any pod is nominated for a node."""
        return bool(self._nominator.nominated_nodes())

    def refused_for_nominated(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Iterator[tuple[int, Status]]:
        """The nodes where the pod does not fit beside the pods nominated for them."""
        names = self._nominator.nominated_nodes()
        if not names:
            return  # as for nearly every pod
        nominated_by_row = {
            row: found
            for name in names
            if (row := nodes.index_of(name)) is not None and (found := self.nominated_on(name, pod))
        }
        if not nominated_by_row:
            return
        rows = list(nominated_by_row)
        left = list(range(len(rows)))
        with_nominated = self._with_nominated_pods(nodes, nominated_by_row)
        if not with_nominated.overlaps:
            filters = self._leading_filters(state, pod)
            verdicts = self._filter_hypothetical(filters, state, pod, with_nominated)
            if verdicts is not None:
                yield from (
                    (rows[place], status) for place, status in _refused(with_nominated, verdicts)
                )
                if self._are_all(filters, state):
                    return
                left = with_nominated.places[verdicts.passed].tolist()
        for place in left:
            answer = self.filter_with_nominated(state, pod, nodes[rows[place]])
            if answer is not None and not answer.ok:
                yield rows[place], answer

    def _with_nominated_pods(
        self, nodes: Nodes, nominated_by_row: dict[int, list[Pod]]
    ) -> NodesWithMorePods:
        """These rows with their nominated pods; an attempt may need them more than once."""
        latest = self._latest_nominated
        if latest is None or latest[0] is not nodes or latest[1] != nominated_by_row:
            rows = np.array(list(nominated_by_row), dtype=np.int64)
            as_it_is = NodesWithoutPods(nodes, rows, [()] * len(rows))
            with_nominated = NodesWithMorePods(as_it_is, dict(enumerate(nominated_by_row.values())))
            latest = self._latest_nominated = (nodes, nominated_by_row, with_nominated)
        return latest[2]

    # --- many what-ifs at once -----------------------------------------------------------------

    def without_pods(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        rows: Sequence[int],
        without: Sequence[Sequence[Pod]],
    ) -> NodesWithoutPods | None:
        """These nodes without some pods each; None if filters must run node by node."""
        if not self._are_all(self._leading_filters(state, pod), state):
            return None
        nominated = self._nominated_by_place(pod, nodes, rows)
        hypothetical = NodesWithoutPods(nodes, np.array(rows, dtype=np.int64), without, nominated)
        return (
            None
            if hypothetical.with_nominated is not None and hypothetical.with_nominated.overlaps
            else hypothetical
        )

    def fits_all(self, state: CycleState, pod: Pod, nodes: NodesWithoutPods) -> Verdicts | None:
        """As `fits` for each of them; None if a filter failed."""
        filters, with_nominated = self.active_filters(state), nodes.with_nominated
        verdicts = self._filter_hypothetical(filters, state, pod, nodes)
        if with_nominated is None or verdicts is None:
            return verdicts
        with_nominated_verdicts = self._filter_hypothetical(filters, state, pod, with_nominated)
        if with_nominated_verdicts is None:
            return None
        for place, status in _refused(with_nominated, with_nominated_verdicts):
            verdicts.set(place, status)
        return verdicts

    def _filter_hypothetical(
        self, filters: list[Filter], state: CycleState, pod: Pod, nodes: Nodes
    ) -> Verdicts | None:
        filtering = Filtering(self._caller, filters, state, pod, nodes)
        try:
            filtering.run_in_order()
        except PluginFault:
            return None  # the per-node form will show on which node
        return filtering.verdicts

    def _leading_filters(self, state: CycleState, pod: Pod) -> list[Filter]:
        """The first filters, up to one that depends on other nodes or has `add_pod`."""
        return list(
            takewhile(
                lambda plugin: (
                    depends_on_of(plugin, pod) is not None
                    and plugin.name not in self._following_names
                ),
                self.active_filters(state),
            )
        )

    def _are_all(self, filters: list[Filter], state: CycleState) -> bool:
        return len(filters) == len(self.active_filters(state))

    def _nominated_by_place(
        self, pod: Pod, nodes: Nodes, rows: Sequence[int]
    ) -> dict[int, list[Pod]]:
        """The nominated pods of at least this priority, by place among `rows`."""
        nominated = set(self._nominator.nominated_nodes())
        if not nominated:
            return {}
        names = nodes.names
        return {
            place: found
            for place, row in enumerate(rows)
            if (name := names[row]) in nominated and (found := self.nominated_on(name, pod))
        }

    def nominated_on(self, node_name: str, pod: Pod) -> list[Pod]:
        """The pods beside which this one has to fit: nominated, and at least as important."""
        priority, uid = pod.priority, pod.uid
        return [
            other
            for other in self._nominator.nominated_on(node_name)
            if other.priority >= priority and other.uid != uid
        ]

    def active_filters(self, state: CycleState) -> list[Filter]:
        skipped = state.skip_filter
        count, found = state.active_filters
        if count != len(skipped):  # plugins are only added
            found = [plugin for plugin in self._filters if plugin.name not in skipped]
            state.active_filters = (len(skipped), found)
        active: list[Filter] = found
        return active


def _refused(with_nominated: NodesWithMorePods, verdicts: Verdicts) -> Iterator[tuple[int, Status]]:
    """The places in the original nodes where a pod does not fit beside nominated pods."""
    refused = np.flatnonzero(~verdicts.passed)
    places = with_nominated.places[refused].tolist()
    return zip(places, map(verdicts.status, refused.tolist()), strict=True)


def follows_pods(plugin: PreFilter) -> bool:
    """Whether a plugin has state that depends on the pods of nodes."""
    own, base = type(plugin), PreFilter
    return own.add_pod is not base.add_pod or own.remove_pod is not base.remove_pod
