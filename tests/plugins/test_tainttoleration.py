"""Taints that repel, and those that only ask."""

import numpy as np
import pytest

from mooring.framework import OK, CycleState, Event, Status
from mooring.framework._internal import COMPARES_TAINTS
from mooring.plugins.tainttoleration import TaintToleration
from mooring.testing.build import build, prepare
from mooring.testing.builders import node, nodes, pod

TAINTED = TaintToleration.TAINTED


@pytest.mark.parametrize(
    ("taints", "tolerates", "expected"),
    [
        ([], [], OK),
        (["gpu=yes:NoSchedule"], [], TAINTED),
        (["gpu=yes:NoExecute"], [], TAINTED),
        (["gpu=yes:PreferNoSchedule"], [], OK),
        (["gpu=yes:NoSchedule"], ["gpu"], OK),
        (["gpu=yes:NoSchedule"], ["gpu=yes"], OK),
        (["gpu=yes:NoSchedule"], ["gpu=no"], TAINTED),
        (["gpu=yes:NoSchedule"], ["gpu=yes:NoExecute"], TAINTED),
        (["gpu=yes:NoSchedule", "spot:NoExecute"], ["gpu"], TAINTED),
        (["gpu=yes:NoSchedule", "spot:NoExecute"], ["gpu", "spot"], OK),
        (["gpu=yes:NoSchedule", "spot:NoExecute"], [""], OK),
    ],
)
def test_refuses_untolerated_hard_taints(
    taints: list[str], tolerates: list[str], expected: Status
) -> None:
    plugin, incoming = build(TaintToleration), pod(tolerates=tolerates)
    target = node("n", taints=taints)
    assert plugin.filter(CycleState(), incoming, target) == expected
    verdicts = plugin.filter_all(CycleState(), incoming, nodes(node("clean"), target))
    assert [verdicts.status(0), verdicts.status(1)] == [OK, expected]


@pytest.mark.parametrize("is_on", [True, False])
def test_compares_numbers_where_the_gate_is_on(is_on: bool) -> None:
    plugin = build(TaintToleration)
    plugin.feature_gates = frozenset({COMPARES_TAINTS}) if is_on else frozenset()
    level = {"key": "level", "operator": "Gt", "value": "3"}
    incoming = pod(spec={"tolerations": [level]})
    hard, soft = (
        node("h", taints=["level=4:NoSchedule"]),
        node("s", taints=["level=4:PreferNoSchedule"]),
    )
    assert plugin.filter(CycleState(), incoming, hard) == (OK if is_on else TAINTED)
    assert plugin.hint(Event.NODE_ADDED, incoming, None, hard.api) is is_on
    state = prepare(plugin, incoming, nodes(soft))
    assert plugin.score(state, incoming, soft) == (0 if is_on else 1)
    assert plugin.score_all(state, incoming, nodes(soft)).tolist() == [0 if is_on else 1]


def test_does_not_name_the_taint() -> None:
    assert Status.unresolvable("node(s) had untolerated taint(s)") == TAINTED


def test_prefers_nodes_with_fewer_soft_taints() -> None:
    plugin, incoming = build(TaintToleration), pod(tolerates=["a:PreferNoSchedule", "b:NoSchedule"])
    cluster = nodes(
        node("none"),
        node("tolerated", taints=["a:PreferNoSchedule"]),
        node("one", taints=["b:PreferNoSchedule", "a:PreferNoSchedule"]),
        node("two", taints=["b:PreferNoSchedule", "c:PreferNoSchedule", "d:NoSchedule"]),
    )
    state = CycleState()
    assert plugin.pre_score(state, incoming, cluster) is OK
    raw = plugin.score_all(state, incoming, cluster)
    assert raw.tolist() == [0, 0, 1, 2]
    assert [plugin.score(state, incoming, n) for n in cluster] == raw.tolist()
    assert plugin.score_all(prepare(plugin, incoming), incoming, cluster).tolist() == raw.tolist()
    normal = plugin.normalize_score(state, incoming, cluster, raw)
    assert normal.tolist() == [100, 100, 50, 0]


def test_gives_everybody_full_marks_where_nothing_is_tainted() -> None:
    plugin, cluster = build(TaintToleration), nodes(node("a"), node("b"))
    raw = plugin.score_all(prepare(plugin, pod()), pod(), cluster)
    assert raw.dtype == np.int64
    assert plugin.normalize_score(CycleState(), pod(), cluster, raw).tolist() == [100, 100]


def test_wakes_for_a_node_that_stops_repelling() -> None:
    plugin, waiting = build(TaintToleration), pod(tolerates=["gpu"])
    tainted, clean = node("n", taints=["spot:NoSchedule"]).api, node("n").api
    tolerated = node("n", taints=["gpu:NoSchedule"]).api
    assert plugin.hint(Event.NODE_ADDED, waiting, None, tolerated)
    assert plugin.hint(Event.NODE_TAINTS_CHANGED, waiting, tainted, clean)
    assert not plugin.hint(Event.NODE_ADDED, waiting, None, tainted)
    assert not plugin.hint(Event.NODE_TAINTS_CHANGED, waiting, tolerated, clean)
    assert not plugin.hint(Event.NODE_TAINTS_CHANGED, waiting, clean, tainted)


def test_wakes_for_the_pods_own_tolerations() -> None:
    plugin, waiting = build(TaintToleration), pod("a", uid="a")
    assert plugin.hint(Event.POD_TOLERATIONS_CHANGED, waiting, waiting, pod("a", uid="a"))
    assert not plugin.hint(Event.POD_TOLERATIONS_CHANGED, waiting, pod("b"), pod("b"))
