import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mooring.scheduler import task_pool as module
from mooring.scheduler.task_pool import TaskPool


class Bench:
    """Pieces of work that note when they begin and end, and who did them."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.tasks: dict[str, asyncio.Task[Any] | None] = {}

    async def work(self, name: str, until: asyncio.Event | None = None) -> None:
        self.tasks[name] = asyncio.current_task()
        self.notes.append(f"{name} begins")
        if until is not None:
            await until.wait()
        self.notes.append(f"{name} ends")


def with_pool(play: Callable[[TaskPool, Bench], Coroutine[Any, Any, None]]) -> Bench:
    bench = Bench()

    async def main() -> None:
        async with TaskPool() as pool:
            await play(pool, bench)
            pool.drain()

    asyncio.run(main())
    return bench


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_does_what_it_is_given_in_the_next_turn_and_in_that_order() -> None:
    async def play(pool: TaskPool, bench: Bench) -> None:
        for name in "abc":
            pool.submit(bench.work(name))
        assert bench.notes == []
        await asyncio.sleep(0)
        assert bench.notes == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]

    bench = with_pool(play)
    assert len(set(bench.tasks.values())) == 1  # nobody had to wait


def test_lets_nobody_wait_for_work_that_waits() -> None:
    async def play(pool: TaskPool, bench: Bench) -> None:
        answered = asyncio.Event()
        for name in "abc":
            pool.submit(bench.work(name, answered))
        await turns(2)
        assert bench.notes == ["a begins", "b begins", "c begins"]
        pool.submit(bench.work("d"))
        await turns()
        assert bench.notes[3:] == ["d begins", "d ends"]
        answered.set()
        await turns()
        assert len(bench.notes) == 8

    with_pool(play)


def test_keeps_its_tasks_for_later_work() -> None:
    async def play(pool: TaskPool, bench: Bench) -> None:
        for name in "abc":
            pool.submit(bench.work(name))
            await turns()

    bench = with_pool(play)
    assert len(set(bench.tasks.values())) == 1


def test_keeps_only_so_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IDLE", 2)

    async def play(pool: TaskPool, bench: Bench) -> None:
        before = len(asyncio.all_tasks())
        answered = asyncio.Event()
        for number in range(5):
            pool.submit(bench.work(str(number), answered))
        await turns(10)
        assert len(asyncio.all_tasks()) == before + 5
        answered.set()
        await turns()
        assert len(asyncio.all_tasks()) == before + 2

    assert len(with_pool(play).notes) == 10


def test_ends_only_when_all_work_has_ended() -> None:
    async def play(pool: TaskPool, bench: Bench) -> None:
        answered = asyncio.Event()

        async def followed() -> None:
            await answered.wait()
            pool.submit(bench.work("after"))

        pool.submit(followed())
        await turns()
        asyncio.get_running_loop().call_soon(answered.set)

    assert with_pool(play).notes == ["after begins", "after ends"]


def test_ends_its_group_when_work_breaks() -> None:
    async def break_down() -> None:
        raise ValueError("boom")

    async def play(pool: TaskPool, bench: Bench) -> None:
        pool.submit(bench.work("patient", asyncio.Event()))
        pool.submit(break_down())
        await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        with_pool(play)
    assert [str(error) for error in caught.value.exceptions] == ["boom"]


def test_begins_nothing_more_when_all_is_being_stopped() -> None:
    bench = Bench()

    async def main() -> None:
        async with TaskPool() as pool:
            pool.submit(bench.work("a", asyncio.Event()))
            pool.submit(bench.work("b", asyncio.Event()))
            raise KeyError("enough")

    with pytest.raises(ExceptionGroup):
        asyncio.run(asyncio.wait_for(main(), 30))
    assert "b begins" not in bench.notes


def test_goes_on_after_somebody_has_cancelled_a_task_of_its() -> None:
    async def play(pool: TaskPool, bench: Bench) -> None:
        pool.submit(bench.work("a"))
        await turns()
        idle = bench.tasks["a"]
        assert idle is not None
        idle.cancel()
        pool.submit(bench.work("b"))
        await turns()
        pool.submit(bench.work("c", asyncio.Event()))
        await turns()
        busy = bench.tasks["c"]
        assert busy is not None
        busy.cancel()
        pool.submit(bench.work("d"))
        await turns()

    done = ["a begins", "a ends", "b begins", "b ends", "c begins", "d begins", "d ends"]
    assert with_pool(play).notes == done


def test_begins_work_whose_task_is_cancelled_before_it_began() -> None:
    async def play(pool: TaskPool, bench: Bench) -> None:
        pool.submit(bench.work("a"))
        await turns()
        called = bench.tasks["a"]
        assert called is not None
        pool.submit(bench.work("b"))  # which wakes that task
        called.cancel()
        await turns()
        assert bench.notes[-1] == "b ends"

    with_pool(play)


def test_gives_other_work_to_no_task_that_did_not_heed_its_cancellation() -> None:
    async def stubborn(bench: Bench) -> None:
        bench.tasks["stubborn"] = task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)

    async def play(pool: TaskPool, bench: Bench) -> None:
        pool.submit(stubborn(bench))
        pool.submit(bench.work("next", None))
        await turns()

    bench = with_pool(play)
    assert bench.tasks["next"] is not bench.tasks["stubborn"]
    assert bench.notes == ["next begins", "next ends"]
