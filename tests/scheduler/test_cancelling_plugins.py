"""Plugins that cancel tasks: their own, at once or by a timer, or all those of the scheduler.

The pod on which it happens is unreserved, leaves the cache, goes back to the queue and is told why;
other pods are placed as ever.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.scheduler.misbehaving import cornered, only_to_the_victim
from tests.scheduler.recording import USUAL, Log, columns, notes, place, probe, reason, world

import mooring.framework as fw
from mooring.testing.builders import node, pod

Deed = Callable[..., Awaitable[Any]]


def running() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def cancels_itself_and_waits(*_: object) -> Any:
    running().cancel()
    await asyncio.sleep(0)


async def cancels_itself_by_a_timer(*_: object) -> Any:
    asyncio.get_running_loop().call_later(0.1, running().cancel)
    await asyncio.sleep(1.0)


async def cancels_itself_and_returns(*_: object) -> Any:
    running().cancel()
    return USUAL


async def cancels_the_tasks_of_the_scheduler(*_: object) -> Any:
    """All but the one that `Scheduler.run` runs in: to cancel that is how a scheduler is ended."""
    for task in asyncio.all_tasks():
        if "Scheduler.run" not in repr(task.get_coro()):
            task.cancel()
    await asyncio.sleep(0)


DEEDS: dict[str, Deed] = {
    "itself, waiting": cancels_itself_and_waits,
    "itself, by a timer": cancels_itself_by_a_timer,
    "itself, returning": cancels_itself_and_returns,
    "the tasks of the scheduler": cancels_the_tasks_of_the_scheduler,
}

BOUND_ANYWAY = ("bind", "itself, returning")


def by(point: str, deed: str) -> str:
    """What the pod is told."""
    if deed == "itself, returning":  # which is noticed where the task waits next
        what = "binding"
    else:
        what = f'running {"PreBind" if point == "pre_bind" else "Bind"} plugin "First"'
    return f"FailedScheduling: {what}: the task was cancelled by a plugin"


@pytest.mark.parametrize(
    ("point", "deed"),
    # A Bind plugin that returns is followed by one that binds, before the task waits again.
    [(at, deed) for at in ("pre_bind", "bind") for deed in DEEDS if (at, deed) != BOUND_ANYWAY],
)
def test_a_cancelled_binding_gives_the_place_back_and_the_pod_to_the_queue(
    point: str, deed: str
) -> None:
    log: Log = []
    with cornered(point, DEEDS[deed], log) as sim:
        before = columns(sim)
        sim.schedule(pod("victim", cpu=1))
        sim.advance(0.5)
        assert place(sim, "victim") == "error backoff"
        assert notes(sim, "victim") == [by(point, deed)]
        assert reason(sim, "victim") == "SchedulerError"
        assert "First.unreserve" in log
        assert sim.scheduler.cache.assumed_count == 0
        assert columns(sim) == before
        assert sim.scheduler.metrics.goroutines.labels("binding").value == 0
        sim.schedule(pod("innocent", cpu=1))
        assert sim.node_of("innocent") != ""
        log.clear()
        sim.advance(5.0)
        assert f"First.{point}" in log  # it was tried again


def test_the_place_of_cancelled_bindings_is_free_for_other_pods() -> None:
    log: Log = []
    deed = only_to_the_victim(cancels_itself_and_waits)
    spoiler = probe("First", log, pre_bind=deed)
    with world(
        spoiler, nodes=(), with_plugins=("PrioritySort", "NodeResourcesFit", "DefaultBinder")
    ) as sim:
        sim.apply(node("big", cpu=64))
        sim.schedule(*(pod("victim", namespace=f"team-{n}", cpu=20) for n in range(3)))
        sim.schedule(*(pod(f"good-{n}", cpu=20) for n in range(3)))
        assert [sim.node_of(f"good-{n}") for n in range(3)] == ["big"] * 3


def test_one_of_several_pre_bind_plugins_that_cancels_itself_ends_them_all() -> None:
    log: Log = []

    async def waits(*_: object) -> Any:
        await asyncio.sleep(10.0)
        return USUAL

    first = probe(
        "First", log, pre_bind=only_to_the_victim(cancels_itself_and_waits), parallel=True
    )
    second = probe("Second", log, pre_bind=only_to_the_victim(waits), parallel=True)
    with world(first, second) as sim:
        sim.schedule(pod("victim", cpu=1))
        sim.advance(0.5)
        assert place(sim, "victim") == "error backoff"
        assert notes(sim, "victim") == [by("pre_bind", "itself, waiting")]
        assert sim.scheduler.cache.assumed_count == 0


@pytest.mark.parametrize("is_terminating", [True, False])
@pytest.mark.parametrize("point", ["pre_bind", "bind"])
def test_plugins_that_wait_for_ever_end_with_their_pod(point: str, is_terminating: bool) -> None:
    log: Log = []

    async def waits(*_: object) -> Any:
        await asyncio.Event().wait()

    with cornered(point, waits, log) as sim:
        binding = sim.scheduler.metrics.goroutines.labels("binding")
        sim.schedule(pod("victim", cpu=1))
        assert (binding.value, sim.scheduler.cache.assumed_count) == (1, 1)
        victim = sim.pod("victim")
        if is_terminating:
            time = "2024-01-01T00:00:00Z"
            leaving = msgspec.structs.replace(victim.metadata, deletion_timestamp=time)
            sim.apply(msgspec.structs.replace(victim, metadata=leaving))
        else:
            sim.delete(victim)
        sim.advance(1.0)
        assert (binding.value, sim.scheduler.cache.assumed_count) == (0, 0)
        assert "First.unreserve" in log
        failures = [note for note in notes(sim, "victim") if "skip schedule" not in note]
        assert failures == []  # the pod is gone: nothing is to be told


@pytest.mark.parametrize(
    ("point", "deed"), [BOUND_ANYWAY, *(("post_bind", deed) for deed in DEEDS)]
)
def test_a_pod_that_is_bound_stays_bound(point: str, deed: str) -> None:
    log: Log = []
    with cornered(point, DEEDS[deed], log) as sim:
        sim.schedule(pod("victim", cpu=1))
        sim.advance(0.5)
        assert place(sim, "victim") in ("a", "b")
        sim.schedule(pod("innocent", cpu=1))
        assert sim.node_of("innocent") != ""


def test_a_pod_held_at_permit_is_told_when_its_task_is_cancelled() -> None:
    log: Log = []
    holds = probe("Holds", log, permit=only_to_the_victim(lambda *_: fw.Wait(60.0)))
    cancels = probe("Cancels", log, bind=cancelling_all_for("other"))
    with world(holds, cancels) as sim:
        sim.schedule(pod("victim", cpu=1))
        assert sim.scheduler.cache.assumed_count == 1
        sim.schedule(pod("other", cpu=1))
        assert place(sim, "victim") == "error backoff"
        assert sim.scheduler.cache.assumed_count == 0
        assert len(list(sim.scheduler.waiting)) == 0


def test_a_preemptor_whose_eviction_is_cancelled_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: Log = []
    cancels = probe("Cancels", log, pre_bind=cancelling_all_for("other"))
    frame = ("PrioritySort", "NodeResourcesFit", "DefaultPreemption", "DefaultBinder")
    with world(cancels, nodes=(), with_plugins=frame) as sim:
        sim.apply(node("a", cpu=4), node("b", cpu=1))
        sim.apply(pod("low", cpu=4, on="a"))
        deleted = sim.cluster.delete_pod

        async def slowly(victim: fw.Pod) -> None:
            await asyncio.sleep(0.2)
            await deleted(victim)

        monkeypatch.setattr(sim.cluster, "delete_pod", slowly)
        sim.schedule(pod("preemptor", cpu=4, priority=10))
        sim.schedule(pod("other", cpu=1))
        sim.advance(20.0)
        assert sim.node_of("preemptor") == "a"


def cancelling_all_for(name: str) -> Deed:
    """Cancels the tasks of the scheduler, once, while it prepares the pod of this name."""
    names = [name]

    async def deed(plugin: object, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        if pod.name in names:
            names.remove(pod.name)
            await cancels_the_tasks_of_the_scheduler()
        return USUAL

    return deed
