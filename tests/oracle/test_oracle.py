"""The oracle reproduces what was recorded from kube-scheduler; the questions to it are sound."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.compare import differences
from tests.oracle.generate import generate, line
from tests.oracle.oracle import Oracle, OracleError
from tests.oracle.scenarios.families import FAMILIES
from tests.oracle.scenarios.objects import KINDS

RECORDED = Path(__file__).parents[1] / "parity" / "data"
PER_FAMILY = 4  # of a hundred each


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    try:
        running = Oracle()
    except OracleError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        pytest.skip(f"{error} (set MOORING_REQUIRE_REAL=1 to make this a failure)")
    with running:
        yield running


@pytest.mark.parametrize("family", FAMILIES)
def test_oracle_decides_as_recorded(family: str, oracle: Oracle) -> None:
    with gzip.open(RECORDED / f"{family}.jsonl.gz") as lines:
        recorded: list[dict[str, Any]] = [json.loads(text) for text in lines]
    chosen = recorded[:: len(recorded) // PER_FAMILY][:PER_FAMILY]
    for scenario, result in zip(chosen, oracle.answers(chosen), strict=True):
        if family == "dynamicresources":  # it says nothing of what is written to claims
            assert differences(scenario["expect"], result) == []
        else:
            assert result == {"id": scenario["id"], **scenario["expect"]}


def test_oracle_answers_what_kube_scheduler_would_refuse(oracle: Oracle) -> None:
    (scenario,) = generate(1, seed=7, family="taints")
    plugins = {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}
    refused, answered = oracle.answers([{**scenario, "profile": {"plugins": plugins}}, scenario])
    assert "NoSuchPlugin" in refused["error"]
    assert "error" not in answered


def test_oracle_takes_every_generated_scenario(oracle: Oracle) -> None:
    scenarios = list(generate(13 * len(FAMILIES), seed=1))
    errors = [
        result for result in oracle.answers(scenarios) if "error" in result or not result["outcome"]
    ]
    assert errors == []


def test_generator_says_the_same_for_the_same_seed() -> None:
    first = [line(scenario) for scenario in generate(26, seed=7)]
    assert first == [line(scenario) for scenario in generate(26, seed=7)]
    assert first[:13] == [line(scenario) for scenario in generate(13, seed=7)]
    assert first != [line(scenario) for scenario in generate(26, seed=8)]


def test_generator_takes_families_in_turn_or_one_alone() -> None:
    turns = Counter(scenario["family"] for scenario in generate(2 * len(FAMILIES), seed=3))
    assert turns == Counter(dict.fromkeys(FAMILIES, 2))
    in_turn = next(s for s in generate(len(FAMILIES), seed=3) if s["family"] == "spread")
    assert next(generate(1, seed=3, family="spread")) == in_turn


@pytest.mark.parametrize("family", FAMILIES)
def test_generator_makes_objects_as_an_api_server_stores_them(family: str) -> None:
    for scenario in generate(20, seed=11, family=family):
        assert set(scenario) - {"inFlight"} == {"id", "family", "profile", "cluster", "pod"}
        cluster = scenario["cluster"]
        assert list(cluster) == list(KINDS)
        stored = [item for kind in KINDS for item in cluster[kind]] + [scenario["pod"]]
        uids = Counter(item["metadata"]["uid"] for item in stored)
        assert uids.most_common(1)[0][1] == 1
        for kind in KINDS:
            names = Counter(
                (item["metadata"].get("namespace"), item["metadata"]["name"])
                for item in cluster[kind]
            )
            assert not names or names.most_common(1)[0][1] == 1, kind
        running = [pod for pod in cluster["pods"] if "nodeName" in pod["spec"]]
        starts = Counter((p["spec"]["nodeName"], p["status"]["startTime"]) for p in running)
        assert not starts or starts.most_common(1)[0][1] == 1
        if family != "nominated":
            assert len(running) == len(cluster["pods"])
