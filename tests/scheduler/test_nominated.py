"""Pods with a claim on a node: where they look first, and what others leave them."""

from typing import Any

from tests.scheduler.recording import Log, notes, place, probe, rejectors, world

import mooring.framework as fw
from mooring.framework import OK, SKIP, Nominate, Status, Wait
from mooring.testing.builders import node, pod

FIT = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")


def prefer_a(self: Any, state: Any, pod: Any, node: fw.Node) -> int:
    return 100 if node.name == "a" else 0


def test_looks_at_the_nominated_node_first_and_no_further() -> None:
    log: Log = []
    with world(probe("First", log, score=prefer_a), nodes=[*"abc"]) as sim:
        sim.schedule(pod("p", nominated="c"))
        assert sim.node_of("p") == "c"
        assert log.count("First.filter") == 1
        assert "First.score" not in log
        assert sim.attempts[0].decision.evaluated == 1


def test_looks_at_all_when_the_nominated_node_does_not_fit() -> None:
    log: Log = []

    def not_c(self: Any, state: Any, pod: Any, node: fw.Node) -> Status:
        return Status.unschedulable("full") if node.name == "c" else OK

    with world(probe("First", log, filter=not_c, score=prefer_a), nodes=[*"abc"]) as sim:
        sim.schedule(pod("p", nominated="c"))
        assert sim.node_of("p") == "a"


def test_looks_at_all_when_the_nominated_node_is_gone() -> None:
    log: Log = []
    with world(probe("First", log, score=prefer_a), nodes=[*"abc"]) as sim:
        sim.schedule(pod("p", nominated="gone"))
        assert sim.node_of("p") == "a"


def test_an_error_on_the_nominated_node_comes_up_in_the_full_scan() -> None:
    log: Log = []
    with world(probe("First", log, filter=Status.error("broke"))) as sim:
        sim.schedule(pod("p", nominated="a"))
        assert sim.why("p") == 'running "First" filter plugin: broke'
        assert place(sim, "p") == "error backoff"


def nominate_big(self: Any, state: Any, pod: fw.Pod, nodes: Any, verdicts: Any) -> object:
    return Nominate("a") if pod.name == "big" else Status.unschedulable()


def test_leaves_the_room_to_a_pod_of_the_same_or_higher_priority() -> None:
    log: Log = []
    preempts = probe("First", log, post_filter=nominate_big)
    with world(preempts, nodes=["a"], with_plugins=FIT) as sim:
        sim.apply(pod("resident", cpu=3, on="a"))
        sim.schedule(pod("big", cpu=4, priority=5))
        assert sim.pod("big").status.nominated_node_name == "a"
        sim.schedule(pod("equal", cpu=1, priority=5), pod("lower", cpu=1))
        assert sim.why("equal") == "0/1 nodes are available: 1 Insufficient cpu."
        assert place(sim, "lower") == "unschedulable"
        assert rejectors(sim, "lower") == "NodeResourcesFit"
        sim.schedule(pod("higher", cpu=1, priority=6))
        assert sim.node_of("higher") == "a"


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    log: Log = []
    preempts = probe("First", log, post_filter=nominate_big)
    with world(preempts, nodes=["a"], with_plugins=FIT) as sim:
        resident = pod("resident", cpu=3, on="a")
        sim.apply(resident)
        sim.schedule(pod("big", cpu=3, priority=5))
        sim.delete(resident)
        sim.settle()
        sim.advance(2)
        assert sim.node_of("big") == "a"
        assert sim.pod("big").status.nominated_node_name == ""
        assert list(sim.scheduler.queue.nominator.nominated_on("a")) == []


def beside_nominated(log: Log, **answers: Any) -> tuple[Any, Any]:
    """A world where pod "big" has a claim on node "a", and the plugin First keeps books."""

    def full_for_big(self: Any, state: Any, pod: fw.Pod, node: fw.Node) -> Status:
        if pod.name == "big":
            return Status.unschedulable("full")
        crowded = any(resident.name == "big" for resident in node.pods)
        return Status.unschedulable("beside big") if crowded else OK

    given = {"filter": full_for_big, "post_filter": nominate_big, **answers}
    sim = world(probe("First", log, **given), nodes=["a"])
    sim.schedule(pod("big", priority=5))
    log.clear()
    return sim, pod("p")


def test_filters_with_the_claims_and_without() -> None:
    log: Log = []
    seen: list[tuple[list[str], bool]] = []

    def look(self: Any, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
        if pod.name == "big":
            return Status.unschedulable("full")
        seen.append(([resident.name for resident in node.pods], KEY in state))
        return OK

    def book(self: Any, state: fw.CycleState, pod: Any, added: fw.Pod, node: fw.Node) -> Status:
        assert added.name == "big"
        assert [resident.name for resident in node.pods] == ["big"]
        state[KEY] = 1
        return OK

    KEY: fw.StateKey[int] = fw.StateKey("booked")
    sim, p = beside_nominated(log, filter=look, add_pod=book)
    with sim:
        sim.schedule(p)
        assert sim.node_of("p") == "a"
        assert sorted(seen) == [([], False), (["big"], True)]


def test_refuses_what_does_not_fit_beside_the_claims() -> None:
    log: Log = []
    sim, p = beside_nominated(log)
    with sim:
        sim.schedule(p)
        assert sim.why("p") == "0/1 nodes are available: 1 beside big."
        assert log.count("First.add_pod") == 1


def test_a_plugin_that_skips_keeps_no_books() -> None:
    log: Log = []
    sim, p = beside_nominated(
        log, pre_filter=lambda self, s, pod, n: OK if pod.name == "big" else SKIP
    )
    with sim:
        sim.schedule(p)
        assert sim.node_of("p") == "a"
        assert "First.add_pod" not in log
        assert "First.filter" not in log


def test_an_accident_in_the_books_ends_the_attempt() -> None:
    log: Log = []
    sim, p = beside_nominated(log, add_pod=Status.unschedulable("lost count"))
    with sim:
        sim.schedule(p)
        assert sim.why("p") == 'running AddPod on PreFilter plugin "First": lost count'
        assert notes(sim, "p") == [f"FailedScheduling: {sim.why('p')}"]
        assert place(sim, "p") == "error backoff"


def test_asks_every_filter_about_the_node_it_takes_instead() -> None:
    log: Log = []

    def not_b(self: Any, state: Any, pod: fw.Pod, node: fw.Node) -> Status:
        refused = node.name == "b" or pod.name == "big"
        return Status.unschedulable("full") if refused else OK

    def beside(self: Any, state: Any, pod: fw.Pod, node: fw.Node) -> Status:
        return Status.unschedulable("beside big") if node.pods else OK

    no_scores = "score: {disabled: [{name: '*'}]}\npreScore: {disabled: [{name: '*'}]}"
    first = probe("First", log, filter=not_b, post_filter=nominate_big)
    with world(
        first, probe("Second", log, filter=beside), nodes=[*"abc"], plugins=no_scores
    ) as sim:
        sim.schedule(pod("big", priority=5))
        assert sim.pod("big").status.nominated_node_name == "a"
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "c"


def test_a_claim_ends_with_its_pod() -> None:
    log: Log = []
    preempts = probe("First", log, post_filter=nominate_big)
    with world(preempts, nodes=["a"], with_plugins=FIT) as sim:
        sim.apply(pod("resident", cpu=3, on="a"))
        big = pod("big", cpu=4, priority=5)
        sim.schedule(big)
        sim.schedule(pod("p", cpu=1))
        assert place(sim, "p") == "unschedulable"
        sim.delete(big)
        sim.settle()
        sim.advance(2)
        assert sim.node_of("p") == "a"


def test_a_new_node_is_looked_at_by_those_who_wait_for_room() -> None:
    log: Log = []
    preempts = probe("First", log, post_filter=nominate_big)
    with world(preempts, nodes=["a"], with_plugins=FIT) as sim:
        sim.apply(pod("resident", cpu=3, on="a"))
        sim.schedule(pod("big", cpu=4, priority=5))
        sim.apply(node("b"))
        sim.settle()
        assert sim.node_of("big") == "b"


def test_what_is_said_beside_the_claims_stands_in_the_record() -> None:
    log: Log = []

    class Vector(fw.Filter):
        name = "Vector"
        wakes_on = ()

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
            return Status.unschedulable("full")

        def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
            return fw.Verdicts.passing(nodes).reject_all(Status.unschedulable("full"))

    def sociable(self: Any, state: Any, pod: fw.Pod, node: fw.Node) -> Status:
        return OK if node.pods else Status.unschedulable("lonely")

    first = probe("First", log, filter=sociable, post_filter=nominate_big)
    with world(first, Vector, nodes=["a"]) as sim:
        sim.schedule(pod("big", priority=5))
        assert sim.why("big") == "0/1 nodes are available: 1 lonely."
        sim.schedule(pod("p"))
        assert sim.why("p") == "0/1 nodes are available: 1 full."


def test_takes_an_announced_node_back_when_the_binding_fails() -> None:
    log: Log = []
    refuse = Status.unschedulable("no")
    with world(probe("First", log, pre_bind=lambda self, state, p, n: _unless(p, refuse))) as sim:
        sim.schedule(pod("victim"))
        assert sim.pod("victim").status.nominated_node_name == ""
        assert not list(sim.scheduler.queue.nominator.nominated_nodes())


def _unless(p: Any, refusal: Status) -> Any:
    return refusal if p.name == "victim" else OK


def test_leaves_the_place_to_others_after_a_refusal_at_pre_bind() -> None:
    log: Log = []
    refuse = Status.unschedulable("no")
    first = probe("First", log, pre_bind=lambda self, state, p, n: _unless(p, refuse))
    with world(first, with_plugins=FIT, nodes=["a"]) as sim:
        sim.schedule(pod("victim", cpu=4))
        sim.schedule(pod("other", cpu=4))
        assert sim.node_of("other") == "a"


def test_does_not_retry_at_once_a_pod_that_is_refused_while_it_waits() -> None:
    log: Log = []
    impatient = probe("First", log, permit=Wait(0), wakes_on=None)
    with world(impatient) as sim:
        sim.schedule(pod("p"))  # would never settle if its own status woke it
        assert sim.where("p") == "unschedulable"
        assert len(sim.attempts) == 1
