"""Affinity on hypothetical nodes: as `AffinityCounts.counting` for one node, for many at once.

In each of these what-ifs one node has other pods than it has. So the pods in its domains are those
that the cache counted, and what is different on that node.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

import mooring.framework as fw
from mooring.cache.hypothetical import HypotheticalNodes
from mooring.plugins.interpodaffinity.counts import AffinityCounts, DomainCounts
from mooring.plugins.interpodaffinity.terms import AffinityTerm, all_include, terms_of


class HypotheticalCounts:
    """The three tests of `AffinityCounts` for `pod`, on nodes that differ in their pods.

    The counts are those of the cluster as it is: without hypothetical pods of their own.
    """

    def __init__(self, counts: AffinityCounts, pod: fw.Pod, nodes: HypotheticalNodes) -> None:
        self._counts = counts
        self._pod = pod
        self._nodes = nodes

    def violate_affinity(self) -> fw.BoolArray:
        matched, nodes = self._counts.matched, self._nodes
        refused = np.zeros(len(nodes), dtype=np.bool_)
        if not self._counts.affinity:
            return refused
        terms = matched.affinity_terms
        change = self._change(("affinity", terms), lambda other: all_include(terms, other))
        is_unmatched = refused.copy()
        is_first = np.full(len(nodes), matched.matches_own_affinity)
        for domains in self._counts.affinity:
            codes = nodes.label_codes(domains.key)
            refused |= codes == 0
            is_unmatched |= domains.changed_by(codes, change) <= 0
            is_first &= np.where(codes, change, 0) + domains.total() == 0
        refused |= is_unmatched & ~is_first
        return refused

    def violate_anti_affinity(self) -> fw.BoolArray:
        refused = np.zeros(len(self._nodes), dtype=np.bool_)
        for peers, domains in self._counts.anti_affinity:
            refused |= self._have_some(domains, self._change(peers, peers.include))
        return refused

    def violate_existing_anti_affinity(self) -> fw.BoolArray:
        existing = self._counts.existing_anti_affinity
        moving = self._nodes.kept("terms about the pod", self._moving_terms)
        refused = np.zeros(len(self._nodes), dtype=np.bool_)
        for term in {*existing, *moving}:
            domains = existing.get(term) or DomainCounts(term.topology_key)
            if term in moving:
                change = self._change(term, partial(_times, term))
            else:
                change = np.zeros(len(self._nodes), dtype=np.int64)
            refused |= self._have_some(domains, change)
        return refused

    def _moving_terms(self) -> frozenset[AffinityTerm]:
        """The anti-affinity terms of pods that come or go, as far as they select this pod."""
        labels = self._counts.matched.namespace_labels
        terms = {it for other in self._nodes.moving_pods() for it in terms_of(other).anti_affinity}
        return frozenset(term for term in terms if term.peers.include(self._pod, labels))

    def _have_some(self, domains: DomainCounts, change: fw.IntArray) -> fw.BoolArray:
        codes = self._nodes.label_codes(domains.key)
        found: fw.BoolArray = domains.changed_by(codes, change) > 0
        return found

    def _change(self, key: object, amount: Callable[[fw.Pod], int]) -> fw.IntArray:
        return self._nodes.change(("InterPodAffinity", key), amount)


def _times(term: AffinityTerm, pod: fw.Pod) -> int:
    return terms_of(pod).anti_affinity.count(term)
