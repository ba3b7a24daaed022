import numpy as np
import pytest

from mooring.api.selectors import Selector
from mooring.cache import nodes as node_table
from mooring.cache import topology
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.testing import node, pod
from mooring.testing.builders import ZONE


def is_web(resident: Pod) -> bool:
    return resident.labels.get("app") == "web"


def web(name: str, on: str) -> Pod:
    return pod(name, uid=name, on=on, labels={"app": "web"})


def cluster(**zones: str) -> Cache:
    cache = Cache()
    for name, zone in zones.items():
        cache.put_node(node(name, zone=zone or None).api)
    return cache


def per_zone(cache: Cache) -> dict[str | None, int]:
    nodes = cache.nodes
    sums = nodes.count_pods_by(ZONE, "web", is_web)
    return dict(zip(nodes.label_values(ZONE), sums.tolist(), strict=True))


def per_node(cache: Cache) -> dict[str, int]:
    nodes = cache.nodes
    return dict(zip(nodes.names, nodes.count_pods("web", is_web).tolist(), strict=True))


def test_counts_the_pods_that_were_there_before_the_question() -> None:
    cache = cluster(n0="a", n1="b")
    cache.put_pod(web("p", "n1"))
    cache.put_pod(pod("other", on="n1"))
    assert per_node(cache) == {"n0": 0, "n1": 1}
    assert per_zone(cache) == {None: 0, "a": 0, "b": 1}


def test_follows_pods_that_come_and_go() -> None:
    cache = cluster(n0="a", n1="a", n2="")
    assert per_zone(cache) == {None: 0, "a": 0}
    for name, on in (("p", "n0"), ("q", "n1"), ("r", "n2")):
        cache.put_pod(web(name, on))
    assert per_zone(cache) == {None: 1, "a": 2}
    cache.remove_pod(web("q", ""))
    assert per_zone(cache) == {None: 1, "a": 1}
    assert per_node(cache) == {"n0": 1, "n1": 0, "n2": 1}


def test_follows_a_pod_whose_labels_change() -> None:
    cache = cluster(n0="a")
    cache.put_pod(pod("p", uid="p", on="n0"))
    assert per_node(cache) == {"n0": 0}
    cache.put_pod(web("p", "n0"))
    assert per_node(cache) == {"n0": 1}


def test_moves_the_pods_of_a_node_that_changes_its_zone() -> None:
    cache = cluster(n0="a", n1="b")
    cache.put_pod(web("p", "n0"))
    assert per_zone(cache) == {None: 0, "a": 1, "b": 0}
    cache.put_node(node("n0", zone="b").api)
    assert per_zone(cache) == {None: 0, "a": 0, "b": 1}
    cache.put_node(node("n0").api)
    assert per_zone(cache) == {None: 1, "a": 0, "b": 0}


def test_makes_room_for_zones_that_appear_later() -> None:
    cache = cluster(n0="z0")
    per_zone(cache)
    for i in range(1, 50):
        cache.put_node(node(f"n{i}", zone=f"z{i}").api)
        cache.put_pod(web(f"p{i}", f"n{i}"))
    assert per_zone(cache) == {None: 0, "z0": 0} | {f"z{i}": 1 for i in range(1, 50)}


def test_takes_off_the_pods_of_a_node_that_goes_and_adds_them_when_it_returns() -> None:
    cache = cluster(n0="a", n1="b")
    cache.put_pod(web("p", "n0"))
    cache.put_pod(web("q", "n1"))
    per_zone(cache)
    cache.remove_node("n0")
    assert per_zone(cache) == {None: 0, "a": 0, "b": 1}
    assert per_node(cache) == {"n1": 1}
    cache.put_node(node("n0", zone="b").api)
    assert per_zone(cache) == {None: 0, "a": 0, "b": 2}


def test_counts_the_whole_cluster_whatever_part_of_it_is_looked_at() -> None:
    cache = cluster(n0="a", n1="a")
    cache.put_pod(web("p", "n0"))
    part = cache.nodes.take(np.array([False, True]))
    assert part.count_pods("web", is_web).tolist() == [0]
    assert part.count_pods_by(ZONE, "web", is_web).tolist() == [0, 1]


def test_asks_each_pod_only_once_when_it_comes() -> None:
    asked: list[str] = []

    def ask(resident: Pod) -> bool:
        asked.append(resident.name)
        return True

    cache = cluster(n0="a")
    cache.put_pod(web("p", "n0"))
    for _ in range(3):
        cache.nodes.count_pods("question", ask)
    assert asked == ["p"]
    cache.put_pod(web("q", "n0"))
    assert asked == ["p", "q"]


def test_asks_only_pods_with_the_label_that_a_selector_names() -> None:
    asked: list[str] = []

    def ask(resident: Pod) -> bool:
        asked.append(resident.name)
        return True

    selector = Selector.from_map({"app": "web"})
    cache = cluster(n0="a", n1="a")
    cache.put_pod(web("p", "n1"))
    cache.put_pod(pod("other", on="n0"))
    for _ in range(2):
        assert cache.nodes.count_pods("question", ask, selector).tolist() == [0, 1]
    cache.put_pod(pod("another", on="n0", labels={"app": "db"}))
    cache.put_pod(web("q", "n1"))
    cache.remove_pod(web("p", ""))
    assert asked == ["p", "q", "p"]
    assert cache.nodes.count_pods("question", ask, selector).tolist() == [0, 1]
    assert cache.nodes.count_pods_by(ZONE, "question", ask, selector).tolist() == [0, 1]


def test_a_selector_that_matches_nothing_counts_nothing() -> None:
    cache = cluster(n0="a")
    cache.put_pod(web("p", "n0"))
    assert cache.nodes.count_pods("nothing", is_web, Selector.NOTHING).tolist() == [0]
    cache.put_pod(web("q", "n0"))
    assert cache.nodes.count_pods("nothing", is_web, Selector.NOTHING).tolist() == [0]


def test_asks_every_pod_when_too_many_label_keys_were_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topology, "MAX_LABEL_KEYS", 1)
    cache = cluster(n0="a")
    cache.put_pod(pod("p", on="n0", labels={"app": "web", "tier": "front"}))
    for question, labels in (("app", {"app": "web"}), ("tier", {"tier": "front"})):
        selector = Selector.from_map(labels)
        assert cache.nodes.count_pods(question, is_web, selector).tolist() == [1]
    cache.put_pod(web("q", "n0"))
    assert cache.nodes.count_pods("app", is_web).tolist() == [2]
    assert cache.nodes.count_pods("tier", is_web).tolist() == [2]


def test_a_forgotten_question_is_asked_of_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_table, "MAX_COUNTERS", 1)
    asked: list[str] = []

    def ask(resident: Pod) -> bool:
        asked.append(resident.name)
        return True

    cache = cluster(n0="a")
    for number, selector in enumerate((Selector.from_map({"app": "web"}), None)):
        cache.nodes.count_pods(number, ask, selector)
        cache.nodes.count_pods("next", is_web)
        cache.put_pod(web(f"p{number}", "n0"))
        assert asked == []
        cache = cluster(n0="a")


def test_gives_the_same_array_again_until_there_are_new_domains() -> None:
    cache = cluster(n0="a", n1="b")
    sums = cache.nodes.count_pods_by(ZONE, "web", is_web)
    cache.put_pod(web("p", "n1"))
    assert cache.nodes.count_pods_by(ZONE, "web", is_web) is sums
    assert sums.tolist() == [0, 0, 1]
    cache.put_node(node("n0", zone="c").api)
    cache.put_pod(web("q", "n0"))
    assert cache.nodes.count_pods_by(ZONE, "web", is_web).tolist() == [0, 0, 1, 1]


def test_counts_cannot_be_written() -> None:
    nodes = cluster(n0="a").nodes
    with pytest.raises(ValueError, match="read-only"):
        nodes.count_pods("web", is_web)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        nodes.count_pods_by(ZONE, "web", is_web)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        nodes.take(np.array([0])).count_pods("web", is_web)[0] = 1


def test_forgets_the_question_that_nobody_asked_for_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_table, "MAX_COUNTERS", 2)
    cache = cluster(n0="a")
    cache.put_pod(web("p", "n0"))
    for question in ("first", "second", "first", "third"):
        cache.nodes.count_pods(question, is_web)
    assert list(cache.table._counters) == ["first", "third"]
    assert cache.nodes.count_pods("second", is_web).tolist() == [1]
