"""The victims on one node: as few and as unimportant as possible."""

from typing import Any

import pytest
from tests.preemption.builders import budget, names, request_for, runs, what_if

import mooring.framework as fw
from mooring.cache.pods import Pod
from mooring.framework.results import Candidate
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.victims import NO_VICTIMS, find_victims
from mooring.testing.builders import node, pod

WEB, DB = {"app": "web"}, {"app": "db"}


def victims(
    preemptor: Pod, *residents: Pod, budgets: tuple[Any, ...] = (), **about: Any
) -> str | fw.Status:
    """The victims on a node of 4 CPUs, most important first, and how many break a budget."""
    found = find_victims(request_for(preemptor, *budgets, **about), node("n", pods=residents))
    if isinstance(found, fw.Status):
        return found
    assert found.node_name == "n"
    violating = f" !{found.pdb_violations}" if found.pdb_violations else ""
    return names(found.victims) + violating


def test_takes_no_more_than_it_needs() -> None:
    residents = [runs(name, since) for since, name in enumerate("abcd")]
    assert victims(pod(cpu=2, priority=1), *residents) == "c d"


def test_spares_the_important_and_then_those_that_run_longest() -> None:
    low, old = runs("low", 1, priority=-5), runs("old", 1)
    young, high = runs("young", 2), runs("high", 3, priority=3)
    preemptor = pod(cpu=1, priority=5)
    assert victims(preemptor, low, old, young, high) == "low"
    assert victims(pod(cpu=3, priority=5), low, old, young, high) == "old young low"


def test_takes_a_pod_without_a_start_for_the_youngest() -> None:
    assert victims(pod(cpu=1, priority=1), *map(runs, "abc"), runs("d", None)) == "d"


def test_goes_by_name_where_there_is_no_difference() -> None:
    for order in ("abcd", "dcba", "bdac"):
        assert victims(pod(cpu=1, priority=1), *map(runs, order)) == "d"


@pytest.mark.parametrize("priority", [0, -1, None])
def test_leaves_pods_of_the_same_or_higher_priority(priority: int | None) -> None:
    full = runs("a", cpu=4, priority=0)
    assert victims(pod(cpu=1, priority=priority), full) == NO_VICTIMS
    expected = "No preemption victims found for incoming pod"
    assert fw.Status.unresolvable(expected) == NO_VICTIMS


def test_leaves_whom_it_is_told_to_spare() -> None:
    def spares(other: Pod) -> bool:
        return other.name == "a"

    a, b = runs("a", cpu=2), runs("b", cpu=2, priority=1)
    assert victims(pod(cpu=1, priority=2), a, b, spares=spares) == "b"
    assert victims(pod(cpu=1, priority=2), a, spares=lambda _: True) == NO_VICTIMS


def test_says_what_is_short_although_everybody_left() -> None:
    found = victims(pod(cpu=3, priority=1), runs("a"), runs("b", cpu=2, priority=1))
    assert found == fw.Status.unschedulable("Insufficient cpu").by("NodeResourcesFit")


def test_takes_a_small_pod_if_a_large_one_can_stay() -> None:
    large, small = runs("large", 1, cpu=3), runs("small", 2, cpu=1)
    assert victims(pod(cpu=1, priority=1), large, small) == "small"
    assert victims(pod(cpu=2, priority=1), large, small) == "large"


# --- budgets -------------------------------------------------------------------------------------


def test_takes_others_before_those_whose_budget_is_used_up() -> None:
    web = [runs(name, since, labels=WEB) for since, name in enumerate("ab")]
    non_violating = [
        runs(name, since + 9, labels=DB, priority=1) for since, name in enumerate("cd")
    ]
    preemptor = pod(cpu=2, priority=2)
    assert victims(preemptor, *web, *non_violating) == "a b"
    assert victims(preemptor, *web, *non_violating, budgets=(budget("web", 0, WEB),)) == "c d"


def test_counts_the_evictions_that_no_budget_allows() -> None:
    web = [runs(name, since, labels=WEB) for since, name in enumerate("abcd")]
    preemptor = pod(cpu=3, priority=1)
    assert victims(preemptor, *web, budgets=(budget("web", 9, WEB),)) == "b c d"
    # Of the four, in order of importance, the first is allowed and so may be sacrificed.
    assert victims(preemptor, *web, budgets=(budget("web", 1, WEB),)) == "a c d !2"
    assert victims(preemptor, *web, budgets=(budget("web", 0, WEB),)) == "b c d !3"


@pytest.mark.parametrize(
    ("known", "protected"),
    [
        ([budget("none", 0, WEB)], "a b c"),
        ([budget("one", 1, WEB)], "b c"),
        ([budget("two", 2, WEB)], "c"),
        ([budget("enough", 3, WEB)], ""),
        ([budget("elsewhere", 0, WEB, namespace="other")], ""),
        ([budget("others", 0, DB)], ""),
        ([budget("empty", 0, {})], ""),
        ([budget("nothing", 0, None)], ""),
        ([budget("nonsense", 0, {"not a key": "x"})], ""),
        ([budget("done", 0, WEB, disrupted=("a", "c"))], "b"),
        ([budget("done", 1, WEB, disrupted=("a",))], "c"),
        ([budget("wide", 2, WEB), budget("narrow", 1, WEB)], "b c"),
        # A budget is used up by pods that another budget protects anyway.
        ([budget("none", 0, WEB), budget("two", 2, WEB)], "a b c"),
    ],
)
def test_protects_whom_the_budgets_protect(known: list[Any], protected: str) -> None:
    pods = [runs(name, labels=WEB) for name in "abc"]
    violating, non_violating = DisruptionBudgets(known).split(pods)
    assert names(violating) == protected
    assert names(non_violating) == names(p for p in pods if p.name not in protected.split())


def test_protects_nobody_without_labels() -> None:
    raw = budget("all", 0, {})
    assert DisruptionBudgets([raw]).split([runs("a")])[0] == []


# --- what-ifs ------------------------------------------------------------------------------------

SEEN: fw.StateKey[list[str]] = fw.StateKey("seen")


class Books(fw.PreFilter, fw.Filter):
    """Keeps a list of who is away, which must be right whenever it is asked."""

    name = "Books"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        return fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        state[SEEN] = [name for name in state[SEEN] if name != added.name]
        return fw.OK

    def remove_pod(
        self, state: fw.CycleState, pod: fw.Pod, removed: fw.Pod, node: fw.Node
    ) -> fw.Status:
        state[SEEN] = [*(state.get(SEEN) or []), removed.name]
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        away = state.get(SEEN) or []
        assert not set(away) & {resident.name for resident in node.pods}
        assert len(away) + node.pod_count == 4
        return fw.OK if "b" in away else fw.Status.unschedulable("b is here")


def test_tells_the_plugins_who_is_away() -> None:
    books = Books(fw.Args(), None)  # type: ignore[arg-type]  # asks for nothing
    asked = request_for(pod(priority=1), asked=what_if(books))
    found = find_victims(asked, node("n", pods=[runs(name) for name in "abcd"]))
    assert isinstance(found, Candidate)
    assert names(found.victims) == "b"
    assert SEEN not in asked.state


def test_a_plugin_that_cannot_follow_is_an_error_of_the_node() -> None:
    class Lost:
        def remove_pod(self, *_: Any) -> fw.Status:
            return fw.Status.error("lost count").by("Some")

        add_pod = fits = remove_pod

        def without_pods(self, *_: Any) -> None:
            return None

        fits_all = without_pods

        def fixed(self, pod: Pod) -> frozenset[str]:
            return frozenset()

        def is_ours(self, pod: Pod) -> bool:
            return True

    found = victims(pod(priority=1), runs("a"), asked=Lost())
    assert found == fw.Status.error("lost count")


def test_a_node_where_nobody_need_go_is_an_error() -> None:
    found = victims(pod(cpu=1, priority=1), runs("a"))
    assert found == fw.Status.error('expected at least one victim pod on node "n"')
