"""Nodes have leases that say when they were last heard of, and hardly cost anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.virtual_cluster import NODES, VirtualCluster, virtual_cluster

from mooring.cluster.apiserver.store import Object
from mooring.cluster.kubelet.node_leases import LEASES, NAMESPACE


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    with virtual_cluster(controllers=["garbage"]) as made:
        meta = {"name": NAMESPACE}
        made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        yield made


def leases(cluster: VirtualCluster) -> dict[str, Object]:
    return {lease["metadata"]["name"]: lease for lease in cluster.all(LEASES, NAMESPACE)}


def ready(status: str) -> list[Object]:
    return [{"type": "Ready", "status": status}]


def set_ready(cluster: VirtualCluster, node: str, status: str) -> None:
    def change(value: Object) -> None:
        value["status"]["conditions"] = ready(status)

    cluster.verbs.modify(NODES, "", node, change, subresource="status")


def test_every_node_has_a_lease_of_its_own(cluster: VirtualCluster) -> None:
    cluster.nodes(120)
    cluster.advance(1)
    found = leases(cluster)
    assert len(found) == 120
    lease = found["n7"]
    assert lease["spec"]["holderIdentity"] == "n7"
    (owner,) = lease["metadata"]["ownerReferences"]
    assert owner["uid"] == cluster.get(NODES, "n7")["metadata"]["uid"]


def test_renews_before_a_lease_lapses_and_not_much_more_often(cluster: VirtualCluster) -> None:
    cluster.nodes(1)
    cluster.advance(1)
    first = leases(cluster)["n0"]
    cluster.advance(3600)
    now = leases(cluster)["n0"]
    assert now["spec"]["renewTime"] > first["spec"]["renewTime"]
    assert now["spec"]["leaseDurationSeconds"] == 3600
    writes = int(now["metadata"]["resourceVersion"]) - int(first["metadata"]["resourceVersion"])
    assert writes <= 3


def test_lets_the_lease_of_a_silent_node_lapse(cluster: VirtualCluster) -> None:
    cluster.nodes(2)
    cluster.advance(1)
    set_ready(cluster, "n0", "Unknown")
    before = leases(cluster)
    cluster.advance(3600)
    after = leases(cluster)
    assert after["n0"] == before["n0"]
    assert after["n1"] != before["n1"]
    set_ready(cluster, "n0", "True")
    cluster.advance(1)
    assert leases(cluster)["n0"] != before["n0"]


def test_lease_goes_with_its_node_and_comes_with_its_namesake(cluster: VirtualCluster) -> None:
    cluster.nodes(1)
    cluster.advance(1)
    cluster.verbs.delete(NODES, "", "n0")
    cluster.advance(1)
    assert leases(cluster) == {}
    cluster.nodes(1, name="n0")
    cluster.advance(1)
    (owner,) = leases(cluster)["n0"]["metadata"]["ownerReferences"]
    assert owner["uid"] == cluster.get(NODES, "n0")["metadata"]["uid"]
