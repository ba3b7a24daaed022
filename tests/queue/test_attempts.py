"""What happens to a pod between pop and the answer."""

import pytest
from tests.queue.builders import START, World, pod

from mooring.framework.events import UNSCHEDULABLE_POD, Action, ClusterEvent, Event
from mooring.queue.hints import Registration

NODES = Registration(Event.NODE_ADDED, "Fit", None)
LABELS = Registration(Event.POD_LABELS_CHANGED, "Fit", None)


def test_counts_attempts_and_marks_the_pod_as_in_flight() -> None:
    world = World()
    world.queue.add(pod("a"))
    queued = world.pop()
    assert queued.attempts == 1
    assert queued.pod.uid in world.queue.in_flight
    assert world.where("a") is None


def test_parks_a_refused_pod_and_clears_the_slate_for_the_next_attempt() -> None:
    world = World()
    world.refuse("a", "Fit", pending=["Hold"])
    assert world.where("a") == "unschedulable"
    assert len(world.queue.in_flight) == 0
    world.time += 60
    world.queue.activate(["ns/a"])
    queued = world.pop()
    assert (queued.attempts, queued.unschedulable_count) == (2, 1)
    assert queued.unschedulable_plugins == queued.pending_plugins == frozenset()
    assert queued.timestamp == START


def test_retries_an_error_after_its_own_backoff() -> None:
    world = World()
    world.refuse("a")
    assert world.where("a") == "backoff"
    assert world.queue.pop() is None
    world.time = START + 1.99
    world.queue.flush_backoff()
    assert world.where("a") == "backoff"
    world.time = START + 2
    world.queue.flush_backoff()
    assert world.pop().consecutive_errors == 1


def test_counts_errors_and_refusals_apart() -> None:
    world = World()
    world.queue.add(pod("a"))
    seen = []
    for plugins in ((), (), ("Fit",), ()):
        queued = world.pop()
        world.send_back(queued, *plugins)
        seen.append((queued.consecutive_errors, queued.unschedulable_count))
        world.time += 60
        world.queue.activate(["ns/a"])
    assert seen == [(1, 0), (2, 0), (0, 1), (1, 1)]


def test_takes_a_refused_pod_out_of_backoff_when_nothing_else_is_ready() -> None:
    world = World(NODES)
    world.refuse("a", "Fit")
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert world.where("a") == "backoff"
    queued = world.pop()
    assert queued.pod.name == "a"
    assert queued.backoff_until is None


def test_prefers_what_is_active_to_what_backs_off() -> None:
    world = World(NODES)
    world.refuse("a", "Fit", priority=9)
    world.queue.move_all(Event.NODE_ADDED, None, None)
    world.queue.add(pod("b"))
    assert [world.pop().pod.name for _ in range(2)] == ["b", "a"]


@pytest.mark.parametrize(
    ("plugins", "pending", "place"),
    [
        (("Fit",), (), "backoff"),
        (("Taint",), (), "unschedulable"),
        ((), ("Fit",), "active"),
        (("Fit",), ("Fit",), "active"),
        (("Fit",), ("Taint",), "backoff"),
    ],
)
def test_replays_what_the_pod_missed_in_flight(
    plugins: tuple[str, ...], pending: tuple[str, ...], place: str
) -> None:
    world = World(NODES)
    world.queue.add(pod("a"))
    queued = world.pop()
    world.queue.move_all(Event.NODE_ADDED, None, None)
    world.send_back(queued, *plugins, pending=pending)
    assert world.where("a") == place
    assert world.queue.in_flight.held().total() == 0


def test_does_not_replay_what_happened_before_or_concerns_nobody() -> None:
    world = World(NODES)
    world.queue.add(pod("other"))
    world.queue.add(pod("a"))
    world.pop()
    world.queue.move_all(Event.NODE_ADDED, None, None)
    queued = world.pop()
    world.queue.move_all(Event.NODE_DELETED, None, None)
    assert world.queue.in_flight.held().total() == 1
    world.send_back(queued, "Fit")
    assert world.where("a") == "unschedulable"


def test_replays_the_pods_own_update() -> None:
    world = World(LABELS)
    old = pod("a")
    world.queue.add(old)
    queued = world.pop()
    world.queue.update(old, pod("a", labels={"x": "y"}))
    assert world.where("a") is None
    world.send_back(queued, "Fit")
    assert world.where("a") == "backoff"


def test_works_out_the_update_of_a_pod_in_flight_by_itself() -> None:
    world = World(LABELS)
    world.queue.add(pod("a"))
    queued = world.pop()
    world.queue.update(None, pod("a", labels={"x": "y"}))
    observed_events = world.queue.in_flight.since(queued.pod.uid)
    assert observed_events is not None
    assert [h.event for h in observed_events] == [
        ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL)
    ]


def test_activating_a_pod_in_flight_concerns_that_pod_alone() -> None:
    world = World()
    world.queue.add(pod("a"))
    world.queue.add(pod("b"))
    a, b = world.pop(), world.pop()
    world.queue.activate(["ns/a"])
    world.send_back(a, "Fit")
    world.send_back(b, "Fit")
    assert (world.where("a"), world.where("b")) == ("backoff", "unschedulable")


def test_forgets_a_pod_that_is_done() -> None:
    world = World(NODES)
    world.queue.add(pod("a"))
    queued = world.pop()
    world.queue.move_all(Event.NODE_ADDED, None, None)
    world.queue.done(queued.pod.uid)
    assert (len(world.queue), len(world.queue.in_flight)) == (0, 0)
    assert world.queue.in_flight.held().total() == 0


def test_retries_a_refused_pod_that_was_done_already(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.queue.add(pod("a"))
    queued = world.pop()
    world.queue.done(queued.pod.uid)
    world.send_back(queued, "Fit")
    assert world.where("a") == "backoff"
    assert "without being in flight" in caplog.text


def test_discards_a_second_copy_of_a_pod_in_flight(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.queue.add(pod("a"))
    queued = world.pop()
    world.queue.add(pod("a"))
    world.queue.add(pod("b"))
    assert world.pop().pod.name == "b"
    assert "the same pod is tracked in multiple places in the scheduler" in caplog.text
    world.send_back(queued, "Fit")
    assert world.where("a") == "unschedulable"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("active", "Pod ns/a is already present in the active queue"),
        ("backoff", "Pod ns/a is already present in the backoff queue"),
        ("unschedulable", "Pod ns/a is already present in unschedulable queue"),
    ],
)
def test_refuses_to_hold_a_pod_twice(
    place: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.queue.add(pod("a"))
    queued = world.pop()
    if place == "active":
        world.queue.add(pod("a"))
    else:
        world.send_back(queued, *(() if place == "backoff" else ("Fit",)))
    before = (queued.unschedulable_count, queued.consecutive_errors)
    world.queue.add_unschedulable(queued)
    assert text in caplog.text
    assert (queued.unschedulable_count, queued.consecutive_errors) == before
    assert world.where("a") == place
    assert len(world.queue) == 1


def test_tells_when_something_can_be_popped() -> None:
    world = World(NODES)
    world.queue.add(pod("a"))
    assert world.times_ready == 1
    queued = world.pop()
    world.send_back(queued, "Fit")
    assert world.times_ready == 1, "it is parked"
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert world.times_ready == 2, "it backs off, but may be taken early"
    world.send_back(world.pop())
    assert world.times_ready == 2, "an error is not taken early"
    world.time += 60
    world.queue.flush_backoff()
    assert world.times_ready == 3
    world.queue.flush_backoff()
    assert world.times_ready == 3


def test_a_penalty_replaces_the_backoff_after_an_error() -> None:
    world = World()
    world.queue.add(pod("a"))
    world.queue.add_unschedulable(world.pop(), penalty=30)
    for seconds, where in ((29, "backoff"), (31, "active")):
        world.time = START + seconds
        world.queue.flush_backoff()
        assert world.where("a") == where
    assert world.pop().consecutive_errors == 1


def test_a_pod_put_back_was_not_tried_and_waits_apart() -> None:
    world = World()
    world.queue.add(pod("a"))
    world.queue.put_back(world.pop(), 60)
    assert world.where("a") == "backoff"
    assert world.queue.pop() is None
    assert len(world.queue.in_flight) == 0
    world.queue.activate(["ns/a"])
    queued = world.pop()
    assert (queued.attempts, queued.consecutive_errors, queued.backoff_until) == (1, 0, None)


def test_takes_back_the_same_pod_only() -> None:
    world = World()
    world.queue.add(pod("a"))
    queued = world.pop()
    assert world.queue.take_back(queued.pod) is None  # under way
    world.queue.put_back(queued, 60)
    assert world.queue.take_back(pod("a", uid="another")) is None
    assert world.queue.take_back(queued.pod) is queued
    assert (queued.attempts, queued.pod.uid in world.queue.in_flight) == (1, True)
    assert world.where("a") is None
