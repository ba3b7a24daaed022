import pytest

from mooring.framework.results import QueuedPod
from mooring.observe.metrics import Metrics
from mooring.scheduler.counting import AttemptCounts
from mooring.testing import pod


def bound(attempts: int, *, first: float | None = 10.0, flushed: bool = False) -> QueuedPod:
    queued = QueuedPod(pod("p"), 0.0)
    queued.attempts, queued.first_attempt_at, queued.was_flushed = attempts, first, flushed
    return queued


def test_counts_attempts_by_result_and_profile() -> None:
    metrics = Metrics()
    counts = AttemptCounts(metrics)
    assert not len(metrics.schedule_attempts)  # what never happened is not shown as zero
    for profile, result in (("a", "scheduled"), ("a", "error"), ("b", "scheduled")) * 2:
        counts.ended(profile, result, 0.5)
    counts.ended("a", "scheduled", 0.5)
    assert {labels: child.value for labels, child in metrics.schedule_attempts} == {
        ("scheduled", "a"): 3,
        ("error", "a"): 2,
        ("scheduled", "b"): 2,
    }
    assert {labels: child.total for labels, child in metrics.attempt_duration} == {
        ("scheduled", "a"): 1.5,
        ("error", "a"): 1.0,
        ("scheduled", "b"): 1.0,
    }


@pytest.mark.parametrize(
    ("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (16, "15+"), (400, "15+")]
)
def test_counts_how_long_pods_waited_by_attempts(attempts: int, label: str) -> None:
    metrics = Metrics()
    AttemptCounts(metrics).bound(bound(attempts), 12.5)
    assert [(labels, child.total) for labels, child in metrics.pod_sli_duration] == [
        ((label,), 2.5)
    ]
    assert metrics.pod_attempts.labels().total == attempts


def test_does_not_say_how_long_a_pod_waited_that_was_never_ready() -> None:
    metrics = Metrics()
    AttemptCounts(metrics).bound(bound(1, first=None), 12.5)
    assert not len(metrics.pod_sli_duration)
    assert metrics.pod_attempts.labels().count == 1


def test_counts_pods_that_were_bound_after_a_flush() -> None:
    metrics = Metrics()
    counts = AttemptCounts(metrics)
    counts.bound(bound(2, flushed=True), 12.5)
    counts.bound(bound(2), 12.5)
    assert metrics.pod_scheduled_after_flush.labels().value == 1
