"""Nodes that have the images already."""

import pytest

from mooring.framework import CycleState, Node, Pod
from mooring.plugins.imagelocality import ImageLocality
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import node, nodes, pod

MIB = 1024 * 1024


def scores(incoming: Pod, *members: Node) -> list[int]:
    cluster = nodes(*members)
    plugin = build(ImageLocality, handle=StubHandle(nodes=cluster))
    scalar = [plugin.score(CycleState(), incoming, n) for n in cluster]
    assert plugin.score_all(CycleState(), incoming, cluster).tolist() == scalar
    return scalar


@pytest.mark.parametrize(
    ("images", "size", "expected"),
    [
        pytest.param(["a:1", "b:1"], 250 * MIB, 5, id="250 MiB, two containers"),
        pytest.param(["a:1"], 4000 * MIB, 100, id="4000 MiB, one container"),
        pytest.param(["a:1"], 46 * MIB, 0, id="at the floor"),
        pytest.param(["a:1"], 66 * MIB, 1, id="just above the floor"),
        pytest.param(["a:1"], 1998 * MIB, 99, id="just below the ceiling"),
        pytest.param(["a:1"], 2000 * MIB, 100, id="at the ceiling"),
        pytest.param(["a:1", "a:1"], 500 * MIB, 24, id="an image counts once per container"),
    ],
)
def test_scores_what_is_there_on_one_of_two_nodes(
    images: list[str], size: int, expected: int
) -> None:
    assert scores(pod(images=images), node("has", images={"a:1": size}), node("has-not")) == [
        expected,
        0,
    ]


def test_scores_nothing_where_no_node_has_the_image() -> None:
    assert scores(pod(image="a"), node("x"), node("y", images={"b:latest": 900 * MIB})) == [0, 0]


def test_a_widespread_image_is_worth_more() -> None:
    having, lacking = {"a:1": 400 * MIB}, node("z")
    rare = scores(pod(image="a:1"), node("x", images=having), node("y"), lacking)
    common = scores(pod(image="a:1"), node("x", images=having), node("y", images=having), lacking)
    assert common[0] > rare[0] > 0


@pytest.mark.parametrize(
    ("wanted", "reported"),
    [
        ("nginx", "nginx:latest"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("nginx:1.2", "nginx:1.2"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
    ],
)
def test_looks_images_up_with_their_tag(wanted: str, reported: str) -> None:
    assert scores(pod(image=wanted), node("n", images={reported: 2000 * MIB})) == [100]


def test_counts_init_containers_and_image_volumes() -> None:
    incoming = pod(
        image="main:1",
        spec={
            "initContainers": [{"name": "i", "image": "init:1"}],
            "volumes": [{"name": "v", "image": {"reference": "volume:1"}}],
        },
    )
    images = {"main:1": 100 * MIB, "init:1": 200 * MIB, "volume:1": 300 * MIB}
    # Two containers set the scale; the volume only adds to the sum.
    assert scores(incoming, node("n", images=images)) == [100 * (600 - 23) // (2000 - 23)]


def test_shares_are_of_the_whole_cluster_when_only_some_nodes_are_asked_about() -> None:
    cluster = nodes(node("a", images={"x:1": 800 * MIB}), node("b"), node("c"), node("d"))
    plugin = build(ImageLocality, handle=StubHandle(nodes=cluster))
    full = plugin.score_all(CycleState(), pod(image="x:1"), cluster)
    part = plugin.score_all(CycleState(), pod(image="x:1"), cluster.take(cluster.pod_counts[:1]))
    assert part.tolist() == full.tolist()[:1] == [100 * (200 - 23) // (1000 - 23)]
