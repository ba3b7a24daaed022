"""What the queue knows about a pod."""

from __future__ import annotations

from typing import Any

from tests.scheduler.recording import Log, probe, world

from mooring.cache.pods import Pod
from mooring.framework import OK, Event, Status, Wait
from mooring.lens.queued import queued_state, queued_states
from mooring.lens.snapshot import QueuedState, WakingEvent
from mooring.simulator import Simulation
from mooring.simulator.clock import EPOCH
from mooring.testing import node, pod


def facts(sim: Simulation, name: str) -> QueuedState | None:
    async def look() -> QueuedState | None:
        return queued_state(sim.scheduler, Pod(sim.pod(name)), sim.clock.now())

    found: QueuedState | None = sim.call(look())
    return found


def brief(sim: Simulation) -> dict[str, QueuedState]:
    async def look() -> list[QueuedState]:
        return list(queued_states(sim.scheduler))

    names = {one.metadata.uid: one.metadata.name for one in sim.cluster.pods()}
    found: list[QueuedState] = sim.call(look())
    return {names[one.uid]: one for one in found}


def test_a_refused_pod_knows_its_history_and_what_wakes_it() -> None:
    with Simulation() as sim:
        sim.apply(node("a", cpu=1))
        sim.advance(10)
        sim.schedule(pod("big", cpu=4))
        sim.advance(5)
        found = facts(sim, "big")
        assert found is not None
        assert (found.queue, found.attempts, found.plugins) == (
            "unschedulable",
            1,
            ("NodeResourcesFit",),
        )
        assert (found.added_at, found.since) == (EPOCH + 10, EPOCH + 10)
        assert found.retry_at == EPOCH + 10 + 300
        assert found.message == sim.why("big")
        assert WakingEvent("NodeResourcesFit", "NodeAdd") in found.wakes_on
        assert {waking.plugin for waking in found.wakes_on} == {"NodeResourcesFit"}
        assert found.declined == ()
        # Nodes that are too small: heard of, and not worth an attempt.
        sim.apply(node("b", cpu=2))
        sim.advance(1)
        sim.apply(node("c", cpu=2))
        sim.advance(1)
        found = facts(sim, "big")
        assert found is not None
        [declined] = found.declined
        assert (declined.plugin, declined.event, declined.times, declined.changed) == (
            "NodeResourcesFit",
            "NodeAdd",
            2,
            "c",
        )
        assert declined.last_at == EPOCH + 16
        assert found.attempts == 1
        # An attempt forgets what came before it.
        sim.apply(node("d", cpu=4, taints=["t:NoSchedule"]))
        sim.advance(20)
        found = facts(sim, "big")
        assert found is not None
        assert (found.attempts, found.declined) == (2, ())
        assert found.plugins == ("NodeResourcesFit", "TaintToleration")


def test_a_pod_in_backoff_knows_when_it_ends() -> None:
    with Simulation() as sim:
        sim.schedule(pod("lonely"))  # there is no node
        found = facts(sim, "lonely")
        assert found is not None
        assert found.queue == "backoff"
        assert found.retry_at is not None
        assert found.retry_at > sim.clock.now()
        sim.advance(found.retry_at - sim.clock.now())
        again = facts(sim, "lonely")
        assert again is not None
        assert again.attempts == 2
        assert (again.wakes_on, again.ahead) == ((), None)


def test_ready_pods_know_how_many_come_first() -> None:
    with Simulation() as sim:
        sim.scheduler.hold("a test")
        sim.schedule(*[pod(f"p{number}", priority=number % 3) for number in range(9)])
        found = {f"p{number}": facts(sim, f"p{number}") for number in range(9)}
        places = {name: one.ahead for name, one in found.items() if one is not None}
        in_order = ["p2", "p5", "p8", "p1", "p4", "p7", "p0", "p3", "p6"]
        assert places == {name: place for place, name in enumerate(in_order)}
        assert {one.queue for one in found.values() if one is not None} == {"active"}


def test_gated_and_held_pods_name_what_keeps_them() -> None:
    log: Log = []
    gates = probe(
        "Quota",
        log,
        pre_enqueue=lambda _, pod: Status.unresolvable("no quota") if pod.name == "g" else OK,
        wakes_on=(Event.NODE_ADDED,),
        permit=Wait(60),
    )
    with world(gates) as sim:
        sim.schedule(pod("g"))
        sim.advance(5)
        sim.schedule(pod("w"))
        sim.advance(5)
        gated, held = facts(sim, "g"), facts(sim, "w")
        assert gated is not None
        assert (gated.queue, gated.plugins, gated.message) == ("gated", ("Quota",), "no quota")
        assert (gated.attempts, gated.added_at) == (0, EPOCH)
        assert gated.wakes_on == (
            WakingEvent("Quota", "NodeAdd"),
            WakingEvent("Quota", "NodeUpdateNodeTaint"),  # of a new node, when it is ready
        )
        assert held is not None
        assert (held.queue, held.plugins, held.node) == ("waiting at Permit", ("Quota",), "a")
        assert (held.attempts, held.since) == (1, EPOCH + 5)
        assert held.message == sim.why("w")
        short = brief(sim)
        assert {name: one.queue for name, one in short.items()} == {
            "g": "gated",
            "w": "waiting at Permit",
        }
        # Names of objects are for those who asked about this pod, not for a file.
        assert (short["w"].node, short["g"].wakes_on) == ("", ())


def test_a_bound_pod_waits_for_nothing() -> None:
    with Simulation() as sim:
        sim.apply(node("a"))
        sim.schedule(pod("p"))
        assert facts(sim, "p") is None
        assert brief(sim) == {}


def test_a_pod_that_is_being_bound_says_where() -> None:
    log: Log = []

    async def forever(*_: Any) -> Any:
        await sim.loop.create_future()

    slow = probe("Slow", log, pre_bind=forever)
    with world(slow) as sim:
        sim.schedule(pod("p"))
        found = facts(sim, "p")
        assert found is not None
        assert (found.queue, found.node) == ("binding", "a")
        sim.delete(pod("p"))
        sim.settle()
