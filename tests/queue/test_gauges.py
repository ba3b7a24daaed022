from tests.queue.builders import World, pod

from mooring.framework.events import Event
from mooring.queue.hints import Registration

NODES = Registration(Event.NODE_ADDED, "Fit", None)
LABELS = Registration(Event.POD_LABELS_CHANGED, "Fit", None)


def test_counts_who_waits_in_which_queue() -> None:
    world = World()
    world.refuse("refused", "Fit")
    world.refuse("broken")
    world.close_gate("gated")
    for name in ("gated", "a", "b"):
        world.queue.add(pod(name))
    assert world.waiting() == {"active": 2, "backoff": 1, "unschedulable": 1, "gated": 1}
    world.pop()
    assert world.waiting()["active"] == 1


def test_counts_each_way_in() -> None:
    world = World(NODES, LABELS)
    old = pod("a")
    world.queue.add(old)
    world.send_back(world.pop(), "Fit")
    world.queue.move_all(Event.NODE_ADDED, None, None)
    world.send_back(world.pop())
    world.time += 60
    world.queue.flush_backoff()
    world.send_back(world.pop(), "Fit")
    world.queue.activate(["ns/a"])
    world.send_back(world.pop(), "Fit")
    world.time += 600
    world.queue.flush_unschedulable()
    world.send_back(world.pop(), "Fit")
    world.time += 60
    world.queue.update(old, pod("a", labels={"x": "y"}))
    world.queue.update(None, pod("b"))
    assert world.arrived() == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 4,
        ("backoff", "NodeAdd"): 1,
        ("active", "PopFromBackoffQ"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("active", "BackoffComplete"): 1,
        ("active", "ForceActivate"): 1,
        ("active", "UnschedulableTimeout"): 1,
        ("active", "UnschedulablePodUpdatePodLabel"): 1,
        ("active", "UnschedulablePodUpdate"): 1,
    }


def test_counts_a_gated_pod_once_however_often_it_knocks() -> None:
    world = World(Registration(Event.NODE_ADDED, "Gate", None))
    world.close_gate("a")
    world.queue.add(pod("a"))
    for _ in range(3):
        world.queue.move_all(Event.NODE_ADDED, None, None)
    assert world.arrived() == {("unschedulable", "UnschedulablePodAdd"): 1}
    assert world.refused() == {"Gate": 1}


def test_counts_each_rejector_until_the_pod_is_tried_again() -> None:
    world = World(NODES)
    world.refuse("a", "Fit", "Taint", pending=["Hold", "Fit"])
    world.refuse("b", "Fit")
    assert world.refused() == {"Fit": 2, "Taint": 1, "Hold": 1}
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert world.refused() == {"Fit": 2, "Taint": 1, "Hold": 1}, "woken is not yet tried"
    while world.queue.pop() is not None:
        pass
    assert world.refused() == {}


def test_counts_a_deleted_pod_no_more() -> None:
    world = World()
    made = world.refuse("a", "Fit")
    world.queue.delete(made)
    assert world.refused() == {}
