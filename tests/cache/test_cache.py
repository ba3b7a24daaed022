"""The state drawing of `cache.py`, arrow by arrow."""

import pytest

from mooring.api.requests import HostPort
from mooring.cache.cache import Cache
from mooring.cache.internals import mark_of
from mooring.errors import InternalError
from mooring.testing import node, pod


def cluster(*names: str) -> Cache:
    cache = Cache()
    for name in names:
        cache.put_node(node(name).api)
    return cache


def cpu(cache: Cache) -> dict[str, int]:
    nodes = cache.nodes
    return dict(zip(nodes.names, nodes.requested("cpu").tolist(), strict=True))


WEB = pod("web", uid="u1", cpu="1")
ON_A = pod("web", uid="u1", cpu="1", on="a")
ON_B = pod("web", uid="u1", cpu="1", on="b")


def test_an_assumed_pod_counts_on_its_node_at_once() -> None:
    cache = cluster("a")
    assumed = cache.assume(WEB, "a")
    assert assumed.node_name == "a"
    assert cache.is_assumed("u1")
    assert (cache.assumed_count, cache.pod_count) == (1, 1)
    assert cache.get_pod("u1") is assumed
    assert cpu(cache) == {"a": 1000}


def test_a_pod_cannot_be_assumed_twice() -> None:
    cache = cluster("a")
    cache.assume(WEB, "a")
    with pytest.raises(InternalError) as caught:
        cache.assume(WEB, "a")
    assert str(caught.value) == "pod u1(default/web) is in the cache, so can't be assumed"
    assert cpu(cache) == {"a": 1000}


def test_a_bound_pod_cannot_be_assumed() -> None:
    cache = cluster("a")
    cache.put_pod(ON_A)
    with pytest.raises(InternalError):
        cache.assume(WEB, "a")
    assert not cache.is_assumed("u1")


def test_a_forgotten_pod_leaves_no_trace() -> None:
    cache = cluster("a")
    cache.assume(WEB, "a")
    cache.forget(WEB)
    cache.forget(WEB)
    assert (cache.assumed_count, cache.pod_count) == (0, 0)
    assert cpu(cache) == {"a": 0}
    cache.assume(WEB, "a")


def test_the_watch_confirms_an_assumption() -> None:
    cache = cluster("a")
    assumed = cache.assume(WEB, "a")
    assert cache.put_pod(ON_A) is assumed
    assert not cache.is_assumed("u1")
    assert cpu(cache) == {"a": 1000}


def test_a_confirmed_pod_is_not_forgotten() -> None:
    cache = cluster("a")
    cache.assume(WEB, "a")
    cache.put_pod(ON_A)
    cache.forget(WEB)
    assert cache.get_pod("u1") is ON_A
    assert cpu(cache) == {"a": 1000}


def test_the_watch_is_right_about_the_node() -> None:
    cache = cluster("a", "b")
    cache.assume(WEB, "a")
    cache.put_pod(ON_B)
    assert cpu(cache) == {"a": 0, "b": 1000}


def test_a_pod_removed_while_assumed_is_gone() -> None:
    cache = cluster("a")
    assumed = cache.assume(WEB, "a")
    assert cache.remove_pod(WEB) is assumed
    assert (cache.assumed_count, cache.pod_count) == (0, 0)
    cache.forget(WEB)
    assert cpu(cache) == {"a": 0}


def test_a_bound_pod_goes_when_it_is_removed() -> None:
    cache = cluster("a")
    assert cache.put_pod(ON_A) is None
    assert cache.remove_pod(ON_A) is ON_A
    assert cache.remove_pod(ON_A) is None
    assert list(cache.pods()) == []
    assert cpu(cache) == {"a": 0}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_counts_no_more(phase: str) -> None:
    cache = cluster("a")
    finished = pod("web", uid="u1", cpu="1", on="a", phase=phase)
    assert cache.put_pod(finished) is None
    cache.put_pod(ON_A)
    assert cache.put_pod(finished) is ON_A
    assert cache.pod_count == 0
    assert cpu(cache) == {"a": 0}


def test_a_terminating_pod_still_counts() -> None:
    cache = cluster("a")
    cache.put_pod(pod("web", cpu="1", on="a", deleting=True))
    assert cpu(cache) == {"a": 1000}


def test_a_successor_of_the_same_name_counts_beside_its_predecessor() -> None:
    cache = cluster("a")
    cache.put_pod(pod("db-0", uid="old", cpu="1", on="a"))
    cache.put_pod(pod("db-0", uid="new", cpu="2", on="a"))
    assert cpu(cache) == {"a": 3000}
    cache.remove_pod(pod("db-0", uid="old"))
    assert cpu(cache) == {"a": 2000}


def test_a_pod_waits_for_its_node() -> None:
    cache = cluster()
    cache.put_pod(ON_A)
    assert cache.pod_count == 1
    assert len(cache.nodes) == 0
    cache.put_node(node("a").api)
    assert cpu(cache) == {"a": 1000}


def test_a_pod_outlives_its_node_and_finds_it_again() -> None:
    cache = cluster("a", "b")
    cache.put_pod(ON_A)
    cache.remove_node("a")
    assert cpu(cache) == {"b": 0}
    assert list(cache.pods()) == [ON_A]
    cache.put_node(node("a").api)
    assert cpu(cache) == {"b": 0, "a": 1000}


def test_a_pod_can_leave_while_its_node_is_away() -> None:
    cache = cluster("a")
    cache.put_pod(ON_A)
    cache.assume(pod("other", uid="u2", cpu="1"), "a")
    cache.remove_node("a")
    cache.remove_pod(ON_A)
    cache.forget(pod("other", uid="u2"))
    assert not cache._of_missing_nodes
    cache.put_node(node("a").api)
    assert cpu(cache) == {"a": 0}


def test_a_node_gives_back_its_former_self() -> None:
    cache = cluster()
    first, second = node("a", cpu="1").api, node("a", cpu="2").api
    assert cache.put_node(first) is None
    assert cache.put_node(second) is first
    cache.remove_node("a")
    cache.remove_node("a")
    assert cache.put_node(first) is None


def test_the_node_that_fills_a_hole_keeps_its_ports_and_images() -> None:
    cache = cluster()
    cache.put_node(node("a", images={"old:1": 5}).api)
    cache.put_node(node("b", images={"app:1": 5}).api)
    cache.put_pod(pod("web", on="b", ports=[80]))
    cache.remove_node("a")
    nodes = cache.nodes
    assert nodes.port_taken(HostPort("0.0.0.0", "TCP", 80)).tolist() == [True]
    assert nodes.with_image("old:1") is None
    assert nodes[0].image_size("app:1") == 5
    assert nodes.image_spread("app:1") == 1
    cache.put_node(node("c").api)
    nodes = cache.nodes
    assert nodes.port_taken(HostPort("0.0.0.0", "TCP", 80)).tolist() == [True, False]
    found = nodes.with_image("app:1")
    assert found is not None
    assert found[1].tolist() == [True, False]


def test_a_resource_that_a_node_no_longer_offers_is_zero() -> None:
    cache = cluster()
    cache.put_node(node("a", resources={"example.com/gpu": 4}).api)
    assert cache.nodes.allocatable("example.com/gpu").tolist() == [4]
    cache.put_node(node("a").api)
    assert cache.nodes.allocatable("example.com/gpu").tolist() == [0]


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu"])
def test_absurd_requests_wrap_and_come_off_again(resource: str) -> None:
    cache = cluster()
    cache.put_node(node("a", resources={resource: "8E"}).api)
    sane = pod("sane", on="a", requests={resource: 2})
    cache.put_pod(sane)
    before = cache.nodes.requested(resource).tolist()
    absurd = [pod(f"p{i}", on="a", requests={resource: "9e18"}) for i in range(4)]
    for one in absurd:
        cache.put_pod(one)
        nodes = cache.nodes
        assert nodes[0].requested(resource) == int(nodes.requested(resource)[0])
        assert nodes[0].spare(resource) == int(nodes.spare(resource)[0])
    for one in absurd:
        cache.remove_pod(one)
    assert cache.nodes.requested(resource).tolist() == before
    cache.remove_pod(sane)
    nodes = cache.nodes
    assert nodes.requested(resource).tolist() == [0]
    assert nodes.nonzero_requested(resource).tolist() == [0]


# --- labels that a server gives to bound pods ----------------------------------------------------


def test_learns_that_bound_pods_have_labels_of_their_node_and_assumes_them() -> None:
    cache = Cache()
    zone = {"topology.kubernetes.io/zone": "z1"}
    cache.put_node(node("a", zone="z1").api)
    first, second = pod("first", uid="u1"), pod("second", uid="u2")
    assert cache.assume(first, "a").labels == {}
    cache.put_pod(pod("first", uid="u1", on="a", labels=zone))
    assert cache.assume(second, "a").labels == zone
    position = mark_of(cache.nodes)
    cache.put_pod(pod("second", uid="u2", on="a", labels=zone))
    assert mark_of(cache.nodes) == position  # nothing to be counted anew
    assert not cache.is_assumed("u2")


def test_learns_that_bound_pods_have_no_labels_of_their_node() -> None:
    cache = Cache()
    cache.put_node(node("a", zone="z1").api)
    zone = {"topology.kubernetes.io/zone": "z1"}
    for uid, labels in (("u1", zone), ("u2", {}), ("u3", {})):
        known = pod(uid, uid=uid)
        cache.assume(known, "a")
        cache.put_pod(pod(uid, uid=uid, on="a", labels=labels))
    assert cache.assume(pod("u4", uid="u4"), "a").labels == {}
