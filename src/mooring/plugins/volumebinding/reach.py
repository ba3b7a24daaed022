"""Whether nodes can reach a volume: its node affinity."""

import functools
from collections.abc import Mapping
from typing import Final

import numpy as np

import mooring.framework as fw
from mooring.api.placement import NodeSelector
from mooring.api.selectors import LabelRequirement, compile_node_selector
from mooring.plugins._node_requirements import meeting_all

_REMEMBERED: Final = 100_000  # affinities; a cluster of local disks has one per node


@functools.lru_cache(maxsize=_REMEMBERED)
def alternatives_of(required: NodeSelector) -> tuple[tuple[LabelRequirement, ...], ...]:
    """The terms of a volume's node affinity, as far as they are about labels.

    As volume.CheckNodeAffinity, which matches against a node without a name: tests of the name are
    ignored, even in a term that tests nothing else.
    """
    terms = compile_node_selector(required).terms
    return tuple(term.requirements for term in terms if not (term.errors or term.is_empty))


def is_reachable(required: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels meets a volume's node affinity."""
    return required is None or any(
        all(test.matches(labels) for test in tests) for tests in alternatives_of(required)
    )


def reachable(required: NodeSelector | None, nodes: fw.Nodes) -> fw.BoolArray:
    if required is None:
        return np.ones(len(nodes), dtype=np.bool_)
    found = np.zeros(len(nodes), dtype=np.bool_)
    for tests in alternatives_of(required):
        found |= meeting_all(nodes, tests)
    return found


class ReachableNodes:
    """The rows of the nodes from which a volume is reachable; for as many volumes as nodes.

    Local disks require one value of one label: nodes are sorted by that label once, and then each
    answer is a lookup.
    """

    def __init__(self, nodes: fw.Nodes) -> None:
        self._nodes = nodes
        self._everywhere = np.arange(len(nodes), dtype=np.int64)
        self._known: dict[NodeSelector, fw.IntArray] = {}
        self._by_value: dict[str, dict[str | None, fw.IntArray]] = {}

    def of(self, required: NodeSelector | None) -> fw.IntArray:
        if required is None:
            return self._everywhere
        alternatives = alternatives_of(required)
        if len(alternatives) == 1 and len(alternatives[0]) == 1:
            test = alternatives[0][0]
            if test.operator == "In":
                return self._having(test.key, test.values)
        found = self._known.get(required)
        if found is None:
            found = self._known[required] = np.flatnonzero(reachable(required, self._nodes))
        return found

    def _having(self, key: str, values: frozenset[str]) -> fw.IntArray:
        by_value = self._by_value.get(key)
        if by_value is None:
            by_value = self._by_value[key] = self._sorted(key)
        parts = [by_value[value] for value in values if value in by_value]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else self._everywhere[:0]

    def _sorted(self, key: str) -> dict[str | None, fw.IntArray]:
        codes, values = self._nodes.label_codes(key), self._nodes.label_values(key)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(values)), side="right").tolist()
        starts = [0, *ends]
        return {
            value: order[start:end]
            for value, start, end in zip(values, starts, ends, strict=False)
            if end > start
        }
