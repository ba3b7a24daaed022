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
