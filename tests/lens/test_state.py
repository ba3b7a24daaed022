"""Nodes and queue as the structs of /lens/v1."""

from __future__ import annotations

import msgspec
from tests.lens.clusters import cluster_of, default_plan

from mooring.api.meta import Condition
from mooring.lens.api import LensQueue, LensState, NodePage
from mooring.lens.private import PrivateCluster
from mooring.lens.snapshot import MissingKind, QueuedState, Snapshot
from mooring.lens.state import MOST_LABEL_VALUES, at_once, node_columns, node_page, shape_of
from mooring.lens.waiting_list import queue_of_snapshot, state_of_snapshot
from mooring.testing import node, pod

TWO = cluster_of(
    [
        node(
            "a",
            cpu="4",
            memory="8Gi",
            labels={"pool": "x"},
            taints=["gpu=yes:NoSchedule", "old:NoExecute"],
            pods=[pod("low", cpu="500m", priority=1), pod("high", cpu="1", priority=9)],
        ),
        node("b", cpu="2", memory="1Gi", unschedulable=True, resources={"acme.com/gpu": "2"}),
    ],
)


def cache_of(cluster: object = TWO) -> PrivateCluster:
    return PrivateCluster(default_plan(), cluster)  # type: ignore[arg-type]


def test_nodes_are_columns_of_one_length() -> None:
    found = at_once(node_columns(cache_of().cache))
    assert (found.count, found.names, found.pods) == (2, ["a", "b"], [2, 0])
    assert (found.unschedulable, found.ready) == ([0, 1], [1, 1])
    by_name = {one.name: one for one in found.resources}
    assert [one.name for one in found.resources][:2] == ["cpu", "memory"]
    assert (by_name["cpu"].unit, by_name["memory"].unit) == ("milli", "bytes")
    assert by_name["cpu"].allocatable == [4000, 2000]
    assert by_name["cpu"].requested == [1500, 0]
    assert by_name["acme.com/gpu"].allocatable == [0, 2]
    pool = next(one for one in found.labels if one.key == "pool")
    assert (pool.values, pool.codes) == (["x"], [0, -1])
    texts = [found.taints.values[code] for code in found.taints.codes]
    assert texts == ["gpu=yes:NoSchedule, old:NoExecute", ""]


def test_a_label_with_many_values_is_no_column() -> None:
    nodes = [
        node(f"n{i}", labels={"id": str(i), "half": str(i % 2)})
        for i in range(MOST_LABEL_VALUES + 1)
    ]
    found = at_once(node_columns(cache_of(cluster_of(nodes)).cache))
    keys = [one.key for one in found.labels]
    assert "half" in keys
    assert "id" not in keys
    fewer = at_once(node_columns(cache_of(cluster_of(nodes[:-1])).cache))
    assert "id" in [one.key for one in fewer.labels]


def test_a_node_that_is_not_ready() -> None:
    private = cache_of()
    known = private.nodes.get("a")
    assert known is not None
    conditions = (Condition(type="Ready", status="Unknown"),)
    status = msgspec.structs.replace(known.api.status, conditions=conditions)
    private.cache.put_node(msgspec.structs.replace(known.api, status=status))
    assert at_once(node_columns(private.cache)).ready == [0, 1]


def test_one_node_with_its_pods() -> None:
    private = cache_of()
    found = node_page(private.cache, "a", [pod("vip", cpu="3", priority=100)])
    assert found is not None
    assert [one.name for one in found.pods] == ["high", "low"]
    assert found.taints == ("gpu=yes:NoSchedule", "old:NoExecute")
    cpu = next(one for one in found.resources if one.name == "cpu")
    assert (cpu.allocatable, cpu.requested, cpu.share) == ("4", "1500m", 0.375)
    assert found.pods[0].requests == {"cpu": "1"}
    assert [one.name for one in found.nominated] == ["vip"]
    assert node_page(private.cache, "nowhere") is None
    assert msgspec.json.decode(msgspec.json.encode(found), type=NodePage) == found


def test_shapes() -> None:
    assert shape_of(pod("p", cpu="500m", memory="1Gi")) == "500m cpu, 1Gi memory"
    assert shape_of(pod("p")) == "nothing"


def test_the_queue_of_a_snapshot_by_place_and_priority() -> None:
    waiting = [pod("slow", cpu=1), pod("soon", cpu=1), pod("vip", priority=5), pod("shut")]
    places = {"slow": "unschedulable", "soon": "active", "vip": "active", "shut": "gated"}
    queue = tuple(
        QueuedState(uid=one.uid, queue=places[one.name], attempts=2, plugins=("Fit",))
        for one in waiting
    )
    snapshot = Snapshot(cluster=cluster_of([node("a")], waiting), queue=queue, at=60.0)
    found = queue_of_snapshot(snapshot)
    assert [one.name for one in found.pods] == ["vip", "soon", "slow", "shut"]
    assert (found.counts.active, found.counts.unschedulable, found.counts.gated) == (2, 1, 1)
    assert found.at == "1970-01-01T00:01:00.000000Z"
    assert not found.truncated
    few = queue_of_snapshot(snapshot, limit=1)
    assert ([one.name for one in few.pods], few.truncated) == (["vip"], True)
    only = queue_of_snapshot(snapshot, place="gated")
    assert [one.name for one in only.pods] == ["shut"]
    assert queue_of_snapshot(snapshot, namespace="elsewhere").pods == ()
    assert msgspec.json.decode(msgspec.json.encode(found), type=LensQueue) == found


def test_without_a_queue_the_conditions_tell() -> None:
    gated = pod("shut", gates=["example.com/quota"])
    bound = pod("bound", on="a")
    snapshot = Snapshot(cluster=cluster_of([node("a")], [pod("new"), gated, bound]))
    found = queue_of_snapshot(snapshot)
    assert {one.name: one.place for one in found.pods} == {"new": "active", "shut": "gated"}


def test_the_state_of_a_snapshot() -> None:
    snapshot = Snapshot(
        cluster=TWO,
        config={"profiles": [{"schedulerName": "fast"}]},
        scheduler="mooring 1.2",
        missing=(MissingKind("csinodes.storage.k8s.io", "forbidden"),),
        seq=7,
    )
    found = state_of_snapshot(snapshot, cache_of().cache)
    assert (found.source, found.seq, found.scheduler.name) == ("file", 7, "mooring")
    assert (found.scheduler.version, found.scheduler.profiles) == ("1.2", ("fast",))
    assert found.notes == ("csinodes.storage.k8s.io could not be read: forbidden",)
    assert found.nodes.count == 2
    assert msgspec.json.decode(msgspec.json.encode(found), type=LensState) == found
