import pytest
from tests.queue.builders import START, PriorityLess, World, pod

from mooring.framework.events import Event
from mooring.queue.hints import Registration

LABELS = Registration(Event.POD_LABELS_CHANGED, "Fit", None)
GATES = Registration(Event.POD_GATES_REMOVED, "Gate", None)
PODS_LEAVE = Registration(Event.POD_DELETED, "Fit", None)


def test_gives_pods_by_priority_then_by_age() -> None:
    world = World()
    for name, priority in (("old", 0), ("young", 0), ("urgent", 7)):
        world.queue.add(pod(name, priority=priority))
        world.time += 1
    assert [world.pop().pod.name for _ in range(3)] == ["urgent", "old", "young"]
    assert world.queue.pop() is None


def test_sorts_by_less_when_the_plugin_has_no_key() -> None:
    world = World(sort=PriorityLess())
    world.queue.add(pod("low"))
    world.queue.add(pod("high", priority=1))
    assert [world.pop().pod.name for _ in range(2)] == ["high", "low"]


def test_lists_what_waits_where() -> None:
    world = World()
    world.refuse("refused", "Fit")
    world.refuse("broken")
    world.close_gate("gated")
    for name in ("gated", "b", "a"):
        world.queue.add(pod(name))
    listed = {place: [p.name for p in pods] for place, pods in world.queue.pending().items()}
    assert listed == {
        "active": ["b", "a"],
        "backoff": ["broken"],
        "unschedulable": ["refused"],
        "gated": ["gated"],
    }
    assert {name: world.where(name) for names in listed.values() for name in names} == {
        name: place for place, names in listed.items() for name in names
    }
    assert len(world.queue) == 5
    assert "ns/gated" in world.queue
    assert "ns/unknown" not in world.queue
    assert world.where("unknown") is None


def test_gives_the_latest_version_of_a_waiting_pod() -> None:
    world = World()
    old, new = pod("a"), pod("a", priority=5)
    world.queue.add(pod("b", priority=1))
    world.queue.add(old)
    world.queue.update(old, new)
    assert world.pop().pod is new


def test_takes_a_second_add_for_an_update() -> None:
    world = World()
    world.queue.add(pod("a"))
    again = pod("a", labels={"x": "y"})
    world.queue.add(again)
    assert world.pop().pod is again
    assert world.queue.pop() is None


def test_ignores_an_update_that_changes_nothing() -> None:
    world = World(LABELS)
    old = world.refuse("a", "Fit", version="7")
    world.queue.update(old, pod("a", version="7", labels={"x": "y"}))
    assert world.where("a") == "unschedulable"


def test_takes_an_update_of_an_unknown_pod_for_a_new_one() -> None:
    world = World()
    world.queue.update(pod("a"), pod("a", labels={"x": "y"}))
    world.queue.update(None, pod("b"))
    assert (world.where("a"), world.where("b")) == ("active", "active")


def test_keeps_a_changed_pod_in_backoff_where_it_is() -> None:
    world = World(LABELS)
    old = world.refuse("a")
    new = pod("a", labels={"x": "y"})
    world.queue.update(old, new)
    assert world.queue.pending()["backoff"] == [new]


@pytest.mark.parametrize(
    ("plugin", "seconds", "place"),
    [("Fit", 0, "backoff"), ("Fit", 5, "active"), ("Taint", 5, "unschedulable")],
)
def test_retries_a_refused_pod_when_its_own_update_helps(
    plugin: str, seconds: float, place: str
) -> None:
    world = World(LABELS)
    old = world.refuse("a", plugin)
    world.time += seconds
    new = pod("a", labels={"x": "y"})
    world.queue.update(old, new)
    assert world.where("a") == place
    assert [p for pods in world.queue.pending().values() for p in pods] == [new]


def test_lets_a_gated_pod_in_when_its_gates_are_gone() -> None:
    world = World(GATES)
    world.close_gate("a")
    old = pod("a", gates=["x"])
    world.queue.add(old)
    assert world.where("a") == "gated"
    world.open_gate("a")
    world.queue.update(old, pod("a"))
    assert world.where("a") == "active"
    assert world.gate_calls == [("ns/a", ""), ("ns/a", "Gate")]


def test_asks_the_gate_again_on_every_update_the_gating_plugin_waits_for() -> None:
    world = World(Registration(Event.POD_LABELS_CHANGED, "Gate", None))
    world.close_gate("a")
    old = pod("a")
    world.queue.add(old)
    new = pod("a", labels={"x": "y"})
    world.queue.update(old, new)
    assert world.where("a") == "gated"
    assert len(world.gate_calls) == 2
    assert world.queue.pending()["gated"] == [new]


def test_forgets_a_deleted_pod_wherever_it_is() -> None:
    world = World()
    gone = [world.refuse("refused", "Fit"), world.refuse("broken"), pod("ready"), pod("gated")]
    world.close_gate("gated")
    for made in gone[2:]:
        world.queue.add(made)
    for made in gone:
        world.queue.delete(made)
    assert len(world.queue) == 0
    assert world.refused() == {}
    assert set(world.waiting().values()) == {0.0}


class TestTwoLivesOfOneName:
    def test_an_update_to_another_uid_is_a_new_pod(self) -> None:
        world = World()
        first = world.refuse("a", "Fit")
        second = pod("a", uid="second")
        world.queue.update(first, second)
        queued = world.pop()
        assert (queued.pod, queued.attempts, queued.unschedulable_count) == (second, 1, 0)
        assert world.refused() == {}

    def test_an_add_over_another_uid_is_a_new_pod(self) -> None:
        world = World()
        world.refuse("a", "Fit")
        second = pod("a", uid="second")
        world.queue.add(second)
        assert world.queue.pending()["active"] == [second]
        assert world.queue.pending()["unschedulable"] == []

    def test_an_update_of_the_second_life_replaces_a_first_one_left_behind(self) -> None:
        world = World()
        world.refuse("a", "Fit")
        second = pod("a", uid="second", labels={"x": "y"})
        world.queue.update(pod("a", uid="second"), second)
        assert world.pop().pod is second

    def test_a_late_delete_of_the_first_life_spares_the_second(self) -> None:
        world = World()
        world.queue.add(pod("a", uid="second"))
        world.queue.delete(pod("a", uid="first"))
        assert world.where("a") == "active"

    def test_the_first_life_still_in_flight_does_not_come_back(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        world = World()
        first, second = pod("a"), pod("a", uid="second")
        world.queue.add(first)
        queued = world.pop()
        world.queue.update(first, second)
        world.send_back(queued, "Fit")
        assert world.queue.pending()["active"] == [second]
        assert "Pod ns/a is already present in the active queue" in caplog.text
        assert len(world.queue.in_flight) == 0

    def test_an_update_of_the_first_life_in_flight_spares_the_second(self) -> None:
        world = World()
        first, second = pod("a"), pod("a", uid="second")
        world.queue.add(first)
        world.pop()
        world.queue.add(second)
        world.queue.update(first, pod("a", labels={"x": "y"}))
        assert world.queue.pending()["active"] == [second]


class TestNominations:
    def test_come_with_a_pod_that_becomes_active(self) -> None:
        world = World()
        world.close_gate("gated")
        made = pod("a", nominated="n1")
        world.queue.add(made)
        world.queue.add(pod("gated", nominated="n1"))
        assert world.queue.nominator.nominated_on("n1") == (made,)

    def test_follow_updates_and_end_with_the_pod(self) -> None:
        world = World()
        made = [pod("a", nominated="n1"), pod("a", nominated="n2")]
        world.queue.add(made[0])
        world.queue.update(*made)
        assert list(world.queue.nominator.nominated_nodes()) == ["n2"]
        world.queue.delete(made[1])
        assert list(world.queue.nominator.nominated_nodes()) == []

    @pytest.mark.parametrize("change", ["clear", "move", "delete", "delete unwritten"])
    def test_wake_pods_of_no_higher_priority_when_they_end(self, change: str) -> None:
        world = World(PODS_LEAVE)
        world.refuse("lower", "Fit", priority=1)
        world.refuse("higher", "Fit", priority=3)
        world.time += 60
        written = "" if change == "delete unwritten" else "n1"
        claimant = pod("claimant", priority=2, nominated=written)
        world.close_gate("claimant")
        world.queue.add(claimant)
        world.queue.nominator.nominate(claimant, "n1")
        if change.startswith("delete"):
            world.queue.delete(claimant)
        else:
            node = "n2" if change == "move" else ""
            world.queue.update(claimant, pod("claimant", priority=2, nominated=node))
        assert (world.where("lower"), world.where("higher")) == ("active", "unschedulable")

    @pytest.mark.parametrize("how", ["said", "seen", "unchanged", "gained"])
    def test_wake_nobody_when_they_are_fulfilled_or_kept(self, how: str) -> None:
        world = World(PODS_LEAVE)
        world.refuse("other", "Fit")
        before = "" if how == "gained" else "n1"
        claimant = pod("claimant", nominated=before)
        world.close_gate("claimant")
        world.queue.add(claimant)
        if how == "said":
            world.queue.delete(claimant, bound=True)
        elif how == "seen":
            world.queue.delete(pod("claimant", nominated="n1", node="n1"))
        else:
            world.queue.update(claimant, pod("claimant", nominated="n1", labels={"x": "y"}))
        assert world.where("other") == "unschedulable"


def test_remembers_when_a_pod_entered() -> None:
    world = World()
    world.close_gate("a")
    world.queue.add(pod("a"))
    world.time += 100
    world.open_gate("a")
    world.queue.activate(["ns/a"])
    queued = world.pop()
    assert queued.timestamp == START
    assert queued.first_attempt_at == START + 100
