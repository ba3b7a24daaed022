"""The benchmarks in this process measure what they say, and add it up right."""

from __future__ import annotations

import pytest
from bench.plugins import PLUGINS
from bench.trees import trees
from bench.workloads import CLASSES, WORKLOADS, hundred_classes

from bench import huge, inprocess


@pytest.mark.parametrize("name", WORKLOADS)
def test_measures(name: str) -> None:
    found = inprocess.measure([name], 120, 5)
    assert list(found) == [f"{name} @ 120"]
    assert found[f"{name} @ 120"] > 0


@pytest.mark.parametrize("form", PLUGINS)
def test_runs_with_a_users_plugin(form: str) -> None:
    assert inprocess.cost(WORKLOADS["basic"], 5, 3, PLUGINS[form]) > 0


def test_has_seen_all_hundred_classes_when_the_clock_starts() -> None:
    seen = [tuple(hundred_classes(i).labels.items()) for i in range(2 * CLASSES)]
    assert len(set(seen[: inprocess.WARM_UP])) == CLASSES
    assert seen[:CLASSES] != seen[CLASSES:]  # in another order


def test_compares_the_largest_cluster_with_the_smallest() -> None:
    medians = {"basic @ 500": 100.0, "basic @ 5000": 120.0, "basic @ 15000": 150.0}
    assert inprocess.growth(medians)[-1].split() == ["basic", "1.50x"]
    assert inprocess.growth({"basic @ 500": 100.0}) == []


def test_tells_what_share_of_the_throughput_a_plugin_leaves() -> None:
    costs = dict(zip(PLUGINS, (100.0, 110.0, 125.0, 10_000.0), strict=True))
    lines = inprocess.prices({f"{form} @ 5000": cost for form, cost in costs.items()})
    assert [line.split()[-1] for line in lines[2:]] == ["100%", "91%", "80%", "1%"]
    assert inprocess.prices({"basic @ 5000": 100.0}) == []


def test_shows_another_commit_beside_this_one() -> None:
    here = [{"basic @ 500": 100.0}, {"basic @ 500": 200.0}, {"basic @ 500": 120.0}]
    there = [{"basic @ 500": 240.0}]
    lines = inprocess.table({"here": here, "HEAD~1": there}, "HEAD~1")
    expected = ["basic", "@", "500", "120", "100-200", "8333", "240", "0.50"]
    assert lines[1].split() == expected


def test_says_that_there_is_no_such_commit() -> None:
    with pytest.raises(SystemExit, match="no-such-commit"), trees("no-such-commit"):
        pass


def test_completes_a_huge_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert huge.main(["--nodes", "30", "--pods", "250", "--batch", "20"]) == 0
    told = capsys.readouterr().out
    assert "250 pods bound" in told
    assert "found no node" not in told


def test_tells_how_many_pods_found_no_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert huge.main(["--nodes", "3", "--pods", "20", "--workload", "unschedulable"]) == 0
    assert "20 pods found no node" in capsys.readouterr().out
