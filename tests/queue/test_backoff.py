import pytest
from tests.queue.builders import START, PriorityOrder, pod

from mooring.framework.results import QueuedPod
from mooring.queue.active import order_by
from mooring.queue.backoff import BackoffQueue, backoff_duration
from mooring.queue.options import QueueOptions


def failed(
    name: str, *, refused: int = 0, errors: int = 0, at: float = START, priority: int = 0
) -> QueuedPod:
    queued = QueuedPod(pod(name, priority=priority), at)
    queued.unschedulable_count = refused
    queued.consecutive_errors = errors
    queued.unschedulable_plugins = frozenset() if errors else frozenset({"Fit"})
    return queued


def backoff_of(*items: QueuedPod, options: QueueOptions | None = None) -> BackoffQueue:
    backoff = BackoffQueue(order_by(PriorityOrder()), options or QueueOptions())
    for item in items:
        backoff.add(item)
    return backoff


@pytest.mark.parametrize(
    ("refused", "errors", "seconds"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 2),
        (3, 0, 4),
        (4, 0, 8),
        (5, 0, 10),
        (6, 0, 10),
        (5000, 0, 10),
        (5, 1, 1),  # errors in a row count for themselves
        (0, 3, 4),
    ],
)
def test_waits_twice_as_long_each_time_up_to_the_most(
    refused: int, errors: int, seconds: float
) -> None:
    assert backoff_duration(failed("p", refused=refused, errors=errors), QueueOptions()) == seconds


@pytest.mark.parametrize(
    ("initial", "most", "count", "seconds"),
    [(1, 0, 3, 0), (5, 3, 1, 3), (3, 12, 3, 12), (3, 12, 4, 12), (0.5, 10, 2, 1)],
)
def test_follows_its_options(initial: float, most: float, count: int, seconds: float) -> None:
    options = QueueOptions(initial_backoff=initial, max_backoff=most)
    assert backoff_duration(failed("p", refused=count), options) == seconds


@pytest.mark.parametrize(
    ("failed_at", "asked_at", "backs_off"),
    [
        (0.0, 0.5, True),
        (0.0, 1.0, True),  # the second in which it ends still counts
        (0.0, 1.999, True),
        (0.0, 2.0, False),
        (0.9, 1.9, True),  # 1.9 is cut to 1
        (0.9, 2.0, False),
    ],
)
def test_counts_in_whole_seconds(failed_at: float, asked_at: float, backs_off: bool) -> None:
    queued = failed("p", refused=1, at=START + failed_at)
    assert backoff_of().is_backing_off(queued, START + asked_at) is backs_off


def test_never_holds_back_a_pod_that_has_not_failed() -> None:
    assert not backoff_of().is_backing_off(failed("p"), START)


def test_never_holds_back_anything_when_the_most_is_zero() -> None:
    backoff = backoff_of(options=QueueOptions(max_backoff=0))
    assert not backoff.is_backing_off(failed("p", refused=3), START)


def test_gives_back_exactly_those_whose_time_has_come() -> None:
    backoff = backoff_of(
        failed("a", refused=1), failed("b", refused=2), failed("e", errors=1), failed("f", errors=3)
    )
    assert not list(backoff.pop_completed(START + 1.9))
    assert [q.pod.name for q in backoff.pop_completed(START + 2)] == ["a", "e"]
    assert [q.pod.name for q in backoff.pop_completed(START + 60)] == ["b", "f"]
    assert not len(backoff)


def test_orders_refused_pods_of_one_second_by_the_sort_plugin() -> None:
    backoff = backoff_of(
        failed("low", refused=1, at=START + 0.1),
        failed("high", refused=1, at=START + 0.8, priority=9),
        failed("later", refused=2, priority=99),
    )
    taken = [backoff.pop_refused() for _ in range(3)]
    assert [q.pod.name for q in taken if q is not None] == ["high", "low", "later"]


def test_never_gives_an_error_early() -> None:
    backoff = backoff_of(failed("e", errors=1))
    assert backoff.pop_refused() is None
    assert "ns/e" in backoff


def test_keeps_a_changed_pod_in_its_heap_and_finds_its_place() -> None:
    low, other = failed("low", refused=1), failed("other", refused=1, priority=5)
    backoff = backoff_of(low, other, failed("e", errors=1))
    low.pod = pod("low", priority=9)
    backoff.replace(low)
    assert len(backoff) == 3
    assert backoff.pop_refused() is low


def test_lets_go_of_a_pod_by_name() -> None:
    refused, error = failed("a", refused=1), failed("e", errors=1)
    backoff = backoff_of(refused, error)
    assert backoff.remove("ns/a") is refused
    assert backoff.remove("ns/e") is error
    assert backoff.remove("ns/e") is None
    assert len(backoff) == 0
