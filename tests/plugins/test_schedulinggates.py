"""Gates hold a pod out of the queue."""

from mooring.framework import OK, Event, Status
from mooring.plugins.schedulinggates import SchedulingGates
from mooring.testing.build import build
from mooring.testing.builders import pod


def test_lets_in_a_pod_without_gates() -> None:
    assert build(SchedulingGates).pre_enqueue(pod()) is OK


def test_names_every_gate_that_holds_a_pod() -> None:
    gated = pod(gates=["example.com/quota", "example.com/storage"])
    expected = "waiting for scheduling gates: [example.com/quota example.com/storage]"
    assert build(SchedulingGates).pre_enqueue(gated) == Status.unresolvable(expected)


def test_wakes_a_pod_only_for_its_own_gates() -> None:
    plugin = build(SchedulingGates)
    gated, freed = pod("a", uid="a", gates=["g"]), pod("a", uid="a")
    assert plugin.hint(Event.POD_GATES_REMOVED, gated, gated, freed)
    assert not plugin.hint(Event.POD_GATES_REMOVED, gated, pod("b"), pod("b"))
