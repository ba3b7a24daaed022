"""The filters of a profile on hypothetical nodes.

Preemption filters nodes without some of their pods; every pod is filtered also with the pods that
are nominated for a node. The form for one node is the specification. Filters with `depends_on` look
at nothing but the node, so they are called for many nodes at once, in columns. So are filters of
this project that count pods on several nodes: each what-if changes the pods of one node only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import compress, takewhile
from typing import TypeAlias

import numpy as np

from mooring.decision.filtering import Filtering
from mooring.decision.filtering import first_error as first_error
from mooring.decision.nominated import Nominations
from mooring.decision.plugins import NOTHING_KEPT, DecisionPlugins, Kept
from mooring.framework import (
    NODE,
    OK,
    BoolArray,
    CycleState,
    Filter,
    IntArray,
    Node,
    Nodes,
    Pod,
    PreFilter,
    Status,
    Verdicts,
)
from mooring.framework._internal import InternalNominator as InternalNominator
from mooring.framework._internal import (
    NodesWithMorePods,
    NodesWithoutPods,
    WhatIfBasis,
    answers_what_ifs,
    depends_on_of,
    what_if_basis,
)
from mooring.runtime import PluginFault, as_error, running

KeysOf: TypeAlias = Callable[[Pod, Nodes], Mapping[str, Hashable]]
"""The cache keys of a pod by plugin, where answers depend on no more than node, pods and key."""


class WhatIfs:
    """The filters of a profile on hypothetical nodes; plugins use it by `handle.what_if`.

    `is_ours` says whether this process schedules a pod.
    """

    def __init__(
        self,
        plugins: DecisionPlugins,
        nominator: InternalNominator,
        is_ours: Callable[[Pod], bool],
        keys_of: KeysOf | None = None,
    ) -> None:
        self.is_ours: Callable[[Pod], bool] = is_ours
        self._caller = plugins.caller
        self.nominator: InternalNominator = nominator
        self._filters = plugins.filters
        self._following = tuple(plugin for plugin in plugins.pre_filters if follows_pods(plugin))
        self._following_names = frozenset(plugin.name for plugin in self._following)
        self._what_if_names = frozenset(one.name for one in self._filters if answers_what_ifs(one))
        self._nominations = Nominations(nominator)
        self._keys_of = keys_of

    # --- the nodes as they are -----------------------------------------------------------------

    def first_refusals(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        kept: Kept,
        limit: int | None = None,
        start: int = 0,
        nominated: Verdicts | None = None,
    ) -> Verdicts:
        """The first refusal of every node, also for nominated pods. Raises PluginFault.

        `nominated` is what `refused_for_nominated` says, if it is known.
        """
        walk = Filtering(self._caller, self.active_filters(state), state, pod, nodes, kept)
        walk.run_vectorised()
        if nominated is None:
            nominated = self.refused_for_nominated(state, pod, nodes, kept)
        if nominated is not None:
            walk.refuse_for_nominated(nominated)
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

    def basis(self, state: CycleState, pod: Pod, nodes: Nodes) -> WhatIfBasis | None:
        """What all answers about hypothetical nodes depend on; None: it can't be told."""
        if self._keys_of is None:
            return None
        known = self._keys_of(pod, nodes)
        keys: list[Hashable] = [pod.priority]
        columns: list[IntArray | BoolArray] = []
        for plugin in self.active_filters(state):
            key = known.get(plugin.name)
            if key is None:
                found = what_if_basis(plugin, state, pod, nodes)
                if found is None:
                    return None
                key = found.key
                columns += found.columns
            keys.append((plugin.name, key))
        return WhatIfBasis(tuple(keys), columns)

    @property
    def has_nominated(self) -> bool:
        """Whether any pod is nominated for a node."""
        return len(self.nominator) > 0

    def refused_for_nominated(
        self, state: CycleState, pod: Pod, nodes: Nodes, kept: Kept = NOTHING_KEPT
    ) -> Verdicts | None:
        """The nodes where the pod does not fit beside the pods nominated for them.

        None if no pods are nominated at all. A status may be an error. `kept` are results for all
        of these nodes.
        """
        if not self.has_nominated:
            return None  # as for nearly every pod
        found = Verdicts.passing(nodes)
        for name in self._refuse_at_once(found, state, pod, nodes, kept):
            row = nodes.index_of(name)
            answer = None if row is None else self.filter_with_nominated(state, pod, nodes[row])
            if row is not None and answer is not None and not answer.ok:
                found.set(row, answer)
        return found

    def _refuse_at_once(
        self, found: Verdicts, state: CycleState, pod: Pod, nodes: Nodes, kept: Kept
    ) -> Sequence[str]:
        """Ask about all nodes with nominated pods; which of them are to be asked about alone."""
        with_nominated = self._nominations.nodes(nodes, pod)
        if with_nominated is None or with_nominated.overlaps:
            return self.nominator.nominated_nodes()
        filters = self._leading_filters(state, pod)
        asked = [it for it in filters if not (it.name in kept and kept[it.name].passes_all_nodes)]
        verdicts = self._filter_hypothetical(asked, state, pod, with_nominated)
        if verdicts is None:
            return self.nominator.nominated_nodes()
        found.replace(with_nominated.rows, verdicts)
        own = self.nominator.node_of(pod.uid)
        left = [] if own is None else [own]  # other pods may be nominated for it, too
        if not self._are_all(filters, state):
            left += compress(with_nominated.names, verdicts.passed.tolist())
        return left

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
        if with_nominated is None:
            return self._filter_hypothetical(filters, state, pod, nodes)
        beside_nominated = self._filter_hypothetical(filters, state, pod, with_nominated)
        if beside_nominated is None:
            return None
        refused = list(_refused(with_nominated, beside_nominated))
        if len(refused) == len(nodes):  # as when only the node of the latest nomination is new
            verdicts: Verdicts | None = Verdicts.passing(nodes)
        else:
            verdicts = self._filter_hypothetical(filters, state, pod, nodes)
        if verdicts is not None:
            for place, status in refused:
                verdicts.set(place, status)
        return verdicts

    def _filter_hypothetical(
        self, filters: list[Filter], state: CycleState, pod: Pod, nodes: Nodes
    ) -> Verdicts | None:
        filtering = Filtering(self._caller, filters, state, pod, nodes)
        try:
            filtering.run_in_order(at_once_only=self._what_if_names)
        except PluginFault:
            return None  # the per-node form will show on which node
        return filtering.verdicts

    def _leading_filters(self, state: CycleState, pod: Pod) -> list[Filter]:
        """The first filters, up to one that can't be asked about many hypothetical nodes."""
        return list(
            takewhile(lambda plugin: self._asks_at_once(plugin, pod), self.active_filters(state))
        )

    def _asks_at_once(self, plugin: Filter, pod: Pod) -> bool:
        if plugin.name in self._what_if_names:
            return True
        # One with `add_pod` has to be told, and without `depends_on` it may look anywhere.
        return depends_on_of(plugin, pod) is not None and plugin.name not in self._following_names

    def _are_all(self, filters: list[Filter], state: CycleState) -> bool:
        return len(filters) == len(self.active_filters(state))

    def _nominated_by_place(
        self, pod: Pod, nodes: Nodes, rows: Sequence[int]
    ) -> dict[int, Sequence[Pod]]:
        """The nominated pods of at least this priority, by place among `rows`."""
        if not self.has_nominated:
            return {}
        names = nodes.names
        return {
            place: found
            for place, row in enumerate(rows)
            if (found := self.nominated_on(names[row], pod))
        }

    def nominated_on(self, node_name: str, pod: Pod) -> Sequence[Pod]:
        """The other pods that are nominated for a node, of at least this priority."""
        nominated = self.nominator.nominated_on(node_name)
        if not nominated:
            return ()  # as for nearly every node
        priority, uid = pod.priority, pod.uid
        return [it for it in nominated if it.priority >= priority and it.uid != uid]

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
