"""What plugins are given is theirs to read: a hand that writes is named and changes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.scheduler.misbehaving import cornered, try_the_victim_and_then_an_innocent
from tests.scheduler.recording import Log, probe, world

import mooring.framework as fw
from mooring.testing.builders import node, pod

POD: dict[str, Callable[[Any], Any]] = {
    "a label": lambda pod: pod.labels.__setitem__("app", "y"),
    "a label of the object": lambda pod: pod.api.metadata.labels.update(app="y"),
    "an annotation": lambda pod: pod.annotations.setdefault("x", "y"),
    "its node": lambda pod: setattr(pod, "node_name", "b"),
    "its node in the spec": lambda pod: setattr(pod.spec, "node_name", "b"),
    "its name": lambda pod: delattr(pod, "name"),
    "a new attribute": lambda pod: setattr(pod, "mark", 1),
    "the object": lambda pod: setattr(pod, "api", None),
    "containers": lambda pod: pod.spec.containers.append(pod.spec.containers[0]),
    "a container": lambda pod: setattr(pod.spec.containers[0], "name", "x"),
    "tolerations": lambda pod: setattr(pod.spec, "tolerations", ()),
    "requests": lambda pod: pod.all_requests.__setitem__("cpu", 0),
    "raw requests": lambda pod: pod.spec.containers[0].resources.requests.clear(),
    "conditions": lambda pod: pod.status.conditions.append(None),
}


@pytest.mark.parametrize("what", POD)
@pytest.mark.parametrize("point", ["pre_filter", "filter", "score", "reserve", "pre_bind", "bind"])
def test_a_pod_cannot_be_written_to(point: str, what: str) -> None:
    log: Log = []

    def meddle(state: Any, pod: Any, *_: Any) -> Any:
        POD[what](pod)
        return fw.SKIP if point == "bind" else 0 if point == "score" else fw.OK

    with cornered(point, meddle, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, point)
    assert outcome.startswith("error backoff: running ")
    assert '"First"' in outcome


COLUMNS: dict[str, Callable[[Any], Any]] = {
    "allocatable": lambda nodes: nodes.allocatable("cpu"),
    "requested": lambda nodes: nodes.requested("cpu"),
    "what nobody has": lambda nodes: nodes.allocatable("example.com/gpu"),
    "spare": lambda nodes: nodes.spare("memory"),
    "nonzero": lambda nodes: nodes.nonzero_requested("memory"),
    "counts": lambda nodes: nodes.pod_counts,
    "unschedulable": lambda nodes: nodes.unschedulable,
    "labels": lambda nodes: nodes.label_codes("kubernetes.io/hostname"),
    "pods": lambda nodes: nodes.count_pods("all", lambda pod: True),
    "domains": lambda nodes: nodes.count_pods_by("zone", "all", lambda pod: True),
    "names": lambda nodes: nodes.names,
    "some": lambda nodes: nodes.take(np.array([0])).allocatable("cpu"),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_columns_cannot_be_written_to(what: str) -> None:
    log: Log = []

    def meddle(state: Any, pod: Any, nodes: Any) -> fw.Status:
        COLUMNS[what](nodes)[0] = 1
        return fw.OK

    with cornered("pre_filter", meddle, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, "pre_filter")
    assert outcome.startswith('error backoff: running PreFilter plugin "First": ')


NODE: dict[str, Callable[[Any], Any]] = {
    "a label": lambda node: node.labels.__setitem__("zone", "y"),
    "a taint": lambda node: node.taints.append(None),
    "its spec": lambda node: setattr(node.api.spec, "unschedulable", True),
    "its resources": lambda node: node.api.status.allocatable.clear(),
    "its pods": lambda node: node.pods.append(None),
}


@pytest.mark.parametrize("what", NODE)
def test_a_node_cannot_be_written_to(what: str) -> None:
    log: Log = []

    def meddle(state: Any, pod: Any, node: Any) -> fw.Status:
        NODE[what](node)
        return fw.OK

    with cornered("filter", meddle, log) as sim:
        outcome = try_the_victim_and_then_an_innocent(sim, log, "filter")
    assert outcome.startswith('error backoff: running "First" filter plugin: ')


VERDICTS: dict[str, Callable[[Any], Any]] = {
    "statuses": lambda verdicts: verdicts.statuses.clear(),
    "size": lambda verdicts: setattr(verdicts, "size", 7),
    "one": lambda verdicts: verdicts.set(0, fw.OK),
    "all": lambda verdicts: setattr(verdicts, "index", None),
}


@pytest.mark.parametrize("what", VERDICTS)
def test_verdicts_can_be_scribbled_on_without_changing_what_others_read(what: str) -> None:
    log: Log = []
    seen: list[list[str]] = []

    def scribble(self: Any, state: Any, pod: Any, nodes: Any, verdicts: Any) -> fw.Status:
        VERDICTS[what](verdicts)
        return fw.Status.unschedulable()

    def read(self: Any, state: Any, pod: Any, nodes: Any, verdicts: Any) -> fw.Status:
        seen.append([verdicts.status(row).message for row in range(len(nodes))])
        return fw.Status.unschedulable()

    first = probe("First", log, filter=fw.Status.unschedulable("full"), post_filter=scribble)
    with world(first, probe("Second", log, post_filter=read)) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == "0/2 nodes are available: 2 full."
        assert seen == [["full", "full"]]
        verdicts = sim.attempts[0].decision.verdicts
        assert verdicts is not None
        assert [verdicts.status(row).message for row in range(2)] == ["full", "full"]


def test_the_numbers_of_verdicts_are_read_only_after_filter() -> None:
    log: Log = []

    def scribble(self: Any, state: Any, pod: Any, nodes: Any, verdicts: Any) -> fw.Status:
        verdicts.index.fill(0)
        return fw.Status.unschedulable()

    first = probe("First", log, filter=fw.Status.unschedulable("full"), post_filter=scribble)
    with world(first) as sim:
        sim.schedule(pod("p"))
        assert "read-only" in sim.why("p")
        verdicts = sim.attempts[0].decision.verdicts
        assert verdicts is not None
        assert [verdicts.status(row).message for row in range(2)] == ["full", "full"]


BROKEN: dict[str, Callable[[Any], Any]] = {
    "no Status": lambda verdicts: verdicts.statuses.append("full"),
    "a number nobody gave": lambda verdicts: setattr(verdicts, "index", np.array([7, 0])),
    "a negative number": lambda verdicts: setattr(verdicts, "index", np.array([-1, 0])),
    "fractions": lambda verdicts: setattr(verdicts, "index", np.array([0.5, 0.0])),
    "a list": lambda verdicts: setattr(verdicts, "index", [0, 0]),
    "too many": lambda verdicts: setattr(verdicts, "index", np.array([0, 0, 0])),
    "a size of its own": lambda verdicts: setattr(verdicts, "size", "two"),
    "statuses that are none": lambda verdicts: setattr(verdicts, "statuses", None),
}


@pytest.mark.parametrize("what", BROKEN)
def test_verdicts_that_make_no_sense_are_refused(what: str) -> None:
    class Vector(fw.Filter):
        name = "Vector"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
            return fw.OK

        def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
            verdicts = fw.Verdicts.passing(nodes)
            if pod.name == "victim":
                BROKEN[what](verdicts)
            return verdicts

    with world(Vector) as sim:
        sim.schedule(pod("victim"), pod("innocent"))
        assert sim.why("victim").startswith('running "Vector" filter plugin: returned ')
        assert sim.why("victim").endswith(", expected Verdicts for 2 nodes")
        assert sim.node_of("innocent") == "a"


def test_an_array_that_a_plugin_keeps_is_not_the_one_that_decides() -> None:
    kept: list[fw.IntArray] = []

    class Keeper(fw.Score):
        name = "Keeper"

        def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
            return 0

        def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
            kept.append(np.array([0, 50]))
            return kept[-1]

    class Spoiler(fw.Score):
        name = "Spoiler"

        def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
            kept[-1][:] = [10**6, 0]
            return 0

    with world(Keeper, Spoiler, nodes=[]) as sim:
        sim.apply(node("a"), node("b"))
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "b"
        scores = sim.attempts[0].decision.scores
        assert scores is not None
        assert scores.totals.tolist() == [0, 50]


@pytest.mark.parametrize("point", ["pre_score", "reserve", "permit"])
def test_a_state_that_a_plugin_empties_costs_nobody_the_scheduler(point: str) -> None:
    log: Log = []

    def empty(self: Any, state: Any, *_: Any) -> fw.Status:
        for key in list(state):
            del state[key]
        return fw.OK

    with world(probe("First", log, **{point: empty}), probe("Second", log)) as sim:
        sim.schedule(pod("p"), pod("q"))
        assert sim.node_of("p")
        assert sim.node_of("q")
