"""What-ifs: a pod added to a node in thought, or taken away, as preemption and nominations do."""

from __future__ import annotations

from typing import Final

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.framework.plugin import Filter
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.testing._bench import Answers, Bench, Trial, expect_same, per_node
from mooring.testing._check import on_every_case

_TRIES: Final = 2  # pods taken away, and pods added, per case


@on_every_case(Filter)
def check_what_ifs_hold(trial: Trial) -> None:
    """After `add_pod` and `remove_pod` the filter answers as if the pod had been there, or not."""
    bench = trial.bench()
    answers, dice = bench.evaluate(), trial.dice
    if not answers.statuses or bench.plugin.name in answers.state.skip_filter:
        return
    hosts = [
        node for node in bench.cache.nodes if answers.only is None or node.name in answers.only
    ]
    before = _imagined(bench, answers, answers.state, hosts)
    # Pods that are leaving already may be counted either way.
    homes = [(node, pod) for node in hosts for pod in node.pods if not pod.is_terminating]
    for node, removed in dice.sample(homes, min(_TRIES, len(homes))):
        _remove(trial, bench, answers, hosts, node, removed)
    others = [pod for pod in trial.case.bystanders if not pod.is_terminating]
    for node in dice.sample(hosts, min(_TRIES, len(hosts)) if others else 0):
        added = dice.choice(others).assumed_on(node.name)
        _add(trial, bench, before, hosts, node, added)
    after = _imagined(bench, answers, answers.state, hosts)
    expect_same(after, before, "after what-ifs on clones of the state", "before")


def _remove(
    trial: Trial, bench: Bench, answers: Answers, hosts: list[Node], node: Node, removed: Pod
) -> None:
    state, without = answers.state.clone(), node.without_pod(removed)
    if bench.evaluator.what_if.remove_pod(state, trial.case.pod, removed, without).ok:
        thought = _imagined(bench, answers, state, hosts, without)
        kept = [pod for pod in trial.case.cluster.residents if pod.uid != removed.uid]
        _compare_with_fact(trial, thought, kept, f"without pod {removed.key} on node {node.name}")


def _add(
    trial: Trial, bench: Bench, before: Answers, hosts: list[Node], node: Node, added: Pod
) -> None:
    state, what_if, pod = before.state.clone(), bench.evaluator.what_if, trial.case.pod
    with_it = node.with_pod(added)
    what = f"with pod {added.key} added to node {node.name}"
    if not what_if.add_pod(state, pod, added, with_it).ok:
        return
    thought = _imagined(bench, before, state, hosts, with_it)
    _compare_with_fact(trial, thought, [*trial.case.cluster.residents, added], what)
    again = with_it.without_pod(added)
    if what_if.remove_pod(state, pod, added, again).ok:
        back = _imagined(bench, before, state, hosts, again)
        expect_same(back, before, f"{what} and removed again", "before")


def _compare_with_fact(trial: Trial, thought: Answers, residents: list[Pod], what: str) -> None:
    """The thought against a cluster where it is so."""
    case = trial.case.with_cluster(residents=tuple(residents))
    fact = trial.bench(case, per_node(trial.plugin_class)).evaluate()
    common = thought.statuses.keys() & fact.statuses.keys()
    if fact.only is not None:
        common &= fact.only
    statuses = [
        {name: answers.statuses[name] for name in sorted(common)} for answers in (thought, fact)
    ]
    found, expected = (thought._replace(statuses=one) for one in statuses)
    expect_same(found, expected, f"in thought {what}", "when that is so")


def _imagined(
    bench: Bench,
    answers: Answers,
    state: CycleState,
    hosts: list[Node],
    instead: Node | None = None,
) -> Answers:
    """What `filter` says of each node with this state; one node may be changed in thought."""
    statuses: dict[str, Status] = {}
    for node in hosts:
        if instead is not None and node.name == instead.name:
            node = instead
        filtered = bench.evaluator.what_if.filter_node(state, bench.case.pod, node)
        bench.expect_no_failure(filtered)
        statuses[node.name] = filtered
    return answers._replace(statuses=statuses)
