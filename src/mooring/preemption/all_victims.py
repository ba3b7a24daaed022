"""The victims on many nodes at once: what `victims` does for one node, for all in the same order.

Every node gets a pod back in thought, then every node the next one, and after each the filters are
asked about all of them in one call. Where they can't be, it goes node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.results import Candidate
from mooring.framework.status import Status
from mooring.preemption.victims import NO_VICTIMS, Question, find_victims

Found: TypeAlias = list[Candidate | Status]


def find_all_victims(question: Question, nodes: Nodes, rows: Sequence[int]) -> Found:
    """What `find_victims` says of each of these rows."""
    if not rows:
        return []
    found = _find(question, nodes, rows)
    return [find_victims(question, nodes[row]) for row in rows] if found is None else found


def _find(question: Question, nodes: Nodes, rows: Sequence[int]) -> Found | None:
    """None: the filters have to be asked node by node."""
    question.ranks.keep(len(nodes))
    budgets = [question.budgets.split(question.ranked(nodes[row])) for row in rows]
    turns = [(*protected, *free) if protected else free for protected, free in budgets]
    state, pod, what_if = question.state.clone(), question.pod, question.what_if
    hypothetical = what_if.without_pods(state, pod, nodes, rows, turns)
    verdicts = None if hypothetical is None else what_if.fits_all(state, pod, hypothetical)
    if hypothetical is None or verdicts is None:
        return None
    state.skip_filter.update(question.fixed)  # only pods will come and go from here on
    counts = np.array([len(pods) for pods in turns])
    fitting = verdicts.passed & (counts > 0)
    victims: list[list[Pod]] = [[] for _ in turns]
    broken = [0] * len(turns)
    for turn in range(int(counts[fitting].max(initial=0))):
        places = np.flatnonzero(fitting & (counts > turn))
        hypothetical.put_back(places, turn)
        again = what_if.fits_all(state, pod, hypothetical)
        if again is None:
            return None
        refused = places[~again.passed[places]]
        hypothetical.take_away(refused, turn)
        for place in refused.tolist():
            victims[place].append(turns[place][turn])
            broken[place] += turn < len(budgets[place][0])
    found: Found = []
    for place, name in enumerate(hypothetical.names):
        if not turns[place]:
            found.append(NO_VICTIMS)
        elif not fitting[place]:
            found.append(verdicts.status(place))
        else:
            found.append(question.candidate(name, victims[place], broken[place]))
    return found
