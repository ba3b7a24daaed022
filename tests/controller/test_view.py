"""Which changes of nodes and pods make a controller decide again, on virtual time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.controller import controller
from mooring.controller.view import ClusterView
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


@pytest.fixture
def cluster() -> Iterator[Sandbox]:
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        yield sandbox


@controller(scheduler_name="mine", first_retry=3600, longest_retry=3600)
def last_empty(pod: fw.Pod, nodes: fw.Nodes) -> str | None:
    """The last node without pods that has the colour of the pod."""
    colour = pod.labels.get("colour", "")
    found = [one.name for one in nodes if not one.pod_count and one.labels.get("c", "") == colour]
    return max(found, default=None)


def test_does_not_place_pods_on_a_node_that_is_gone(cluster: Sandbox) -> None:
    cluster.apply(node("a"), node("b"))
    cluster.start_controller(last_empty)
    cluster.delete("nodes", "b")
    cluster.apply(pod("p", scheduler="mine"))
    cluster.wait_until_bound("p")
    assert cluster.node_of("p") == "a"


def test_a_pod_that_has_ended_leaves_its_room(cluster: Sandbox) -> None:
    cluster.apply(node("a"), pod("old", on="a"), pod("p", scheduler="mine"))
    cluster.start_controller(last_empty)
    cluster.settle()
    assert cluster.node_of("p") == ""
    cluster.apply({**cluster.get("pods", "old"), "status": {"phase": "Succeeded"}})
    cluster.wait_until_bound("p", seconds=60)
    assert cluster.node_of("p") == "a"


def test_a_changed_node_or_pod_is_looked_at_at_once(cluster: Sandbox) -> None:
    cluster.apply(node("a"), node("b"))
    cluster.start_controller(last_empty)
    cluster.apply(*(pod(name, scheduler="mine", labels={"colour": "red"}) for name in "pq"))
    cluster.settle()
    assert cluster.placements() == {"p": "", "q": ""}
    cluster.apply(node("a", labels={"c": "red"}))
    cluster.wait_until(lambda: "a" in cluster.placements().values(), seconds=60)
    (waiting,) = (name for name, place in cluster.placements().items() if not place)
    metadata = {"name": waiting, "namespace": "default", "labels": {"colour": ""}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    cluster.wait_until_bound(waiting, seconds=60)
    assert cluster.node_of(waiting) == "b"


class Told:
    """A view, and what it tells."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.view = ClusterView(
            "mine",
            on_pod=lambda key: self.said.append(f"place {key}"),
            on_gone=lambda key: self.said.append(f"gone {key}"),
            on_room=lambda: self.said.append("room"),
        )

    def of(self, *values: core.Node | core.Pod) -> list[str]:
        self.said.clear()
        for value in values:
            put = self.view.put_node if isinstance(value, core.Node) else self.view.put_pod
            put(value)  # type: ignore[arg-type]  # as was asked
        return list(self.said)


def test_a_heartbeat_of_a_node_and_a_status_of_a_pod_are_no_news() -> None:
    told = Told()
    api = pod("p", scheduler="mine").api
    told.of(node("a").api, api)
    status = structs.replace(api.status, nominated_node_name="a")
    assert told.of(node("a").api, structs.replace(api, status=status)) == []
    assert told.of(node("a", unschedulable=True).api) == ["room"]


def test_a_pod_that_ends_while_it_is_watched_leaves_its_room() -> None:
    told = Told()
    api = pod("old", on="a").api
    told.of(node("a").api, api)
    ended = structs.replace(api, status=structs.replace(api.status, phase="Succeeded"))
    assert told.of(ended) == ["room"]
    assert told.view.nodes[0].pod_count == 0


def test_another_pod_of_the_same_name_takes_the_place_of_the_first() -> None:
    told = Told()
    first = pod("p", scheduler="mine").api
    other = structs.replace(first, metadata=structs.replace(first.metadata, uid="other"))
    assert told.of(first) == ["place default/p"]
    assert told.of(other) == ["gone default/p", "place default/p"]
    waiting = told.view.waiting("default/p")
    assert waiting is not None
    assert waiting.uid == "other"


def test_a_pod_that_is_being_bound_is_not_placed_again() -> None:
    told = Told()
    api = pod("p", scheduler="mine").api
    told.of(node("a").api, api)
    waiting = told.view.waiting("default/p")
    assert waiting is not None
    told.view.cache.assume(waiting, "a")
    changed = structs.replace(api, metadata=structs.replace(api.metadata, labels={"a": "b"}))
    assert told.of(changed) == []
    assert told.view.waiting_count == 0
