"""Node selectors and node affinity."""

from typing import Any

import pytest

from mooring.errors import ConfigError
from mooring.framework import OK, SKIP, CycleState, Event, OnlyNodes, Status
from mooring.plugins.nodeaffinity import NodeAffinity
from mooring.testing.build import build
from mooring.testing.builders import ZONE, node, nodes, pod

Json = dict[str, Any]
CLUSTER = nodes(
    node("a1", zone="a", labels={"disk": "ssd", "gen": "3"}),
    node("a2", zone="a", labels={"disk": "hdd"}),
    node("b1", zone="b", labels={"disk": "ssd", "gen": "11"}),
    node("c1", labels={"gen": "x"}),
)


def check(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*tests: Json) -> Json:
    return {"matchExpressions": list(tests)}


def named(*names: str, operator: str = "In") -> Json:
    return {"matchFields": [check("metadata.name", operator, *names)]}


def required(*terms: Json) -> Json:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"requiredDuringSchedulingIgnoredDuringExecution": selector}


def preferred(*terms: tuple[int, Json]) -> Json:
    listed = [{"weight": weight, "preference": preference} for weight, preference in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": listed}


def accepted(plugin: NodeAffinity, state: CycleState, **spec: Any) -> list[str]:
    incoming = pod(**spec)
    verdicts = plugin.filter_all(state, incoming, CLUSTER)
    for place, each in enumerate(CLUSTER):
        assert plugin.filter(state, incoming, each) == verdicts.status(place)
    return [name for name, ok in zip(CLUSTER.names, verdicts.passed, strict=True) if ok]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([term(check("disk", "In", "ssd"))], ["a1", "b1"], id="In"),
        pytest.param([term(check("disk", "In", "ssd", "hdd"))], ["a1", "a2", "b1"], id="In two"),
        pytest.param([term(check("disk", "NotIn", "ssd"))], ["a2", "c1"], id="NotIn, or absent"),
        pytest.param([term(check("disk", "Exists"))], ["a1", "a2", "b1"], id="Exists"),
        pytest.param([term(check("disk", "DoesNotExist"))], ["c1"], id="DoesNotExist"),
        pytest.param([term(check("gen", "Gt", "3"))], ["b1"], id="Gt is strict and numeric"),
        pytest.param([term(check("gen", "Lt", "11"))], ["a1"], id="Lt"),
        pytest.param([term(check("gen", "Gt", "x"))], [], id="a bound that is no number"),
        pytest.param([term(check("disk", "In", "ssd"), check(ZONE, "In", "a"))], ["a1"], id="and"),
        pytest.param(
            [term(check("disk", "In", "hdd")), term(check(ZONE, "In", "b"))],
            ["a2", "b1"],
            id="or",
        ),
        pytest.param([term()], [], id="an empty term"),
        pytest.param([], [], id="no term"),
        pytest.param([named("a2", operator="NotIn")], ["a1", "b1", "c1"], id="not by name"),
        pytest.param([named("a1", "a2")], [], id="a name test takes one value"),
        pytest.param(
            [term(check("gen", "Lt", "x")), term(check(ZONE, "In", "b"))],
            ["b1"],
            id="a broken term spoils no other",
        ),
    ],
)
def test_accepts_what_a_required_term_selects(terms: list[Json], expected: list[str]) -> None:
    plugin, affinity = build(NodeAffinity), {"nodeAffinity": required(*terms)}
    state = CycleState()
    plugin.pre_filter(state, pod(affinity=affinity), CLUSTER)
    assert accepted(plugin, state, affinity=affinity) == expected
    assert accepted(plugin, CycleState(), affinity=affinity) == expected


def test_asks_for_selector_and_affinity_together() -> None:
    affinity = {"nodeAffinity": required(term(check(ZONE, "In", "a")))}
    found = accepted(
        build(NodeAffinity), CycleState(), node_selector={"disk": "ssd"}, affinity=affinity
    )
    assert found == ["a1"]
    verdicts = build(NodeAffinity).filter_all(
        CycleState(), pod(node_selector={"disk": "tape"}), CLUSTER
    )
    text = "node(s) didn't match Pod's node affinity/selector"
    assert verdicts.status(0) == Status.unresolvable(text)


def test_skips_pods_that_require_nothing() -> None:
    plugin = build(NodeAffinity)
    assert plugin.pre_filter(CycleState(), pod(), CLUSTER) is SKIP
    wish = {"nodeAffinity": preferred((1, term(check("disk", "Exists"))))}
    assert plugin.pre_filter(CycleState(), pod(affinity=wish), CLUSTER) is SKIP
    assert plugin.pre_filter(CycleState(), pod(node_selector={"a": "b"}), CLUSTER) is OK


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([named("a1")], OnlyNodes.of(["a1"])),
        ([named("a1"), named("b1")], OnlyNodes.of(["a1", "b1"])),
        ([named("a1"), term(check("disk", "Exists"))], OK),
        ([named("a1", operator="NotIn")], OK),
        (
            [{"matchFields": [check("metadata.name", "In", n) for n in ("a1", "b1")]}],
            Status.unresolvable("pod affinity terms conflict"),
        ),
        (
            [
                {"matchFields": [check("metadata.name", "In", n) for n in ("a1", "b1")]},
                named("a2"),
            ],
            OnlyNodes.of(["a2"]),
        ),
    ],
)
def test_narrows_the_search_to_named_nodes(terms: list[Json], expected: Status | OnlyNodes) -> None:
    incoming = pod(affinity={"nodeAffinity": required(*terms)})
    assert build(NodeAffinity).pre_filter(CycleState(), incoming, CLUSTER) == expected


def test_adds_up_the_weights_of_preferences() -> None:
    plugin = build(NodeAffinity)
    wishes = preferred(
        (5, term(check("disk", "In", "ssd"))),
        (20, term(check(ZONE, "In", "a"))),
        (0, term(check("disk", "In", "hdd"))),
        (50, term()),
    )
    incoming, state = pod(affinity={"nodeAffinity": wishes}), CycleState()
    assert plugin.pre_score(state, incoming, CLUSTER) is OK
    raw = plugin.score_all(state, incoming, CLUSTER)
    assert raw.tolist() == [25, 20, 5, 0]
    assert [plugin.score(state, incoming, each) for each in CLUSTER] == raw.tolist()
    assert plugin.score_all(CycleState(), incoming, CLUSTER).tolist() == raw.tolist()
    normal = plugin.normalize_score(state, incoming, CLUSTER, raw)
    assert normal.tolist() == [100, 80, 20, 0]


def test_scores_only_pods_with_preferences() -> None:
    assert build(NodeAffinity).pre_score(CycleState(), pod(), CLUSTER) is SKIP


def test_reports_a_preference_that_makes_no_sense() -> None:
    wishes = preferred((5, term(check("gen", "Gt", "many"))))
    status = build(NodeAffinity).pre_score(
        CycleState(), pod(affinity={"nodeAffinity": wishes}), CLUSTER
    )
    assert status.code.label == "Error"
    assert status.message == (
        '[0].matchExpressions[0].values[0]: Invalid value: "many":'
        " for 'Gt', 'Lt' operators, the value must be an integer"
    )


def test_added_affinity_holds_for_every_pod() -> None:
    added = {
        **required(term(check(ZONE, "In", "a"))),
        **preferred((7, term(check("disk", "In", "hdd")))),
    }
    plugin, state = build(NodeAffinity, added_affinity=added), CycleState()
    assert plugin.pre_filter(state, pod(), CLUSTER) is OK
    assert accepted(plugin, state) == ["a1", "a2"]
    text = "node(s) didn't match scheduler-enforced node affinity"
    assert plugin.filter(state, pod(), CLUSTER[2]) == Status.unresolvable(text)
    choosy = pod(node_selector={"disk": "hdd"})
    assert plugin.filter(CycleState(), choosy, CLUSTER[0]) == NodeAffinity.MISMATCH
    assert plugin.pre_score(state, pod(), CLUSTER) is OK
    assert plugin.score_all(state, pod(), CLUSTER).tolist() == [0, 7, 0, 0]


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        (required(term(check("gen", "Gt", "x"))), "the value must be an integer"),
        (preferred((1, term(check("gen", "Almost", "x")))), "Almost"),
        ({"requiredDuringScheduling": {}}, "unknown field"),
        (required({"matchExpression": []}), "unknown field"),
    ],
)
def test_refuses_added_affinity_that_makes_no_sense(added: Json, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        build(NodeAffinity, added_affinity=added)


def test_wakes_for_a_node_that_begins_to_match() -> None:
    plugin, waiting = build(NodeAffinity), pod(node_selector={"disk": "ssd"})
    matching, other = node("n", labels={"disk": "ssd"}).api, node("n").api
    assert plugin.hint(Event.NODE_ADDED, waiting, None, matching)
    assert plugin.hint(Event.NODE_LABELS_CHANGED, waiting, other, matching)
    assert not plugin.hint(Event.NODE_ADDED, waiting, None, other)
    assert not plugin.hint(Event.NODE_LABELS_CHANGED, waiting, matching, other)
    assert not plugin.hint(Event.NODE_LABELS_CHANGED, waiting, matching, matching)


def test_wakes_only_for_nodes_that_the_added_affinity_allows() -> None:
    plugin = build(NodeAffinity, added_affinity=required(term(check("pool", "In", "web"))))
    web, other = node("n", labels={"pool": "web"}).api, node("n").api
    assert plugin.hint(Event.NODE_LABELS_CHANGED, pod(), other, web)
    assert not plugin.hint(Event.NODE_ADDED, pod(), None, other)
