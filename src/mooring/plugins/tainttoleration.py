"""Keep pods off nodes with untolerated taints, by Filter or, for PreferNoSchedule, by Score."""

from collections.abc import Iterable

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.taints import PREFER_NO_SCHEDULE, find_untolerated, taint_text, tolerates
from mooring.framework._internal import COMPARES_TAINTS, InternalPlugin
from mooring.plugins.nodeunschedulable import CORDON, OF_CONDITIONS, tolerate, uncordon

SOFT: fw.StateKey[tuple[core.Toleration, ...]] = fw.StateKey(
    "TaintToleration/soft", 'failed to read "PreScoreTaintToleration" from cycleState: not found'
)
"""The tolerations that can match a PreferNoSchedule taint."""


class TaintToleration(InternalPlugin, fw.Filter, fw.PreScore, fw.Score):
    """Refuse nodes with an untolerated hard taint; prefer those with the fewest soft ones."""

    name = "TaintToleration"
    key_from_spec = True
    depends_on = fw.NODE
    normalizer = fw.LEAST_IS_100
    wakes_on = (fw.Event.NODE_ADDED, fw.Event.NODE_TAINTS_CHANGED, fw.Event.POD_TOLERATIONS_CHANGED)

    TAINTED = fw.Status.unresolvable("node(s) had untolerated taint(s)")

    def cache_key(self, pod: fw.Pod) -> tuple[core.Toleration, ...]:
        return pod.spec.tolerations

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return self.TAINTED if self._is_repelled(pod, node.taints) else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        if not nodes.has_taints:
            return verdicts
        repelled = nodes.by_taints(lambda taints: self._is_repelled(pod, taints))
        return verdicts.reject(repelled.astype(np.bool_), self.TAINTED)

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[SOFT] = soft_tolerations(pod)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return self._count_intolerable(node.taints, state[SOFT])

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        soft = state[SOFT]
        if not nodes.has_taints:
            return np.zeros(len(nodes), dtype=np.int64)
        return nodes.by_taints(lambda taints: self._count_intolerable(taints, soft))

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        found: list[core.Taint] = []

        def number(taints: tuple[core.Taint, ...]) -> int:
            taint = self._untolerated(pod, taints)
            if taint is None:
                return -1
            taint = structs.replace(taint, time_added=None)
            if taint not in found:
                found.append(taint)
            return found.index(taint)

        numbers = nodes.by_taints(number)
        for place, taint in enumerate(found):
            here = np.flatnonzero(numbers == place)
            if len(here):
                yield fw.Fact(
                    text=taint_text(taint),
                    nodes=len(here),
                    node=nodes[int(here[0])].name,
                    waits_for="others" if taint.key.startswith(OF_CONDITIONS) else None,
                )

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        taint = self._untolerated(pod, node.taints) if node is not None else None
        if taint is None or node is None:
            return
        yield tolerate(taint)
        if taint.key == CORDON.key:
            yield uncordon(node.name)
        elif not taint.key.startswith(OF_CONDITIONS):  # those come back with the condition
            yield remove_taint(node.name, taint)

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, fw.Pod):
            return new.uid == pod.uid
        was_open = isinstance(old, core.Node) and not self._is_repelled(pod, old.spec.taints)
        is_open = isinstance(new, core.Node) and not self._is_repelled(pod, new.spec.taints)
        return is_open and not was_open

    def _is_repelled(self, pod: fw.Pod, taints: tuple[core.Taint, ...]) -> bool:
        return self._untolerated(pod, taints) is not None

    def _untolerated(self, pod: fw.Pod, taints: tuple[core.Taint, ...]) -> core.Taint | None:
        compares = COMPARES_TAINTS in self.feature_gates
        return find_untolerated(taints, pod.spec.tolerations, compares=compares)

    def _count_intolerable(
        self, taints: tuple[core.Taint, ...], soft: tuple[core.Toleration, ...]
    ) -> int:
        compares = COMPARES_TAINTS in self.feature_gates
        return sum(
            taint.effect == PREFER_NO_SCHEDULE
            and not any(tolerates(one, taint, compares=compares) for one in soft)
            for taint in taints
        )


def remove_taint(name: str, taint: core.Taint) -> fw.Edit:
    """As `kubectl taint node NAME KEY:Effect-`."""

    def to(node: core.Node) -> core.Node:
        kept = tuple(
            other
            for other in node.spec.taints
            if (other.key, other.effect) != (taint.key, taint.effect)
        )
        return structs.replace(node, spec=structs.replace(node.spec, taints=kept))

    text = f"remove {taint_text(taint)} from {name}"
    return fw.Edit.of_node(text, name, to, family=f"remove {taint_text(taint)}")


def soft_tolerations(pod: fw.Pod) -> tuple[core.Toleration, ...]:
    return tuple(t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
