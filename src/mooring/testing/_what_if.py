"""The check of what-ifs: a pod hypothetically added to a node or removed, as in preemption."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.framework.plugin import Filter
from mooring.framework.state import CycleState
from mooring.testing._bench import Answers, Bench, expect_same
from mooring.testing._check import on_every_case

_TRIES: Final = 2  # removed pods, and added pods, per case


@on_every_case(Filter)
def check_what_ifs_hold(bench: Bench) -> None:
    """After `add_pod` and `remove_pod` the filter answers as if the pod had been there, or not."""
    answers, dice, residents = bench.evaluate(), bench.dice, bench.case.cluster.residents
    if not answers.statuses or bench.plugin.name in answers.state.skip_filter:
        return
    if answers.only is not None:
        answers = answers.of(answers.only)
    hosts = [node for node in bench.cache.nodes if node.name in answers.statuses]
    what_if, pod, state = bench.evaluator.what_if, bench.case.pod, answers.state
    before = _hypothetical(bench, answers, state, hosts)
    # Terminating pods may be counted either way.
    homes = [(node, one) for node in hosts for one in node.pods if not one.is_terminating]
    for node, removed in dice.sample(homes, min(_TRIES, len(homes))):
        changed, thought = node.without_pod(removed), state.clone()
        if what_if.remove_pod(thought, pod, removed, changed).ok:
            found = _hypothetical(bench, answers, thought, hosts, changed)
            kept = (one for one in residents if one.uid != removed.uid)
            words = f"without pod {removed.key} on node {node.name}"
            _compare_with_fact(bench, found, kept, words)
    others = [one for one in bench.case.bystanders if not one.is_terminating]
    for node in dice.sample(hosts, min(_TRIES, len(hosts)) if others else 0):
        added = dice.choice(others).assumed_on(node.name)
        changed, thought = node.with_pod(added), state.clone()
        words = f"with pod {added.key} added to node {node.name}"
        if not what_if.add_pod(thought, pod, added, changed).ok:
            continue
        found = _hypothetical(bench, answers, thought, hosts, changed)
        _compare_with_fact(bench, found, (*residents, added), words)
        changed = changed.without_pod(added)
        if what_if.remove_pod(thought, pod, added, changed).ok:
            found = _hypothetical(bench, answers, thought, hosts, changed)
            expect_same(found, before, f"{words} and removed again", "before")
    after = _hypothetical(bench, answers, state, hosts)
    expect_same(after, before, "after what-ifs on clones of the state", "before")


def _compare_with_fact(bench: Bench, found: Answers, residents: Iterable[Pod], words: str) -> None:
    """Compare the what-if with a cluster that really has the change."""
    case = bench.case.with_cluster(residents=tuple(residents))
    fact = bench.per_node(case).evaluate()
    common = found.statuses.keys() & (fact.statuses.keys() if fact.only is None else fact.only)
    expected = found._replace(statuses=fact.of(common).statuses)
    expect_same(found.of(common), expected.of(common), f"in a what-if {words}", "when that is so")


def _hypothetical(
    bench: Bench,
    answers: Answers,
    state: CycleState,
    hosts: list[Node],
    instead: Node | None = None,
) -> Answers:
    """The results of `filter` on each node with this state; one node may be hypothetical."""
    statuses = {}
    for node in hosts:
        if instead is not None and node.name == instead.name:
            node = instead
        statuses[node.name] = bench.evaluator.what_if.filter_node(state, bench.case.pod, node)
        bench.expect_no_failure(statuses[node.name])
    return answers._replace(statuses=statuses)
