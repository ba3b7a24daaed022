"""Which answers count as the same, and how a difference is told and made small."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracle.compare import differences
from tests.oracle.fuzz import signature
from tests.oracle.generate import generate
from tests.oracle.reduce import Reducer

FIT = {"code": "Unschedulable", "plugin": "NodeResourcesFit"}
SCORED = {"Fit": {"weight": 1, "nodes": {"a": 50, "b": 49}}}


def test_tells_a_difference_of_one_node_in_one_line() -> None:
    expected = {"filter": {"node-3": {**FIT, "reasons": ["Insufficient cpu"]}}}
    got = {"filter": {"node-3": {"code": "Success"}}}
    assert differences(expected, got) == [
        "filter[node-3]: expected NodeResourcesFit Unschedulable [Insufficient cpu], got Success"
    ]


def test_puts_what_a_plugin_said_before_what_follows_from_it() -> None:
    expected = {"outcome": "Scheduled", "scores": SCORED, "total": {"a": 50, "b": 49}}
    other = {"Fit": {"weight": 1, "nodes": {"a": 50, "b": 51}}}
    got = {"outcome": "Scheduled", "scores": other, "total": {"a": 50, "b": 51}}
    assert [text.split(":")[0] for text in differences(expected, got)] == [
        "scores[Fit][b]",
        "total[b]",
    ]


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"feasible": []}, {}),
        ({"best": ["a", "b"]}, {"best": ["b"]}),
        (
            {"filter": {"a": {**FIT, "reasons": ["x", "y"]}}},
            {"filter": {"a": {**FIT, "reasons": ["y", "x"]}}},
        ),
        ({"filter": {"a": FIT}}, {"filter": {"a": {**FIT, "prefiltered": False}}}),
        ({"preFilter": {"code": "Success", "nodeNames": None}}, {"preFilter": {"code": "Success"}}),
        ({"error": "in its words"}, {"error": "in ours"}),
        (
            {"postFilter": {"code": "Success", "nominatedNodes": ["a", "b"], "victims": None}},
            {"postFilter": {"code": "Success", "nominatedNodes": ["b"], "victims": []}},
        ),
    ],
)
def test_accepts_what_means_the_same(expected: dict[str, Any], got: dict[str, Any]) -> None:
    assert differences(expected, got) == []


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"best": ["a", "b"]}, {"best": []}),
        ({"best": ["a"]}, {"best": ["a", "b"]}),
        ({"scores": SCORED}, {}),
        ({"scores": {"Fit": {"weight": 1, "skipped": True}}}, {"scores": SCORED}),
        ({"scores": SCORED}, {"scores": {"Fit": {**SCORED["Fit"], "weight": 2}}}),
        (
            {"preFilter": {**FIT, "reasons": ["x", "y"]}},
            {"preFilter": {**FIT, "reasons": ["y", "x"]}},
        ),
        ({"filter": {"a": FIT}}, {"filter": {"a": {**FIT, "prefiltered": True}}}),
        ({"outcome": "Scheduled"}, {"error": "crashed"}),
        ({"fitError": "0/1 nodes"}, {"fitError": "0/2 nodes"}),
        ({"postFilter": {"code": "Success"}}, {}),
        (
            {"postFilter": {"code": "Success", "candidates": {"a": {"victims": ["x/y", "x/z"]}}}},
            {"postFilter": {"code": "Success", "candidates": {"a": {"victims": ["x/z", "x/y"]}}}},
        ),
        (
            {"postFilter": {"nominatedNodes": ["a"], "victims": ["x/y"]}},
            {"postFilter": {"nominatedNodes": ["a"], "victims": []}},
        ),
    ],
)
def test_notices_what_does_not(expected: dict[str, Any], got: dict[str, Any]) -> None:
    assert differences(expected, got)


def test_kind_of_a_difference_has_no_names_and_numbers() -> None:
    cluster = {"nodes": [{"metadata": {"name": "m12"}}, {"metadata": {"name": "m1"}}], "pods": []}
    text = "scores[Fit][m12]: expected 50, got 49"
    assert signature(text, {"cluster": cluster}) == "scores[Fit][*]: expected #, got #"


def test_reducer_leaves_only_what_matters() -> None:
    (scenario,) = generate(1, seed=7, family="mixed")
    wanted = scenario["cluster"]["pods"][3]["metadata"]["uid"]
    host = "kubernetes.io/hostname"
    labelled = next(n for n in scenario["cluster"]["nodes"] if host in n["metadata"]["labels"])

    def has_both(candidate: dict[str, Any]) -> bool:
        uids = [pod["metadata"]["uid"] for pod in candidate["cluster"]["pods"]]
        hosts = [n["metadata"].get("labels", {}).get(host) for n in candidate["cluster"]["nodes"]]
        return wanted in uids and labelled["metadata"]["name"] in hosts

    smallest = Reducer(has_both).reduce(scenario)
    cluster = smallest["cluster"]
    assert {kind: len(items) for kind, items in cluster.items() if items} == {"nodes": 1, "pods": 1}
    assert list(cluster["nodes"][0]["metadata"]["labels"]) == [host]
    assert "affinity" not in cluster["pods"][0]["spec"]
    assert len(scenario["cluster"]["nodes"]) > 1
