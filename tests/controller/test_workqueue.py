"""The promises of the queue, one by one; `test_workqueue_model.py` has them all at once."""

from __future__ import annotations

import pytest
from tests.loop_rig import LoopRig
from tests.observe.parse_exposition import read

from mooring.controller import Backoff, ControllerMetrics, TokenBucket, WorkQueue
from mooring.observe.exposition import Exposition


def make(**options: object) -> WorkQueue[str]:
    backoff: Backoff[str] = Backoff(1.0, 8.0, jitter=0.0)
    return WorkQueue("q", backoff=backoff, rate=TokenBucket(0), **options)  # type: ignore[arg-type]  # of tests


def test_hands_keys_out_in_order_and_each_once() -> None:
    with LoopRig() as rig:
        queue = make()
        for key in ("a", "b", "a"):
            rig.call(queue.add, key)
        assert len(queue) == 2
        assert [rig.start(queue.get()).result() for _ in range(2)] == ["a", "b"]
        assert not rig.start(queue.get()).done()


def test_gives_a_key_that_is_added_meanwhile_to_nobody_until_it_is_done() -> None:
    with LoopRig() as rig:
        queue = make()
        rig.call(queue.add, "a")
        assert rig.start(queue.get()).result() == "a"
        rig.call(queue.add, "a")
        rig.call(queue.add, "a")
        second = rig.start(queue.get())
        assert not second.done()
        rig.call(queue.done, "a")
        rig.advance(0)
        assert second.result() == "a"
        third = rig.start(queue.get())
        rig.call(queue.done, "a")
        assert not third.done()  # it ran again once, not twice


def test_complains_when_something_is_done_that_nobody_does() -> None:
    with LoopRig() as rig, pytest.raises(ValueError, match="no worker has it"):
        rig.call(make().done, "a")


def test_adds_later_at_the_soonest_of_the_times_it_was_told() -> None:
    with LoopRig() as rig:
        queue = make()
        for seconds in (5.0, 2.0, 9.0):
            rig.call(queue.add_after, "a", seconds)
        rig.call(queue.add_after, "b", 3.0)
        assert queue.delayed == 2
        rig.advance(1.9)
        assert len(queue) == 0
        rig.advance(0.2)
        assert rig.start(queue.get()).result() == "a"
        rig.call(queue.done, "a")
        rig.advance(1)
        assert rig.start(queue.get()).result() == "b"
        rig.advance(100)
        assert (len(queue), queue.delayed) == (0, 0)


def test_puts_off_what_fails_longer_each_time_until_it_is_forgotten() -> None:
    with LoopRig() as rig:
        queue = make()
        waits = []
        for _ in range(5):
            rig.call(queue.add_rate_limited, "a")
            began = rig.loop.time()
            getting = rig.start(queue.get())
            while not getting.done():
                rig.advance(0.5)
            waits.append(rig.loop.time() - began)
            rig.call(queue.done, "a")
        assert waits == [1, 2, 4, 8, 8]
        assert queue.retries("a") == 5
        queue.forget("a")
        assert queue.retries("a") == 0


def test_limits_how_many_are_retried_in_a_second() -> None:
    with LoopRig() as rig:
        queue: WorkQueue[int] = WorkQueue(
            backoff=Backoff(0.001, 0.002, jitter=0.0), rate=TokenBucket(rate=10, burst=5)
        )
        for key in range(25):
            rig.call(queue.add_rate_limited, key)
        rig.advance(1)
        assert len(queue) == 15
        rig.advance(1)
        assert len(queue) == 25


def test_hands_out_what_is_ready_after_the_end_and_then_none() -> None:
    with LoopRig() as rig:
        queue = make()
        rig.call(queue.add, "a")
        rig.call(queue.add_after, "b", 1.0)
        rig.call(queue.shutdown)
        rig.call(queue.add, "c")
        rig.call(queue.add_after, "d", 0.0)
        rig.call(queue.add_rate_limited, "e")
        assert rig.start(queue.get()).result() == "a"
        rig.advance(10)
        assert rig.start(queue.get()).result() is None
        assert queue.is_shut


def test_hands_out_nothing_after_an_end_that_drops_what_is_ready() -> None:
    with LoopRig() as rig:
        queue = make()
        waiting = rig.start(queue.get())
        rig.call(queue.add, "a")
        rig.advance(0)
        assert waiting.result() == "a"
        waiting = rig.start(queue.get())
        rig.call(queue.add, "a")
        rig.call(queue.shutdown, drop=True)
        rig.call(queue.done, "a")
        rig.advance(0)
        assert waiting.result() is None


def test_loses_no_key_to_a_worker_that_is_cancelled_as_it_arrives() -> None:
    with LoopRig() as rig:
        queue = make()
        first, second = rig.start(queue.get()), rig.start(queue.get())

        def add_and_cancel() -> None:
            queue.add("a")
            first.cancel()

        rig.call(add_and_cancel)
        assert first.cancelled()
        assert second.result() == "a"


def test_counts_as_client_go_does() -> None:
    with LoopRig() as rig:
        metrics = ControllerMetrics()
        queue = make(metrics=metrics)
        for key in ("a", "b", "a"):
            rig.call(queue.add, key)
        rig.advance(2)
        assert rig.start(queue.get()).result() == "a"
        rig.advance(3)

        def scraped(name: str) -> float:
            shown = read(rig.call(Exposition(metrics).render))[name]
            wanted = {name, f"{name}_sum"}
            return next(sample.value for sample in shown.samples if sample.name in wanted)

        assert scraped("workqueue_depth") == 1
        assert scraped("workqueue_adds_total") == 2
        assert scraped("workqueue_queue_duration_seconds") == 2
        assert scraped("workqueue_unfinished_work_seconds") == 3
        assert scraped("workqueue_longest_running_processor_seconds") == 3
        rig.call(queue.add_rate_limited, "a")
        rig.call(queue.done, "a")
        assert scraped("workqueue_work_duration_seconds") == 3
        assert scraped("workqueue_retries_total") == 1
        assert scraped("workqueue_unfinished_work_seconds") == 0
