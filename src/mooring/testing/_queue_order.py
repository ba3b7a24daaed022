"""The check of a QueueSort plugin: whether `less` is a strict weak order."""

from __future__ import annotations

import itertools
import operator
from typing import Any, Final

from mooring.framework.plugin import QueueSort
from mooring.framework.results import QueuedPod
from mooring.testing._bench import Bench, Fault, show
from mooring.testing._check import on_every_case
from mooring.testing.build import START

_PODS: Final = 7


@on_every_case(QueueSort)
def check_queue_order(bench: Bench) -> None:
    """`less` is a strict weak order, and `sort_key`, if there is one, sorts the same way."""
    queued = _queue(bench)
    less = {(i, j): _less(bench, a, b) for i, a in enumerate(queued) for j, b in enumerate(queued)}
    names = [_describe(item) for item in queued]
    for i, name in enumerate(names):
        if less[i, i]:
            raise Fault(f"less() puts {name} before itself")
    for i, j, k in itertools.product(range(len(queued)), repeat=3):
        if less[i, j] and less[j, k] and not less[i, k]:
            chain = f"{names[i]} before {names[j]} before {names[k]}"
            raise Fault(f"less() puts {chain}, but not the first before the last")
        if not (less[i, j] or less[j, i] or less[j, k] or less[k, j]) and less[i, k]:
            tie = f"{names[i]} level with {names[j]}, and that with {names[k]}"
            raise Fault(f"less() puts {tie}, but the first before the last")
    _compare_keys(bench, queued, less)


def _queue(bench: Bench) -> list[QueuedPod]:
    case, dice = bench.case, bench.dice
    pods = [case.pod, *case.bystanders, *case.cluster.residents]
    queued = []
    for pod in pods[:_PODS]:
        item = QueuedPod(pod, START + dice.choice((0.0, 0.5, 60.0)))
        item.attempts = dice.choice((0, 1, 5))
        item.first_attempt_at = dice.choice((None, START, item.timestamp))
        queued.append(item)
    # Pods of one priority and time as well, because orders often fail on ties.
    queued.append(QueuedPod(pods[0], queued[0].timestamp))
    return queued


def _less(bench: Bench, a: QueuedPod, b: QueuedPod) -> bool:
    assert isinstance(bench.plugin, QueueSort)
    answer: object = bench.call(bench.plugin.less, a, b)
    if not isinstance(answer, bool):
        raise Fault(f"less() returned {show(answer)}, expected a bool")
    return answer


def _compare_keys(bench: Bench, queued: list[QueuedPod], less: dict[tuple[int, int], bool]) -> None:
    assert isinstance(bench.plugin, QueueSort)
    keys: list[Any] = [bench.call(bench.plugin.sort_key, item) for item in queued]
    if all(key is None for key in keys):
        return
    for (i, j), is_less in less.items():
        by_key = bool(bench.call(operator.lt, keys[i], keys[j], what="comparing sort_key()"))
        if by_key != is_less:
            a, b = _describe(queued[i]), _describe(queued[j])
            texts = f"{show(keys[i])} < {show(keys[j])} is {by_key}"
            raise Fault(f"less({a}, {b}) is {is_less}, but by sort_key() {texts}")


def _describe(item: QueuedPod) -> str:
    waited = item.timestamp - START
    return f"{item.pod.key} (priority {item.pod.priority}, queued at {waited:+g}s)"
