"""A pod that names its node."""

import numpy as np

from mooring.framework import OK, CycleState
from mooring.plugins.nodename import NodeName
from mooring.testing.build import build
from mooring.testing.builders import node, nodes, pod


def test_accepts_every_node_for_a_pod_that_names_none() -> None:
    plugin = build(NodeName)
    assert plugin.filter(CycleState(), pod(), node("a")) is OK
    assert plugin.filter_all(CycleState(), pod(), nodes(node("a"), node("b"))).passed.all()


def test_refuses_every_node_but_the_named_one() -> None:
    plugin = build(NodeName)
    verdicts = plugin.filter_all(CycleState(), pod(on="b"), nodes(node("a"), node("b"), node("c")))
    assert verdicts.passed.tolist() == [False, True, False]
    assert verdicts.status(0) == NodeName.OTHER_NODE
    assert plugin.filter(CycleState(), pod(on="b"), node("a")) == NodeName.OTHER_NODE
    assert NodeName.OTHER_NODE.reasons == ("node(s) didn't match the requested node name",)


def test_refuses_all_when_the_named_node_does_not_exist() -> None:
    verdicts = build(NodeName).filter_all(CycleState(), pod(on="gone"), nodes(node("a")))
    assert not verdicts.passed.any()


def test_finds_the_named_node_in_a_selection() -> None:
    cluster = nodes(node("a"), node("b"), node("c"), node("d"))
    some = cluster.take(np.array([False, True, False, True]))
    verdicts = build(NodeName).filter_all(CycleState(), pod(on="d"), some)
    assert verdicts.passed.tolist() == [False, True]
    assert not build(NodeName).filter_all(CycleState(), pod(on="a"), some).passed.any()
