from collections.abc import Callable

import numpy as np
import pytest

from mooring.cache import nodes as node_table
from mooring.cache.cache import Cache
from mooring.cache.internals import (
    count_features,
    structure_of,
)
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Features
from mooring.testing import node, pod
from mooring.testing.builders import ZONE


def team_of(resident: Pod) -> list[str]:
    return [resident.labels["team"]] if "team" in resident.labels else []


def member(name: str, on: str, team: str) -> Pod:
    return pod(name, uid=name, on=on, labels={"team": team})


def cluster(**zones: str) -> Cache:
    cache = Cache()
    for name, zone in zones.items():
        cache.put_node(node(name, zone=zone or None).api)
    return cache


def teams(cache: Cache) -> Features:
    return count_features(cache.nodes, "team", team_of)


def per_zone(cache: Cache, team: str) -> dict[str | None, int]:
    sums = teams(cache).per_domain(team, ZONE)
    return dict(zip(cache.nodes.label_values(ZONE), sums.tolist(), strict=True))


def test_collects_what_the_pods_brought_that_were_there_before_the_question() -> None:
    cache = cluster(n0="a", n1="b", n2="")
    for name, on, team in (("p", "n0", "red"), ("q", "n1", "red"), ("r", "n2", "blue")):
        cache.put_pod(member(name, on, team))
    cache.put_pod(pod("nobody", on="n0"))
    assert set(teams(cache).distinct) == {"red", "blue"}
    assert teams(cache).per_node("red").tolist() == [1, 1, 0]
    assert per_zone(cache, "red") == {None: 0, "a": 1, "b": 1}
    assert per_zone(cache, "blue") == {None: 1, "a": 0, "b": 0}


def test_drops_a_feature_with_its_last_pod() -> None:
    cache = cluster(n0="a", n1="b")
    cache.put_pod(member("p", "n0", "red"))
    cache.put_pod(member("q", "n1", "red"))
    assert per_zone(cache, "red") == {None: 0, "a": 1, "b": 1}
    cache.remove_pod(member("p", "", ""))
    assert teams(cache).distinct == ("red",)
    assert per_zone(cache, "red") == {None: 0, "a": 0, "b": 1}
    cache.remove_node("n1")
    assert teams(cache).distinct == ()
    assert teams(cache).per_node("red").tolist() == [0]
    assert per_zone(cache, "red") == {None: 0, "a": 0, "b": 0}
    cache.put_node(node("n1", zone="a").api)
    assert per_zone(cache, "red") == {None: 0, "a": 1, "b": 0}


def test_structure_changes_with_nodes_and_features_and_not_with_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = cluster(n0="a", n1="b")
    teams(cache)
    monkeypatch.setattr(node_table, "MAX_FEATURE_INDEXES", 1)
    steps: list[tuple[bool, Callable[[], object]]] = [
        (False, lambda: cache.put_pod(pod("nobody", on="n0"))),
        (True, lambda: cache.put_pod(member("p", "n0", "red"))),
        (False, lambda: cache.put_pod(member("q", "n1", "red"))),
        (False, lambda: cache.remove_pod(member("p", "n0", "red"))),
        (True, lambda: cache.remove_pod(member("q", "n1", "red"))),
        (True, lambda: cache.put_node(node("n0", zone="b").api)),
        (True, lambda: cache.put_node(node("n2", zone="b").api)),
        (True, lambda: cache.remove_node("n2")),
        # The teams are not followed from here on.
        (True, lambda: count_features(cache.nodes, "other", team_of)),
    ]
    for place, (is_news, step) in enumerate(steps):
        before = structure_of(cache.nodes)
        step()
        assert (structure_of(cache.nodes) != before) is is_news, place


def test_finds_features_by_their_parts() -> None:
    def letters(team: str) -> list[str]:
        return sorted(set(team))

    cache = cluster(n0="a", n1="b")
    for name, on, team in (("p", "n0", "red"), ("q", "n1", "blue"), ("r", "n0", "red")):
        cache.put_pod(member(name, on, team))
    found = count_features(cache.nodes, "letters", team_of, letters)
    assert set(found.having("e")) == {"red", "blue"}
    assert list(found.having("d")) == ["red"]
    assert list(found.having("x")) == []
    cache.remove_pod(member("p", "", ""))
    assert list(found.having("d")) == ["red"]
    cache.remove_pod(member("r", "", ""))
    assert list(found.having("d")) == []
    assert list(found.having("e")) == ["blue"]
    cache.put_pod(member("p", "n1", "red"))
    assert list(found.having("d")) == ["red"]


def test_follows_nodes_that_change_their_zone_or_their_row() -> None:
    cache = cluster(n0="a", n1="b", n2="c")
    cache.put_pod(member("p", "n2", "red"))
    assert per_zone(cache, "red") == {None: 0, "a": 0, "b": 0, "c": 1}
    cache.remove_node("n0")  # n2 fills the hole
    assert cache.nodes.names == ("n2", "n1")
    assert teams(cache).per_node("red").tolist() == [1, 0]
    cache.put_node(node("n2", zone="b").api)
    assert per_zone(cache, "red") == {None: 0, "a": 0, "b": 1, "c": 0}
    cache.put_node(node("n2").api)
    assert per_zone(cache, "red") == {None: 1, "a": 0, "b": 0, "c": 0}


def test_survives_zones_that_are_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_table, "_SPARE_CODES", 0)
    cache = cluster(n0="z0")
    cache.put_pod(member("p", "n0", "red"))
    for number in range(1, 9):
        assert per_zone(cache, "red")[f"z{number - 1}"] == 1
        cache.put_node(node("n0", zone=f"z{number}").api)
    assert per_zone(cache, "red")["z8"] == 1
    assert len(cache.nodes.label_values(ZONE)) < 9


def test_counts_a_feature_as_often_as_a_pod_has_it() -> None:
    cache = cluster(n0="a")
    cache.put_pod(member("p", "n0", "red"))
    twice = count_features(cache.nodes, "twice", lambda resident: team_of(resident) * 2)
    assert twice.per_node("red").tolist() == [2]
    cache.remove_pod(member("p", "", ""))
    assert twice.distinct == ()


def test_counts_the_whole_cluster_whatever_part_of_it_is_looked_at() -> None:
    cache = cluster(n0="a", n1="a")
    cache.put_pod(member("p", "n0", "red"))
    part = count_features(cache.nodes.take(np.array([False, True])), "team", team_of)
    assert part.per_node("red").tolist() == [0]
    assert part.per_domain("red", ZONE).tolist() == [0, 1]


def test_looks_at_each_pod_only_when_it_comes_and_goes() -> None:
    looked: list[str] = []

    def extract(resident: Pod) -> list[str]:
        looked.append(resident.name)
        return team_of(resident)

    cache = cluster(n0="a")
    cache.put_pod(member("p", "n0", "red"))
    for _ in range(3):
        count_features(cache.nodes, "question", extract).per_domain("red", ZONE)
    assert looked == ["p"]


@pytest.mark.parametrize("team", ["red", "blue"])
def test_counts_cannot_be_written(team: str) -> None:
    cache = cluster(n0="a")
    cache.put_pod(member("p", "n0", "red"))
    with pytest.raises(ValueError, match="read-only"):
        teams(cache).per_node(team)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        teams(cache).per_domain(team, ZONE)[0] = 1


def test_forgets_the_question_that_nobody_asked_for_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_table, "MAX_FEATURE_INDEXES", 2)
    cache = cluster(n0="a")
    cache.put_pod(member("p", "n0", "red"))
    for question in ("first", "second", "first", "third"):
        count_features(cache.nodes, question, team_of)
    assert list(cache.table._features) == ["first", "third"]
    assert count_features(cache.nodes, "second", team_of).distinct == ("red",)
