import pytest

from mooring.cache.cache import Cache
from mooring.cache.internals import listing_of
from mooring.cache.order import NodeOrder, zone_of
from mooring.testing import node

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"


def order_of(*places: tuple[str, str]) -> NodeOrder:
    order = NodeOrder()
    for name, zone in places:
        order.put(name, {ZONE: zone})
    return order


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({ZONE: "a"}, ("", "a")),
        ({REGION: "eu"}, ("eu", "")),
        ({REGION: "eu", ZONE: "a"}, ("eu", "a")),
        ({OLD_REGION: "old", REGION: "new", OLD_ZONE: "x", ZONE: "y"}, ("old", "x")),
        ({OLD_ZONE: "x", REGION: "new", ZONE: "y"}, ("new", "x")),
        ({OLD_ZONE: "", ZONE: "y"}, ("", "")),
    ],
)
def test_reads_the_old_label_names_first(labels: dict[str, str], zone: tuple[str, str]) -> None:
    assert zone_of(labels) == zone


def test_goes_round_the_zones_in_order_of_first_appearance() -> None:
    order = order_of(("b1", "b"), ("b2", "b"), ("a1", "a"), ("b3", "b"), ("a2", "a"), ("c1", "c"))
    assert order.names() == ["b1", "a1", "c1", "b2", "a2", "b3"]


def test_tells_equal_zones_of_two_regions_apart() -> None:
    order = NodeOrder()
    order.put("n1", {REGION: "eu", ZONE: "a"})
    order.put("n2", {REGION: "eu", ZONE: "a"})
    order.put("n3", {REGION: "us", ZONE: "a"})
    assert order.names() == ["n1", "n3", "n2"]


def test_puts_nodes_without_a_zone_into_one_of_their_own() -> None:
    order = order_of(("a1", "a"), ("a2", "a"))
    order.put("n1", {})
    order.put("n2", {})
    assert order.names() == ["a1", "n1", "a2", "n2"]


def test_forgets_an_empty_zone_and_appends_it_when_it_comes_back() -> None:
    order = order_of(("a1", "a"), ("b1", "b"), ("b2", "b"))
    order.remove("a1")
    assert order.names() == ["b1", "b2"]
    order.put("a1", {ZONE: "a"})
    assert order.names() == ["b1", "a1", "b2"]


def test_shows_a_change_of_zone_only_after_a_node_came() -> None:
    order = order_of(("a1", "a"), ("a2", "a"), ("b1", "b"))
    assert order.names() == ["a1", "b1", "a2"]
    order.put("a1", {ZONE: "b"})
    assert order.names() == ["a1", "b1", "a2"]
    order.put("c1", {ZONE: "c"})
    assert order.names() == ["a2", "b1", "c1", "a1"]


def test_shows_a_change_of_zone_only_after_a_node_went() -> None:
    order = order_of(("a1", "a"), ("a2", "a"), ("b1", "b"))
    order.names()
    order.put("a1", {ZONE: "b"})
    order.remove("a2")
    assert order.names() == ["b1", "a1"]


def test_leaves_a_node_in_its_place_when_its_zone_stays() -> None:
    order = order_of(("a1", "a"), ("a2", "a"))
    order.put("a1", {ZONE: "a", "other": "label"})
    order.put("a3", {ZONE: "a"})
    assert order.names() == ["a1", "a2", "a3"]


def test_the_listing_of_a_cluster_follows() -> None:
    cache = Cache()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        cache.put_node(node(name, zone=zone).api)
    nodes = cache.nodes
    assert [nodes.names[place] for place in listing_of(nodes)] == ["a1", "b1", "a2"]
    cache.remove_node("a1")
    nodes = cache.nodes
    assert [nodes.names[place] for place in listing_of(nodes)] == ["a2", "b1"]
