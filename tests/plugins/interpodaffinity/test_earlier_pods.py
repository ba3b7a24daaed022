"""What is taken over from an earlier pod of a class, and what must not be."""

from collections.abc import Mapping

import numpy as np
import pytest
from tests.plugins.interpodaffinity.affinity import (
    affinity,
    anti_affinity,
    preferred_affinity,
    term,
)

from mooring.cache import nodes as node_table
from mooring.cache.cache import Cache
from mooring.framework import CycleState, Nodes, Pod
from mooring.framework._internal import DomainTable
from mooring.plugins.interpodaffinity.plugin import (
    AFFINITY_COUNTS,
    TOPOLOGY_SCORES,
    InterPodAffinity,
)
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import HOSTNAME, ZONE, node, pod

WEB = {"app": "web"}
RULES = {
    **preferred_affinity((3, term("zone", app="web"))),
    **anti_affinity(term("zone", app="web")),
}


def web(name: str, on: str) -> Pod:
    return pod(name, uid=name, on=on, labels=WEB)


def incoming(name: str = "new") -> Pod:
    return pod(name, labels=WEB, affinity=RULES)


@pytest.fixture
def cache() -> Cache:
    cache = Cache()
    for name, zone in (("a1", "a"), ("b1", "b"), ("c1", "c")):
        cache.put_node(node(name, zone=zone).api)
    cache.put_pod(web("first", "a1"))
    return cache


@pytest.fixture
def plugin(cache: Cache) -> InterPodAffinity:
    return build(InterPodAffinity, handle=StubHandle(nodes=cache.nodes, objects=cache.objects))


def prepared(plugin: InterPodAffinity, nodes: Nodes, earlier: CycleState | None) -> CycleState:
    state = CycleState()
    if earlier is not None:
        state.begin_like(state, earlier)
    assert plugin.pre_filter(state, incoming(), nodes).ok
    assert plugin.pre_score(state, incoming(), nodes).ok
    return state


def refused(plugin: InterPodAffinity, state: CycleState, nodes: Nodes) -> list[str]:
    return [one.name for one in nodes if not plugin.filter(state, incoming(), one).ok]


def refused_zones(tables: Mapping[str, DomainTable[np.bool_]], nodes: Nodes) -> list[str | None]:
    refusals = tables[ZONE].at(np.arange(nodes.label_count(ZONE))).tolist()
    pairs = zip(nodes.label_values(ZONE), refusals, strict=True)
    return [zone for zone, is_refused in pairs if is_refused]


def test_what_was_made_of_the_same_counters_is_taken_over(
    cache: Cache, plugin: InterPodAffinity
) -> None:
    first = prepared(plugin, cache.nodes, None)
    cache.put_pod(web("second", "b1"))
    second = prepared(plugin, cache.nodes, first)
    assert second[AFFINITY_COUNTS] is first[AFFINITY_COUNTS]
    assert second[TOPOLOGY_SCORES] is first[TOPOLOGY_SCORES]
    assert refused(plugin, second, cache.nodes) == ["a1", "b1"]
    assert plugin.score_all(second, incoming(), cache.nodes).tolist() == [3, 3, 0]


def test_counters_that_were_evicted_and_rebuilt_are_read_again(
    cache: Cache, plugin: InterPodAffinity, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepared(plugin, cache.nodes, None)
    monkeypatch.setattr(node_table, "MAX_COUNTERS", 1)
    cache.nodes.count_pods("all", lambda _: True)
    cache.put_pod(web("second", "b1"))
    second = prepared(plugin, cache.nodes, first)
    assert refused(plugin, second, cache.nodes) == ["a1", "b1"]
    assert plugin.score_all(second, incoming(), cache.nodes).tolist() == [3, 3, 0]


def test_hypothetical_pods_do_not_count_for_the_next_pod(
    cache: Cache, plugin: InterPodAffinity
) -> None:
    first = prepared(plugin, cache.nodes, None)
    second = prepared(plugin, cache.nodes, first)
    plugin.add_pod(second, incoming(), web("hypothetical", "b1"), cache.nodes[1])
    third = prepared(plugin, cache.nodes, second)
    for state, names in ((first, ["a1"]), (second, ["a1", "b1"]), (third, ["a1"])):
        assert refused(plugin, state, cache.nodes) == names


def test_a_clone_of_a_what_if_goes_its_own_way(cache: Cache, plugin: InterPodAffinity) -> None:
    state = prepared(plugin, cache.nodes, None)
    one = state.clone()
    plugin.add_pod(one, incoming(), web("hypothetical", "b1"), cache.nodes[1])
    other = one.clone()
    plugin.add_pod(other, incoming(), web("another", "c1"), cache.nodes[2])
    found = [refused(plugin, each, cache.nodes) for each in (state, one, other)]
    assert found == [["a1"], ["a1", "b1"], ["a1", "b1", "c1"]]


def test_tables_follow_what_ifs(cache: Cache, plugin: InterPodAffinity) -> None:
    nodes, state = cache.nodes, prepared(plugin, cache.nodes, None).clone()
    assert refused_zones(plugin.filter_by_domain(state, incoming(), nodes), nodes) == ["a"]
    guard = pod("guard", on="c1", affinity=anti_affinity(term("zone", app="web")))
    plugin.add_pod(state, incoming(), guard, nodes[2])
    assert refused_zones(plugin.filter_by_domain(state, incoming(), nodes), nodes) == ["a", "c"]
    guard = pod("another", on="b1", affinity=anti_affinity(term("host", app="web")))
    plugin.add_pod(state, incoming(), guard, nodes[1])
    assert {*plugin.filter_by_domain(state, incoming(), nodes)} == {ZONE, HOSTNAME}


def test_the_first_in_a_series_depends_on_the_pods_there_now(
    cache: Cache, plugin: InterPodAffinity
) -> None:
    nodes, state = cache.nodes, CycleState()
    member = pod("db", uid="db", on="b1", labels={"app": "db"})
    another = pod("new", labels={"app": "db"}, affinity=affinity(term("zone", app="db")))
    bases = []
    for is_there in (False, True, False):
        if is_there:
            cache.put_pod(member)
        else:
            cache.remove_pod(member)
        earlier, state = state, CycleState()
        if earlier is not None:
            state.begin_like(state, earlier)
        plugin.pre_filter(state, another, nodes)
        tables = plugin.filter_by_domain(state, another, nodes)
        assert refused_zones(tables, nodes) == ([None, "a", "c"] if is_there else [None])
        bases.append(tables[ZONE].basis)
    assert bases[0] == bases[2] != bases[1]
