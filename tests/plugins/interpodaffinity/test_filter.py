"""Where a pod may be, and where it may not, because of the pods that are there."""

from typing import Any

import pytest
from tests.plugins.interpodaffinity.affinity import (
    Json,
    affinity,
    anti_affinity,
    preferred_affinity,
    preferred_anti_affinity,
    term,
)

from mooring.api import codec, core
from mooring.framework import OK, SKIP, CycleState, Failed, Nodes, Pod, Status
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import node, nodes, pod

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def web(name: str = "web", namespace: str = "default", **more: Any) -> Pod:
    return pod(name, namespace=namespace, labels={"app": "web"}, **more)


def zones(a1: Pod | None = None, b1: Pod | None = None) -> Nodes:
    """Two nodes in zone a, one in b, one in no zone."""
    return nodes(
        node("a1", zone="a", pods=[a1] if a1 else []),
        node("a2", zone="a"),
        node("b1", zone="b", pods=[b1] if b1 else []),
        node("c1"),
    )


def space(name: str, **labels: str) -> core.Namespace:
    return codec.convert({"metadata": {"name": name, "labels": labels}}, core.Namespace)


def refusals(incoming: Pod, cluster: Nodes, *namespaces: core.Namespace) -> dict[str, str]:
    """Why each refused node is refused, in both forms."""
    plugin = build(InterPodAffinity, handle=StubHandle(nodes=cluster, objects=namespaces))
    state = CycleState()
    if plugin.pre_filter(state, incoming, cluster) is SKIP:
        return {}
    verdicts = plugin.filter_all(state, incoming, cluster)
    each = [plugin.filter(state, incoming, one) for one in cluster]
    assert [verdicts.status(place) for place in range(len(cluster))] == each
    return {
        one.name: status.message for one, status in zip(cluster, each, strict=True) if not status.ok
    }


def test_needs_company_in_the_domain() -> None:
    incoming = pod(affinity=affinity(term("zone", app="web")))
    assert refusals(incoming, zones(a1=web())) == {"b1": AFFINITY, "c1": AFFINITY}
    assert refusals(incoming, zones()) == dict.fromkeys(("a1", "a2", "b1", "c1"), AFFINITY)


def test_needs_one_pod_that_satisfies_all_terms() -> None:
    both = pod(
        affinity=affinity(term("zone", app="web"), term("zone", {"matchLabels": {"tier": "x"}}))
    )
    parts = zones(a1=web(), b1=pod(labels={"tier": "x"}))
    assert set(refusals(both, parts)) == {"a1", "a2", "b1", "c1"}
    whole = zones(b1=pod(labels={"app": "web", "tier": "x"}))
    assert set(refusals(both, whole)) == {"a1", "a2", "c1"}


def test_lets_the_first_of_a_group_in_where_the_label_is() -> None:
    first = web(affinity=affinity(term("zone", app="web")))
    assert refusals(first, zones(a1=pod("other"))) == {"c1": AFFINITY}
    assert refusals(first, zones(a1=web())) == {"b1": AFFINITY, "c1": AFFINITY}


def test_company_on_a_node_without_the_label_is_no_company() -> None:
    first = web(affinity=affinity(term("zone", app="web")))
    cluster = nodes(node("a1", zone="a"), node("c1", pods=[web()]))
    assert refusals(first, cluster) == {"c1": AFFINITY}


def test_keeps_away_from_others() -> None:
    incoming = pod(affinity=anti_affinity(term("zone", app="web"), term("host", app="db")))
    cluster = zones(a1=web(), b1=pod(labels={"app": "db"}))
    assert refusals(incoming, cluster) == {
        "a1": ANTI_AFFINITY,
        "a2": ANTI_AFFINITY,
        "b1": ANTI_AFFINITY,
    }
    assert refusals(pod(affinity=anti_affinity(term("zone", app="cache"))), cluster) == {}


def test_is_kept_away_by_others() -> None:
    guard = pod("guard", affinity=anti_affinity(term("zone", app="web")))
    assert refusals(web(), zones(a1=guard)) == {"a1": EXISTING, "a2": EXISTING}
    assert refusals(pod("other"), zones(a1=guard)) == {}


def test_names_the_first_reason_in_kube_schedulers_order() -> None:
    guard = pod("guard", labels={"app": "db"}, affinity=anti_affinity(term("zone", app="web")))
    rules = {**affinity(term("zone", app="db")), **anti_affinity(term("host", app="db"))}
    found = refusals(web(affinity=rules), zones(a1=guard))
    assert found == {"a1": ANTI_AFFINITY, "a2": EXISTING, "b1": AFFINITY, "c1": AFFINITY}


def test_terminating_pods_still_count() -> None:
    leaving = web(deleting=True)
    assert refusals(pod(affinity=anti_affinity(term("host", app="web"))), zones(a1=leaving)) == {
        "a1": ANTI_AFFINITY
    }


@pytest.mark.parametrize(
    ("scope", "refused"),
    [
        pytest.param({}, [], id="own namespace only"),
        pytest.param({"namespaces": ["shop"]}, ["a1"], id="by name"),
        pytest.param({"namespaces": ["bank"]}, [], id="another name"),
        pytest.param({"namespaceSelector": {}}, ["a1"], id="all"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, ["a1"], id="selected"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "y"}}}, [], id="not selected"),
        pytest.param(
            {
                "namespaces": ["shop"],
                "namespaceSelector": {"matchLabels": {"team": "y"}},
            },
            ["a1"],
            id="either",
        ),
    ],
)
def test_terms_of_both_sides_reach_other_namespaces(scope: Json, refused: list[str]) -> None:
    shop = space("shop", team="x")
    rule = anti_affinity(term("host", app="web", **scope))
    assert list(refusals(pod(affinity=rule), zones(a1=web(namespace="shop")), shop)) == refused
    guard = pod("guard", affinity=rule)
    assert list(refusals(web(namespace="shop"), zones(a1=guard), shop)) == refused


def test_an_excluding_selector_of_namespaces_means_all_when_it_is_the_pods_own() -> None:
    excluding = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    rule = anti_affinity(term("host", app="web", namespaceSelector=excluding))
    shop = space("shop", team="x")
    assert refusals(pod(affinity=rule), zones(a1=web(namespace="shop")), shop) == {
        "a1": ANTI_AFFINITY
    }
    guard = pod("guard", affinity=rule)
    assert refusals(web(namespace="shop"), zones(a1=guard), shop) == {}


def test_ignores_match_label_keys_that_the_api_server_has_merged() -> None:
    incoming = pod(
        labels={"rev": "2"}, affinity=anti_affinity(term("host", app="web", matchLabelKeys=["rev"]))
    )
    assert refusals(incoming, zones(a1=web())) == {"a1": ANTI_AFFINITY}


def test_a_term_without_selector_means_nobody_and_an_empty_one_everybody() -> None:
    cluster = zones(a1=pod("other"))
    assert refusals(pod(affinity=anti_affinity(term("host"))), cluster) == {}
    assert refusals(pod(affinity=anti_affinity(term("host", {}))), cluster) == {"a1": ANTI_AFFINITY}


def test_skips_pods_that_no_rule_is_about() -> None:
    wishful = {
        **preferred_affinity((1, term("zone", app="web"))),
        **preferred_anti_affinity((1, term("zone", app="db"))),
    }
    guard = pod("guard", affinity=anti_affinity(term("nowhere", app="web")))
    for incoming in (web(), web(affinity=wishful)):
        assert build(InterPodAffinity).pre_filter(CycleState(), incoming, zones(a1=guard)) is SKIP
    choosy = pod(affinity=anti_affinity(term("zone", app="web")))
    assert build(InterPodAffinity).pre_filter(CycleState(), choosy, zones()) is OK


BROKEN = {"matchExpressions": [{"key": "app", "operator": "Almost"}]}


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        (affinity(term("zone", BROKEN)), ["requiredAffinityTerms: "]),
        (anti_affinity(term("zone", BROKEN)), ["requiredAntiAffinityTerms: "]),
        (preferred_affinity((1, term("zone", BROKEN))), ["preferredAffinityTerms: "]),
        (
            {
                **preferred_affinity((1, term("zone", BROKEN))),
                **anti_affinity(term("zone", app="x", namespaceSelector=BROKEN)),
            },
            ["[requiredAntiAffinityTerms: ", ", preferredAffinityTerms: "],
        ),
    ],
)
def test_refuses_pods_whose_terms_make_no_sense(rules: Json, kinds: list[str]) -> None:
    status = build(InterPodAffinity).pre_filter(CycleState(), pod(affinity=rules), zones())
    assert status == Status.unresolvable(status.message)
    assert status.message.startswith(f"parsing pod: {kinds[0]}")
    assert all(kind in status.message for kind in kinds)


def test_a_broken_term_of_a_pod_on_a_node_voids_its_kind_only() -> None:
    both = {
        **anti_affinity(term("zone", BROKEN), term("zone", app="web")),
        **affinity(term("zone", app="web")),
    }
    assert refusals(web(), zones(a1=pod("odd", affinity=both))) == {}
    wish = {
        **anti_affinity(term("zone", app="web")),
        **preferred_affinity((1, term("zone", BROKEN))),
    }
    assert set(refusals(web(), zones(a1=pod("odd", affinity=wish)))) == {"a1", "a2"}


def test_fails_as_kube_scheduler_does_when_pre_filter_was_left_out() -> None:
    plugin, cluster, state = build(InterPodAffinity), zones(), CycleState()
    text = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    with pytest.raises(Failed, match=text):
        plugin.filter(state, web(), cluster[0])
    with pytest.raises(Failed, match=text):
        plugin.filter_all(state, web(), cluster)
    with pytest.raises(Failed, match=text):
        plugin.add_pod(state, web(), web("other"), cluster[0])


def test_what_ifs_change_a_clone_and_not_the_state() -> None:
    cluster, plugin, state = zones(a1=web("old")), build(InterPodAffinity), CycleState()
    incoming = web(affinity=anti_affinity(term("host", app="web")))
    plugin.pre_filter(state, incoming, cluster)
    imagined = state.clone()
    old = cluster[0].pods[0]
    plugin.remove_pod(imagined, incoming, old, cluster[0].without_pod(old))
    guard = pod("guard", affinity=anti_affinity(term("zone", app="web")))
    plugin.add_pod(imagined, incoming, guard, cluster[2].with_pod(guard))
    found = [plugin.filter(imagined, incoming, one).message for one in cluster]
    assert found == ["", "", EXISTING, ""]
    verdicts = plugin.filter_all(imagined, incoming, cluster)
    assert [verdicts.status(row).message for row in range(4)] == found
    assert [plugin.filter(state, incoming, one).message for one in cluster] == [
        ANTI_AFFINITY,
        "",
        "",
        "",
    ]
