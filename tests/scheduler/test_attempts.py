"""Which pods are tried at all, and which nodes are looked at."""

import pytest
from tests.scheduler.recording import (
    HEADER,
    Log,
    configure,
    notes,
    place,
    probe,
    reason,
    rejectors,
    world,
)

import mooring.framework as fw
from mooring.framework import OK, OnlyNodes, Status
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod


def test_says_so_when_there_is_no_node_at_all() -> None:
    log: Log = []
    with world(probe("First", log), nodes=[]) as sim:
        sim.schedule(pod("p", nominated="gone"))
        assert sim.why("p") == "no nodes available to schedule pods"
        assert reason(sim, "p") == "Unschedulable"
        assert notes(sim, "p") == ["FailedScheduling: no nodes available to schedule pods"]
        assert place(sim, "p") == "error backoff"
        assert rejectors(sim, "p") == ""
        assert sim.pod("p").status.nominated_node_name == ""
        assert set(log) == {"First.pre_enqueue"}
        sim.apply(node("a"))
        sim.advance(2)
        assert sim.node_of("p") == "a"


def test_does_not_try_a_pod_that_is_going_away() -> None:
    log: Log = []
    with world(probe("First", log)) as sim:
        sim.schedule(pod("p", deleting=True))
        assert notes(sim, "p") == ["FailedScheduling: skip schedule deleting pod: default/p"]
        assert sim.attempts == []
        assert len(sim.scheduler.queue) == 0
        assert sim.why("p") == ""


def test_leaves_the_pods_of_other_schedulers_alone() -> None:
    log: Log = []
    with world(probe("First", log)) as sim:
        sim.schedule(pod("p", scheduler="somebody-else"))
        assert log == []
        assert sim.events == []
        assert len(sim.scheduler.queue) == 0


def test_leaves_bound_and_finished_pods_alone() -> None:
    log: Log = []
    with world(probe("First", log), nodes=["a"]) as sim:
        sim.schedule(pod("bound", on="a", cpu=1), pod("done", phase="Succeeded"))
        assert log == []
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [1000]


def test_each_profile_has_plugins_and_settings_of_its_own() -> None:
    log: Log = []
    refuses = probe("Refuses", log, filter=Status.unschedulable("not mine"))
    counts = probe("Counts", log)
    text = HEADER + "profiles:\n"
    text += configure(["Refuses", "PrioritySort", "DefaultBinder"], scheduler="strict")
    text += configure(["Counts", "PrioritySort", "DefaultBinder"], scheduler="lax")
    with Simulation(config=text, plugins=[refuses, counts]) as sim:
        sim.apply(node("a"), node("b"))
        sim.schedule(pod("p", scheduler="strict"), pod("q", scheduler="lax"))
        assert sim.why("p") == "0/2 nodes are available: 2 not mine."
        assert sim.node_of("q") == "a"
        assert sorted(sim.scheduler.runtimes) == ["lax", "strict"]
        assert "Refuses.filter" in log
        assert "Counts.bind" in log
        assert "Refuses.bind" not in log
        assert sim.scheduler.runtimes["lax"].handle.scheduler_name == "lax"


def test_does_not_score_when_there_is_no_choice() -> None:
    log: Log = []
    only_b = probe(
        "First", log, filter=lambda self, s, p, n: OK if n.name == "b" else Status.unschedulable()
    )
    with world(only_b, nodes=[*"abc"]) as sim:
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "b"
        assert "First.pre_score" not in log
        assert "First.score" not in log
        assert sim.attempts[0].decision.scores is None
        assert sim.attempts[0].decision.feasible == ("b",)


NO_SCORES = "score: {disabled: [{name: '*'}]}\npreScore: {disabled: [{name: '*'}]}"


def test_takes_turns_when_nobody_scores() -> None:
    log: Log = []
    with world(probe("First", log), nodes=[*"abc"], plugins=NO_SCORES) as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(4)))
        assert [node for _, node in sim.cluster.bindings] == ["a", "b", "c", "a"]
        assert log.count("First.filter") == 4


def test_takes_turns_without_any_filter_too() -> None:
    with world(nodes=[*"abc"]) as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(4)))
        assert [node for _, node in sim.cluster.bindings] == ["a", "b", "c", "a"]


def test_all_profiles_take_turns_together() -> None:
    text = HEADER + "profiles:\n"
    for name in ("one", "two"):
        text += configure(["PrioritySort", "DefaultBinder"], scheduler=name)
    with Simulation(config=text) as sim:
        sim.apply(*(node(name) for name in "abc"))
        sim.schedule(
            *(pod(f"p{i}", scheduler=scheduler) for i, scheduler in enumerate(["one", "two"] * 2))
        )
        assert [node for _, node in sim.cluster.bindings] == ["a", "b", "c", "a"]


def test_walks_on_past_nodes_that_refuse() -> None:
    log: Log = []
    picky = probe(
        "First", log, filter=lambda self, s, p, n: OK if n.name in "bd" else Status.unschedulable()
    )
    with world(picky, nodes=[*"abcd"], plugins=NO_SCORES) as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(3)))
        assert [node for _, node in sim.cluster.bindings] == ["b", "d", "b"]


NAMES = [f"n{i:03}" for i in range(250)]


def sampled(log: Log, percentage: str, **answers: object) -> Simulation:
    return world(
        probe("First", log, **answers),
        nodes=NAMES,
        more=f"percentageOfNodesToScore: {percentage}",
    )


@pytest.mark.parametrize(("percentage", "wanted"), [("1", 100), ("60", 150), ("100", 250)])
def test_looks_at_as_many_nodes_as_the_percentage_says(percentage: str, wanted: int) -> None:
    log: Log = []
    with sampled(log, percentage) as sim:
        sim.schedule(pod("p"))
        assert log.count("First.filter") == wanted
        assert log.count("First.score") == wanted
        assert len(sim.attempts[0].decision.feasible) == wanted


def test_begins_where_the_last_scan_ended() -> None:
    log: Log = []
    with sampled(log, "40") as sim:
        sim.schedule(*(pod(f"p{i}") for i in range(3)))
        feasible = [attempt.decision.feasible for attempt in sim.attempts]
        assert feasible[0] == tuple(NAMES[:100])
        assert feasible[1] == tuple(NAMES[100:200])
        assert feasible[2] == tuple(NAMES[:50] + NAMES[200:])


def test_never_counts_a_node_as_feasible_that_no_filter_was_asked_about() -> None:
    log: Log = []

    def even(self: object, state: object, pod: object, node: fw.Node) -> Status:
        return OK if int(node.name[1:]) % 2 == 0 else Status.unschedulable("odd")

    with sampled(log, "1", filter=even) as sim:
        sim.schedule(pod("p"), pod("q"))
        first, second = (attempt.decision.feasible for attempt in sim.attempts)
        assert first == tuple(NAMES[:200:2])
        assert second == tuple(sorted(NAMES[200::2] + NAMES[:150:2]))


def test_the_profile_has_the_last_word_on_the_percentage() -> None:
    log: Log = []
    with world(
        probe("First", log),
        nodes=NAMES,
        settings="percentageOfNodesToScore: 50\n",
        more="percentageOfNodesToScore: 80",
    ) as sim:
        sim.schedule(pod("p"))
        assert log.count("First.filter") == 200
    log.clear()
    with world(probe("First", log), nodes=NAMES, settings="percentageOfNodesToScore: 50\n") as sim:
        sim.schedule(pod("p"))
        assert log.count("First.filter") == 125


def test_looks_at_all_nodes_unless_told_otherwise() -> None:
    log: Log = []
    with world(probe("First", log), nodes=NAMES) as sim:
        sim.schedule(pod("p"))
        assert log.count("First.score") == 250


def test_the_percentage_is_of_the_nodes_that_were_left_to_look_at() -> None:
    log: Log = []
    with sampled(log, "60", pre_filter=OnlyNodes.of(NAMES[:120])) as sim:
        sim.schedule(pod("p"))
        assert sim.attempts[0].decision.feasible == tuple(NAMES[:100])


@pytest.mark.parametrize(("part", "method"), [("cycle", "decide"), ("binder", "reserve")])
def test_survives_an_accident_of_its_own_and_tries_again(
    part: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Log = []

    def broken(*_: object) -> object:
        raise RuntimeError("our fault")

    with world(probe("First", log)) as sim:
        runtime = sim.scheduler.runtimes["default-scheduler"]
        with monkeypatch.context() as patch:
            patch.setattr(getattr(runtime, part), method, broken)
            sim.schedule(pod("p", cpu=1))
        assert sim.why("p") == "RuntimeError: our fault"
        assert place(sim, "p") == "error backoff"
        assert sim.scheduler.cache.pod_count == 0
        sim.advance(2)
        assert sim.node_of("p") == "a"
