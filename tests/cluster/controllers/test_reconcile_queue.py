from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.client.errors import ConflictError
from mooring.cluster.controllers.reconcile_queue import FailedPodBackoff, Key, ReconcileQueue
from mooring.simulator.clock import VirtualLoop


class RecordingReconciler:
    """Notes when it was asked to reconcile what."""

    def __init__(self, loop: VirtualLoop, answer: Callable[[Key], float | None]) -> None:
        self.seen: list[tuple[float, Key]] = []
        self._loop = loop
        self._answer = answer

    def reconcile(self, key: Key) -> float | None:
        self.seen.append((self._loop.time(), key))
        return self._answer(key)


def test_reconciles_a_key_once_however_often_it_is_added() -> None:
    loop = VirtualLoop()
    queue, reconciler = ReconcileQueue(loop), RecordingReconciler(loop, lambda key: None)
    for _ in range(5):
        queue.add(reconciler, ("a", "x"))
        queue.add(reconciler, ("a", "y"))
    loop.settle()
    assert reconciler.seen == [(0, ("a", "x")), (0, ("a", "y"))]
    loop.close()


def test_reconciles_again_what_is_added_meanwhile() -> None:
    loop = VirtualLoop()
    queue = ReconcileQueue(loop)
    left = [2]

    def answer(key: Key) -> float | None:
        if left[0]:
            left[0] -= 1
            queue.add(reconciler, key)
        return None

    reconciler = RecordingReconciler(loop, answer)
    queue.add(reconciler, ("a", "x"))
    loop.settle()
    assert len(reconciler.seen) == 3
    loop.close()


def test_comes_back_when_it_is_asked_to() -> None:
    loop = VirtualLoop()
    queue = ReconcileQueue(loop)
    answers = iter([5.0, 60.0, None])
    reconciler = RecordingReconciler(loop, lambda key: next(answers))
    queue.add(reconciler, ("a", "x"))
    loop.advance(100)
    assert [time for time, _ in reconciler.seen] == [0, 5, 65]
    loop.close()


@given(st.lists(st.floats(0, 50), min_size=1, max_size=8))
def test_serves_the_soonest_of_several_wishes(wishes: list[float]) -> None:
    loop = VirtualLoop()
    queue, reconciler = ReconcileQueue(loop), RecordingReconciler(loop, lambda key: None)
    for after in wishes:
        queue.add(reconciler, ("a", "x"), after)
    loop.advance(100)
    assert [time for time, _ in reconciler.seen] == [min(wishes)]
    assert len(queue) == 0
    loop.close()


def test_tries_again_what_was_refused_later_each_time() -> None:
    loop = VirtualLoop()
    queue = ReconcileQueue(loop)

    def answer(key: Key) -> float | None:
        if len(reconciler.seen) < 5:
            raise ConflictError("modified", code=409, reason="Conflict")
        return None

    reconciler = RecordingReconciler(loop, answer)
    queue.add(reconciler, ("a", "x"))
    loop.advance(10)
    times = [time for time, _ in reconciler.seen]
    pauses = [b - a for a, b in pairwise(times)]
    assert pauses == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert queue.unexpected_errors == 0
    loop.close()


def test_survives_a_controller_with_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    loop = VirtualLoop()
    queue = ReconcileQueue(loop)

    def answer(key: Key) -> float | None:
        if key == ("a", "bad"):
            raise ZeroDivisionError
        return None

    reconciler = RecordingReconciler(loop, answer)
    queue.add(reconciler, ("a", "bad"))
    queue.add(reconciler, ("a", "good"))
    loop.settle()
    assert (0, ("a", "good")) in reconciler.seen
    assert queue.unexpected_errors == 1
    assert "a controller failed" in caplog.text
    queue.close()
    loop.close()


def test_lets_others_have_a_turn() -> None:
    loop = VirtualLoop()
    queue, reconciler = ReconcileQueue(loop), RecordingReconciler(loop, lambda key: None)
    for i in range(100):
        queue.add(reconciler, ("a", str(i)))
    done: list[int] = []
    loop.call_soon(lambda: done.append(len(reconciler.seen)))
    loop.settle()
    assert done[0] < 100
    assert len(reconciler.seen) == 100
    loop.close()


def test_does_nothing_once_it_is_closed() -> None:
    loop = VirtualLoop()
    queue, reconciler = ReconcileQueue(loop), RecordingReconciler(loop, lambda key: None)
    queue.add(reconciler, ("a", "x"))
    queue.add(reconciler, ("a", "y"), 5)
    queue.close()
    queue.add(reconciler, ("a", "z"))
    loop.advance(10)
    assert reconciler.seen == []
    loop.close()


def test_waits_longer_the_more_often_something_fails() -> None:
    backoff = FailedPodBackoff(1.0, 8.0)
    key, now = ("owner", "x"), 100.0
    waits = []
    for failure in range(6):
        wait = backoff.left(key, str(failure), now)
        assert backoff.left(key, str(failure), now) == wait
        assert backoff.left(key, str(failure), now + wait) == 0
        waits.append(wait)
        now += wait
    assert waits == [1, 2, 4, 8, 8, 8]
    assert backoff.left(key, "much later", now + 9) == 1
    assert backoff.left(("owner", "y"), "0", now) == 1
    backoff.forget("owner")
    assert backoff.left(key, "again", now) == 1
