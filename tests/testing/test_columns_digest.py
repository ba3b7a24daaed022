from mooring.cache.cache import Cache
from mooring.cache.snapshot import Nodes
from mooring.testing import pod
from mooring.testing._columns_digest import contradictions, differences, digest
from mooring.testing._random_clusters import random_cluster

POD = pod("p")


def a_cache() -> Cache:
    return random_cluster(6).cache()


def test_finds_no_difference_where_nothing_changed() -> None:
    cache = a_cache()
    before = digest(cache, POD)
    ask_much(cache.nodes)
    assert differences(before, digest(cache, POD)) == []
    assert contradictions(cache.table) == []


def ask_much(nodes: Nodes) -> None:
    nodes.spare("cpu")
    nodes.label_codes("pool")
    nodes.count_pods("all", lambda pod: True)


def test_notices_a_number_that_changed() -> None:
    cache = a_cache()
    before = digest(cache, POD)
    cache.table.resources.requested["cpu"].data[0] += 1
    assert [text.partition(":")[0] for text in differences(before, digest(cache, POD))] == [
        "requested cpu"
    ]


def test_notices_a_pod_that_came() -> None:
    cache = a_cache()
    before = digest(cache, POD)
    cache.assume(POD, "node-0")
    changed = [text.partition(":")[0] for text in differences(before, digest(cache, POD))]
    assert {"requested pods", "pods on node-0", "known pods", "assumed pods"} <= set(changed)


def test_notices_labels_and_counts_that_do_not_match_the_objects() -> None:
    cache = a_cache()
    ask_much(cache.nodes)
    cache.table.label("pool").codes.data[0] += 1
    cache.table.counter("all", lambda pod: True).per_row.data[0] += 1
    assert [text.partition(":")[0] for text in contradictions(cache.table)] == [
        "labels pool",
        "count 'all'",
    ]
