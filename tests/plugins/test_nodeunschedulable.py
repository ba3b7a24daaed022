"""Cordoned nodes."""

import pytest

from mooring.framework import OK, CycleState, Event, Status
from mooring.plugins.nodeunschedulable import NodeUnschedulable
from mooring.testing.build import build
from mooring.testing.builders import node, nodes, pod

OPEN, CORDONED = node("open"), node("cordoned", unschedulable=True)


@pytest.mark.parametrize(
    ("tolerates", "expected"),
    [
        ([], NodeUnschedulable.CORDONED),
        (["node.kubernetes.io/unschedulable"], OK),
        (["node.kubernetes.io/unschedulable:NoSchedule"], OK),
        (["node.kubernetes.io/unschedulable:NoExecute"], NodeUnschedulable.CORDONED),
        (["node.kubernetes.io/unschedulable="], OK),
        (["node.kubernetes.io/unschedulable=yes"], NodeUnschedulable.CORDONED),
        (["other"], NodeUnschedulable.CORDONED),
        ([""], OK),
    ],
)
def test_refuses_cordoned_nodes_unless_tolerated(tolerates: list[str], expected: Status) -> None:
    plugin = build(NodeUnschedulable)
    incoming = pod(tolerates=tolerates)
    assert plugin.filter(CycleState(), incoming, CORDONED) == expected
    assert plugin.filter(CycleState(), incoming, OPEN) is OK
    verdicts = plugin.filter_all(CycleState(), incoming, nodes(OPEN, CORDONED))
    assert [verdicts.status(0), verdicts.status(1)] == [OK, expected]


def test_says_it_as_kube_scheduler_does() -> None:
    assert Status.unresolvable("node(s) were unschedulable") == NodeUnschedulable.CORDONED


def test_wakes_for_a_node_that_opens() -> None:
    plugin, waiting = build(NodeUnschedulable), pod()
    assert plugin.hint(Event.NODE_ADDED, waiting, None, OPEN.api)
    assert plugin.hint(Event.NODE_TAINTS_CHANGED, waiting, CORDONED.api, OPEN.api)
    assert not plugin.hint(Event.NODE_ADDED, waiting, None, CORDONED.api)
    assert not plugin.hint(Event.NODE_TAINTS_CHANGED, waiting, OPEN.api, OPEN.api)
    assert not plugin.hint(Event.NODE_TAINTS_CHANGED, waiting, OPEN.api, CORDONED.api)


def test_wakes_for_the_pods_own_toleration() -> None:
    plugin = build(NodeUnschedulable)
    before = pod("a", uid="a")
    after = pod("a", uid="a", tolerates=["node.kubernetes.io/unschedulable"])
    assert plugin.hint(Event.POD_TOLERATIONS_CHANGED, before, before, after)
    assert not plugin.hint(Event.POD_TOLERATIONS_CHANGED, before, before, before)
    assert not plugin.hint(Event.POD_TOLERATIONS_CHANGED, pod("b"), before, after)
