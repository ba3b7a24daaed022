from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from mooring.client.errors import ConflictError
from mooring.cluster.controllers.reconcile_queue import FailedPodBackoff, Key, ReconcileQueue
from mooring.simulator.clock import VirtualLoop


class RecordingReconciler:
    """A queue on a virtual loop, and when which key was reconciled."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.seen: list[tuple[float, Key]] = []
        self.answer: Callable[[Key], float | None] = lambda key: None
        self.queue = self.loop.run_until_complete(self._start())

    async def _start(self) -> ReconcileQueue:
        queue = ReconcileQueue()
        queue.start()
        return queue

    def reconcile(self, key: Key) -> float | None:
        self.seen.append((self.loop.time(), key))
        return self.answer(key)

    def add(self, name: str, after: float = 0.0) -> None:
        self.queue.add(self, ("a", name), after)

    def close(self) -> None:
        self.loop.run_until_complete(self.queue.close())


@pytest.fixture
def reconciler() -> Iterator[RecordingReconciler]:
    made = RecordingReconciler()
    yield made
    made.close()
    made.loop.close()


def test_reconciles_a_key_once_however_often_it_is_added(reconciler: RecordingReconciler) -> None:
    for _ in range(5):
        reconciler.add("x")
        reconciler.add("y")
    reconciler.loop.settle()
    assert reconciler.seen == [(0, ("a", "x")), (0, ("a", "y"))]


def test_reconciles_again_what_is_added_meanwhile(reconciler: RecordingReconciler) -> None:
    def answer(key: Key) -> None:
        if len(reconciler.seen) < 3:
            reconciler.add(key[1])

    reconciler.answer = answer
    reconciler.add("x")
    reconciler.loop.settle()
    assert len(reconciler.seen) == 3


def test_comes_back_when_it_is_asked_to(reconciler: RecordingReconciler) -> None:
    answers = iter([5.0, 60.0, None])
    reconciler.answer = lambda key: next(answers)
    reconciler.add("x")
    reconciler.loop.advance(100)
    assert [time for time, _ in reconciler.seen] == [0, 5, 65]


def test_tries_again_what_was_refused_later_each_time(reconciler: RecordingReconciler) -> None:
    def answer(key: Key) -> None:
        if len(reconciler.seen) < 5:
            raise ConflictError("modified", code=409, reason="Conflict")

    reconciler.answer = answer
    reconciler.add("x")
    reconciler.loop.advance(10)
    pauses = [b - a for (a, _), (b, _) in pairwise(reconciler.seen)]
    assert pauses == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert reconciler.queue.unexpected_errors == 0


def test_survives_a_controller_with_a_bug(
    reconciler: RecordingReconciler, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(key: Key) -> None:
        if key == ("a", "bad"):
            raise ZeroDivisionError

    reconciler.answer = answer
    reconciler.add("bad")
    reconciler.add("good")
    reconciler.loop.settle()
    assert (0, ("a", "good")) in reconciler.seen
    assert reconciler.queue.unexpected_errors == 1
    assert "a controller failed" in caplog.text


def test_lets_others_have_a_turn(reconciler: RecordingReconciler) -> None:
    for i in range(100):
        reconciler.add(str(i))
    done: list[int] = []
    reconciler.loop.call_soon(lambda: done.append(len(reconciler.seen)))
    reconciler.loop.settle()
    assert done[0] < 100
    assert len(reconciler.seen) == 100


def test_does_nothing_once_it_is_closed(reconciler: RecordingReconciler) -> None:
    async def story() -> None:
        reconciler.add("x")
        reconciler.add("y", 5)
        await reconciler.queue.close()
        reconciler.add("z")

    reconciler.loop.run_until_complete(story())
    reconciler.loop.advance(10)
    assert reconciler.seen == []


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
