"""Many what-ifs at once equal those made node by node, whatever the cluster."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.preemption.builders import NOW, budget, runs
from tests.preemption.one_by_one import OneByOne
from tests.sizes import sized

import mooring.framework as fw
from mooring.cache.pods import Pod
from mooring.decision.evaluation import Evaluation
from mooring.framework._internal import InternalWhatIf, what_if_of
from mooring.preemption import all_victims
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.candidates import search, worth_trying
from mooring.preemption.victims import PreemptionRequest
from mooring.scheduler.profiles import ProfileRuntime
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod

SSD = {"disk": "ssd"}
APPS = [{}, {"app": "web"}, {"app": "db"}]
NAMES = [f"n{i}" for i in range(4)]


def affinity(app: str, by: str, kind: str = "podAffinity") -> dict[str, Any]:
    term = {"topologyKey": by, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


TOGETHER = affinity("web", "topology.kubernetes.io/zone")
APART = affinity("db", "kubernetes.io/hostname", "podAntiAffinity")


def mostly(usual: Any, *others: Any) -> Any:
    return st.sampled_from([usual] * 6 + list(others))


plain: Any = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["250m", "500m", 1, 2]),
        "ports": mostly((), (80,), (80, "127.0.0.1:81"), ("81/UDP",)),
        "labels": st.sampled_from(APPS),
    }
)
residents: Any = st.tuples(
    plain,
    st.fixed_dictionaries(
        {"priority": st.integers(-1, 3), "since": st.none() | st.integers(0, 3)},
    ),
    st.sampled_from(NAMES),
)
nominations: Any = st.tuples(plain, st.integers(0, 5), st.sampled_from([*NAMES, "gone"]))
preemptors: Any = st.tuples(
    plain,
    st.fixed_dictionaries({"priority": st.integers(1, 4), "node_selector": mostly({}, SSD)}),
    mostly({}, {"spread": {"zone": 1}}, {"affinity": TOGETHER}, {"affinity": APART}),
)
sizes: Any = st.lists(
    st.fixed_dictionaries(
        {
            "cpu": st.integers(1, 2),
            "max_pods": mostly(9, 1, 2, 3),
            "zone": st.sampled_from("ab"),
            "labels": st.sampled_from([{}, SSD]),
        }
    ),
    min_size=len(NAMES),
    max_size=len(NAMES),
)


def runtime_of(sim: Simulation) -> ProfileRuntime:
    return sim.scheduler.runtimes["default-scheduler"]


def filled(
    sim: Simulation, sizes: Sequence[Any], residents: Sequence[Any], nominations: Any
) -> None:
    sim.apply(*(node(name, **about) for name, about in zip(NAMES, sizes, strict=True)))
    for number, (about, more, on) in enumerate(residents):
        # One of them minds others, which makes every pod with labels look further than its node.
        minds: dict[str, Any] = {"affinity": APART} if number == 15 else {}
        sim.apply(runs(f"r{number}", **about, **more, **minds, on=on))
    for number, (about, priority, on) in enumerate(nominations):
        nominated = pod(f"c{number}", **about, priority=priority)
        sim.scheduler.queue.nominator.nominate(nominated, on)


def started(sim: Simulation, preemptor: Pod) -> fw.CycleState | None:
    """The state before nodes are looked at; None if there is nothing to look for."""
    evaluation = begun(sim, preemptor)
    return evaluation.state if evaluation.passed_pre_filter else None


def begun(sim: Simulation, preemptor: Pod) -> Evaluation:
    nodes = sim.scheduler.cache.nodes
    return runtime_of(sim).evaluator.begin(fw.CycleState(), preemptor, nodes, use_memory=False)


@given(
    sizes,
    st.lists(residents, min_size=6, max_size=20),
    st.lists(nominations, max_size=3),
    preemptors,
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(APPS[1:])), max_size=2),
    st.none() | st.integers(1, 4),
    st.integers(0, 5),
)
@settings(max_examples=sized(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_finds_the_same_victims_as_node_by_node(
    sizes: Any, here: Any, nominations: Any, who: Any, budgets: Any, wanted: int | None, start: int
) -> None:
    with Simulation(keep_attempts=False) as sim:
        filled(sim, sizes, here, nominations)
        preemptor = pod("preemptor", **who[0], **who[1], **who[2])
        evaluation = begun(sim, preemptor)
        if not evaluation.passed_pre_filter:
            return
        evaluation.filter()
        assert evaluation.status.ok
        state, verdicts = evaluation.state, evaluation.filter_verdicts()
        runtime, nodes = runtime_of(sim), sim.scheduler.cache.nodes

        def report(asked: InternalWhatIf) -> object:
            request = PreemptionRequest(
                state=state,
                pod=preemptor,
                what_if=asked,
                budgets=DisruptionBudgets(
                    budget(f"b{i}", n, by) for i, (n, by) in enumerate(budgets)
                ),
                spares=lambda other: other.name.endswith("7"),
                now=NOW,
                fixed=asked.fixed(preemptor),
            )
            return search(request, nodes, worth_trying(verdicts), wanted=wanted, start=start)

        asked = what_if_of(runtime.handle)
        assert report(asked) == report(OneByOne(asked))


@given(sizes, st.lists(residents, max_size=12), st.lists(nominations, max_size=6), preemptors)
@settings(max_examples=sized(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_respects_nominated_pods_as_node_by_node(
    sizes: Any, here: Any, nominations: Any, who: Any
) -> None:
    with Simulation(keep_attempts=False) as sim:
        filled(sim, sizes, here, nominations)
        newcomer = pod("newcomer", **who[0], **who[1], **who[2])
        state = started(sim, newcomer)
        if state is None:
            return
        ask, nodes = runtime_of(sim).evaluator.what_if, sim.scheduler.cache.nodes
        alone = [ask.filter_with_nominated(state, newcomer, one) for one in nodes]
        expected = {
            row: status for row, status in enumerate(alone) if status is not None and not status.ok
        }
        refused = ask.refused_for_nominated(state, newcomer, nodes)
        found = [] if refused is None else refused.each()
        assert {row: status for row, status in enumerate(found) if not status.ok} == expected


# --- when it goes node by node -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "is_imagined"),
    [
        ({}, True),
        ({"ports": (80,), "node_selector": {"disk": "ssd"}}, True),
        ({"spread": {"zone": 1}}, True),
        ({"affinity": TOGETHER}, True),
    ],
)
def test_imagines_nodes_only_for_filters_that_look_no_further(
    about: dict[str, Any], is_imagined: bool
) -> None:
    with Simulation() as sim:
        sim.apply(node("a", zone="a"), runs("r", on="a", labels=APPS[1]))
        preemptor = pod("p", priority=1, labels=APPS[1], **about)
        state = started(sim, preemptor)
        assert state is not None
        nodes = sim.scheduler.cache.nodes
        found = what_if_of(runtime_of(sim).handle).without_pods(state, preemptor, nodes, [0], [()])
        assert (found is not None) == is_imagined


def test_a_nominated_pod_that_is_there_already_is_left_to_the_single_node() -> None:
    with Simulation() as sim:
        there = pod("there", on="a", cpu=1)
        sim.apply(node("a"), there)
        pending = pod("there", uid=there.uid, cpu=2, priority=9)
        sim.scheduler.queue.nominator.nominate(pending, "a")
        preemptor = pod("p", priority=1)
        state = started(sim, preemptor)
        assert state is not None
        nodes = sim.scheduler.cache.nodes
        assert (
            what_if_of(runtime_of(sim).handle).without_pods(state, preemptor, nodes, [0], [()])
            is None
        )


def test_goes_node_by_node_when_a_filter_breaks() -> None:
    class Shaky(fw.Filter):
        """Can't cope with one of the nodes."""

        name = "Shaky"
        depends_on = fw.NODE_AND_PODS

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
            if node.name == "bad" and not node.pods:
                raise RuntimeError("shaken")
            return fw.OK

    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Shaky}]}}}]
"""
    with Simulation(config=config, plugins=[Shaky]) as sim:
        sim.apply(node("bad", cpu=1), node("good", cpu=1))
        sim.apply(runs("x", on="bad"), runs("y", on="good"))
        sim.schedule(pod("vip", cpu=1, priority=1))
        assert sim.placements() == {"x": "bad", "vip": "good"}


def test_rows_are_tried_in_order_whatever_is_tried_at_once() -> None:
    with Simulation() as sim:
        sim.apply(*(node(f"n{i:03}", cpu=1) for i in range(200)))
        sim.apply(*(runs(f"r{i}", on=f"n{i:03}", priority=i % 2) for i in range(200)))
        preemptor = pod("p", cpu=1, priority=1)
        state = started(sim, preemptor)
        assert state is not None
        request = PreemptionRequest(
            state=state,
            pod=preemptor,
            what_if=what_if_of(runtime_of(sim).handle),
            budgets=DisruptionBudgets(()),
            spares=lambda other: False,
            now=NOW,
        )
        rows = np.arange(200)
        report = search(request, sim.scheduler.cache.nodes, rows, wanted=80, start=150)
        assert [one.node_name for one in report.candidates] == [
            f"n{(150 + i) % 200:03}" for i in range(0, 160, 2)
        ]
        assert len(report.failures) == 79


def test_a_few_nodes_are_searched_one_by_one(
    few_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is cheaper: the state of the plugins is prepared for many nodes only."""
    monkeypatch.setattr(all_victims, "FEW_NODES", few_nodes)
    asked_about: list[int] = []
    with Simulation(keep_attempts=False) as sim:
        for number in range(few_nodes + 1):
            sim.apply(node(f"n{number}", cpu=1), runs(f"r{number}", on=f"n{number}"))
        preemptor = pod("preemptor", cpu=1, priority=5)
        what_if = what_if_of(runtime_of(sim).handle)
        plain = what_if.without_pods

        def noted(*args: Any) -> Any:
            asked_about.append(len(args[3]))
            return plain(*args)

        monkeypatch.setattr(what_if, "without_pods", noted)
        for count in (few_nodes, few_nodes + 1):
            request = PreemptionRequest(
                state=begun(sim, preemptor).state,
                pod=preemptor,
                what_if=what_if,
                budgets=DisruptionBudgets(),
                spares=lambda other: False,
                now=NOW,
            )
            report = search(request, sim.scheduler.cache.nodes, np.arange(count))
            assert len(report.candidates) == count
    assert asked_about == [few_nodes + 1]
