"""The victims on many nodes at once; the result is that of `victims`, node by node.

One pod is added back to every hypothetical node, and the filters run on all nodes in one call; then
the next pod is added back, and so on. If filters can't do that, and for a few nodes, the search
goes node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.results import Candidate
from mooring.framework.status import Status
from mooring.preemption.ranks import RankedPods
from mooring.preemption.victims import NO_VICTIMS, PreemptionRequest, find_victims

Found: TypeAlias = list[Candidate | Status]

FEW_NODES: Final = 4
"""A call for many nodes costs as much as calls for five to eight, one by one."""


def find_all_victims(
    request: PreemptionRequest, nodes: Nodes, rows: Sequence[int], ranked: Sequence[RankedPods]
) -> Found:
    """The result of each of these rows, in order; `ranked` are the pods of each."""
    found = None if len(rows) <= FEW_NODES else _find(request, nodes, rows, ranked)
    return [find_victims(request, nodes[row]) for row in rows] if found is None else found


def _find(
    request: PreemptionRequest, nodes: Nodes, rows: Sequence[int], ranked: Sequence[RankedPods]
) -> Found | None:
    """None: the filters have to run node by node."""
    splits = [request.split(pods) for pods in ranked]
    to_reprieve = [
        (*violating, *non_violating) if violating else non_violating
        for violating, non_violating in splits
    ]
    state, pod, what_if = request.state.clone(), request.pod, request.what_if
    imagined = what_if.without_pods(state, pod, nodes, rows, to_reprieve)
    verdicts = None if imagined is None else what_if.fits_all(state, pod, imagined)
    if imagined is None or verdicts is None:
        return None
    state.skip_filter.update(request.fixed)  # from here on, only pods change
    counts = np.array([len(pods) for pods in to_reprieve])
    fitting = verdicts.passed & (counts > 0)
    victims: list[list[Pod]] = [[] for _ in to_reprieve]
    violations = [0] * len(to_reprieve)
    for index in range(int(counts[fitting].max(initial=0))):
        places = np.flatnonzero(fitting & (counts > index))
        imagined.put_back(places, index)
        again = what_if.fits_all(state, pod, imagined)
        if again is None:
            return None
        refused = places[~again.passed[places]]
        imagined.take_away(refused, index)
        for place in refused.tolist():
            victims[place].append(to_reprieve[place][index])
            violations[place] += index < len(splits[place][0])
    found: Found = []
    for place, name in enumerate(imagined.names):
        if not to_reprieve[place]:
            found.append(NO_VICTIMS)
        elif not fitting[place]:
            found.append(verdicts.status(place))
        else:
            found.append(request.candidate(name, victims[place], violations[place]))
    return found
