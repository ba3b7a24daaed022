"""Nodes have leases that say when they were last heard of, and hardly cost anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.stage import NODES, Stage, stage

from mooring.cluster.apiserver.store import Object
from mooring.cluster.kubelet.leases import LEASES, NAMESPACE


@pytest.fixture
def play() -> Iterator[Stage]:
    with stage(controllers=["garbage"]) as made:
        meta = {"name": NAMESPACE}
        made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        yield made


def leases(play: Stage) -> dict[str, Object]:
    return {lease["metadata"]["name"]: lease for lease in play.all(LEASES, NAMESPACE)}


def ready(status: str) -> list[Object]:
    return [{"type": "Ready", "status": status}]


def set_ready(play: Stage, node: str, status: str) -> None:
    def change(value: Object) -> None:
        value["status"]["conditions"] = ready(status)

    play.verbs.modify(NODES, "", node, change, subresource="status")


def test_every_node_has_a_lease_of_its_own(play: Stage) -> None:
    play.nodes(120)
    play.advance(1)
    found = leases(play)
    assert len(found) == 120
    lease = found["n7"]
    assert lease["spec"]["holderIdentity"] == "n7"
    (owner,) = lease["metadata"]["ownerReferences"]
    assert owner["uid"] == play.get(NODES, "n7")["metadata"]["uid"]


def test_renews_before_a_lease_lapses_and_not_much_more_often(play: Stage) -> None:
    play.nodes(1)
    play.advance(1)
    first = leases(play)["n0"]
    play.advance(3600)
    now = leases(play)["n0"]
    assert now["spec"]["renewTime"] > first["spec"]["renewTime"]
    assert now["spec"]["leaseDurationSeconds"] == 3600
    writes = int(now["metadata"]["resourceVersion"]) - int(first["metadata"]["resourceVersion"])
    assert writes <= 3


def test_lets_the_lease_of_a_silent_node_lapse(play: Stage) -> None:
    play.nodes(2)
    play.advance(1)
    set_ready(play, "n0", "Unknown")
    before = leases(play)
    play.advance(3600)
    after = leases(play)
    assert after["n0"] == before["n0"]
    assert after["n1"] != before["n1"]
    set_ready(play, "n0", "True")
    play.advance(1)
    assert leases(play)["n0"] != before["n0"]


def test_lease_goes_with_its_node_and_comes_with_its_namesake(play: Stage) -> None:
    play.nodes(1)
    play.advance(1)
    play.verbs.delete(NODES, "", "n0")
    play.advance(1)
    assert leases(play) == {}
    play.nodes(1, name="n0")
    play.advance(1)
    (owner,) = leases(play)["n0"]["metadata"]["ownerReferences"]
    assert owner["uid"] == play.get(NODES, "n0")["metadata"]["uid"]
