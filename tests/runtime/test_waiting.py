from collections.abc import Iterator, Mapping

import pytest
from tests.loop_rig import LoopRig

from mooring.framework import OK, Status
from mooring.runtime.waiting import WaitingPod, WaitingPods
from mooring.simulator.clock import VirtualLoop
from mooring.testing.builders import pod


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    with LoopRig() as rig:
        yield rig.loop


def hold(loop: VirtualLoop, holds: Mapping[str, float]) -> tuple[WaitingPod, list[Status]]:
    """A held pod, and the list where the signal will appear."""
    pods = WaitingPods()
    signals: list[Status] = []

    async def wait() -> None:
        held = pods.hold(pod("p", uid="1"), "a", holds)
        signals.append(await held.wait())

    loop.create_task(wait())
    loop.settle()
    found = pods.get("1")
    assert found is not None
    return found, signals


def test_goes_on_when_the_last_holder_allows(loop: VirtualLoop) -> None:
    held, signals = hold(loop, {"A": 5, "B": 5})
    held.allow("A")
    loop.settle()
    assert signals == []
    assert held.pending_plugins == ("B",)
    held.allow("B")
    loop.settle()
    assert signals == [OK]


def test_allowing_twice_or_by_a_stranger_changes_nothing(loop: VirtualLoop) -> None:
    held, signals = hold(loop, {"A": 5, "B": 5})
    held.allow("A")
    held.allow("A")
    held.allow("C")
    loop.settle()
    assert signals == []


def test_signs_a_rejection(loop: VirtualLoop) -> None:
    held, signals = hold(loop, {"A": 5})
    assert held.reject("Z", "no")
    assert not held.preempt("Z", "no")
    loop.settle()
    assert signals == [Status.unschedulable("no").by("Z")]


def test_being_pushed_aside_is_an_error(loop: VirtualLoop) -> None:
    held, signals = hold(loop, {"A": 5})
    assert held.preempt("Z", "preempted")
    loop.settle()
    assert signals == [Status.error("preempted").by("Z")]


def test_each_holder_has_a_clock_of_its_own(loop: VirtualLoop) -> None:
    held, signals = hold(loop, {"A": 90, "B": 3700.5})
    loop.advance(89)
    assert signals == []
    held.allow("A")
    loop.advance(3611.5)
    reason = "rejected due to timeout after waiting 1h1m40.5s at plugin B"
    assert signals == [Status.unschedulable(reason).by("B")]


def test_a_timer_that_was_cancelled_does_not_strike(loop: VirtualLoop) -> None:
    held, signals = hold(loop, {"A": 1})
    held.allow("A")
    loop.advance(10)
    assert signals == [OK]


def test_lists_held_pods_until_they_are_released(loop: VirtualLoop) -> None:
    pods = WaitingPods()

    async def hold_two() -> None:
        pods.hold(pod("p", uid="1"), "a", {"A": 1})
        pods.hold(pod("q", uid="2"), "b", {"A": 1})

    loop.run_until_complete(hold_two())
    assert [(held.pod.name, held.node_name) for held in pods] == [("p", "a"), ("q", "b")]
    for held in pods:
        pods.release(held.pod.uid)
    pods.release("unknown")
    assert len(pods) == 0
    assert pods.get("1") is None
