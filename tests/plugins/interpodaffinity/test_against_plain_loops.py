"""Both forms, before and after what-ifs, say what plain loops over all pods say."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plugins.interpodaffinity import model
from tests.plugins.interpodaffinity.model import Cluster
from tests.plugins.interpodaffinity.strategies import clusters, pods
from tests.sizes import sized

from mooring.api import codec, core
from mooring.cache import nodes as node_table
from mooring.cache.cache import Cache
from mooring.framework import CycleState, Nodes, Pod, Status
from mooring.framework._internal import DomainTable
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity
from mooring.testing.build import StubHandle, build


def cache_of(cluster: Cluster) -> Cache:
    cache = Cache()
    for name, labels in cluster.nodes.items():
        raw: dict[str, Any] = {"metadata": {"name": name, "labels": dict(labels)}}
        cache.put_node(codec.convert(raw, core.Node))
    for resident in cluster.pods:
        cache.put_pod(resident)
    for name, labels in cluster.namespaces.items():
        raw = {"metadata": {"name": name, "labels": dict(labels)}}
        cache.objects.put(codec.convert(raw, core.Namespace))
    return cache


def plugin_in(cache: Cache, **args: Any) -> InterPodAffinity:
    handle = StubHandle(nodes=cache.nodes, objects=cache.objects)
    return build(InterPodAffinity, handle=handle, **args)


def answers(
    plugin: InterPodAffinity, state: CycleState, incoming: Pod, nodes: Nodes
) -> dict[str, str]:
    """What the plugin says of each node, in both forms and of some of the nodes."""
    each = {node.name: plugin.filter(state, incoming, node) for node in nodes}
    for some in (nodes, nodes.take(np.arange(0, len(nodes), 2))):
        verdicts = plugin.filter_all(state, incoming, some)
        found = {name: verdicts.status(place) for place, name in enumerate(some.names)}
        assert found == {name: each[name] for name in some.names}
    codes = {model.AFFINITY: Status.unresolvable, model.ANTI_AFFINITY: Status.unschedulable}
    for status in each.values():
        assert status.ok or status == codes.get(status.message, Status.unschedulable)(
            status.message
        )
    return {name: status.message for name, status in each.items()}


def meant(incoming: Pod, cluster: Cluster) -> dict[str, str]:
    return {
        name: model.refusal(incoming, labels, cluster) for name, labels in cluster.nodes.items()
    }


@given(cluster=clusters(), incoming=pods("new"))
@settings(max_examples=sized(50), deadline=None)
def test_filters_as_plain_loops_do(cluster: Cluster, incoming: Pod) -> None:
    cache = cache_of(cluster)
    plugin, state = plugin_in(cache), CycleState()
    status = plugin.pre_filter(state, incoming, cache.nodes)
    if status.skipped:
        assert not model.affinity_terms(incoming)
        assert not model.anti_affinity_terms(incoming)
        assert not any(meant(incoming, cluster).values())
    else:
        assert status.ok
        assert answers(plugin, state, incoming, cache.nodes) == meant(incoming, cluster)


@given(cluster=clusters(), incoming=pods("new"), data=st.data())
@settings(max_examples=sized(50), deadline=None)
def test_what_ifs_equal_the_cluster_they_imagine(
    cluster: Cluster, incoming: Pod, data: st.DataObject
) -> None:
    cache = cache_of(cluster)
    nodes = cache.nodes
    plugin, state = plugin_in(cache), CycleState()
    if plugin.pre_filter(state, incoming, nodes).skipped:
        return
    before = answers(plugin, state, incoming, nodes)
    imagined, there = state.clone(), {pod.uid: pod for pod in cluster.pods}
    for step in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()) and there:
            gone = there.pop(data.draw(st.sampled_from(sorted(there))))
            node = nodes.get(gone.node_name)
            assert node is not None
            assert plugin.remove_pod(imagined, incoming, gone, node.without_pod(gone)).ok
        else:
            on = data.draw(st.sampled_from(sorted(cluster.nodes)))
            more = data.draw(pods(f"more{step}", on=on))
            node = nodes.get(on)
            assert node is not None
            assert plugin.add_pod(imagined, incoming, more, node.with_pod(more)).ok
            there[more.uid] = more
    changed = cluster._replace(pods=tuple(there.values()))
    assert answers(plugin, imagined, incoming, nodes) == meant(incoming, changed)
    assert answers(plugin, state, incoming, nodes) == before


@given(
    cluster=clusters(),
    incoming=pods("new"),
    hard_weight=st.sampled_from([0, 1, 7, 100]),
    ignore=st.booleans(),
)
@settings(max_examples=sized(50), deadline=None)
def test_scores_as_plain_loops_do(
    cluster: Cluster, incoming: Pod, hard_weight: int, ignore: bool
) -> None:
    cache = cache_of(cluster)
    plugin = plugin_in(
        cache, hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignore
    )
    expected = model.scores(incoming, cluster, hard_weight, ignore)
    feasible = cache.nodes.take(np.arange(0, len(cluster.nodes), 2))
    state = CycleState()
    status = plugin.pre_score(state, incoming, feasible)
    assert status.skipped == (expected is None)
    if expected is None:
        return
    raw = plugin.score_all(state, incoming, feasible)
    assert raw.dtype == np.int64
    assert dict(zip(feasible.names, raw.tolist(), strict=True)) == {
        name: expected[name] for name in feasible.names
    }
    assert [plugin.score(state, incoming, node) for node in feasible] == raw.tolist()
    normal = plugin.normalize_score(state, incoming, feasible, raw)
    least, most = int(raw.min()), int(raw.max())
    assert normal.tolist() == [
        int(100.0 * (float(score - least) / float(most - least))) if most > least else 0
        for score in raw.tolist()
    ]


@pytest.mark.parametrize("most_counters", [1, node_table.MAX_COUNTERS])
@given(cluster=clusters(), incoming=pods("new"), data=st.data())
@settings(max_examples=sized(40), deadline=None)
def test_follows_pods_that_come_and_go_whatever_earlier_pods_left(
    most_counters: int, cluster: Cluster, incoming: Pod, data: st.DataObject
) -> None:
    cache = cache_of(cluster)
    nodes, plugin = cache.nodes, plugin_in(cache)
    there = {pod.uid: pod for pod in cluster.pods}
    earlier: CycleState | None = None
    for step in range(data.draw(st.integers(1, 5))):
        on = data.draw(st.sampled_from(sorted(cluster.nodes)))
        more = data.draw(pods(f"more{step}", on=on))
        now = cluster._replace(pods=tuple(there.values()))
        state = CycleState()
        if earlier is not None:
            state.begin_like(state, earlier)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node_table, "MAX_COUNTERS", most_counters)
            is_filtered = not plugin.pre_filter(state, incoming, nodes).skipped
            is_scored = not plugin.pre_score(state, incoming, nodes).skipped
        expected = model.scores(incoming, now, hard_weight=1, ignore=False)
        assert is_scored == (expected is not None)
        if expected is not None:
            assert [*expected.values()] == [plugin.score(state, incoming, node) for node in nodes]
            assert [*expected.values()] == by_domain(
                plugin.score_by_domain(state, incoming, nodes), nodes, sum
            )
        if is_filtered:
            refusals = meant(incoming, now)
            assert answers(plugin, state, incoming, nodes) == refusals
            assert [bool(why) for why in refusals.values()] == by_domain(
                plugin.filter_by_domain(state, incoming, nodes), nodes, any
            )
            if data.draw(st.booleans()):  # without a clone: it is this pod's own state
                node = nodes.get(on)
                assert node is not None
                plugin.add_pod(state, incoming, more, node.with_pod(more))
                imagined = now._replace(pods=(*now.pods, more))
                assert answers(plugin, state, incoming, nodes) == meant(incoming, imagined)
        if data.draw(st.booleans()) and there:
            cache.remove_pod(there.pop(data.draw(st.sampled_from(sorted(there)))))
        elif data.draw(st.booleans()):
            cache.put_pod(more)
            there[more.uid] = more
        earlier = state


def by_domain(
    tables: Mapping[str, DomainTable[Any]], nodes: Nodes, together: Callable[[list[Any]], Any]
) -> list[Any]:
    """What tables say of each node."""
    return [
        together(
            [table.at(np.array([node.label_code(key)])).item() for key, table in tables.items()]
        )
        for node in nodes
    ]
