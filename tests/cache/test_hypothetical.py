"""Imagined nodes say of themselves, in columns, what each of them says alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.requests import HostPort
from mooring.cache.hypothetical import HypotheticalNodes, NodesWithoutPods
from mooring.cache.internals import (
    count_features,
    float_nonzero_requested_of,
    requested_of,
    spare_of,
)
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.testing.builders import node, nodes, pod

WIDTH = 3  # pods that leave each node, at most
abouts: Any = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([None, "250m", 1]),
        "memory": st.sampled_from([None, "1Gi"]),
        "requests": st.sampled_from([{}, {"example.com/gpu": 2}]),
        "labels": st.sampled_from([{}, {"app": "web"}]),
        "ports": st.sampled_from([(), (80,)]),
    }
)
moves: Any = st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, WIDTH - 1)))


def is_web(one: Pod) -> bool:
    return one.labels.get("app") == "web"


def images(one: Pod) -> Iterator[str]:
    return (container.image for container in one.spec.containers)


def agrees(thought: HypotheticalNodes, alone: list[Node]) -> None:
    """Every column, with the numbers of the single nodes."""
    assert [one.pods for one in thought] == [one.pods for one in alone]
    assert thought.pod_counts.tolist() == [one.pod_count for one in alone]
    resources = ("pods", "cpu", "memory", "example.com/gpu", "other")
    requested = [[one.requested(resource) for one in alone] for resource in resources]
    assert requested_of(thought, resources).tolist() == requested
    assert requested_of(thought, resources[:3]).tolist() == requested[:3]
    spare = [[one.spare(resource) for one in alone] for resource in resources]
    assert spare_of(thought, resources[:3]).tolist() == spare[:3]
    nonzero = [[one.nonzero_requested(resource) for one in alone] for resource in resources]
    assert float_nonzero_requested_of(thought, resources).tolist() == nonzero
    for resource in resources:
        assert thought.requested(resource).tolist() == [one.requested(resource) for one in alone]
        assert thought.spare(resource).tolist() == [one.spare(resource) for one in alone]
        expected = [one.nonzero_requested(resource) for one in alone]
        assert thought.nonzero_requested(resource).tolist() == expected
    port = HostPort("0.0.0.0", "TCP", 80)
    assert thought.port_taken(port).tolist() == [one.port_taken(port) for one in alone]
    webs = [sum(map(is_web, one.pods)) for one in alone]
    assert thought.count_pods("web", is_web).tolist() == webs
    features = count_features(thought, "images", images)
    assert features.per_node("app").tolist() == [one.pod_count for one in alone]


@given(st.lists(st.lists(abouts, max_size=5), min_size=3, max_size=3), moves, abouts, st.booleans())
def test_columns_follow_every_move(here: Any, moves: Any, more: Any, early: bool) -> None:
    cluster = nodes(
        *(
            node(f"n{i}", pods=[pod(f"p{i}{j}", **about) for j, about in enumerate(some)])
            for i, some in enumerate(here)
        )
    )
    without = [one.pods[:WIDTH] for one in cluster]
    claimant = pod("claimant", **more)
    hypothetical = NodesWithoutPods(cluster, np.arange(3), without, {1: [claimant], 2: []})
    alone = list(cluster)
    for place, gone in enumerate(without):
        for one in gone:
            alone[place] = alone[place].without_pod(one)
    if early:  # columns that were asked for follow the moves; the others are made after them
        agrees(hypothetical, alone)
    for comes, place, number in moves:
        if number < len(without[place]):
            moved, before = without[place][number], alone[place]
            after = before.with_pod(moved) if comes else before.without_pod(moved)
            if after.pod_count == before.pod_count:
                continue  # it is there, or gone, already
            (hypothetical.put_back if comes else hypothetical.take_away)(np.array([place]), number)
            alone[place] = after
    agrees(hypothetical, alone)
    assert hypothetical.with_nominated is not None
    agrees(hypothetical.with_nominated, [alone[1].with_pod(claimant), alone[2]])
    agrees(hypothetical.take(np.array([0, 2])), [alone[0], alone[2]])


def test_has_no_word_on_the_whole_cluster() -> None:
    hypothetical = NodesWithoutPods(nodes(node("a")), np.array([0]), [()])
    with pytest.raises(TypeError, match="hypothetical"):
        hypothetical.count_pods_by("zone", "web", is_web)
    with pytest.raises(TypeError, match="hypothetical"):
        count_features(hypothetical, "images", images).per_domain("app", "zone")


def test_notices_a_nominated_pod_that_is_there() -> None:
    there = pod("there")
    cluster = nodes(node("a", pods=[there]), node("b"))
    for place, overlaps in enumerate([True, False]):
        hypothetical = NodesWithoutPods(cluster, np.arange(2), [(), ()], {place: [there]})
        assert hypothetical.with_nominated is not None
        assert hypothetical.with_nominated.overlaps is overlaps
