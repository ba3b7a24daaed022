"""Who fills the families that kube-scheduler fills while it runs."""

from collections.abc import Iterator

import pytest
from tests.queue.builders import World
from tests.queue.builders import pod as queued_pod
from tests.scheduler.recording import HEADER, configure

import mooring.framework as fw
from mooring.framework import OK, Status
from mooring.framework.events import Event
from mooring.observe.exposition import Exposition
from mooring.observe.metrics import Metrics
from mooring.queue.hints import Registration
from mooring.scheduler import attempts
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod


@pytest.fixture
def sim(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    monkeypatch.setattr(attempts, "_PLUGIN_TIMES_SAMPLED", 1.0)
    with Simulation() as made:
        yield made


def evaluations(metrics: Metrics, point: str) -> dict[str, float]:
    return {
        labels[0]: child.value
        for labels, child in metrics.plugin_evaluations
        if labels[1:] == (point, "default-scheduler")
    }


def test_knows_every_plugin_before_the_first_pod(sim: Simulation) -> None:
    metrics = sim.scheduler.metrics
    assert evaluations(metrics, "Filter")["NodeResourcesFit"] == 0
    assert evaluations(metrics, "Score")["ImageLocality"] == 0
    assert set(evaluations(metrics, "PreScore")) >= {"TaintToleration", "NodeAffinity"}
    points = {labels[1] for labels, _ in metrics.plugin_evaluations}
    assert points == {"PreFilter", "Filter", "PreScore", "Score"}


def test_counts_a_plugin_once_per_pod_before_and_once_per_node_after(sim: Simulation) -> None:
    sim.apply(*(node(f"n{i}", cpu=4) for i in range(3)))
    sim.schedule(pod("a", cpu=1), pod("b", cpu=2))  # the same answers would do for equal pods
    metrics = sim.scheduler.metrics
    assert evaluations(metrics, "PreFilter")["NodeResourcesFit"] == 2
    assert evaluations(metrics, "Filter")["NodeResourcesFit"] == 6
    assert evaluations(metrics, "PreScore")["NodeResourcesFit"] == 2
    assert evaluations(metrics, "Score")["NodeResourcesFit"] == 6


def test_does_not_count_a_plugin_that_skips(sim: Simulation) -> None:
    sim.apply(node("n1"), node("n2"))
    sim.schedule(pod("a", cpu=1))
    for point, plugin in (
        ("PreFilter", "PodTopologySpread"),
        ("Filter", "PodTopologySpread"),
        ("PreScore", "NodeAffinity"),
        ("Score", "NodeAffinity"),
    ):
        assert evaluations(sim.scheduler.metrics, point)[plugin] == 0


class Picky(fw.Filter):
    name = "Picky"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
        return OK if node.name == "n2" else Status.unschedulable("not this one")


def test_counts_the_nodes_a_per_node_plugin_was_asked_about() -> None:
    names = ["NodeName", "Picky", "PrioritySort", "DefaultBinder", "NodeResourcesFit"]
    config = HEADER + "profiles:\n" + configure(names)
    with Simulation(config=config, plugins=[Picky]) as sim:
        sim.apply(*(node(f"n{i}", cpu=i) for i in range(4)))
        sim.schedule(pod("a", cpu=1))
        # Of the four nodes the smallest one is refused by the vectorised plugins.
        assert evaluations(sim.scheduler.metrics, "Filter")["Picky"] == 3


def points(metrics: Metrics) -> set[tuple[str, str]]:
    return {(point, status) for (point, status, _), child in metrics.point_duration if child.count}


def test_calls_a_scan_that_refuses_every_node_a_success(sim: Simulation) -> None:
    sim.apply(node("n1", cpu=1))
    sim.schedule(pod("big", cpu=100))
    found = points(sim.scheduler.metrics)
    assert ("Filter", "Success") in found
    assert ("Filter", "Unschedulable") not in found


def test_times_the_points_of_a_bound_pod(sim: Simulation) -> None:
    sim.apply(node("n1"), node("n2"))
    sim.schedule(pod("a", cpu=1))
    assert points(sim.scheduler.metrics) >= {
        (point, "Success")
        for point in (
            *("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score"),
            *("Reserve", "Permit", "Bind", "PostBind"),
        )
    }


def hinted(answer: bool | None) -> Registration:
    def hint(event: object, pod: object, old: object, new: object) -> bool:
        if answer is None:
            raise RuntimeError("no idea")
        return answer

    return Registration(Event.NODE_ADDED, "Fit", hint)


@pytest.mark.parametrize(
    ("answer", "label"), [(True, "Queue"), (False, "QueueSkip"), (None, "Error")]
)
def test_measures_hints_by_plugin_event_and_answer(answer: bool | None, label: str) -> None:
    world = World(hinted(answer))
    for name in ("a", "b"):
        world.refuse(name, "Fit")
    world.queue.move_all(Event.NODE_ADDED, None, None)
    counts = {labels: child.count for labels, child in world.metrics.hint_duration}
    assert counts == {("Fit", "NodeAdd", label): 2}


def test_does_not_measure_what_has_no_hint() -> None:
    world = World(Registration(Event.NODE_ADDED, "Fit", None))
    world.refuse("a", "Fit")
    world.queue.move_all(Event.NODE_ADDED, None, None)
    assert not list(world.metrics.hint_duration)


def flights(world: World) -> dict[str, float]:
    world.metrics.refresh()
    return {labels[0]: child.value for labels, child in world.metrics.inflight_events}


def test_counts_pods_in_flight_and_the_events_kept_for_them() -> None:
    world = World(Registration(Event.NODE_ADDED, "Fit", None))
    assert flights(world) == {"PodPopped": 0}
    for name in ("a", "b"):
        world.queue.add(queued_pod(name))
    first, second = world.pop(), world.pop()
    for _ in range(3):
        world.queue.move_all(Event.NODE_ADDED, None, None)
    assert flights(world) == {"PodPopped": 2, "NodeAdd": 3}
    world.queue.done(first.pod.uid)
    world.queue.done(second.pod.uid)
    assert flights(world) == {"PodPopped": 0, "NodeAdd": 0}


def test_keeps_one_series_per_closed_set_whatever_pods_are_called(sim: Simulation) -> None:
    """Names, labels and messages come from whoever may create pods."""
    sim.apply(node("n1", cpu=1000), node("n2", cpu=1000))

    def names() -> set[str]:
        lines = Exposition(sim.scheduler.metrics).render().splitlines()
        # Which of the sampled plugin times have come up is chance.
        return {line.rpartition(" ")[0] for line in lines if "plugin_execution" not in line}

    sim.schedule(pod("first", cpu=1))
    before = names()
    for number in range(50):
        sim.schedule(pod(f"pod-{number}", cpu=1, labels={f"key-{number}": "x"}))
    assert names() == before
