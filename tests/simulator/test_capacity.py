from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulator.clusters import snapshot

from mooring.cache.pods import Pod
from mooring.errors import ConfigError
from mooring.lens.snapshot import MissingKind, Snapshot
from mooring.simulator.answers import CapacityAnswer
from mooring.simulator.capacity import Demand, capacity
from mooring.simulator.imagine import Run
from mooring.testing import node, pod


def ask(given: Snapshot, *shapes: Pod, **more: Any) -> CapacityAnswer:
    return capacity(given, Demand(shapes=tuple(one.api for one in shapes), **more), Run())


def gains(answer: CapacityAnswer) -> dict[str, int]:
    return {f"{one.unit} {one.resource}": one.pods for one in answer.gains}


# --- scenario 13 of the brief --------------------------------------------------------------------


def test_counts_pods_as_cluster_capacity_does() -> None:
    given = snapshot(*(node(f"n{i}", cpu=2, memory="4Gi") for i in range(4)))
    answer = ask(given, pod("small", cpu="150m", memory="100Mi"))
    assert answer.total == 52
    assert answer.nodes == {"n0": 13, "n1": 13, "n2": 13, "n3": 13}
    assert answer.bottlenecks == {"cpu": 4}
    assert answer.message == "0/4 nodes are available: 4 Insufficient cpu."
    # 2 cpu hold 13 with 50m to spare; 3 cpu hold 20.
    assert gains(answer) == {"1 cpu": 28, "1Gi memory": 0}
    assert not answer.limited


def test_another_resource_is_the_bottleneck_of_each_node() -> None:
    given = snapshot(
        node("cpu", cpu=1, memory="16Gi"),
        node("memory", cpu=16, memory="1Gi"),
        node("both", cpu=1, memory="1Gi"),
        node("slots", cpu=16, memory="16Gi", max_pods=1),
        node("tainted", taints=["team=ml:NoSchedule"]),
        node("cordoned", unschedulable=True),
    )
    answer = ask(given, pod("p", cpu=1, memory="1Gi"))
    assert answer.nodes == {
        "cpu": 1,
        "memory": 1,
        "both": 1,
        "slots": 1,
        "tainted": 0,
        "cordoned": 0,
    }
    assert answer.bottlenecks == {
        "cpu": 1,
        "memory": 1,
        "cpu, memory": 1,
        "pods": 1,
        "node(s) had untolerated taint(s)": 1,
        "node(s) were unschedulable": 1,
    }
    assert gains(answer) == {"1 cpu": 1, "1Gi memory": 1, "1 pods": 1}


def test_what_is_there_takes_room_and_nothing_is_evicted() -> None:
    given = snapshot(node("n", cpu=4), pod("low", cpu=3, on="n", priority=-10))
    answer = ask(given, pod("vip", cpu=1, priority=1000))
    assert (answer.total, answer.nodes) == (1, {"n": 1})


def test_pods_that_wait_already_are_left_out_and_that_is_said() -> None:
    given = snapshot(node("n", cpu=4), pod("waits", cpu=1))
    answer = ask(given, pod("p", cpu=1))
    assert answer.total == 4
    assert answer.notes == ("pods of the snapshot that wait are left out: 1",)


def test_rules_between_the_copies_count() -> None:
    zones = [node(f"n{i}", cpu=8, zone=zone) for i, zone in enumerate("aab")]
    alone = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "topology.kubernetes.io/zone",
                    "labelSelector": {"matchLabels": {"app": "x"}},
                }
            ]
        }
    }
    answer = ask(snapshot(*zones), pod("p", cpu=1, labels={"app": "x"}, affinity=alone))
    assert answer.total == 2
    assert answer.bottlenecks == {"node(s) didn't match pod anti-affinity rules": 3}
    assert gains(answer) == {"1 cpu": 0}
    spread = ask(snapshot(*zones), pod("p", cpu=1, labels={"app": "x"}, spread={"zone": 1}))
    assert spread.total == 17  # 8 in b, and one more in a
    ports = ask(snapshot(*zones), pod("p", ports=[8080]))
    assert ports.total == 3


def test_nothing_fits_where_nothing_is_offered() -> None:
    answer = ask(snapshot(node("n")), pod("p", requests={"example.com/gpu": 1}))
    assert (answer.total, answer.bottlenecks) == (0, {"example.com/gpu": 1})
    assert gains(answer) == {"1 example.com/gpu": 1}
    nowhere = ask(snapshot(), pod("p", cpu=1))
    assert (nowhere.total, nowhere.nodes) == (0, {})
    claims = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}]}
    lost = ask(snapshot(node("n")), pod("p", spec=claims))
    assert lost.bottlenecks == {'persistentvolumeclaim "lost" not found': 1}


# --- several shapes ------------------------------------------------------------------------------


def test_a_mix_ends_with_the_first_pod_that_does_not_fit() -> None:
    given = snapshot(node("n", cpu=10, memory="16Gi"))
    web, db = pod("web", cpu=1), pod("db", cpu=2)
    answer = ask(given, web, db, mix=(3, 1))
    # 3 web and 1 db are 5 cpu; twice that fits.
    assert [(one.name, one.share, one.count) for one in answer.pods] == [
        ("web", 3, 6),
        ("db", 1, 2),
    ]
    assert (answer.total, answer.refused_pod) == (8, "web")
    equal = ask(given, web, db)
    # 1+2 three times is 9; another web fits, another db does not.
    assert [one.count for one in equal.pods] == [4, 3]
    assert equal.refused_pod == "db"


def test_a_mix_is_taken_in_turn_whatever_the_priorities() -> None:
    given = snapshot(node("n", cpu=3))
    answer = ask(given, pod("low", cpu=1, priority=1), pod("high", cpu=1, priority=9))
    assert [one.count for one in answer.pods] == [2, 1]


def test_a_small_pod_that_still_fits_does_not_count_after_the_end() -> None:
    given = snapshot(node("n", cpu=5))
    answer = ask(given, pod("large", cpu=4), pod("small", cpu="100m"), mix=(1, 1))
    assert [one.count for one in answer.pods] == [1, 1]
    assert answer.total == sum(answer.nodes.values()) == 2
    assert gains(answer) == {"1 cpu": 0}  # 4.1 of 6 are taken: another large one needs 8.1


# --- limits, answers, mistakes -------------------------------------------------------------------


def test_stops_at_the_limit() -> None:
    answer = ask(snapshot(node("n", cpu=64)), pod("p", cpu="100m"), most=70)
    assert (answer.total, answer.limited, answer.bottlenecks) == (70, True, {})


def test_more_than_one_batch_is_counted_to_the_end() -> None:
    nodes = [node(f"n{i}", cpu=10, max_pods=1000) for i in range(3)]
    answer = ask(snapshot(*nodes), pod("p", cpu="100m"))
    assert (answer.total, set(answer.nodes.values())) == (300, {100})


def test_pods_that_no_scheduler_would_try_are_a_mistake() -> None:
    given = snapshot(node("n"))
    with pytest.raises(ConfigError, match="waiting for scheduling gates"):
        ask(given, pod("p", gates=["x/y"]))
    with pytest.raises(ConfigError, match="no profile for volcano; there are: default-scheduler"):
        ask(given, pod("p", scheduler="volcano"))


def test_the_same_question_twice_has_the_same_bytes() -> None:
    missing = (MissingKind("csinodes.storage.k8s.io", "forbidden"),)
    given = snapshot(*(node(f"n{i}", zone=f"z{i % 2}") for i in range(5)), missing=missing)
    shapes = pod("p", cpu="300m", spread={"zone": 1}), pod("q", cpu=1)
    first, second = (msgspec.json.encode(ask(given, *shapes)) for _ in range(2))
    assert first == second
    assert msgspec.json.decode(first)["missing"][0]["resource"] == "csinodes.storage.k8s.io"
