"""What-ifs: a pod added to a node in thought, or taken away, as preemption and nominations do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.framework.plugin import Filter, PreFilter
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.testing._attempt import Attempt, Case, Fault, Trial, asking, describe, expect_status
from mooring.testing._check import on_every_case
from mooring.testing._compare import compare_statuses

_TRIES: Final = 2  # pods taken away, and pods added, per case


@on_every_case(Filter)
def check_what_ifs_hold(trial: Trial) -> None:
    """After `add_pod` and `remove_pod` the filter answers as if the pod had been there, or not."""
    attempt = trial.bench().attempt()
    if not attempt.prepare_filter():
        return
    before = _answers(attempt, attempt.state, {})
    dice = trial.dice
    # Pods that are leaving already may be counted either way.
    homes = [
        (node, pod) for node in attempt.candidates for pod in node.pods if not pod.is_terminating
    ]
    for node, removed in dice.sample(homes, min(_TRIES, len(homes))):
        _remove(trial, attempt, node, removed)
    hosts = list(attempt.candidates)
    others = [pod for pod in trial.case.bystanders if not pod.is_terminating]
    for node in dice.sample(hosts, min(_TRIES, len(hosts)) if others else 0):
        _add(trial, attempt, node, dice.choice(others).assumed_on(node.name))
    untold = "after what-ifs on clones of the state", "before"
    compare_statuses(_answers(attempt, attempt.state, {}), before, *untold)


def _remove(trial: Trial, attempt: Attempt, node: Node, removed: Pod) -> None:
    state = attempt.state.clone()
    without = node.without_pod(removed)
    what = f"without pod {removed.key} on node {node.name}"
    if _told(attempt, "remove_pod", state, removed, without):
        old = trial.case.cluster.residents
        kept = tuple(pod for pod in old if pod.uid != removed.uid)
        _compare_with_fact(trial, attempt, state, without, kept, what)


def _add(trial: Trial, attempt: Attempt, node: Node, added: Pod) -> None:
    state = attempt.state.clone()
    before = _answers(attempt, state, {})
    with_it = node.with_pod(added)
    what = f"with pod {added.key} added to node {node.name}"
    if _told(attempt, "add_pod", state, added, with_it):
        more = (*trial.case.cluster.residents, added)
        _compare_with_fact(trial, attempt, state, with_it, more, what)
        again = with_it.without_pod(added)
        if _told(attempt, "remove_pod", state, added, again):
            back = _answers(attempt, state, {node.name: again})
            compare_statuses(back, before, f"{what} and removed again", "before")


def _told(attempt: Attempt, method: str, state: CycleState, pod: Pod, node: Node) -> bool:
    """Tell the plugin, as a scheduler would: the node has changed already."""
    if not isinstance(attempt.plugin, PreFilter):
        return True
    tell: Callable[..., object] = getattr(attempt.plugin, method)
    with asking(method, node.name):
        answer = tell(state, attempt.pod, pod, node)
    status = expect_status(answer, f"{method}()")
    if status.rejected:
        raise Fault(f"{method}() returned {describe(status)}, expected OK or an error")
    return status.ok


def _compare_with_fact(
    trial: Trial,
    attempt: Attempt,
    state: CycleState,
    changed: Node,
    residents: tuple[Pod, ...],
    what: str,
) -> None:
    """The thought against a cluster where it is so."""
    case: Case = trial.case.with_cluster(residents=residents)
    fact = trial.bench(case).attempt(per_node=True)
    is_asked = fact.prepare_filter()
    if not is_asked and not fact.pre_filter_passed:
        return
    common = {node.name for node in fact.candidates} & set(attempt.candidates.names)
    thought = _answers(attempt, state, {changed.name: changed})
    expected = fact.filter(fact.candidates) if is_asked else dict.fromkeys(common, OK)
    compare_statuses(
        {name: thought[name] for name in common},
        {name: expected[name] for name in sorted(common)},
        f"in thought {what}",
        "when that is so",
    )


def _answers(attempt: Attempt, state: CycleState, instead: dict[str, Node]) -> dict[str, Status]:
    """What `filter` says of each node with this state; some nodes are changed in thought."""
    kept, attempt.state = attempt.state, state
    try:
        nodes = (instead.get(node.name, node) for node in attempt.candidates)
        return {node.name: attempt.filter_one(node) for node in nodes}
    finally:
        attempt.state = kept
