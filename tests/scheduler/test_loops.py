"""Preemption that never leads anywhere is put off."""

import pytest

from mooring.cache.pods import Pod
from mooring.scheduler.preemption_backoff import PreemptionBackoff
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lets_a_pod_evict_three_times_and_then_wait_ever_longer() -> None:
    time = Time()
    loops = PreemptionBackoff(time)
    pauses = []
    for _ in range(9):
        pauses.append(loops.pause("uid"))
        time.now += pauses[-1]
        assert loops.pause("uid") == 0
        loops.evicted("uid")
    assert pauses == [0, 0, 0, 30, 60, 120, 240, 480, 600]


def test_starts_anew_for_a_pod_that_was_bound() -> None:
    loops = PreemptionBackoff(Time())
    for _ in range(5):
        loops.evicted("uid")
    loops.forget("uid")
    assert loops.pause("uid") == 0


def test_remembers_only_so_many_pods() -> None:
    loops = PreemptionBackoff(Time())
    for _ in range(3):
        loops.evicted("first")
    for number in range(5000):
        loops.evicted(str(number))
    assert loops.pause("first") == 0


def test_stops_evicting_when_somebody_else_always_takes_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Simulation() as sim:
        evicted: list[str] = []
        delete = sim.cluster.delete_pod

        async def delete_and_replace(victim: Pod) -> None:
            """Its owner recreates it, and another scheduler is faster than we are."""
            await delete(victim)
            evicted.append(victim.name)
            successor = pod(f"victim-{len(evicted)}", cpu=1, on="a", priority=0)
            sim.loop.call_soon(sim.apply, successor)

        monkeypatch.setattr(sim.cluster, "delete_pod", delete_and_replace)
        sim.apply(node("a", cpu=1), pod("victim-0", cpu=1, on="a", priority=0))
        sim.schedule(pod("vip", cpu=1, priority=100))
        sim.advance(1800)
        assert sim.node_of("vip") == ""
        # Three times at once; then it waits for 30, 60, 120, 240, 480 and 600 seconds.
        assert 4 <= len(evicted) <= 9
        put_off = [event for event in sim.events if event.reason == "PreemptionPutOff"]
        assert "others took the room that was made before" in put_off[0].note
        assert sim.scheduler.metrics.preemption_loops.labels().value == len(put_off)
