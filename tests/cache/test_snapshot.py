from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mooring.api import core
from mooring.api.requests import HostPort
from mooring.api.selectors import NODE_NAME_FIELD, LabelRequirement, compile_term
from mooring.cache.internals import (
    allocatable_of,
    float_allocatable_of,
    float_nonzero_requested_of,
    label_tally,
    listed_label_codes,
    listing_of,
    requested_of,
)
from mooring.cache.snapshot import Nodes
from mooring.testing import node, nodes, pod
from mooring.testing.builders import ZONE


def three() -> Nodes:
    return nodes(
        node("n0", cpu="1", zone="a", labels={"size": "10"}, pods=[pod("p", cpu="300m")]),
        node("n1", cpu="2", zone="b", taints=["gpu=yes:NoSchedule"], images={"app:1": 50}),
        node("n2", cpu="3", zone="a", labels={"size": "3"}, unschedulable=True),
    )


def part() -> Nodes:
    return three().take(np.array([True, False, True]))


def expressions(key: str, operator: str, *values: str) -> tuple[core.NodeSelectorRequirement, ...]:
    return (core.NodeSelectorRequirement(key=key, operator=operator, values=values),)


def names_matching(term: core.NodeSelectorTerm) -> list[str]:
    cluster = three()
    compiled = compile_term(term)
    chosen = list(cluster.take(cluster.matching(compiled)).names)
    assert chosen == [n.name for n in cluster if compiled.matches(n.labels, n.name)]
    some = part()
    in_part = some.take(some.matching(compiled)).names
    assert list(in_part) == [name for name in chosen if name in some.names]
    return chosen


# --- as a sequence -------------------------------------------------------------------------------


@pytest.mark.parametrize(("index", "name"), [(0, "n0"), (2, "n2"), (-1, "n2"), (-3, "n0")])
def test_counts_from_either_end(index: int, name: str) -> None:
    assert three()[index].name == name


@pytest.mark.parametrize(("index", "name"), [(0, "n0"), (1, "n2"), (-1, "n2"), (-2, "n0")])
def test_counts_from_either_end_of_a_part(index: int, name: str) -> None:
    assert part()[index].name == name


@pytest.mark.parametrize("index", [3, -4, 100])
def test_has_no_node_beyond_its_ends(index: int) -> None:
    with pytest.raises(IndexError):
        three()[index]
    with pytest.raises(IndexError):
        part()[index]
    with pytest.raises(IndexError):
        nodes()[index]


def test_a_part_has_its_own_length_names_and_nodes() -> None:
    some = part()
    assert len(some) == 2
    assert some.names == ("n0", "n2")
    assert [n.name for n in some] == ["n0", "n2"]
    assert repr(some) == "Nodes(2 of 3)"


def test_a_part_is_taken_by_mask_or_by_places() -> None:
    assert three().take(np.array([1, 2])).names == ("n1", "n2")
    assert three().take(np.array([False, True, True])).names == ("n1", "n2")
    assert three().take(np.array([], np.int64)).names == ()


def test_a_part_of_a_part_counts_places_in_the_part() -> None:
    assert part().take(np.array([1])).names == ("n2",)
    assert part().take(np.array([False, True])).names == ("n2",)


def test_finds_nodes_by_name_within_the_part_only() -> None:
    whole, some = three(), part()
    found = whole.get("n1")
    assert found is not None
    assert found.name == "n1"
    assert whole.index_of("n2") == 2
    assert some.index_of("n2") == 1
    assert some.get("n1") is None
    assert some.index_of("n1") is None
    assert whole.get("n9") is None
    assert whole.index_of("n9") is None


# --- columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [three, part])
@pytest.mark.parametrize(
    "read",
    [
        lambda n: n.allocatable("cpu"),
        lambda n: n.allocatable("example.com/unheard-of"),
        lambda n: n.requested("cpu"),
        lambda n: n.requested("example.com/unheard-of"),
        lambda n: n.spare("cpu"),
        lambda n: n.nonzero_requested("cpu"),
        lambda n: n.nonzero_requested("memory"),
        lambda n: allocatable_of(n, ("cpu", "memory")),
        lambda n: requested_of(n, ("cpu", "memory")),
        lambda n: float_allocatable_of(n, ("cpu", "memory")),
        lambda n: float_nonzero_requested_of(n, ("cpu", "memory")),
        lambda n: n.pod_counts,
        lambda n: n.unschedulable,
        lambda n: n.label_codes(ZONE),
        lambda n: label_tally(n, ZONE),
        lambda n: listed_label_codes(n, ZONE),
        lambda n: n.count_pods("all", lambda resident: True),
        lambda n: n.count_pods_by(ZONE, "all", lambda resident: True),
    ],
)
def test_no_column_can_be_written(
    make: Callable[[], Nodes], read: Callable[[Nodes], NDArray[Any]]
) -> None:
    column = read(make())
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


@pytest.mark.parametrize("make", [three, part])
def test_several_resources_stand_one_below_the_other(make: Callable[[], Nodes]) -> None:
    nodes, resources = make(), ("memory", "example.com/unheard-of", "cpu")
    for one, several in (
        (nodes.allocatable, allocatable_of),
        (nodes.requested, requested_of),
        (nodes.nonzero_requested, float_nonzero_requested_of),
    ):
        assert several(nodes, resources).tolist() == [
            one(resource).tolist() for resource in resources
        ]
        assert several(nodes, ()).shape == (0, len(nodes))


def test_resources_are_per_node_of_the_part() -> None:
    some = part()
    assert some.allocatable("cpu").tolist() == [1000, 3000]
    assert some.requested("cpu").tolist() == [300, 0]
    assert some.spare("cpu").tolist() == [700, 3000]
    assert some.spare("example.com/unheard-of").tolist() == [0, 0]
    assert some.pod_counts.tolist() == [1, 0]
    assert some.unschedulable.tolist() == [False, True]


def test_resources_other_than_cpu_and_memory_have_no_default() -> None:
    gpu = "example.com/gpu"
    cluster = nodes(node("n", pods=[pod("p"), pod("q", requests={gpu: 2})]))
    assert cluster.nonzero_requested("cpu").tolist() == [200]
    assert cluster.nonzero_requested("memory").tolist() == [2 * 200 * 2**20]
    assert cluster.nonzero_requested(gpu).tolist() == [2]
    assert cluster[0].nonzero_requested(gpu) == 2


def test_lists_a_part_in_the_order_of_the_whole() -> None:
    assert listing_of(three()).tolist() == [0, 1, 2]
    cluster = nodes(*(node(f"n{i}", zone=zone) for i, zone in enumerate("aabb")))
    assert listing_of(cluster).tolist() == [0, 2, 1, 3]
    assert listing_of(cluster.take(np.array([1, 2, 3]))).tolist() == [1, 0, 2]


# --- what nodes are ------------------------------------------------------------------------------


def test_asks_once_per_distinct_set_of_taints() -> None:
    taints = ["a:NoSchedule", "b=1:NoExecute"]
    cluster = nodes(node("n0", taints=taints), node("n1"), node("n2", taints=taints), node("n3"))
    asked: list[int] = []

    def count(those: tuple[core.Taint, ...]) -> int:
        asked.append(len(those))
        return len(those)

    assert cluster.by_taints(count).tolist() == [2, 0, 2, 0]
    assert asked == [0, 2]


def test_knows_whether_any_of_its_nodes_is_tainted() -> None:
    assert three().has_taints
    assert not part().has_taints
    assert not nodes(node("n")).has_taints


@pytest.mark.parametrize(
    ("term", "names"),
    [
        (core.NodeSelectorTerm(), []),
        (core.NodeSelectorTerm(match_expressions=expressions(ZONE, "In", "a")), ["n0", "n2"]),
        (core.NodeSelectorTerm(match_expressions=expressions(ZONE, "In", "z")), []),
        (core.NodeSelectorTerm(match_expressions=expressions("size", "NotIn", "3")), ["n0", "n1"]),
        (core.NodeSelectorTerm(match_expressions=expressions("size", "Exists")), ["n0", "n2"]),
        (core.NodeSelectorTerm(match_expressions=expressions("size", "DoesNotExist")), ["n1"]),
        (core.NodeSelectorTerm(match_expressions=expressions("size", "Gt", "5")), ["n0"]),
        (core.NodeSelectorTerm(match_expressions=expressions("size", "Lt", "5")), ["n2"]),
        (core.NodeSelectorTerm(match_expressions=expressions("size", "Lt", "five")), []),
        (core.NodeSelectorTerm(match_fields=expressions(NODE_NAME_FIELD, "In", "n1")), ["n1"]),
        (core.NodeSelectorTerm(match_fields=expressions(NODE_NAME_FIELD, "In", "n9")), []),
        (
            core.NodeSelectorTerm(match_fields=expressions(NODE_NAME_FIELD, "NotIn", "n1")),
            ["n0", "n2"],
        ),
        (
            core.NodeSelectorTerm(
                match_expressions=expressions(ZONE, "In", "a"),
                match_fields=expressions(NODE_NAME_FIELD, "NotIn", "n0"),
            ),
            ["n2"],
        ),
    ],
)
def test_selects_what_a_node_selector_term_selects(
    term: core.NodeSelectorTerm, names: list[str]
) -> None:
    assert names_matching(term) == names


def test_meets_a_requirement_in_a_part() -> None:
    wanted = LabelRequirement("size", "In", frozenset({"3"}))
    assert part().meeting(wanted).tolist() == [False, True]


def test_knows_where_an_image_lies() -> None:
    whole, some = three(), part()
    found = whole.with_image("app:1")
    assert found is not None
    assert (found[0], found[1].tolist()) == (50, [False, True, False])
    in_part = some.with_image("app:1")
    assert in_part is not None
    assert in_part[1].tolist() == [False, False]
    assert whole.with_image("app:2") is None
    assert (some.image_spread("app:1"), some.image_spread("app:2")) == (1, 0)
    assert [n.image_size("app:1") for n in whole] == [None, 50, None]


def test_knows_which_host_ports_are_taken() -> None:
    cluster = nodes(
        node("n0", pods=[pod("p", ports=[80])]),
        node("n1", pods=[pod("q", ports=["10.0.0.1:80", "10.0.0.2:81/UDP"])]),
        node("n2"),
    )

    def taken(ip: str, protocol: str, port: int) -> list[bool]:
        asked = HostPort(ip, protocol, port)
        whole = cluster.port_taken(asked).tolist()
        assert whole == [n.port_taken(asked) for n in cluster]
        assert cluster.take(np.array([1, 2])).port_taken(asked).tolist() == whole[1:]
        return list(whole)

    assert taken("0.0.0.0", "TCP", 80) == [True, True, False]
    assert taken("10.0.0.1", "TCP", 80) == [True, True, False]
    assert taken("10.0.0.2", "TCP", 80) == [True, False, False]
    assert taken("0.0.0.0", "UDP", 80) == [False, False, False]
    assert taken("10.0.0.2", "UDP", 81) == [False, True, False]
