"""Which nodes are better because of the pods around."""

from typing import Any

import numpy as np
import pytest
from tests.plugins.interpodaffinity.affinity import (
    affinity,
    anti_affinity,
    preferred_affinity,
    preferred_anti_affinity,
    term,
)

from mooring.framework import OK, SKIP, CycleState, Nodes, Pod
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity
from mooring.testing.build import build
from mooring.testing.builders import node, nodes, pod


def web(name: str = "web", **more: Any) -> Pod:
    return pod(name, labels={"app": "web"}, **more)


def cluster(a1: list[Pod] | None = None, b1: list[Pod] | None = None) -> Nodes:
    """Two nodes in zone a, one in b, one in no zone."""
    return nodes(
        node("a1", zone="a", pods=a1 or []),
        node("a2", zone="a"),
        node("b1", zone="b", pods=b1 or []),
        node("c1"),
    )


def scores(incoming: Pod, among: Nodes, **args: Any) -> list[int] | None:
    """Raw points, in both forms; None if the plugin skips the pod."""
    plugin, state = build(InterPodAffinity, **args), CycleState()
    status = plugin.pre_score(state, incoming, among)
    if status is SKIP:
        return None
    assert status is OK
    raw = plugin.score_all(state, incoming, among)
    assert [plugin.score(state, incoming, one) for one in among] == raw.tolist()
    found: list[int] = raw.tolist()
    return found


def test_adds_weights_for_every_pod_that_is_liked_and_takes_them_off_for_shunned_ones() -> None:
    rules = {
        **preferred_affinity((5, term("zone", app="web")), (3, term("host", app="web"))),
        **preferred_anti_affinity((10, term("zone", app="db"))),
    }
    there = cluster(a1=[web("w1"), web("w2")], b1=[pod("db", labels={"app": "db"})])
    assert scores(pod(affinity=rules), there) == [16, 10, -10, 0]


def test_the_wishes_of_pods_on_nodes_count_for_a_pod_without_any() -> None:
    fan = pod("fan", affinity=preferred_affinity((7, term("zone", app="web"))))
    hermit = pod("hermit", affinity=preferred_anti_affinity((2, term("host", app="web"))))
    there = cluster(a1=[fan], b1=[hermit])
    assert scores(web(), there) == [7, 7, -2, 0]
    assert scores(web(), there, ignore_preferred_terms_of_existing_pods=True) is None


def test_ignores_no_wishes_when_the_pod_has_some() -> None:
    fan = pod("fan", affinity=preferred_affinity((7, term("zone", app="web"))))
    own = web(affinity=preferred_affinity((1, term("zone", app="nobody"))))
    there = cluster(a1=[fan])
    assert scores(own, there, ignore_preferred_terms_of_existing_pods=True) == [7, 7, 0, 0]


@pytest.mark.parametrize(
    ("weight", "expected"), [(0, None), (1, [2, 2, 0, 0]), (9, [18, 18, 0, 0])]
)
def test_what_pods_on_nodes_require_counts_as_configured(
    weight: int, expected: list[int] | None
) -> None:
    needy = web("needy", affinity=affinity(term("zone", app="web"), term("zone", app="web")))
    assert scores(web(), cluster(a1=[needy]), hard_pod_affinity_weight=weight) == expected


def test_required_anti_affinity_gives_no_points() -> None:
    guard = pod("guard", affinity=anti_affinity(term("zone", app="web")))
    assert scores(web(affinity=anti_affinity(term("zone", app="web"))), cluster(a1=[guard])) is None


def test_skips_when_nothing_matches_in_any_domain() -> None:
    fan = pod("fan", affinity=preferred_affinity((7, term("nowhere", app="web"))))
    assert scores(web(), cluster(a1=[fan])) is None
    assert scores(pod(affinity=preferred_affinity((1, term("zone", app="web")))), cluster()) is None


def test_points_that_cancel_each_other_are_points() -> None:
    rules = {
        **preferred_affinity((5, term("zone", app="db"))),
        **preferred_anti_affinity((5, term("zone", app="db"))),
    }
    there = cluster(a1=[pod("db", labels={"app": "db"})])
    assert scores(pod(affinity=rules), there) == [0, 0, 0, 0]
    nothing = pod(affinity=preferred_affinity((0, term("zone", app="db"))))
    assert scores(nothing, there) == [0, 0, 0, 0]


def test_nodes_without_the_label_share_no_domain() -> None:
    fan = web("fan", affinity=preferred_affinity((7, term("zone", app="web"))))
    there = nodes(node("a1", zone="a", pods=[web()]), node("c1", pods=[fan]), node("c2"))
    assert scores(web(affinity=preferred_affinity((5, term("zone", app="web")))), there) == [
        5,
        0,
        0,
    ]


def test_counts_pods_of_nodes_that_are_not_feasible() -> None:
    there = cluster(a1=[web()])
    feasible = there.take(np.array([False, True, True, True]))
    assert scores(pod(affinity=preferred_affinity((5, term("zone", app="web")))), feasible) == [
        5,
        0,
        0,
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([0, 50, 100], [0, 50, 100]),
        ([-10, 0, 10], [0, 50, 100]),
        ([0, 29, 100], [0, 28, 100]),  # 0.29 is a little less than that in binary
        ([7, 7], [0, 0]),
        ([0, 1, 3], [0, 33, 100]),
        ([], []),
    ],
)
def test_normalises_between_the_extremes(raw: list[int], expected: list[int]) -> None:
    scored = np.array(raw, dtype=np.int64)
    normal = build(InterPodAffinity).normalize_score(CycleState(), pod(), cluster(), scored)
    assert normal.dtype == np.int64
    assert normal.tolist() == expected


def test_reports_wishes_that_make_no_sense() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "Almost"}]}
    incoming = pod(affinity=preferred_anti_affinity((1, term("zone", broken))))
    status = build(InterPodAffinity).pre_score(CycleState(), incoming, cluster())
    assert status.code.label == "Error"
    assert status.message.startswith("failed to parse pod: preferredAntiAffinityTerms: ")
