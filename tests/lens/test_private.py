"""The private copy: edits are undone without a trace, and nothing is written from it."""

from __future__ import annotations

import asyncio

import pytest
from tests.lens.clusters import private

import mooring.framework as fw
from mooring.api import core
from mooring.framework.explaining import Edit, ObjectChange
from mooring.lens.added_node import imagined_nodes
from mooring.plugins.nodeunschedulable import uncordon
from mooring.testing import node, pod


def test_edits_are_undone_in_reverse() -> None:
    busy, vip = pod("busy", cpu=3, on="a"), pod("vip", cpu=1, nominated="a")
    copy = private([node("a", unschedulable=True), node("b", cpu=1)], [busy, vip])
    wanted = pod("p", cpu=4)
    added = next(imagined_nodes([node("a").api], wanted))
    edits = [
        uncordon("a"),
        Edit.end_pods("busy and vip end", [busy, vip], family="x"),
        added,
        Edit.of_pod_spec("less", family="y", containers=()),
    ]
    before = digest(copy.nodes)
    assert copy.fits(wanted) is None
    with copy.edited(wanted, edits) as edited:
        assert not edited.all_requests
        assert set(copy.nodes.names) == {"a", "b", "added-node"}
        assert copy.nodes[0].spare("cpu") == 4000
        assert not copy.nominator.nominated_nodes()
        found = copy.fits(wanted)
        assert found is not None
        assert found.count == 2
    assert digest(copy.nodes) == before
    assert copy.nominator.nominated_nodes() == ("a",)
    assert copy.pod("default", "busy") is not None
    assert copy.fits(wanted) is None


def test_edits_are_undone_if_one_of_them_fails() -> None:
    copy = private([node("a", unschedulable=True)])
    before = digest(copy.nodes)
    missing = ObjectChange(core.Node, "", "nowhere", lambda node: node.spec)
    broken = Edit(target="cluster", text="x", changes=(missing,), family="x")
    with pytest.raises(AttributeError), copy.edited(pod("p"), [uncordon("a"), broken]):
        pass
    assert digest(copy.nodes) == before


def test_pods_counted_together_count_as_one_by_one() -> None:
    """Also if a list names an object twice, and with pods that have ended or wait."""
    nodes = [node("a"), node("b", cpu=2), node("a", cpu=8)]
    pods = [
        *(pod(f"p{i}", cpu="100m", memory="1Gi", on="ab"[i % 2]) for i in range(20)),
        pod("p3", cpu=1, on="a"),
        pod("port", ports=[80], on="b"),
        pod("ended", cpu=1, on="a", phase="Succeeded"),
        pod("lost", cpu=1, on="nowhere"),
        pod("vip", cpu=1, nominated="a"),
    ]
    copy = private([], [])
    for one in nodes:
        copy.cache.put_node(one.api)
    for each in pods:
        copy._put_pod(each)
    together = private(nodes, pods)
    assert digest(together.nodes) == digest(copy.nodes)
    assert together.nominator.nominated_nodes() == copy.nominator.nominated_nodes()
    assert together.cache.unknown_nodes().keys() == copy.cache.unknown_nodes().keys()
    assert [one.spare("memory") for one in together.nodes] == [
        one.spare("memory") for one in copy.nodes
    ]
    assert together.pod("default", "ended") is not None
    assert together.fits(pod("q", ports=[80])) is not None


def digest(nodes: fw.Nodes) -> list[object]:
    return [
        (one.api, sorted(other.key for other in one.pods), one.spare("cpu"), one.pod_count)
        for one in nodes
    ]


def test_nothing_can_be_written() -> None:
    copy = private([node("a")])
    handle = next(iter(copy.profile.plugins.values())).handle
    with pytest.raises(AssertionError, match="nothing is written"):
        asyncio.run(handle.client.delete_pod(pod("p")))
    handle.recorder.event(pod("p"), "Normal", "r", "a", "n")
