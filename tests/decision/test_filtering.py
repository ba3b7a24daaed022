"""Filters over all nodes: vectorised ones and those that are asked node by node, in any order."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decision.engine import evaluator_of
from tests.scheduler.recording import HEADER, configure

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.framework import OK, Status
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod

NAMES = [*"abcdef"]


class Indifferent(fw.Score):
    """Without any score, the first node that fits would be the only one looked for."""

    name = "Indifferent"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


def per_node(name: str, refuses: str, asked: list[str]) -> type[fw.Filter]:
    class PerNode(fw.Filter):
        wakes_on = ()

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
            asked.append(f"{self.name}:{node.name}")
            return Status.unschedulable(f"by {self.name}") if node.name in refuses else OK

    return type(name, (PerNode,), {"name": name, "__module__": __name__})


def vectorised(name: str, refuses: str, asked: list[str]) -> type[fw.Filter]:
    scalar: Any = per_node(name, refuses, asked)

    def filter_all(
        self: fw.Filter, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.Verdicts:
        asked.append(f"{name}:all")
        return fw.Verdicts.of(
            Status.unschedulable(f"by {name}") if found.name in refuses else OK for found in nodes
        )

    return type(name, (scalar,), {"filter_all": filter_all})


def run(*filters: type[fw.Filter]) -> Simulation:
    names = [*(known.name for known in filters), "Indifferent", "PrioritySort", "DefaultBinder"]
    text = HEADER + "profiles:\n" + configure(names)
    sim = Simulation(config=text, plugins=[*filters, Indifferent])
    sim.apply(*(node(name) for name in NAMES))
    sim.schedule(pod("p"))
    return sim


def test_asks_node_by_node_only_where_the_others_let_the_pod_through() -> None:
    asked: list[str] = []
    with run(per_node("Slow", "", asked), vectorised("Fast", "abcd", asked)) as sim:
        assert asked == ["Fast:all", "Slow:e", "Slow:f"]
        assert sim.node_of("p") == "e"


def test_completes_the_record_when_nobody_is_left() -> None:
    asked: list[str] = []
    filters = [
        vectorised("One", "a", asked),
        per_node("Two", "bc", asked),
        vectorised("Three", "acdef", asked),
        per_node("Four", "bcdef", asked),
    ]
    with run(*filters) as sim:
        assert sim.why("p") == ("0/6 nodes are available: 1 by One, 2 by Two, 3 by Three.")
        assert asked == ["One:all", "Three:all", "Two:b", "Two:c", "Two:d", "Two:e", "Two:f"]


def test_stops_at_the_first_plugin_that_breaks() -> None:
    asked: list[str] = []

    class Breaks(fw.Filter):
        name = "Breaks"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
            asked.append(f"Breaks:{node.name}")
            return Status.error("broke") if node.name == "c" else OK

    with run(Breaks, per_node("Later", "", asked)) as sim:
        assert asked == ["Breaks:a", "Breaks:b", "Breaks:c"]
        assert sim.why("p") == 'running "Breaks" filter plugin: broke'


@pytest.mark.parametrize("code", [fw.Code.ERROR, fw.Code.SKIP, fw.Code.WAIT])
def test_a_vectorised_answer_that_is_no_refusal_ends_the_attempt(code: fw.Code) -> None:
    class Odd(fw.Filter):
        name = "Odd"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> Status:
            return OK

        def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
            return fw.Verdicts.passing(nodes).reject(
                nodes.pod_counts == 0, Status(code, ("odd answer",))
            )

    with run(Odd) as sim:
        assert sim.why("p") == 'running "Odd" filter plugin: odd answer'


@pytest.mark.parametrize(
    ("limit_and_start", "expected"),
    [
        ((), "abcdef"),
        ((1,), "ab"),
        ((2,), "abcd"),
        ((2, 1), "bc"),
        ((2, 3), "defa"),
        ((2, 4), "efab"),
        ((9, 5), "fabcde"),
    ],
)
def test_with_a_limit_no_more_nodes_are_asked_about_than_have_to_be(
    limit_and_start: tuple[int, ...], expected: str
) -> None:
    asked: list[str] = []
    cache = Cache()
    for name in NAMES:
        cache.put_node(node(name).api)
    evaluator = evaluator_of(cache, per_node("Slow", "ae", asked))
    evaluator.begin(fw.CycleState(), pod("p"), cache.nodes).filter(*limit_and_start)
    assert asked == [f"Slow:{name}" for name in expected]


refusals = st.text(alphabet="abcdef", max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), refusals), min_size=1, max_size=4))
def test_the_first_filter_in_order_that_objects_is_the_one_that_is_named(
    filters: list[tuple[bool, str]],
) -> None:
    made = [
        (vectorised if fast else per_node)(f"F{i}", refuses, [])
        for i, (fast, refuses) in enumerate(filters)
    ]
    expected: dict[str, int] = {}
    passing = []
    for name in NAMES:
        first = next((i for i, (_, refuses) in enumerate(filters) if name in refuses), None)
        if first is None:
            passing.append(name)
        else:
            expected[f"by F{first}"] = expected.get(f"by F{first}", 0) + 1
    with run(*made) as sim:
        decision = sim.attempts[0].decision
        if passing:
            assert decision.node_name in passing
        else:
            assert decision.diagnosis is not None
            assert decision.diagnosis.reasons == expected
