"""The scheduler decides as the plain walk does, whatever its cluster goes through.

`MOORING_DECISIONS=50000` compares that many decisions instead of a few thousand.
"""

from __future__ import annotations

import itertools
import os
import random
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final
from unittest import mock

import pytest
from tests.decision.lives import Life
from tests.decision.plain_walk import Walk
from tests.decision.profiles import CONFIGURATIONS, PLUGINS
from tests.decision.workloads import JOB_INDEX, SET_INDEX

import mooring.framework as fw
from mooring.cache.internals import changed_since, mark_of
from mooring.cache.snapshot import Mark
from mooring.runtime.profile import Profile
from mooring.scheduler.cycle import Decision
from mooring.simulator import Simulation

FEW: Final = 1_500
WANTED: Final = int(os.environ.get("MOORING_DECISIONS", FEW))
SEEDS: Final = range(3)
TURNS: Final = 18  # of one life
MANY: Final = 16  # nodes that changed between two pods of a workload
SHARE: Final = 0.25  # of the decisions that are compared, if nothing is special about them
SHARE_REFUSED: Final = 0.05  # likewise if no node is feasible: such pods are tried again and again
SHARE_BESIDE: Final = 0.7  # likewise if there are nominated pods

LEAST: Final = {
    "decided by class": 300,
    "after many changes": 30,
    "after changes of nodes": 50,
    "refused everywhere": 20,
    "taken without scores": 3,
    "tied": 50,
    "restricted": 3,
    "beside nominated pods": 10,
    "with a nominated node": 1,
    "with an index label": 10,
    "with an index label that rules are about": 2,
    "refused by TaintToleration": 20,
    "refused by NodeAffinity": 5,
    "refused by NodeResourcesFit": 50,
    "refused by PodTopologySpread": 10,
    "refused by InterPodAffinity": 3,
    "refused by Quota": 1,
    "scored by NodeAffinity": 2,
    "scored by PodTopologySpread": 2,
    "scored by InterPodAffinity": 10,
    "scored by Crowds": 20,
}
"""How many of the decisions compared for one seed must be of each kind, lest they prove little."""

Decide = Callable[[fw.CycleState, fw.Pod, fw.Nodes], Awaitable[Decision]]
See = Callable[[Profile, fw.Pod, fw.Nodes, Decision], str]


# --- where the scheduler is observed --------------------------------------------------------------


@contextmanager
def observed(sim: Simulation, see: See) -> Iterator[list[str]]:
    """Call `see` after each decision, before anything follows from it, and collect what it says.

    After, so that what `see` makes the plugins compute can't help the engine to decide. Exceptions
    are collected too, because the scheduler takes them for failed attempts.
    """
    problems: list[str] = []

    def shown(profile: Profile, decide: Decide) -> Decide:
        async def decide_and_show(state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> Decision:
            try:
                decision = await decide(state, pod, nodes)
                problem = see(profile, pod, nodes, decision)
            except Exception:
                problems.append(traceback.format_exc())
                raise
            if problem:
                problems.append(f"{pod.key}: {problem}")
            return decision

        return decide_and_show

    with ExitStack() as stack:
        for runtime in sim.scheduler.runtimes.values():
            decide = shown(runtime.profile, runtime.cycle.decide)
            stack.enter_context(mock.patch.object(runtime.cycle, "decide", decide))
        yield problems


def decided_by_class(sim: Simulation) -> int:
    return int(sim.scheduler.metrics.decisions.labels("class").value)


# --- the comparison -------------------------------------------------------------------------------


class Comparison:
    """Compares decisions in one life with the plain walk, and counts them by what is special."""

    def __init__(self, sim: Simulation, seed: int, counts: Counter[str]) -> None:
        self._counts = counts
        self._nominator = sim.scheduler.queue.nominator
        self._random = random.Random(seed)
        self._latest: dict[str, Mark] = {}  # by workload: when its latest pod was decided

    def see(self, profile: Profile, pod: fw.Pod, nodes: fw.Nodes, decision: Decision) -> str:
        """How a decision differs from the walk's, if it is compared; "" if it does not."""
        workload = pod.name.rpartition("-")[0]
        before = self._latest.get(workload)
        self._latest[workload] = mark_of(nodes)
        changed = changed_since(nodes, before) if before is not None else None
        is_after_many = changed is not None and len({*changed.pods, *changed.nodes}) > MANY
        has_other_nodes = changed is not None and bool(changed.nodes)
        nominator = self._nominator
        nominated = {name: nominator.nominated_on(name) for name in nominator.nominated_nodes()}
        share = SHARE if decision.status.ok else SHARE_REFUSED
        share = SHARE_BESIDE if nominated else share
        if not (is_after_many or has_other_nodes) and self._random.random() > share:
            return ""
        walk = Walk(profile, fw.CycleState(), pod, nodes, nominated)
        self._counts.update(kinds_of(walk))
        self._counts["after many changes"] += is_after_many
        self._counts["after changes of nodes"] += has_other_nodes
        return difference(walk, decision)


def difference(walk: Walk, decision: Decision) -> str:
    """What is not as it should be; "" if all is."""
    status = decision.status
    if is_known_to_differ(walk):
        return "" if status.rejected else f"expected a refusal, got {decision.node_name!r}"
    if walk.status.ok:
        expected = f"{walk.chosen}, one of {len(walk.feasible)}"
        got = f"{decision.node_name}, one of {decision.found}"
        if not status.ok or got != expected:
            return f"expected {expected} (best: {walk.best}), got {got} {status.message}"
        return ""
    if not walk.status.rejected:
        expected, got = f"error: {walk.status.message}", f"{status.code.name}: {status.message}"
        return "" if got.lower() == expected.lower() else f"expected {expected}, got {got}"
    expected_message, plugins = walk.status.message, frozenset[str]()
    if decision.diagnosis is not None:
        plugins = decision.diagnosis.unschedulable_plugins
    # What PostFilter says comes behind.
    if not f"{status.message} ".startswith(f"{expected_message} "):
        return f"expected {expected_message!r}, got {status.message!r}"
    if plugins != walk.rejectors:
        return f"expected rejection by {sorted(walk.rejectors)}, got {sorted(plugins)}"
    return "" if status.rejected and not decision.node_name else f"expected refusal, got {status}"


def is_known_to_differ(walk: Walk) -> bool:
    """Whether a pod does not fit on its nominated node, and PreFilter excludes some nodes.

    kube-scheduler names the plugin that refused the nominated node among those that the excluded
    nodes did not satisfy, and if the node is one of these, it keeps its own reason: "1 node(s)
    didn't satisfy plugin(s) [NodeAffinity TaintToleration], 1 node(s) had untolerated taint(s)".
    The message of mooring is "2 node(s) didn't satisfy plugin(s) [NodeAffinity]".
    """
    is_restricted = walk.status.rejected and walk.only is not None
    return is_restricted and walk.pod.nominated_node_name in walk.refusals


def kinds_of(walk: Walk) -> Iterator[str]:
    """What is special about an attempt."""
    yield "compared"
    for plugin in walk.rejectors:
        yield f"refused by {plugin}"
    for plugin in walk.normalized:
        yield f"scored by {plugin}"
    if walk.status.rejected:
        yield "refused everywhere"
    if walk.restricting:
        yield "restricted"
    if len(walk.best) > 1:
        yield "tied"
    if len(walk.feasible) == 1:
        yield "taken without scores"
    if walk.pod.nominated_node_name:
        yield "with a nominated node"
    if not {JOB_INDEX, SET_INDEX}.isdisjoint(walk.pod.labels):
        yield "with an index label"
        if "InterPodAffinity" in walk.rejectors | walk.raw.keys() and not walk.pod.spec.affinity:
            yield "with an index label that rules are about"
    if is_known_to_differ(walk):
        yield "known to differ"
    if any(
        other.priority >= walk.pod.priority and other.uid != walk.pod.uid
        for others in walk.nominated.values()
        for other in others
    ):
        yield "beside nominated pods"


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_decides_as_the_plain_walk(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()
    numbers = itertools.count(1_000_000 * seed)
    while counts["lives"] < len(CONFIGURATIONS) or counts["compared"] < WANTED // len(SEEDS):
        before = counts["compared"]
        live(next(numbers), counts)
        counts["lives"] += 1
        if WANTED > FEW and counts["compared"] // 1_000 > before // 1_000:
            with capsys.disabled():
                print(f"seed {seed}: {counts['compared']} decisions compared")
    print(counts)
    assert {kind: counts[kind] for kind, least in LEAST.items() if counts[kind] < least} == {}


def live(number: int, counts: Counter[str]) -> None:
    """Go through one life; every fifth is that of a small cluster."""
    config = CONFIGURATIONS[number % len(CONFIGURATIONS)]
    with Simulation(config=config, plugins=PLUGINS, seed=number, keep_attempts=False) as sim:
        comparison = Comparison(sim, number, counts)
        life = Life(sim, number, is_large=number % 5 != 4)
        with observed(sim, comparison.see) as problems:
            for turn in range(TURNS):
                life.turn()
                assert not problems, "\n".join((f"life {number}, turn {turn}:", *problems[:3]))
        counts["decided by class"] += decided_by_class(sim)
