"""The nodes that a pod requires and prefers: `nodeSelector` and node affinity."""

from collections.abc import Hashable, Iterable, Iterator

import msgspec
import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.selectors import (
    NODE_NAME_FIELD,
    NodeMatcher,
    NodeTerm,
    SelectorError,
    compile_node_selector,
    compile_term,
)
from mooring.framework._internal import InternalPlugin
from mooring.plugins import _node_requirement_edits as edits
from mooring.plugins._node_requirements import (
    RequiredNodeAffinity,
    affinity_of,
    matching_any,
    required_of,
)


class StrictRequirement(core.NodeSelectorRequirement, frozen=True, forbid_unknown_fields=True):
    """As in a pod, but unknown fields in a configuration file are an error."""


class StrictTerm(core.NodeSelectorTerm, frozen=True, forbid_unknown_fields=True):
    """As in a pod, but strict."""

    match_expressions: tuple[StrictRequirement, ...] = ()
    match_fields: tuple[StrictRequirement, ...] = ()


class StrictNodeSelector(core.NodeSelector, frozen=True, forbid_unknown_fields=True):
    """As in a pod, but strict."""

    node_selector_terms: tuple[StrictTerm, ...] = ()


class StrictPreferredTerm(core.PreferredSchedulingTerm, frozen=True, forbid_unknown_fields=True):
    """As in a pod, but strict."""

    preference: StrictTerm = StrictTerm()


class AddedAffinity(core.NodeAffinity, frozen=True, forbid_unknown_fields=True):
    """As in a pod, but strict."""

    required_during_scheduling_ignored_during_execution: StrictNodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[StrictPreferredTerm, ...] = ()


class NodeAffinityArgs(fw.Args, frozen=True):
    """Node affinity that is added to that of every pod of the profile."""

    added_affinity: AddedAffinity | None = None

    def __post_init__(self) -> None:
        required = required_of(self.added_affinity)
        errors = compile_node_selector(required).errors if required is not None else ()
        if errors:
            raise ValueError(f"addedAffinity: {SelectorError.of(errors)}")
        try:
            compile_preferences(preferred_of(self.added_affinity))
        except SelectorError as error:
            raise ValueError(f"addedAffinity: {error}") from None


class Preferred(msgspec.Struct, frozen=True):
    """A term and its score."""

    weight: int
    term: NodeTerm


REQUIRED: fw.StateKey[RequiredNodeAffinity] = fw.StateKey("NodeAffinity/required")
PREFERRED: fw.StateKey[tuple[Preferred, ...]] = fw.StateKey("NodeAffinity/preferred")


class NodeAffinity(
    InternalPlugin, fw.Plugin[NodeAffinityArgs], fw.PreFilter, fw.Filter, fw.PreScore, fw.Score
):
    """Refuse nodes the pod's requirements exclude; prefer those its preferences name."""

    name = "NodeAffinity"
    key_from_spec = True
    depends_on = fw.NODE
    normalizer = fw.BEST_IS_100
    wakes_on = (fw.Event.NODE_ADDED, fw.Event.NODE_LABELS_CHANGED)

    CONFLICT = fw.Status.unresolvable("pod affinity terms conflict")
    ENFORCED = fw.Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
    MISMATCH = fw.Status.unresolvable("node(s) didn't match Pod's node affinity/selector")

    def __init__(self, args: NodeAffinityArgs, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        required = required_of(args.added_affinity)
        self._added = compile_node_selector(required) if required is not None else None
        self._also_preferred = compile_preferences(preferred_of(args.added_affinity))

    def cache_key(self, pod: fw.Pod) -> Hashable:
        return pod.spec.node_selector, affinity_of(pod)

    # --- filter --------------------------------------------------------------------------------

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.Status | fw.OnlyNodes:
        terms = required_of(affinity_of(pod))
        if terms is None and self._added is None and not pod.spec.node_selector:
            return fw.SKIP
        state[REQUIRED] = RequiredNodeAffinity.by(pod)
        names = named_nodes(terms) if terms is not None else None
        if names is None:
            return fw.OK
        return fw.OnlyNodes(names) if names else self.CONFLICT

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if self._added is not None and not self._added.matches(node.labels, node.name):
            return self.ENFORCED
        required = state.get(REQUIRED) or RequiredNodeAffinity.by(pod)
        return fw.OK if required.matches(node.labels, node.name) else self.MISMATCH

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        if self._added is not None:
            verdicts.reject(~matching_any(nodes, self._added), self.ENFORCED)
        required = state.get(REQUIRED) or RequiredNodeAffinity.by(pod)
        return verdicts.reject(~required.matching(nodes), self.MISMATCH)

    # --- score ---------------------------------------------------------------------------------

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if not preferred_of(affinity_of(pod)) and not preferred_of(self.args.added_affinity):
            return fw.SKIP
        try:
            state[PREFERRED] = self._preferred_by(pod)
        except SelectorError as error:
            return fw.Status.error(str(error))
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return sum(
            preferred.weight
            for preferred in self._preferred(state, pod)
            if preferred.term.matches(node.labels, node.name)
        )

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for preferred in self._preferred(state, pod):
            scores += preferred.weight * nodes.matching(preferred.term)
        return scores

    # --- why, and what would help --------------------------------------------------------------

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        if self._added is not None and status.reasons == self.ENFORCED.reasons:
            return edits.enforced_facts(self._added, nodes)
        return edits.facts_of(pod, nodes)

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        if node is None:
            return (edits.drop_affinity(),)
        if self._added is not None and status.reasons == self.ENFORCED.reasons:
            return self._enforced_edits(self._added, node)
        return edits.edits_for(pod, node, self.handle.nodes)

    def _enforced_edits(self, added: NodeMatcher, node: fw.Node) -> Iterator[fw.Edit]:
        yield from edits.enforced_labels(added, node)
        affinity = self.args.added_affinity
        required = required_of(affinity)
        assert affinity is not None
        assert required is not None
        for text, other in edits.enforced_edits(added, required, node):
            less = structs.replace(
                affinity, required_during_scheduling_ignored_during_execution=other
            )
            args = structs.replace(self.args, added_affinity=less)
            amount = 1.0 if other is None else 0.0
            yield fw.Edit.of_args(text, self.name, args, family="addedAffinity", amount=amount)

    # --- events --------------------------------------------------------------------------------

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        required = RequiredNodeAffinity.by(pod)
        was_open = isinstance(old, core.Node) and self._admits(required, old)
        return isinstance(new, core.Node) and self._admits(required, new) and not was_open

    def _admits(self, required: RequiredNodeAffinity, node: core.Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        if self._added is not None and not self._added.matches(labels, name):
            return False
        return required.matches(labels, name)

    def _preferred(self, state: fw.CycleState, pod: fw.Pod) -> tuple[Preferred, ...]:
        found = state.get(PREFERRED)
        return self._preferred_by(pod) if found is None else found

    def _preferred_by(self, pod: fw.Pod) -> tuple[Preferred, ...]:
        return (*self._also_preferred, *compile_preferences(preferred_of(affinity_of(pod))))


def preferred_of(affinity: core.NodeAffinity | None) -> tuple[core.PreferredSchedulingTerm, ...]:
    if affinity is None:
        return ()
    return affinity.preferred_during_scheduling_ignored_during_execution


def compile_preferences(
    preferences: Iterable[core.PreferredSchedulingTerm],
) -> tuple[Preferred, ...]:
    """Parse the terms that have a weight; SelectorError if one of them is invalid."""
    weighted = (
        Preferred(p.weight, compile_term(p.preference, f"[{index}]"))
        for index, p in enumerate(preferences)
        if p.weight
    )
    parsed = tuple(preferred for preferred in weighted if not preferred.term.is_empty)
    errors = [problem for preferred in parsed for problem in preferred.term.errors]
    if errors:
        raise SelectorError.of(errors)
    return parsed


def named_nodes(selector: core.NodeSelector) -> frozenset[str] | None:
    """The nodes that the terms name; None if a term does not name any.

    A term's lists are intersected, because all its tests have to hold; those of terms are united.
    """
    names: set[str] = set()
    for term in selector.node_selector_terms:
        lists = [
            frozenset(test.values)
            for test in term.match_fields
            if test.key == NODE_NAME_FIELD and test.operator == "In"
        ]
        if not lists:
            return None
        names |= frozenset.intersection(*lists)
    return frozenset(names) if selector.node_selector_terms else None
