"""Every status code at every point up to the choice of a node."""

from typing import NamedTuple

import pytest
from tests.scheduler.recording import (
    Log,
    after,
    notes,
    once,
    place,
    probe,
    reason,
    rejectors,
    world,
)

from mooring.framework import OK, SKIP, Code, Nominate, OnlyNodes, Status
from mooring.testing.builders import pod

BOUND = (
    "First.reserve Second.reserve First.permit Second.permit First.pre_flight Second.pre_flight "
    "First.pre_bind Second.pre_bind First.bind Second.bind First.post_bind Second.post_bind"
)
SCORED = "First.score First.normalize_score Second.score Second.normalize_score"
PRE_SCORED = f"First.pre_score Second.pre_score {SCORED} {BOUND}"
FILTERED = f"First.filter Second.filter {PRE_SCORED}"


def said(code: Code) -> Status:
    return Status(code, ("no way",))


class Row(NamedTuple):
    """What follows from a code: the calls, where the pod is, why, and who may wake it."""

    calls: str
    place: str
    why: str = ""
    reason: str = ""
    rejectors: str = ""


def check(point: str, code: Code, row: Row) -> None:
    log: Log = []
    with world(probe("First", log, **{point: said(code)}), probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        assert after(log, point) == row.calls
        assert place(sim, "p") == row.place
        assert sim.why("p") == row.why
        assert reason(sim, "p") == row.reason
        assert rejectors(sim, "p") == row.rejectors
        note = f"FailedScheduling: {row.why}" if row.why else "Scheduled: Successfully assigned "
        if row.place != "gated":
            assert [text[: len(note)] for text in notes(sim, "p")] == [note]


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.SUCCESS])
def test_pre_enqueue_gates_the_pod_whatever_the_refusal_is_called(code: Code) -> None:
    log: Log = []
    first = probe("First", log, pre_enqueue=said(code))
    with world(first, probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        assert once(log) == "First.pre_enqueue"
        assert place(sim, "p") == "gated"
        assert rejectors(sim, "p") == "First"
        assert sim.why("p").startswith("gated by the PreEnqueue plugin First: ")
        assert sim.why("p").endswith("no way")
        assert notes(sim, "p") == [f"SchedulingGated: {sim.why('p')}"]
        assert sim.pod("p").status.conditions == ()  # as kube-scheduler leaves them


def test_pre_enqueue_lets_the_pod_in_when_all_agree() -> None:
    log: Log = []
    with world(probe("First", log), probe("Second", log)) as sim:
        sim.schedule(pod("p"))
        assert once(log) == (
            f"First.pre_enqueue Second.pre_enqueue First.pre_filter Second.pre_filter {FILTERED}"
        )
        assert notes(sim, "p") == ["Scheduled: Successfully assigned default/p to a"]


def test_pre_enqueue_asks_the_plugin_that_gated_first_again() -> None:
    log: Log = []
    refusals = iter([said(Code.UNSCHEDULABLE), OK])
    second = probe("Second", log, pre_enqueue=lambda *_: next(refusals))
    with world(probe("First", log), second) as sim:
        sim.schedule(pod("p"))
        assert once(log) == "First.pre_enqueue Second.pre_enqueue"
        log.clear()
        sim.scheduler.queue.activate(["default/p"])
        assert once(log) == "Second.pre_enqueue First.pre_enqueue"


PRE_FILTER = {
    Code.SUCCESS: Row(f"First.pre_filter Second.pre_filter {FILTERED}", "a"),
    Code.ERROR: Row(
        "First.pre_filter",
        "error backoff",
        'running PreFilter plugin "First": no way',
        "SchedulerError",
    ),
    Code.UNSCHEDULABLE: Row(
        "First.pre_filter Second.pre_filter First.post_filter Second.post_filter",
        "unschedulable",
        "0/2 nodes are available: no way.",
        "Unschedulable",
        "First",
    ),
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: Row(
        "First.pre_filter First.post_filter Second.post_filter",
        "unschedulable",
        "0/2 nodes are available: no way.",
        "Unschedulable",
        "First",
    ),
    Code.WAIT: Row(
        "First.pre_filter",
        "error backoff",
        'running PreFilter plugin "First": no way',
        "SchedulerError",
    ),
    Code.SKIP: Row(f"First.pre_filter Second.pre_filter Second.filter {PRE_SCORED}", "a"),
    Code.PENDING: Row(
        "First.pre_filter",
        "error backoff",
        'running PreFilter plugin "First": no way',
        "SchedulerError",
    ),
}


@pytest.mark.parametrize("code", Code)
def test_pre_filter_treats_each_code_as_it_must(code: Code) -> None:
    check("pre_filter", code, PRE_FILTER[code])


def test_pre_filter_lets_the_last_refusal_speak() -> None:
    log: Log = []
    first = probe("First", log, pre_filter=Status.unschedulable("first"))
    second = probe("Second", log, pre_filter=Status.unschedulable("second"))
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == "0/2 nodes are available: second."
        assert rejectors(sim, "p") == "Second"


FILTER_ERROR = Row(
    "First.filter", "error backoff", 'running "First" filter plugin: no way', "SchedulerError"
)
FILTER_REFUSAL = Row(
    "First.filter First.post_filter Second.post_filter",
    "unschedulable",
    "0/2 nodes are available: 2 no way.",
    "Unschedulable",
    "First",
)
FILTER = {
    Code.SUCCESS: Row(FILTERED, "a"),
    Code.ERROR: FILTER_ERROR,
    Code.UNSCHEDULABLE: FILTER_REFUSAL,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: FILTER_REFUSAL,
    Code.WAIT: FILTER_ERROR,
    Code.SKIP: FILTER_ERROR,
    Code.PENDING: FILTER_REFUSAL._replace(rejectors="[First]"),
}


@pytest.mark.parametrize("code", Code)
def test_filter_treats_each_code_as_it_must(code: Code) -> None:
    check("filter", code, FILTER[code])


@pytest.mark.parametrize(
    ("answer", "calls", "suffix", "nominated"),
    [
        (said(Code.SUCCESS), "First", " no way", ""),
        (said(Code.ERROR), "First", " no way", ""),
        (said(Code.UNSCHEDULABLE), "First Second", " no way, nor here", ""),
        (said(Code.UNSCHEDULABLE_AND_UNRESOLVABLE), "First", " no way", ""),
        (said(Code.WAIT), "First", " no way", ""),
        (said(Code.SKIP), "First", " no way", ""),
        (said(Code.PENDING), "First Second", " no way, nor here", ""),
        (OK, "First", "", ""),
        (Nominate("a"), "First", "", "a"),
        (Nominate("a", Status.unschedulable("later")), "First Second", " later, nor here", "a"),
        (Nominate("a", Status.unresolvable("never")), "First", " never", "a"),
        (Nominate("a", Status.error("broke")), "First", " broke", ""),
        (Nominate("a", SKIP), "First", "", ""),
    ],
)
def test_post_filter_stops_or_goes_on_and_has_the_last_word(
    answer: object, calls: str, suffix: str, nominated: str
) -> None:
    log: Log = []
    refused = Status.unschedulable("full")
    first = probe("First", log, filter=refused, post_filter=answer)
    second = probe("Second", log, post_filter=Status.unschedulable("nor here"))
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert after(log, "post_filter") == " ".join(f"{n}.post_filter" for n in calls.split())
        assert sim.why("p") == f"0/2 nodes are available: 2 full.{suffix}"
        assert place(sim, "p") == "unschedulable"
        assert rejectors(sim, "p") == "First"
        assert sim.pod("p").status.nominated_node_name == nominated
        assert [p.key for p in sim.scheduler.queue.nominator.nominated_on("a")] == (
            ["default/p"] if nominated else []
        )


def test_post_filter_success_keeps_what_an_earlier_refusal_nominated_to_itself() -> None:
    log: Log = []
    answer = Nominate("a", Status.unschedulable("later"))
    first = probe("First", log, filter=Status.unschedulable("full"), post_filter=answer)
    with world(first, probe("Second", log, post_filter=OK)) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == "0/2 nodes are available: 2 full."
        assert sim.pod("p").status.nominated_node_name == ""


def test_withdraws_the_nomination_when_nobody_could_renew_it() -> None:
    log: Log = []
    off = "postFilter: {disabled: [{name: '*'}]}"
    with world(probe("First", log, filter=Status.unschedulable("full")), plugins=off) as sim:
        sim.schedule(pod("p", nominated="a"))
        assert sim.why("p") == "0/2 nodes are available: 2 full."
        assert sim.pod("p").status.nominated_node_name == ""


def test_keeps_the_nomination_when_post_filter_does_not_speak_of_it() -> None:
    log: Log = []
    with world(probe("First", log, filter=Status.unschedulable("full"))) as sim:
        sim.schedule(pod("p", nominated="a"))
        assert sim.pod("p").status.nominated_node_name == "a"


@pytest.mark.parametrize(
    ("first", "second", "why", "plugins"),
    [
        (["a"], ["a", "b"], "", ""),
        (["a"], ["b"], "plugin(s) [First Second] simultaneously", "First Second"),
        ([], ["b"], "plugin First", "First"),
        (["gone"], None, "plugin(s) [First]", "First"),
    ],
)
def test_pre_filter_looks_only_at_nodes_that_all_plugins_named(
    first: list[str], second: list[str] | None, why: str, plugins: str
) -> None:
    log: Log = []
    one = probe("First", log, pre_filter=OnlyNodes.of(first))
    two = probe("Second", log, pre_filter=OK if second is None else OnlyNodes.of(second))
    with world(one, two) as sim:
        sim.schedule(pod("p"))
        if not why:
            assert sim.node_of("p") == "a"
            assert log.count("First.filter") == 1
            return
        assert "First.filter" not in log
        count = "2 " if why.endswith("]") else ""
        assert sim.why("p") == f"0/2 nodes are available: {count}node(s) didn't satisfy {why}."
        assert rejectors(sim, "p") == plugins
        assert "First.post_filter" in log


def test_blames_the_plugins_that_narrowed_the_nodes_together_with_the_filter() -> None:
    log: Log = []
    first = probe("First", log, pre_filter=OnlyNodes.of(["a"]))
    second = probe("Second", log, filter=Status.unschedulable("full"))
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == (
            "0/2 nodes are available: 1 full, 1 node(s) didn't satisfy plugin(s) [First]."
        )
        assert rejectors(sim, "p") == "First Second"


def test_blames_the_plugins_that_narrowed_the_nodes_together_with_a_pre_filter_refusal() -> None:
    log: Log = []
    first = probe("First", log, pre_filter=OnlyNodes.of(["a"]))
    second = probe("Second", log, pre_filter=Status.unschedulable("full"))
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert sim.why("p") == "0/2 nodes are available: full."
        assert rejectors(sim, "p") == "First Second"
