"""Who is more important on a node, found out once and again when something has changed."""

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.preemption.builders import names, request_for, runs

from mooring.cache.cache import Cache
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.preemption.ranks import Ranks
from mooring.testing.builders import node, nodes, pod


class Ranking:
    """By name, and counts how often that was needed."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, pods: Iterable[Pod]) -> list[Pod]:
        self.asked += 1
        return sorted(pods, key=lambda p: p.name)


def ranked(ranks: Ranks, some: Node, rank: Ranking) -> Sequence[Pod]:
    return ranks.of(some.name, some.pods, rank).by_importance


def test_finds_out_once_as_long_as_nothing_changes() -> None:
    ranks, rank = Ranks(), Ranking()
    cluster = nodes(node("n", pods=[runs("b"), runs("a")]))
    for _ in range(3):
        assert names(ranked(ranks, cluster[0], rank)) == "a b"
    assert rank.asked == 1


def test_finds_out_again_when_a_pod_comes_goes_or_has_another_state() -> None:
    ranks, rank, cache = Ranks(), Ranking(), Cache()
    cache.put_node(node("n").api)
    a, b = runs("a", on="n"), runs("b", on="n")
    for come in (b, a):
        cache.put_pod(come)
        ranked(ranks, cache.nodes[0], rank)
    assert names(ranked(ranks, cache.nodes[0], rank)) == "a b"
    later = Pod(structs.replace(b.api, status=structs.replace(b.status, phase="Running")))
    cache.put_pod(later)
    assert ranked(ranks, cache.nodes[0], rank)[1] is later
    cache.remove_pod(a)
    assert names(ranked(ranks, cache.nodes[0], rank)) == "b"
    assert rank.asked == 4


def test_keeps_nothing_that_depends_on_the_time_it_is() -> None:
    ranks, rank = Ranks(), Ranking()
    mixed = node("mixed", pods=[runs("a", None), runs("b")])
    unknown = node("unknown", pods=[runs("c", None), runs("d", None)])
    for some, asked in ((mixed, 1), (mixed, 2), (unknown, 3), (unknown, 3)):
        ranked(ranks, some, rank)
        assert rank.asked == asked


def test_forgets_nodes_when_it_knows_more_than_there_are() -> None:
    ranks, rank = Ranks(), Ranking()
    cluster = nodes(*(node(name, pods=[runs(f"on-{name}")]) for name in "abc"))
    for some in cluster:
        ranked(ranks, some, rank)
    ranks.keep(3)
    ranked(ranks, cluster[0], rank)
    assert rank.asked == 3
    ranks.keep(2)
    ranked(ranks, cluster[0], rank)
    assert rank.asked == 4


residents = st.lists(
    st.tuples(st.integers(-2, 2), st.none() | st.integers(0, 3), st.booleans()), max_size=6
)


@given(residents, st.lists(st.integers(-3, 3), min_size=1, max_size=4))
def test_what_is_kept_serves_preemptors_of_any_priority(here: Any, limits: list[int]) -> None:
    some = node(
        "n",
        pods=[
            runs(f"{'spared' if spared else 'p'}-{number}", since, priority=priority)
            for number, (priority, since, spared) in enumerate(here)
        ],
    )
    kept = Ranks()
    for limit in limits:
        asked = request_for(
            pod(priority=limit), spares=lambda other: other.name.startswith("spared"), ranks=kept
        )
        violating, others = asked.split(asked.ranked(nodes(some), 0))
        assert list(others) == asked.by_importance(asked.potential_victims(some))
        assert not violating
