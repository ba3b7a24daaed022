"""What wakes a pod that was refused, and what does not."""

import pytest
from tests.queue.builders import START, World, pod

from mooring.framework.events import ANY_RESOURCE, Action, ClusterEvent, Event
from mooring.framework.status import Status
from mooring.queue.hints import Registration
from mooring.queue.options import QueueOptions

NODES = Registration(Event.NODE_ADDED, "Fit", None)
GATE = Registration(Event.NODE_ADDED, "Gate", None)
ALL = ClusterEvent(ANY_RESOURCE, Action.ALL, "Test")


@pytest.mark.parametrize(
    ("plugin", "seconds", "place"),
    [
        ("Fit", 1.9, "backoff"),
        ("Fit", 2.0, "active"),
        ("Taint", 60, "unschedulable"),
    ],
)
def test_an_event_wakes_the_pods_it_may_help(plugin: str, seconds: float, place: str) -> None:
    world = World(NODES)
    world.refuse("a", plugin)
    world.time += seconds
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert world.where("a") == place


def test_a_pending_plugin_spares_the_backoff() -> None:
    world = World(NODES)
    world.refuse("a", pending=["Fit"])
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert world.where("a") == "active"


def test_the_precheck_spares_pods_the_question() -> None:
    world = World(NODES)
    world.refuse("a", "Fit")
    world.refuse("b", "Fit")
    world.queue.move_all(Event.NODE_ADDED, None, None, lambda candidate: candidate.name == "b")
    assert (world.where("a"), world.where("b")) == ("unschedulable", "backoff")


def test_an_event_for_everybody_wakes_everybody_but_the_gated() -> None:
    world = World(GATE)
    world.refuse("a", "Fit")
    world.refuse("b", "Nobody")
    world.close_gate("gated")
    world.queue.add(pod("gated"))
    world.open_gate("gated")
    world.queue.move_all(ALL, None, None)
    assert [world.where(name) for name in ("a", "b", "gated")] == ["backoff", "backoff", "gated"]


def test_woken_pods_keep_their_order() -> None:
    world = World(NODES)
    for name in ("c", "a", "b"):
        world.refuse(name, "Fit")
    world.time += 60
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert [p.name for p in world.queue.pending()["active"]] == ["c", "a", "b"]


class TestGates:
    def test_hold_a_new_pod_outside(self) -> None:
        world = World()
        world.close_gate("a")
        world.queue.add(pod("a"))
        assert world.where("a") == "gated"
        assert world.queue.pop() is None

    def test_open_only_for_events_of_the_gating_plugin(self) -> None:
        world = World(GATE, Registration(Event.POD_ADDED, "Fit", None))
        world.close_gate("a")
        world.queue.add(pod("a"))
        world.open_gate("a")
        world.queue.move_all(Event.POD_ADDED, None, None)
        assert world.where("a") == "gated"
        world.queue.move_all(Event.NODE_ADDED, None, None)
        assert world.where("a") == "active"
        assert world.gate_calls == [("ns/a", ""), ("ns/a", "Gate")]

    def test_catch_a_refused_pod_on_its_way_back(self) -> None:
        world = World(NODES)
        world.refuse("a", "Fit")
        world.close_gate("a")
        world.queue.move_all(Event.NODE_ADDED, None, None)
        assert world.where("a") == "gated"
        world.queue.move_all(Event.NODE_ADDED, None, None)
        assert len(world.gate_calls) == 2, "the event is none of the gating plugin's"
        assert world.refused() == {"Fit": 1, "Gate": 1}

    def test_catch_a_pod_that_met_an_error(self) -> None:
        world = World()
        world.queue.add(pod("a"))
        queued = world.pop()
        world.close_gate("a")
        world.send_back(queued)
        assert world.where("a") == "gated"

    def test_are_not_asked_on_the_way_from_backoff_to_active(self) -> None:
        world = World()
        world.refuse("a")
        world.refuse("b")
        world.close_gate("a")
        world.close_gate("b")
        world.queue.activate(["ns/a"])
        world.time += 60
        world.queue.flush_backoff()
        assert (world.where("a"), world.where("b")) == ("active", "active")

    def test_are_asked_when_a_pod_is_activated(self) -> None:
        world = World()
        world.close_gate("a")
        world.queue.add(pod("a"))
        world.queue.activate(["ns/a"])
        assert world.where("a") == "gated"
        world.open_gate("a")
        world.queue.activate(["ns/a"])
        assert world.where("a") == "active"

    def test_hold_a_pod_when_they_break(self, caplog: pytest.LogCaptureFixture) -> None:
        world = World()
        world.refusals["ns/a"] = Status.error("boom").by("Gate")
        world.queue.add(pod("a"))
        assert world.where("a") == "gated"
        assert "Unexpected error running PreEnqueue plugin" in caplog.text

    def test_may_change_hands(self) -> None:
        world = World(GATE)
        world.close_gate("a")
        world.queue.add(pod("a"))
        world.close_gate("a", plugin="Other")
        world.queue.move_all(Event.NODE_ADDED, None, None)
        world.queue.move_all(Event.NODE_ADDED, None, None)
        assert world.gate_calls == [("ns/a", ""), ("ns/a", "Gate")]
        assert world.refused() == {"Gate": 1, "Other": 1}


def test_activates_pods_wherever_they_wait() -> None:
    world = World()
    world.refuse("refused", "Fit")
    world.refuse("broken")
    world.queue.add(pod("ready"))
    world.queue.activate(["ns/refused", "ns/broken", "ns/ready", "ns/unknown"])
    names = [p.name for p in world.queue.pending()["active"]]
    assert sorted(names) == ["broken", "ready", "refused"]


@pytest.mark.parametrize(("seconds", "place"), [(300, "unschedulable"), (300.5, "active")])
def test_retries_what_has_waited_too_long(seconds: float, place: str) -> None:
    world = World()
    world.refuse("a", "Fit")
    world.time += seconds
    world.queue.flush_unschedulable()
    assert world.where("a") == place


def test_remembers_that_a_pod_was_flushed_until_it_fails_again() -> None:
    world = World(options=QueueOptions(max_in_unschedulable=10))
    world.refuse("a", "Fit")
    world.time += 20
    world.queue.flush_unschedulable()
    queued = world.pop()
    assert queued.was_flushed
    world.send_back(queued, "Fit")
    assert not queued.was_flushed


def test_leaves_gated_pods_to_their_gate_however_long_they_wait() -> None:
    world = World(GATE)
    world.close_gate("a")
    world.queue.add(pod("a"))
    world.open_gate("a")
    world.time += 10_000
    world.queue.flush_unschedulable()
    assert world.where("a") == "gated"


def test_ends_a_backoff_with_the_second_that_it_ends_in() -> None:
    world = World()
    world.time = START + 0.7
    world.refuse("a")
    world.time = START + 1.99
    world.queue.flush_backoff()
    assert world.where("a") == "backoff"
    world.time = START + 2
    world.queue.flush_backoff()
    assert world.where("a") == "active"
