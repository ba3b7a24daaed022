"""The order of the queue."""

import itertools

import pytest

from mooring.framework import QueuedPod
from mooring.plugins.prioritysort import PrioritySort
from mooring.testing.build import build
from mooring.testing.builders import pod


def queued(priority: int | None, timestamp: float) -> QueuedPod:
    return QueuedPod(pod(priority=priority), timestamp)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(queued(10, 5.0), queued(1, 1.0), id="higher priority, though later"),
        pytest.param(queued(5, 1.0), queued(5, 2.0), id="earlier of two equals"),
        pytest.param(queued(1, 9.0), queued(None, 1.0), id="no priority counts as 0"),
        pytest.param(queued(None, 9.0), queued(-1, 1.0), id="0 is above negative"),
    ],
)
def test_puts_first(first: QueuedPod, second: QueuedPod) -> None:
    sort = build(PrioritySort)
    assert sort.less(first, second)
    assert not sort.less(second, first)


def test_treats_equals_as_equal() -> None:
    sort = build(PrioritySort)
    assert not sort.less(queued(0, 1.0), queued(None, 1.0))
    assert not sort.less(queued(None, 1.0), queued(0, 1.0))


def test_its_key_sorts_as_less_does() -> None:
    sort = build(PrioritySort)
    everybody = [queued(p, t) for p in (None, -5, 0, 7, 2_000_000_000) for t in (0.5, 1.0, 1.5)]
    for a, b in itertools.product(everybody, repeat=2):
        assert sort.less(a, b) == (sort.sort_key(a) < sort.sort_key(b))
