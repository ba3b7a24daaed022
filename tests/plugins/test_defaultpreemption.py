"""DefaultPreemption: eligible pods, the extent of the search, and messages."""

from typing import Any

import pytest
from msgspec import structs
from tests.preemption.builders import OneByOne, budget, runs, what_if

import mooring.framework as fw
from mooring.api.meta import Condition
from mooring.cache.pods import Pod
from mooring.errors import ConfigError
from mooring.plugins.defaultpreemption import DefaultPreemption
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.preemption.candidates import PreemptionReport
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import node, nodes, pod

SHORT = fw.Status.unschedulable("Insufficient cpu")
WRONG = fw.Status.unresolvable("wrong")
WEB = {"app": "web"}


def plugin(handle: StubHandle | None = None, **args: Any) -> DefaultPreemption:
    handle = handle or StubHandle()
    handle.what_if = what_if()
    return build(DefaultPreemption, handle=handle, **args)


def full(name: str, resident: Pod) -> fw.Node:
    return node(name, cpu=1, pods=[resident])


def answer(
    asked: DefaultPreemption,
    preemptor: Pod,
    cluster: fw.Nodes,
    status: fw.Status = SHORT,
    *,
    exhaustive: bool = False,
) -> fw.Status | fw.Nominate:
    verdicts = fw.Verdicts.passing(cluster).reject_all(status)
    state = fw.CycleState(exhaustive=exhaustive)
    build(NodeResourcesFit).pre_filter(state, preemptor, cluster)
    return asked.post_filter(state, preemptor, cluster, verdicts)


def nominated(*asked: Any, **more: Any) -> fw.Nominate:
    found = answer(*asked, **more)
    assert isinstance(found, fw.Nominate)
    return found


def test_nominates_the_node_and_names_the_victims() -> None:
    resident = runs("r")
    cluster = nodes(full("a", runs("other", priority=5)), full("b", resident))
    found = nominated(plugin(), pod(cpu=1, priority=1), cluster)
    assert (found.node_name, found.status) == ("b", fw.OK)
    assert [victim.name for victim in found.victims] == ["r"]
    assert isinstance(found.report, PreemptionReport)
    assert [one.node_name for one in found.report.candidates] == ["b"]


def test_withdraws_the_nomination_where_nothing_helps() -> None:
    found = nominated(plugin(), pod(cpu=1), nodes(full("a", runs("r"))))
    text = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    assert (found.node_name, found.status) == ("", fw.Status.unschedulable(text))
    found = nominated(plugin(), pod(cpu=1, priority=1), nodes(full("a", runs("r"))), WRONG)
    text = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    assert (found.node_name, found.status) == ("", fw.Status.unschedulable(text))


def test_reports_an_accident_if_there_is_no_candidate() -> None:
    class Broken(OneByOne):
        def fits(self, state: fw.CycleState, pod: Pod, node: fw.Node) -> fw.Status:
            broke = fw.Status.error(f"{node.name} broke")
            return broke if node.name == "bad" else super().fits(state, pod, node)

    handle = StubHandle()
    asked = plugin(handle)
    broken = handle.what_if = Broken()
    broken.filters = what_if().filters
    bad, good = full("bad", runs("r")), full("good", runs("r"))
    found = nominated(asked, pod(cpu=1, priority=1), nodes(bad))
    assert found.status == fw.Status.error("preemption: bad broke")
    assert nominated(asked, pod(cpu=1, priority=1), nodes(bad, good)).node_name == "good"


# --- who may -------------------------------------------------------------------------------


def test_evicts_nobody_for_a_pod_that_never_preempts() -> None:
    modest = pod(cpu=1, priority=9, spec={"preemptionPolicy": "Never"})
    expected = "preemption: not eligible due to preemptionPolicy=Never."
    found = answer(plugin(), modest, nodes(full("a", runs("r"))))
    assert found == fw.Status.unschedulable(expected)


def leaving(name: str, *, reason: str = "PreemptionByScheduler", status: str = "True") -> Pod:
    plain = runs(name, deleting=True)
    target = Condition(type="DisruptionTarget", status=status, reason=reason)
    return Pod(
        structs.replace(plain.api, status=structs.replace(plain.status, conditions=(target,)))
    )


@pytest.mark.parametrize(
    ("resident", "status", "waits"),
    [
        (leaving("r"), SHORT, True),
        (leaving("r"), WRONG, False),  # it will not fit there whoever leaves
        (leaving("r", reason="EvictionByEvictionAPI"), SHORT, False),
        (leaving("r", status="False"), SHORT, False),
        (runs("r", deleting=True), SHORT, False),
        (runs("r"), SHORT, False),
    ],
)
def test_waits_for_the_victims_it_has(resident: Pod, status: fw.Status, waits: bool) -> None:
    cluster = nodes(full("a", resident), full("b", runs("r")))
    found = answer(plugin(), pod(cpu=1, priority=1, nominated="a"), cluster, status)
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (found == fw.Status.unschedulable(text)) is waits


def test_does_not_wait_for_pods_that_it_could_not_have_evicted() -> None:
    cluster = nodes(full("a", leaving("r")))
    found = answer(plugin(), pod(cpu=1, priority=0, nominated="a"), cluster)
    assert isinstance(found, fw.Nominate)


def test_does_not_wait_on_a_node_that_is_gone() -> None:
    cluster = nodes(full("a", runs("r")))
    assert nominated(plugin(), pod(cpu=1, priority=1, nominated="z"), cluster).node_name == "a"


def foreign(**args: Any) -> DefaultPreemption:
    class Mine(OneByOne):
        def is_ours(self, pod: Pod) -> bool:
            return pod.scheduler_name == "mine"

    handle = StubHandle(scheduler_name="mine")
    asked = plugin(handle, **args)
    mine = handle.what_if = Mine()
    mine.filters = what_if().filters
    return asked


def test_leaves_pods_of_other_schedulers_alone_unless_told_otherwise() -> None:
    cluster = nodes(full("a", runs("r", scheduler="other")))
    preemptor = pod(cpu=1, priority=1, scheduler="mine")
    assert nominated(foreign(), preemptor, cluster).node_name == ""
    told = foreign(preempt_foreign_pods=True)
    assert nominated(told, preemptor, cluster).node_name == "a"
    own = nodes(full("a", runs("r", scheduler="mine")))
    assert nominated(foreign(), preemptor, own).node_name == "a"


# --- how far it looks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "absolute", "count", "wanted"),
    [
        (10, 100, 5000, 500),
        (10, 100, 999, 100),
        (10, 100, 40, 40),
        (10, 0, 19, 1),
        (10, 0, 9, 0),
        (0, 3, 1000, 3),
        (100, 0, 7, 7),
    ],
)
def test_wants_the_larger_of_a_share_and_a_number(
    percentage: int, absolute: int, count: int, wanted: int
) -> None:
    asked = plugin(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)
    assert asked._wanted(count) == wanted


def candidates(asked: DefaultPreemption, **more: Any) -> list[str]:
    cluster = nodes(*(full(str(i), runs("r")) for i in range(9)))
    report = nominated(asked, pod(cpu=1, priority=1), cluster, **more).report
    assert isinstance(report, PreemptionReport)
    return [one.node_name for one in report.candidates]


def test_looks_at_few_nodes_from_anywhere_or_at_all_of_them() -> None:
    few: dict[str, Any] = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 2}
    seeds = [plugin(StubHandle(seed=seed), **few) for seed in range(20)]
    found = [candidates(asked) for asked in seeds]
    assert {len(names) for names in found} == {2}
    assert len({names[0] for names in found}) > 3
    assert candidates(plugin(StubHandle(seed=7), **few)) == found[7]
    assert candidates(seeds[0], exhaustive=True) == list("012345678")


def test_respects_the_budgets_of_the_cluster() -> None:
    handle = StubHandle(objects=[budget("web", 0, WEB)])
    cluster = nodes(full("a", runs("w", labels=WEB)), full("b", runs("r", priority=1)))
    assert nominated(plugin(handle), pod(cpu=1, priority=2), cluster).node_name == "b"


# --- the rest ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            {"minCandidateNodesPercentage": -1},
            "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
        ),
        (
            {"minCandidateNodesAbsolute": -1},
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "minCandidateNodesPercentage: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesAbsolute",
        ),
    ],
)
def test_refuses_numbers_that_make_no_sense(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match="DefaultPreemption") as refused:
        build(DefaultPreemption, **args)
    assert problem in str(refused.value)


def test_leaves_the_gate_to_the_scheduler_and_the_wake_up_to_who_refused() -> None:
    asked = plugin()
    assert asked.pre_enqueue(pod()) is fw.OK
    assert asked.wakes_on == (fw.Event.POD_DELETED,)
    assert not asked.hint(fw.Event.POD_DELETED, pod(), pod(on="a"), None)
