"""On which node evictions do least harm, and how long to look for it."""

from typing import Any

import pytest
from tests.preemption.builders import budget, request_for, runs, search_refused

import mooring.framework as fw
from mooring.cache.pods import Pod
from mooring.framework._internal import InternalNominator
from mooring.preemption.candidates import NOT_HELPFUL, PreemptionReport, search, worth_trying
from mooring.preemption.victims import NO_VICTIMS
from mooring.queue.nominator import NominatedPods
from mooring.testing.builders import node, nodes, pod


def names(report: PreemptionReport) -> list[str]:
    """The nodes of the candidates."""
    return [candidate.node_name for candidate in report.candidates]


WEB = {"app": "web"}
NONE = budget("none", 0, WEB)


def full(name: str, *residents: Pod) -> fw.Node:
    """A node of one CPU, fully used by these pods."""
    return node(name, cpu=sum(p.requests("cpu") for p in residents) / 1000, pods=residents)


def test_tries_only_nodes_that_evictions_could_help() -> None:
    statuses = [
        fw.OK,
        fw.Status.unschedulable("full"),
        fw.Status.unresolvable("wrong"),
        fw.Status.pending("later"),
        fw.Status.error("broke"),
        fw.Status.unschedulable("fuller"),
    ]
    assert worth_trying(fw.Verdicts.of(statuses)).tolist() == [1, 5]
    assert worth_trying(fw.Verdicts.of([fw.OK])).tolist() == []
    everywhere = fw.Verdicts(3).reject_all(fw.Status.unschedulable("not yet"))
    assert worth_trying(everywhere).tolist() == [0, 1, 2]


PRIORITY_3 = runs("x", 30, cpu=2, priority=3)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        # fewest budgets broken, whatever else
        ([runs("w", 1, cpu=2, labels=WEB)], [runs("x", cpu=1, priority=8), runs("y", priority=8)]),
        # then the lowest of the highest priorities
        ([runs("x", cpu=2, priority=3)], [runs("x", priority=2), runs("y", priority=2)]),
        # then the smallest sum of priorities, counted from the lowest there can be
        (
            [runs("x", priority=3), runs("y", priority=2)],
            [runs("x", priority=3), runs("y", priority=1)],
        ),
        ([runs("x", priority=3), runs("y", priority=-9)], [PRIORITY_3]),
        # then the fewest victims
        (
            [runs("x", priority=-(2**31)), runs("y", priority=-(2**31))],
            [runs("x", cpu=2, priority=-(2**31))],
        ),
        # then the latest start of the most important ones
        ([runs("x", 1, priority=3), runs("y", 50)], [runs("x", 2, priority=3), runs("y", 3)]),
        (
            [runs("x", 9, priority=3), runs("y", 1, priority=3)],
            [runs("x", 2, priority=3), runs("y", 2, priority=3)],
        ),
        ([PRIORITY_3], [runs("x", None, cpu=2, priority=3)]),
    ],
)
@pytest.mark.parametrize("start", [0, 1])
def test_prefers_the_node_with_less_harm(worse: list[Pod], better: list[Pod], start: int) -> None:
    asked = request_for(pod(cpu=2, priority=9), NONE)
    report = search_refused(
        asked, nodes(full("worse", *worse), full("better", *better)), start=start
    )
    assert sorted(names(report)) == ["better", "worse"]
    assert report.best == ("better",)
    assert report.chosen is report.candidates[names(report).index("better")]


def test_names_all_that_are_equally_good_and_takes_the_first_it_tried() -> None:
    cluster = nodes(*(full(name, runs("x", 5)) for name in "cab"), full("z", runs("x", 4)))
    asked = request_for(pod(cpu=1, priority=1))
    for start, first in enumerate("cab"):
        report = search_refused(asked, cluster, start=start)
        assert report.best == ("a", "b", "c")
        assert report.chosen is not None
        assert report.chosen.node_name == first


# --- how far to look -----------------------------------------------------------------------------


def row_of_nodes(*labels: Any) -> fw.Nodes:
    """Nodes 0, 1, 2…: None has nobody to evict, the others a pod with these labels."""
    members = [
        full(str(i), runs("x", priority=9 if given is None else 0, labels=given or {}))
        for i, given in enumerate(labels)
    ]
    return nodes(*members)


@pytest.mark.parametrize(
    ("wanted", "start", "tried"),
    [
        (None, 0, "0 1 2 3 4 5"),
        (1, 0, "0 1"),  # 0 has nobody to evict
        (2, 0, "0 1 2"),
        (1, 3, "3 4"),  # 3 breaks a budget: one that does not is wanted too
        (1, 5, "0 1 5"),
        (2, 4, "0 1 4 5"),  # from the end back to the beginning
        (9, 2, "0 1 2 3 4 5"),
    ],
)
def test_ends_when_it_knows_enough_candidates(wanted: int | None, start: int, tried: str) -> None:
    cluster = row_of_nodes(None, {}, {}, WEB, {}, None)
    report = search_refused(
        request_for(pod(cpu=1, priority=1), NONE), cluster, wanted=wanted, start=start
    )
    assert sorted([*names(report), *report.failures]) == tried.split()


def test_looks_at_all_when_every_candidate_breaks_a_budget() -> None:
    report = search_refused(
        request_for(pod(cpu=1, priority=1), NONE), row_of_nodes(WEB, WEB, WEB), wanted=1
    )
    assert names(report) == ["0", "1", "2"]
    assert {c.pdb_violations for c in report.candidates} == {1}


def test_does_not_ask_the_filters_about_nodes_with_nobody_to_evict() -> None:
    class Untouched:
        def fixed(self, pod: Pod) -> frozenset[str]:
            return frozenset()

        def is_ours(self, pod: Pod) -> bool:
            return True

        def fits(self, *_: Any) -> fw.Status:
            raise AssertionError("asked")

        add_pod = remove_pod = fits

        def without_pods(self, *_: Any) -> None:
            return None

        fits_all = basis = without_pods
        nominator: InternalNominator = NominatedPods()

        def nominated_on(self, *_: Any) -> tuple[Pod, ...]:
            return ()

    asked = request_for(pod(cpu=1), asked=Untouched())
    cluster = row_of_nodes({}, {})
    verdicts = fw.Verdicts(2).reject_all(fw.Status.unschedulable("full"))
    report = search(asked, cluster, worth_trying(verdicts))
    assert report.failures == {"0": NO_VICTIMS, "1": NO_VICTIMS}


# --- in words ------------------------------------------------------------------------------------


def test_counts_reasons_and_the_nodes_not_worth_trying() -> None:
    report = PreemptionReport(
        nodes=13,
        failures={
            "a": NO_VICTIMS,
            "b": fw.Status.unschedulable("Too many pods", "Insufficient cpu"),
            "c": fw.Status.unschedulable("Insufficient cpu"),
        },
    )
    assert report.reasons[NOT_HELPFUL] == 10
    assert report.message == (
        "0/13 nodes are available: 1 No preemption victims found for incoming pod, 1 Too many pods,"
        " 10 Preemption is not helpful for scheduling, 2 Insufficient cpu."
    )
    assert report.error == ""


def test_says_what_broke_once() -> None:
    broke, other = fw.Status.error("broke"), fw.Status.error("other")
    assert PreemptionReport(nodes=2, failures={"a": broke, "b": broke}).error == "broke"
    assert PreemptionReport(nodes=2, failures={"a": broke, "b": other}).error == "[broke, other]"


def test_finds_nothing_where_nothing_is_worth_trying() -> None:
    report = search_refused(request_for(pod(cpu=9, priority=1)), nodes(node("n", pods=[runs("a")])))
    assert (report.candidates, report.best, report.chosen) == ((), (), None)
    assert report.message == f"0/1 nodes are available: 1 {NOT_HELPFUL}."
