import copy

import pytest
from tests.queue.builders import START, PriorityLess, PriorityOrder, pod

from mooring.framework.plugin import QueueSort
from mooring.framework.results import QueuedPod
from mooring.queue.active import ActiveQueue, order_by

SORTS = pytest.mark.parametrize("sort", [PriorityOrder(), PriorityLess()], ids=["key", "less"])


def queued(name: str, priority: int = 0, at: float = START) -> QueuedPod:
    return QueuedPod(pod(name, priority=priority), at)


def names(active: ActiveQueue) -> list[str]:
    taken = []
    while (item := active.pop()) is not None:
        taken.append(item.pod.name)
    return taken


@SORTS
def test_follows_the_sort_plugin(sort: QueueSort) -> None:
    active = ActiveQueue(order_by(sort))
    for item in (queued("late", at=START + 1), queued("early"), queued("important", 9, START + 2)):
        active.add(item, START)
    assert names(active) == ["important", "early", "late"]


@SORTS
def test_leaves_ties_in_order_of_arrival(sort: QueueSort) -> None:
    active = ActiveQueue(order_by(sort))
    for name in ("c", "a", "b"):
        active.add(queued(name), START)
    assert names(active) == ["c", "a", "b"]


@SORTS
def test_finds_a_new_place_for_a_pod_whose_priority_changed_under_it(sort: QueueSort) -> None:
    active = ActiveQueue(order_by(sort))
    items = [queued(name, priority) for name, priority in (("a", 5), ("b", 4), ("c", 3), ("d", 2))]
    for item in items:
        active.add(item, START)
    items[0].pod = pod("a", priority=1)
    active.replace(items[0])
    items[3].pod = pod("d", priority=6)
    active.replace(items[3])
    assert names(active) == ["d", "b", "c", "a"]


def test_remembers_when_a_pod_first_became_active() -> None:
    active = ActiveQueue(order_by(PriorityOrder()))
    item = queued("a")
    active.add(item, START + 5)
    active.pop()
    active.add(item, START + 9)
    assert item.first_attempt_at == START + 5


def test_a_copy_knows_all_there_is_to_know_of_a_pod() -> None:
    known = {name: object() for name in QueuedPod.__slots__}
    one = queued("a")
    for name, value in known.items():
        setattr(one, name, value)
    other = copy.copy(one)
    assert other is not one
    assert {name: getattr(other, name) for name in QueuedPod.__slots__} == known
